/**
 * The load: a number of connections, each with one request on its way at any time. Every answer is
 * read to its end and looked at, so that nobody measures errors.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Message } from '../../../client.ts'
import { cpuTime } from './cpu-time.ts'
import { quantile } from './statistics.ts'

/** One request, where it goes, and what every answer to it has. */
export type Shot = {
  readonly url: URL
  readonly message: Message
  readonly status: number
  /** Part of the body. */
  readonly marker: string
}

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
  /**
   * Keeps every connection busy for this long, in milliseconds, and waits for the last answers.
   * @returns how many there were.
   */
  readonly run: (duration: number) => Promise<number>
  /** Closes the connections. @returns the figures of all runs together. */
  readonly end: () => Measured
}

type Connection = { readonly exchange: () => Promise<void>; readonly close: () => void }

/** How long a server has the machine to itself, in milliseconds. */
export const TURN_MS = 50
/** Answers to a request after which the compiler is done with what it runs. */
const WARM_UP_ANSWERS = 4000
const WARM_UP_CONNECTIONS = 10
/** Longer than any answer here. */
const READ_BYTES = 64 * 1024

/**
 * Opens the connections and sends one request on each, which isn't counted.
 * @param pid the server's process.
 */
export async function openLoad(pid: number, shot: Shot, connections: number): Promise<Load> {
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(shot)))
  await Promise.all(open.map(({ exchange }) => exchange()))
  const latencies: number[] = []
  let elapsed = 0
  let cpu = 0

  async function run(duration: number): Promise<number> {
    const answersBefore = latencies.length
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
    return latencies.length - answersBefore
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

/** Sends each request until it isn't new to the server any more. */
export async function warmUp(pid: number, shots: readonly Shot[]): Promise<void> {
  for (const shot of shots) {
    const { run, end } = await openLoad(pid, shot, WARM_UP_CONNECTIONS)
    for (let answers = 0; answers < WARM_UP_ANSWERS; ) answers += await run(TURN_MS)
    end()
  }
}

/**
 * The servers take short turns, so that a machine that is slower for a while slows all of them.
 * @param seconds how long each is under load, or a few turns more. @returns a figure for each.
 */
export async function inTurns<Name extends string>(
  loads: Readonly<Record<Name, Load>>,
  seconds: number,
): Promise<Record<Name, Measured>> {
  const each = Object.entries<Load>(loads)
  for (let pass = 0; pass * TURN_MS < seconds * 1000 || pass % each.length > 0; pass += 1) {
    for (const [, { run }] of inOrder(each, pass)) await run(TURN_MS)
  }
  return Object.fromEntries(each.map(([name, { end }]) => [name, end()])) as Record<Name, Measured>
}

/**
 * What a turn costs depends on whose was before: after a slow server, a request on one connection
 * cost a fifth less. So in as many passes as there are servers, each one follows each other one
 * equally often, if their number is even (E. J. Williams, "Experimental designs balanced for the
 * estimation of residual effects of treatments", 1949).
 * @returns the same items in the order of this pass.
 */
export function inOrder<T>(items: readonly T[], pass: number): T[] {
  const first = pass % items.length
  const rest = [...items.slice(first), ...items.slice(0, first)]
  return items.flatMap((_, turn) => (turn % 2 === 0 ? rest.splice(0, 1) : rest.splice(-1)))
}

/** @returns a connection whose `exchange` sends the request, and rejects at an unexpected answer. */
async function openConnection(shot: Shot): Promise<Connection> {
  const { url, status, marker } = shot
  const request = bytesOf(shot)
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

/** A request as it goes over the wire. */
export function bytesOf({ url, message: { headers, body } }: Shot): Buffer {
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
