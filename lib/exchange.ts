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
import type { Arrival, Note, Peer } from './request.ts'

export class Exchange implements Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly headers: HeaderLines
  readonly note: Note = {}
  /** The allowed origin of a page that will read the reply. */
  origin: string | undefined
  /** The id of the request that is being served, once it is admitted. */
  serving: RequestId | undefined
  readonly peer: Peer

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.headers = headerLines(request.rawHeaders)
    this.peer = new HttpPeer(this)
  }

  get address(): string {
    return this.request.socket.remoteAddress ?? ''
  }

  /** Writes the head of a stream, once. */
  begin(): void {
    if (this.response.headersSent) return
    this.response.writeHead(200, this.#head(EVENT_STREAM))
    keepAlive(this.response)
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

/** All that a handler gets of an exchange: there is a token among the headers. */
class HttpPeer implements Peer {
  readonly #exchange: Exchange
  #hangUp: AbortController | undefined

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  get gone(): boolean {
    const { response } = this.#exchange
    return response.destroyed && !response.writableFinished
  }

  /** Made when it is asked for: most methods never look, and it costs more than a small answer. */
  get signal(): AbortSignal {
    if (this.#hangUp !== undefined) return this.#hangUp.signal
    const hangUp = new AbortController()
    this.#hangUp = hangUp
    const look = () => {
      if (this.gone) hangUp.abort()
    }
    look()
    this.#exchange.response.once('close', look)
    return hangUp.signal
  }

  async notify(method: string, params: JsonObject): Promise<void> {
    const { response } = this.#exchange
    if (response.destroyed || response.writableEnded) return
    this.#exchange.begin()
    await writeEvent(response, JSON.stringify({ jsonrpc: '2.0', method, params }))
  }
}
