/**
 * HTTP headers as they came in, and the mirrored ones among them: `MCP-Protocol-Version`,
 * `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` repeat parts of the body so that a proxy can act on
 * them. A server that reads the body must refuse any that disagree with it, or the proxy and the
 * server would be looking at two different requests.
 *
 * Source: basic/transports/streamable-http, "Request Metadata" and "Server Validation".
 */
import { quote } from './display.ts'
import { CODE, isObject, type JsonObject, own } from './protocol.ts'
import { type Refusal, rpcRefusal } from './refusal.ts'

/** Every field line of a request, by lower-case name, in order and never joined. */
export type HeaderLines = ReadonlyMap<string, readonly string[]>

/** Node's `headers` joins or drops repeated lines; only `rawHeaders` shows that there were two. */
export function headerLines(rawHeaders: readonly string[]): HeaderLines {
  const lines = new Map<string, string[]>()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    const value = rawHeaders[i + 1] ?? ''
    const earlier = lines.get(name)
    if (earlier === undefined) lines.set(name, [value])
    else earlier.push(value)
  }
  return lines
}

/** A tool argument that is mirrored: `x-mcp-header: "Service"` on the property at `path`. */
export type ParamHeader = {
  /** As messages spell it, e.g. `Mcp-Param-Service`. */
  readonly header: string
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}

/** Visible ASCII, space and tab: all that a field value may hold ("Value Encoding"). */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/
const SENTINEL = { prefix: '=?base64?', suffix: '?=' }
/** How an integer may be written in a header; 42.0 equals 42 ("Server Validation", note). */
const INTEGER = /^-?\d+(\.0+)?$/
/** Refuses bytes that are not UTF-8; `ignoreBOM` keeps a leading U+FEFF in the text. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws Refusal -32020 unless the header is there once, whatever it says. */
export function requirePresent(headers: HeaderLines, header: string, inBody?: string): void {
  singleValue(headers, header, inBody)
}

/**
 * The header's one plain value. `inBody`, what the body says in its place, is for the message.
 * @throws Refusal -32020 when it is missing, repeated or holds a byte that no field value may.
 */
function singleValue(headers: HeaderLines, header: string, inBody?: string): string {
  const lines = headers.get(header.toLowerCase())
  const [value] = lines ?? []
  if (lines === undefined || value === undefined) throw mismatch(header, undefined, inBody)
  if (lines.length > 1) throw mismatch(header, lines.join(', '), inBody, ' (repeated)')
  if (!FIELD_VALUE.test(value)) throw mismatch(header, value, inBody, ' (not plain ASCII)')
  return value
}

/** @throws Refusal -32020 unless the header is there once and equals the body's value. */
export function requireMirrored(headers: HeaderLines, header: string, inBody: string): void {
  const value = singleValue(headers, header, inBody)
  if (value !== inBody) throw mismatch(header, value, inBody)
}

/** The same for a header whose value may be wrapped as `=?base64?…?=`. */
export function requireMirroredEncoded(headers: HeaderLines, header: string, inBody: string): void {
  const value = decodedValue(headers, header, inBody)
  if (value !== inBody) throw mismatch(header, value, inBody)
}

/**
 * Each `Mcp-Param-*` of a tool against the arguments: there exactly when the argument is there and
 * not null, once, and equal ("Server Behavior for Custom Headers").
 * @throws Refusal -32020
 */
export function requireMirroredParams(
  headers: HeaderLines,
  params: readonly ParamHeader[],
  args: JsonObject,
): void {
  for (const { header, path, type } of params) {
    const argument = valueAt(args, path)
    const absent = argument === undefined || argument === null
    if (absent && !headers.has(header.toLowerCase())) continue
    const inBody = absent ? undefined : asText(argument)
    const value = decodedValue(headers, header, inBody)
    if (absent || !equals(value, argument, type)) throw mismatch(header, value, inBody)
  }
}

/** Exactly the chain of properties, through own members of plain objects only. */
function valueAt(args: JsonObject, path: readonly string[]): unknown {
  let value: unknown = args
  for (const member of path) value = isObject(value) ? own(value, member) : undefined
  return value
}

function equals(value: string, argument: unknown, type: ParamHeader['type']): boolean {
  if (type === 'string') return value === argument
  if (type === 'boolean') return typeof argument === 'boolean' && value === String(argument)
  return Number.isSafeInteger(argument) && INTEGER.test(value) && Number(value) === argument
}

function decodedValue(headers: HeaderLines, header: string, inBody?: string): string {
  const value = singleValue(headers, header, inBody)
  const { prefix, suffix } = SENTINEL
  const wrapped = value.length >= prefix.length + suffix.length
  if (!wrapped || !value.startsWith(prefix) || !value.endsWith(suffix)) return value
  const decoded = decodeBase64(value.slice(prefix.length, -suffix.length))
  if (decoded === undefined) throw mismatch(header, value, inBody, ' (not Base64 of UTF-8 text)')
  return decoded
}

/** RFC 4648, section 4, canonical spelling only; undefined for anything else. */
function decodeBase64(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) return undefined
  try {
    return UTF8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Names the header and both values: behind a proxy that strips headers only this text helps. */
function mismatch(header: string, value?: string, inBody?: string, fault = ''): Refusal {
  const [got, expected] = [value, inBody].map((v) => (v === undefined ? '(missing)' : `'${quote(v)}'`))
  const message = `Header mismatch: ${header} header value ${got}${fault} does not match body value ${expected}`
  return rpcRefusal(400, CODE.headerMismatch, message, `header ${header.toLowerCase()}`)
}

function asText(argument: unknown): string {
  return typeof argument === 'string' ? argument : (JSON.stringify(argument) ?? '')
}
