/**
 * One HTTP request and the response to it: what the request says, and the ways to answer, whole or
 * as a stream. Everything that a reply needs whatever it says is here: length, CORS, the end of the
 * connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { endAfterRequest } from './body.ts'
import { EVENT_STREAM, event, keepAlive, writeEvent } from './event-stream.ts'
import { type HeaderLines, headerLines } from './headers.ts'
import type { JsonObject, RequestId } from './protocol.ts'
import { corsHeaders, type Reply } from './reply.ts'
import type { Arrival, Note } from './request.ts'

export class Exchange implements Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly headers: HeaderLines
  readonly note: Note = {}
  /** The allowed origin of a page that will read the reply. */
  origin: string | undefined
  /** The id of the request that is being served, once it is admitted. */
  serving: RequestId | undefined
  #hangUp: AbortController | undefined

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.headers = headerLines(request.rawHeaders)
  }

  get address(): string {
    return this.request.socket.remoteAddress ?? ''
  }

  get gone(): boolean {
    return this.response.destroyed && !this.response.writableFinished
  }

  /** Made when it is asked for: most methods never look, and a signal costs more than a small answer. */
  get signal(): AbortSignal {
    if (this.#hangUp !== undefined) return this.#hangUp.signal
    const hangUp = new AbortController()
    this.#hangUp = hangUp
    const look = () => {
      if (this.gone) hangUp.abort()
    }
    look()
    this.response.once('close', look)
    return hangUp.signal
  }

  async notify(method: string, params: JsonObject): Promise<void> {
    const { response } = this
    if (response.destroyed || response.writableEnded) return
    if (!response.headersSent) {
      response.writeHead(200, this.#head(EVENT_STREAM))
      keepAlive(response)
    }
    await writeEvent(response, JSON.stringify({ jsonrpc: '2.0', method, params }))
  }

  /** @param last whether the connection ends with this reply. */
  send({ status, headers, body }: Reply, last: boolean): void {
    const { request, response } = this
    if (response.destroyed) return
    if (response.headersSent) {
      if (last) response.once('finish', () => request.socket.destroySoon()) // as its head didn't say
      response.end(event(body)) // "the final JSON-RPC response SHOULD terminate the stream"
      return
    }
    const head = this.#head(headers)
    if (status !== 204) head['Content-Length'] = String(Buffer.byteLength(body))
    if (last || status === 413 || status === 408) head.Connection = 'close'
    response.writeHead(status, head)
    if (request.complete || status === 408) response.end(body)
    else endAfterRequest(request, response, body)
  }

  #head(headers: Reply['headers']): Record<string, string> {
    return Object.assign({}, headers, this.origin === undefined ? undefined : corsHeaders(this.origin))
  }
}
