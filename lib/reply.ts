/**
 * What is written back: status, headers and a body in one piece. A reply exists as a whole before
 * its first byte is sent, so that a failure can still become an error.
 */
import type { RequestId } from './protocol.ts'
import type { Refusal } from './refusal.ts'

export type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const JSON_BODY = { 'Content-Type': 'application/json' }
const TEXT_BODY = { 'Content-Type': 'text/plain; charset=utf-8' }

/** A notification was taken: "202 Accepted with no body". */
export const ACCEPTED: Reply = { status: 202, headers: {}, body: '' }

/** @param result as JSON text. */
export function resultReply(id: RequestId, result: string): Reply {
  const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
  return { status: 200, headers: JSON_BODY, body }
}

/** JSON.stringify leaves an undefined `id` out, which is how MCP spells an id that nobody could read. */
export function refusalReply({ status, body, headers, id }: Refusal): Reply {
  if (typeof body === 'string') return { status, headers: { ...TEXT_BODY, ...headers }, body: `${body}\n` }
  const message = { jsonrpc: '2.0', id, error: body }
  return { status, headers: { ...JSON_BODY, ...headers }, body: JSON.stringify(message) }
}

export function textReply(body: string): Reply {
  return { status: 200, headers: TEXT_BODY, body }
}

/** The answer to a CORS preflight: all that a page may send, by name, since none may be a wildcard. */
export function preflightReply(paramHeaders: readonly string[]): Reply {
  const names = [
    'Content-Type',
    'Accept',
    'Authorization',
    'MCP-Protocol-Version',
    'Mcp-Method',
    'Mcp-Name',
  ]
  const headers = {
    'Access-Control-Allow-Methods': 'POST',
    'Access-Control-Allow-Headers': [...names, ...paramHeaders].join(', '),
    'Access-Control-Max-Age': '7200',
  }
  return { status: 204, headers, body: '' }
}

/** On every answer to an allowed origin, errors too: without them a page sees only a failed fetch. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': 'WWW-Authenticate, Retry-After',
    Vary: 'Origin',
  }
}
