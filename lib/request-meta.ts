/**
 * The `_meta` of a request: the keys that stand in for the handshake of earlier revisions. Unknown
 * keys pass unread, and `clientInfo` is checked for its type but decides nothing (basic/index).
 */
import { CODE, isObject, type JsonObject, META, own } from './protocol.ts'
import { type Refusal, rpcRefusal } from './refusal.ts'

const LOG_LEVELS = new Set([
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
])

type Check = (value: unknown) => boolean

const isString: Check = (value) => typeof value === 'string'
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const mapOf =
  (check: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(check)
const shape = (members: Record<string, Check>): Check => {
  const checks = Object.entries(members)
  return (value) => isObject(value) && checks.every(([name, check]) => check(own(value, name)))
}

const object = optional(isObject)
const text = optional(isString)

/** ClientCapabilities (schema.ts): an open set, whose known members have a known shape. */
const isCapabilities = shape({
  experimental: optional(mapOf(isObject)),
  extensions: optional(mapOf(isObject)),
  roots: object,
  sampling: optional(shape({ context: object, tools: object })),
  elicitation: optional(shape({ form: object, url: object })),
})

const isImplementation = shape({
  name: isString,
  version: isString,
  title: text,
  description: text,
  websiteUrl: text,
  icons: optional((icons) => Array.isArray(icons) && icons.every(shape({ src: isString }))),
})

const isProgressToken: Check = (value) => typeof value === 'string' || Number.isSafeInteger(value)

/** Every key whose type is known, in the order in which a message names the first bad one. */
const KNOWN_KEYS: readonly (readonly [key: string, check: Check, expected: string])[] = [
  [META.clientCapabilities, isCapabilities, 'a ClientCapabilities object'],
  [META.clientInfo, optional(isImplementation), 'an Implementation with name and version'],
  [META.logLevel, optional((v) => typeof v === 'string' && LOG_LEVELS.has(v)), 'a log level'],
  ['progressToken', optional(isProgressToken), 'a string or an integer'],
]

/** @returns the version that the body names, if it names one; for a message, not for a decision. */
export function versionInBody(params: unknown): string | undefined {
  const meta = isObject(params) ? own(params, '_meta') : undefined
  const version = isObject(meta) ? own(meta, META.protocolVersion) : undefined
  return typeof version === 'string' ? version : undefined
}

/** What a request says of itself in its body. */
export type RequestMeta = { params: JsonObject; meta: JsonObject; version: string }

/**
 * @returns params, the `_meta` in it and the protocol version in that.
 * @throws Refusal -32602 on HTTP 400, naming the missing key ("Per-request protocol fields").
 */
export function readMeta(params: unknown): RequestMeta {
  if (!isObject(params)) throw malformed('params must be an object')
  const meta = own(params, '_meta')
  if (!isObject(meta)) throw malformed('params._meta must be an object')
  const version = own(meta, META.protocolVersion)
  if (typeof version !== 'string') throw malformed(`_meta["${META.protocolVersion}"] must be a string`)
  return { params, meta, version }
}

/**
 * @returns the client's capabilities, once every known key of `_meta` has its type.
 * @throws Refusal -32602 on HTTP 400, naming the key.
 */
export function readCapabilities(meta: JsonObject): JsonObject {
  for (const [key, check, expected] of KNOWN_KEYS) {
    if (!check(own(meta, key))) throw malformed(`_meta["${key}"] must be ${expected}`)
  }
  const capabilities = own(meta, META.clientCapabilities)
  return isObject(capabilities) ? capabilities : {}
}

function malformed(what: string): Refusal {
  return rpcRefusal(400, CODE.invalidParams, `Invalid params: ${what}`, 'params malformed')
}
