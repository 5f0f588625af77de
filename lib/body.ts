/**
 * The body of a request, counted as it arrives (row 8), and the answer to a request whose body is
 * still arriving.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderLines } from './headers.ts'
import { goneClient, Refusal } from './refusal.ts'

/** How much of a body that nobody will read is taken in before the connection is cut, in bytes. */
const DISCARD_BYTES = 64 * 1024 * 1024

/** The event of a request whose body has not arrived in time; the server emits it. */
export const LATE = 'late'

/**
 * @param limit in bytes.
 * @throws Refusal 413 as soon as the limit is known to be exceeded, 499 when the client is gone.
 */
export function readBody(request: IncomingMessage, headers: HeaderLines, limit: number): Promise<Buffer> {
  // A declared length is believed only when it refuses; otherwise the bytes are counted.
  if (Number(headers.get('content-length')?.[0]) > limit) throw tooLarge(limit)
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(goneClient()) // its events are over
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) return chunks.push(chunk)
      request.removeAllListeners('data')
      return reject(tooLarge(limit))
    })
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)))
    request.on(LATE, () => reject(new Refusal(408, 'The request took too long to arrive.', 'late')))
    request.on('close', () => {
      if (!request.readableEnded) reject(goneClient()) // also after an error, which nobody listens to
    })
  })
}

function tooLarge(limit: number): Refusal {
  return new Refusal(413, `The body is larger than ${limit} bytes (MAX_BODY_BYTES).`, 'body size')
}

/**
 * Writes a body at once, and ends the response when the request has arrived: a socket that is closed
 * with bytes unread is reset, and the reset can overtake the answer (RFC 9112, section 9.6).
 */
export function endAfterRequest(request: IncomingMessage, response: ServerResponse, body: string): void {
  let discarded = 0
  if (body !== '') response.write(body)
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > DISCARD_BYTES) request.destroy()
  })
  request.on('end', () => response.end())
  request.resume()
}
