/** A connection that says whatever it is told to, and reads what comes back. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Answer } from './fuzz-oracle.ts'
import type { Sent } from './fuzz-wire.ts'

/** Longest silence, in milliseconds; only a server that owes an answer and gives none reaches it. */
const GIVE_UP_MS = 30_000

export class Line {
  readonly #url: URL
  #socket: Socket | undefined
  #said = ''
  #heard = () => {}

  constructor(url: URL) {
    this.#url = url
  }

  /** @returns the final answers, in order; all there are once the connection is closed. */
  async exchange({ requests, writes, manner }: Sent): Promise<Answer[]> {
    const verbs = requests.map(({ verb }) => verb)
    if (manner !== 'whole') this.close()
    const socket = this.#open()
    for (const [index, bytes] of writes.entries()) {
      if (index > 0) await new Promise((resolve) => setImmediate(resolve)) // a packet of its own
      if (!socket.destroyed) socket.write(bytes)
    }
    if (manner === 'hang-up') {
      this.close()
      if (!socket.closed) await once(socket, 'close')
      return []
    }
    if (manner === 'broken') socket.end()
    const answers: Answer[] = []
    while (answers.length < verbs.length || manner === 'broken') {
      const [answer, rest] = answerIn(this.#said, verbs[answers.length])
      if (answer !== undefined) {
        this.#said = rest
        if (answer.status >= 200) answers.push(answer)
        if (answer.headers.get('connection') === 'close' && manner === 'whole') break
      } else if (socket.closed) {
        break
      } else {
        await new Promise<void>((resolve) => {
          this.#heard = resolve
        })
      }
    }
    if (manner === 'broken' || answers.at(-1)?.headers.get('connection') === 'close') this.close()
    else if (this.#said !== '') throw new Error(`More than was asked for: ${JSON.stringify(this.#said)}`)
    return answers
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #open(): Socket {
    if (this.#socket?.readyState === 'open') return this.#socket
    const socket = connect({ port: Number(this.#url.port), host: this.#url.hostname, noDelay: true })
    this.#said = ''
    socket.setEncoding('latin1').setTimeout(GIVE_UP_MS)
    const mine = (happened: () => void) => () => {
      if (this.#socket !== socket) return
      happened()
      this.#heard()
    }
    socket.on('data', (chunk) =>
      mine(() => {
        this.#said += chunk
      })(),
    )
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => {}) // a refused write: the answer, or its absence, is judged
    socket.on(
      'close',
      mine(() => {}),
    )
    this.#socket = socket
    return socket
  }
}

/** @returns the first answer and what follows it; no answer while it is not complete. */
function answerIn(said: string, verb: string | undefined): [Answer | undefined, string] {
  const end = said.indexOf('\r\n\r\n')
  if (end < 0) return [undefined, said]
  const [start = '', ...lines] = said.slice(0, end).split('\r\n')
  const [, digits] = /^HTTP\/1\.1 (\d{3}) [\w -]+$/.exec(start) ?? []
  if (digits === undefined) throw new Error(`No HTTP: ${JSON.stringify(start)}`)
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const status = Number(digits)
  const from = end + 4
  const empty = verb === 'HEAD' || status < 200 || status === 204
  // Only Node itself sends chunks, to say that Host is missing; there is nothing in them.
  const chunked = headers.has('transfer-encoding')
  const length = empty
    ? 0
    : chunked
      ? '0\r\n\r\n'.length
      : Number(headers.get('content-length') ?? Number.NaN)
  if (Number.isNaN(length)) throw new Error(`No length: ${JSON.stringify(said)}`)
  if (said.length < from + length) return [undefined, said]
  const body = Buffer.from(chunked ? '' : said.slice(from, from + length), 'latin1')
  return [{ status, headers, body }, said.slice(from + length)]
}
