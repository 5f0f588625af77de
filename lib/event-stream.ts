/**
 * An answer in several messages: notifications that belong to a request, and last its response, as
 * server-sent events. A method that only returns its result is answered in JSON, without any of this.
 *
 * Source: basic/transports/streamable-http, "Receiving Messages"; HTML, "Server-sent events".
 */
import type { ServerResponse } from 'node:http'

/** "Servers SHOULD include the `X-Accel-Buffering: no` header", or nginx holds events back. */
export const EVENT_STREAM = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

/** How often a stream says that it is there, in milliseconds: proxies cut a quiet one off after 60 s. */
const HEARTBEAT_MS = 25_000

/**
 * Keeps a stream alive whose head was written, with comments, which carry no data. None is due while
 * something else waits to leave; and after its end, which a slow client reads late, a stream takes none.
 * @param everyMs how often, in milliseconds.
 */
export function keepAlive(response: ServerResponse, everyMs = HEARTBEAT_MS): void {
  const beat = setInterval(() => {
    if (!response.writableEnded && !response.writableNeedDrain) response.write(':\n\n')
  }, everyMs).unref()
  response.once('close', () => clearInterval(beat))
}

/** @param message one JSON-RPC message as JSON text, whose line ends are all escaped. */
export function event(message: string): string {
  return `event: message\ndata: ${message}\n\n`
}

/**
 * @returns when there is room for the next event, or nobody left to read it: whoever waits for that
 *   keeps one event in memory, however slowly the client reads.
 */
export async function writeEvent(response: ServerResponse, message: string): Promise<void> {
  if (response.write(event(message)) || response.destroyed) return
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
