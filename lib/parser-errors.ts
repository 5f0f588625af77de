/**
 * Row 0 of the admission table: requests that Node's own parser refuses, or that did not arrive in
 * time. No request object exists for the first kind, so the answer is written on the bare socket.
 */
import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { LATE } from './body.ts'
import type { Exchange } from './exchange.ts'
import { CODE } from './protocol.ts'

/** How long a refused client may take to read the answer and hang up, in milliseconds. */
const LINGER_MS = 2000

type ParserError = Error & { readonly code?: string }

/**
 * Answers what the parser refuses, once for each connection, and closes it.
 * @param lastOf finds the last request that was read from a connection.
 */
export function answerParserErrors(server: Server, lastOf: (socket: Duplex) => Exchange | undefined): void {
  server.on('clientError', (error: ParserError, socket: Duplex) => {
    const last = lastOf(socket)
    const open = last?.response.closed === true ? undefined : last
    const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && open?.response.headersSent === false
    if (open?.request.complete === true && !open.response.headersSent) {
      // A request before this one is still being served: its answer goes out, then the connection.
      open.response.once('close', () => socket.destroy())
    } else if (late && open?.request.emit(LATE) === true) {
      // Whoever reads the body answers.
    } else if (open?.response.headersSent === true || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy()
    } else {
      socket.end(rawAnswer(error.code))
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    }
  })
}

/** "A header value contains invalid characters" is a HeaderMismatch, with a body that says so. */
function rawAnswer(code: string | undefined): string {
  if (code === 'HPE_HEADER_OVERFLOW') return raw('431 Request Header Fields Too Large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return raw('408 Request Timeout')
  if (code !== 'HPE_INVALID_HEADER_TOKEN') return raw('400 Bad Request')
  const error = {
    code: CODE.headerMismatch,
    message: 'Header mismatch: a header holds a character that no header may',
  }
  return raw('400 Bad Request', JSON.stringify({ jsonrpc: '2.0', error }))
}

function raw(status: string, json = ''): string {
  const type = json === '' ? '' : 'Content-Type: application/json\r\n'
  return `HTTP/1.1 ${status}\r\n${type}Content-Length: ${json.length}\r\nConnection: close\r\n\r\n${json}`
}
