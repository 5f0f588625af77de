/**
 * The one way to say no. A refusal knows what the client sees (HTTP status, JSON-RPC error or one
 * plain sentence) and, apart from that, the short reason that the log keeps.
 */
import { CODE, type RequestId } from './protocol.ts'

export type RpcError = { readonly code: number; readonly message: string; readonly data?: unknown }

/** Not an Error: a refusal is an answer, expected and cheap, and has no use for a stack trace. */
export class Refusal {
  /** HTTP status. */
  readonly status: number
  /** A JSON-RPC error, or a sentence that is sent as text/plain. */
  readonly body: RpcError | string
  /** A fixed word or two for the log; never holds anything a peer sent. */
  readonly reason: string
  readonly headers: Readonly<Record<string, string>>
  /** The request's id; left out while it could not be read (schema.ts: `null` is no id). */
  readonly id: RequestId | undefined

  constructor(
    status: number,
    body: RpcError | string,
    reason: string,
    headers: Readonly<Record<string, string>> = {},
    id?: RequestId,
  ) {
    this.status = status
    this.body = body
    this.reason = reason
    this.headers = headers
    this.id = id
  }

  /** @returns the same refusal as an answer to the request with this id. */
  to(id: RequestId | undefined): Refusal {
    return new Refusal(this.status, this.body, this.reason, this.headers, id)
  }
}

/** A refusal that carries a JSON-RPC error. */
export function rpcRefusal(
  status: number,
  code: number,
  message: string,
  reason: string,
  data?: unknown,
): Refusal {
  return new Refusal(status, data === undefined ? { code, message } : { code, message, data }, reason)
}

/** What is wrong with a call rather than with its message: -32602 on HTTP 200, as the official SDK. */
export function invalidParams(message: string): Refusal {
  return rpcRefusal(200, CODE.invalidParams, message, 'params malformed')
}

/** One text for every cause: which check failed would help only somebody who is guessing. */
export function invalidState(): Refusal {
  const data = { reason: 'invalid_request_state' }
  return rpcRefusal(200, CODE.invalidParams, 'Invalid or expired requestState', 'state refused', data)
}

/** Nobody reads it: the status is for the log, in nginx's number for a client that hung up. */
export function goneClient(): Refusal {
  return new Refusal(499, 'The client is gone.', 'client gone')
}
