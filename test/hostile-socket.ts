/**
 * HTTP by hand, for what no client library agrees to send: control bytes in headers, two lengths, half a
 * body, two requests in one write.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Header, Reply } from '../client.ts'

/** Longest silence on a connection, in milliseconds; only a server that says nothing reaches it. */
const GIVE_UP_MS = 5000

/** A request's head with exactly these lines, one character a byte. */
export function head(start: string, lines: readonly Header[]): Buffer {
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`${start}\r\n${text}\r\n`, 'latin1')
}

/** A body in eight chunks. */
export function chunks(body: Buffer): Buffer {
  const size = Math.ceil(body.length / 8)
  const parts: Buffer[] = []
  for (let from = 0; from < body.length; from += size) {
    const part = body.subarray(from, from + size)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

/**
 * Plays a script on one connection: writes its parts in turn and waits at each pattern until the server has
 * said that.
 * @returns the answers in order, interim ones left out, once the server has closed the connection; none when
 *   it closed without a word.
 */
export function converse(url: URL, script: readonly (Buffer | RegExp)[]): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const socket = open(url)
    const rest = [...script]
    let said = ''
    const play = () => {
      for (let part = rest[0]; part !== undefined; part = rest[0]) {
        if (Buffer.isBuffer(part)) socket.write(part)
        else if (!part.test(said)) return
        rest.shift()
      }
    }
    const end = (error?: Error) => {
      const answers = answersIn(said)
      if (answers.length > 0 || error === undefined) resolve(answers)
      else reject(error)
    }
    socket.setEncoding('latin1').setTimeout(GIVE_UP_MS)
    socket.on('data', (chunk) => {
      said += chunk
      play()
    })
    socket.on('timeout', () => socket.destroy(new Error('silence')))
    socket.on('error', end).on('close', () => end())
    play()
  })
}

/** Writes and hangs up, without waiting for an answer. */
export function abandon(url: URL, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = open(url)
    socket.on('error', reject).on('close', () => resolve())
    socket.write(bytes, () => socket.destroy())
  })
}

function open({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (protocol !== 'https:') return connectPlain(Number(port || 80), host)
  return connectTls({ host, port: Number(port || 443), servername: isIP(host) === 0 ? host : '' })
}

function answersIn(said: string): Reply[] {
  const end = said.indexOf('\r\n\r\n')
  if (end < 0) return []
  const [start = '', ...lines] = said.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line): [string, string] => {
      const [name = '', ...value] = line.split(':')
      return [name.toLowerCase(), value.join(':').trim()]
    }),
  )
  const status = Number(start.split(' ')[1])
  const [bytes, rest] = bodyIn(said.slice(end + 4), status, headers)
  const text = Buffer.from(bytes, 'latin1').toString()
  const body = headers['content-type']?.startsWith('application/json') ? parsed(text) : undefined
  return [...(status < 200 ? [] : [{ status, headers, text, body }]), ...answersIn(rest)]
}

/** @returns the body that starts here, and what follows it. */
function bodyIn(said: string, status: number, headers: { [name: string]: string }): [string, string] {
  const length = headers['content-length']
  if (status < 200 || status === 204) return ['', said]
  if (length !== undefined) return [said.slice(0, Number(length)), said.slice(Number(length))]
  if (headers['transfer-encoding'] === undefined) return [said, '']
  let body = ''
  let rest = said
  for (let size = sizeOf(rest); size > 0; size = sizeOf(rest)) {
    const from = rest.indexOf('\r\n') + 2
    body += rest.slice(from, from + size)
    rest = rest.slice(from + size + 2)
  }
  return [body, rest.slice(rest.indexOf('\r\n\r\n') + 4)]
}

const sizeOf = (chunk: string) => Number.parseInt(chunk, 16) || 0

/** @returns what the JSON says, or undefined when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
