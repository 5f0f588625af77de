/**
 * The wire vocabulary of MCP revision 2026-07-28: names, numbers and shapes, each spelled as the
 * specification spells it. This file imports nothing and decides nothing.
 *
 * Source: https://modelcontextprotocol.io/specification/2026-07-28/schema
 */

export const PROTOCOL_VERSION = '2026-07-28'
export const SUPPORTED_VERSIONS: readonly string[] = [PROTOCOL_VERSION]

/** Keys of a request's and a result's `_meta` (basic/index, "_meta"). */
export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

/** JSON-RPC 2.0 codes, and the three that MCP defines (basic/index, "Error Codes"). */
export const CODE = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedVersion: -32022,
} as const

export type RequestId = string | number

export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json }

export type JsonObject = { readonly [member: string]: unknown }

export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | (JsonObject & { readonly type: 'image' | 'audio' | 'resource_link' | 'resource' })

/** CallToolResult without `resultType` and `_meta`, which the method table adds to every result. */
export type ToolResult = {
  readonly content: readonly ContentBlock[]
  readonly structuredContent?: Json
  readonly isError?: boolean
}

/** A question inside an InputRequiredResult: a request object without `jsonrpc` and `id`. */
export type InputRequest = { readonly method: string; readonly params?: JsonObject }

export type InputRequests = { readonly [key: string]: InputRequest }

export type Implementation = { readonly name: string; readonly version: string }

/** A JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object's own member, so that `constructor` or `__proto__` from a peer finds nothing. */
export function own(object: JsonObject, member: string): unknown {
  return Object.hasOwn(object, member) ? object[member] : undefined
}
