/**
 * The load: a number of connections, each with one request on its way at any time. Every answer is
 * read to its end and looked at, so that nobody measures errors.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Message } from '../../../client.ts'
import { cpuTime } from './cpu-time.ts'
import { quantile } from './statistics.ts'

/** One request, and what every answer to it has. */
export type Shot = {
  readonly message: Message
  readonly status: number
  /** Part of the body. */
  readonly marker: string
}

export type Target = { readonly url: URL; readonly pid: number }

export type Measured = {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server's processor time for each request. */
  readonly cpu: number
}

/** Connections to one server, kept open between its turns. */
export type Load = {
  /** Keeps every connection busy for this long, in milliseconds, and waits for the last answers. */
  readonly run: (duration: number) => Promise<void>
  /** Closes the connections. @returns the figures of all runs together. */
  readonly end: () => Measured
}

type Connection = { readonly exchange: () => Promise<void>; readonly close: () => void }

/** Longer than any answer here. */
const READ_BYTES = 64 * 1024

/** Opens the connections and sends one request on each, which isn't counted. */
export async function openLoad({ url, pid }: Target, shot: Shot, connections: number): Promise<Load> {
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(url, shot)))
  await Promise.all(open.map(({ exchange }) => exchange()))
  const latencies: number[] = []
  let elapsed = 0
  let cpu = 0

  async function run(duration: number): Promise<void> {
    const cpuBefore = cpuTime(pid)
    const started = performance.now()
    const until = started + duration
    const keepBusy = async ({ exchange }: Connection) => {
      for (let sent = started; sent < until; ) {
        await exchange()
        const now = performance.now()
        latencies.push(now - sent)
        sent = now
      }
    }
    await Promise.all(open.map(keepBusy))
    elapsed += performance.now() - started
    cpu += cpuTime(pid) - cpuBefore
  }

  function end(): Measured {
    for (const { close } of open) close()
    return {
      perSecond: (latencies.length / elapsed) * 1000,
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
      cpu: cpu / latencies.length / 1000,
    }
  }

  return { run, end }
}

/** @returns a connection whose `exchange` sends the request, and rejects at an unexpected answer. */
async function openConnection(url: URL, { message, status, marker }: Shot): Promise<Connection> {
  const request = bytesOf(url, message)
  const start = `HTTP/1.1 ${status} `
  let received = ''
  let answered = () => {}
  let failed = (_: Error) => {}
  const onread = {
    buffer: Buffer.allocUnsafe(READ_BYTES),
    callback: (size: number, bytes: Uint8Array) => {
      received += Buffer.from(bytes.buffer, bytes.byteOffset, size).toString('latin1')
      if (!isWhole(received)) return true
      const answer = received
      received = ''
      if (answer.startsWith(start) && answer.includes(marker)) answered()
      else failed(new Error(`Expected ${status} with ${marker}, got: ${answer}`))
      return true
    },
  }
  const socket = connect({ port: Number(url.port), host: url.hostname, noDelay: true, onread })
  socket.on('error', (error) => failed(error)).on('close', () => failed(new Error('The server hung up.')))
  await once(socket, 'connect')
  const exchange = () =>
    new Promise<void>((resolve, reject) => {
      answered = resolve
      failed = reject
      socket.write(request)
    })
  return { exchange, close: () => socket.destroy() }
}

function bytesOf(url: URL, { headers, body }: Message): Buffer {
  const text = JSON.stringify(body)
  const lines = [['Host', url.host], ...headers, ['Content-Length', String(Buffer.byteLength(text))]]
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`POST ${url.pathname} HTTP/1.1\r\n${head}\r\n${text}`)
}

function isWhole(answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.slice(0, head + 2))?.[1]
  if (length === undefined) return answer.endsWith('\r\n0\r\n\r\n') // chunked
  return answer.length >= head + 4 + Number(length)
}
