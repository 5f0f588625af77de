/** HTTP by hand, for what no client library sends, and for what it hides of the answer. */
import { connect } from 'node:net'
import type { Header, Reply } from '../client.ts'

/** Longest silence, in milliseconds; only a server that never answers reaches it. */
const GIVE_UP_MS = 5000

/**
 * Plays a script on one connection: writes its parts in turn and waits at each pattern until the
 * server has said that.
 * @returns all answers, interim ones too, once the server has closed the connection.
 */
export function raw(url: URL, ...script: readonly (string | Buffer | RegExp)[]): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname)
    const rest = [...script]
    let said = ''
    const play = () => {
      for (let part = rest[0]; part !== undefined; part = rest[0]) {
        if (!(part instanceof RegExp)) socket.write(part)
        else if (!part.test(said)) return
        rest.shift()
      }
    }
    socket.setEncoding('latin1').setTimeout(GIVE_UP_MS)
    socket.on('connect', play).on('data', (chunk) => {
      said += chunk
      play()
    })
    socket.on('timeout', () => socket.destroy(new Error(`Silence and no end after: ${said}`)))
    socket.on('error', reject).on('close', () => {
      if (rest.length === 0) resolve(answersIn(said))
      else reject(new Error(`Closed before ${rest[0]} after: ${said}`))
    })
  })
}

/** A request's head with exactly these lines. */
export function head(lines: readonly Header[], start = 'POST /mcp HTTP/1.1'): string {
  return `${start}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

function answersIn(said: string): Reply[] {
  const end = said.indexOf('\r\n\r\n')
  if (end < 0) return []
  const [start = '', ...lines] = said.slice(0, end).split('\r\n')
  const headers: { [name: string]: string } = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const rest = said.slice(end + 4)
  const chunked = headers['transfer-encoding'] !== undefined // only by Node itself, as the last
  const length = chunked ? rest.length : Number(headers['content-length'] ?? 0)
  const text = Buffer.from(rest.slice(0, length), 'latin1').toString()
  const isJson = headers['content-type']?.startsWith('application/json') && text !== ''
  const body: unknown = isJson ? JSON.parse(text) : undefined
  const status = Number(start.split(' ')[1])
  return [{ status, headers, text, body }, ...answersIn(rest.slice(length))]
}
