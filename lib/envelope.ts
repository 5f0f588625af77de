/**
 * From the bytes of a POST to one JSON-RPC message: rows 9 to 11 of the admission table.
 * Source: basic/index, "Messages"; basic/transports/streamable-http, "Sending Messages".
 */
import { isUtf8 } from 'node:buffer'
import { CODE, isObject, type JsonObject, own, type RequestId, SUPPORTED_VERSIONS } from './protocol.ts'
import { Refusal, rpcRefusal } from './refusal.ts'

export type Envelope = { readonly id: RequestId; readonly method: string; readonly params: unknown }

/** Row 9. Bad UTF-8 is refused, never mended; a byte order mark is no JSON. @throws Refusal -32700 */
export function parse(body: Buffer): unknown {
  try {
    if (isUtf8(body)) return JSON.parse(body.toString('utf8'))
  } catch {
    // Refused below, like bytes that are no text.
  }
  throw rpcRefusal(400, CODE.parseError, 'Parse error', 'not JSON')
}

/**
 * Rows 10 and 11.
 * @returns undefined for a notification, which has a method and no id.
 * @throws Refusal -32600
 */
export function readEnvelope(message: unknown): Envelope | undefined {
  if (Array.isArray(message)) throw invalidRequest('send one message at a time, never a batch')
  if (!isObject(message)) throw invalidRequest('the body must be one JSON-RPC object')
  const { id, jsonrpc, method, params } = message
  if (hasOutcome(message)) throw invalidRequest('a client sends requests, not responses')
  if (jsonrpc !== '2.0') throw invalidRequest('jsonrpc must be "2.0"')
  if (typeof method !== 'string') throw invalidRequest('method must be a string')
  if (isRequestId(id)) return { id, method, params }
  if (Object.hasOwn(message, 'id')) throw invalidRequest('id must be a string or a safe integer')
  if (method.startsWith('notifications/')) return undefined
  throw invalidRequest('a request needs an id; only notifications have none')
}

/**
 * The refusal with the request's id where one could be read. A response's id is no request's.
 *
 * "A server that supports only modern versions SHOULD name the protocol versions it supports in any
 * error it returns to an `initialize` request": an old client shows its user this text and nothing
 * else (basic/versioning).
 */
export function addressed(refusal: Refusal, message: unknown): Refusal {
  const { status, body, reason, headers } = refusal
  if (!isObject(message) || typeof body === 'string') return refusal
  const { id: raw, method } = message
  const isResponse = hasOutcome(message) && typeof method !== 'string'
  const id = isRequestId(raw) && !isResponse ? raw : undefined
  if (method !== 'initialize') return refusal.to(id)
  const supported = SUPPORTED_VERSIONS
  const text = `${body.message}. There is no initialize; supported protocol versions: ${supported.join(', ')}`
  const data = { ...(isObject(body.data) ? body.data : {}), supported }
  return new Refusal(status, { code: body.code, message: text, data }, reason, headers, id)
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' || Number.isSafeInteger(id)
}

function hasOutcome(message: JsonObject): boolean {
  return own(message, 'result') !== undefined || own(message, 'error') !== undefined
}

function invalidRequest(what: string): Refusal {
  return rpcRefusal(400, CODE.invalidRequest, `Invalid request: ${what}`, 'request invalid')
}
