/**
 * What can be said about a request before its body is read: rows 1 and 3 to 7 of the admission
 * table, apart from who is calling. These checks are what stands between a local server and any web
 * page that a browser has open (DNS rebinding).
 *
 * Source: basic/transports/streamable-http, "Security & Endpoint".
 */
import type { HeaderLines } from './headers.ts'
import { CODE } from './protocol.ts'
import { Refusal, rpcRefusal } from './refusal.ts'

export const ENDPOINT = '/mcp'

export type HttpRules = {
  /** The socket listens on a loopback address. */
  readonly loopback: boolean
  /** Exact origins, lower case; undefined when not configured. */
  readonly allowedOrigins: ReadonlySet<string> | undefined
  /** `host` or `host:port`, lower case; undefined when not configured. */
  readonly allowedHosts: ReadonlySet<string> | undefined
}

/** scheme, host and port of an Origin, and nothing else: no user, path, query or fragment. */
const ORIGIN = /^(https?):\/\/([^\s/:@?#[\]\\]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/
const HOST = /^([^\s/:@?#[\]\\]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/
const PORT = /:\d{1,5}$/
const LOOPBACK_NAMES = new Set(['localhost', '127.0.0.1', '[::1]'])
const JSON_TYPE = /^application\/json[\t ]*(;.*)?$/
const CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?([^";\t ]*)/g

/** Whether a lower-case text is an origin that `ALLOWED_ORIGINS` may list. */
export const isOrigin = (text: string): boolean => ORIGIN.test(text) && !text.includes('*')

/** Whether a lower-case text is a host, with or without port, that `ALLOWED_HOSTS` may list. */
export const isHost = (text: string): boolean => HOST.test(text)

/**
 * Row 1.
 * @returns the origin that may read the answer, or undefined when none asked.
 * @throws Refusal 403: "If the Origin header is present and invalid, servers MUST respond with HTTP
 *   403 Forbidden." An empty one and `null` are present.
 */
export function allowedOrigin(headers: HeaderLines, rules: HttpRules): string | undefined {
  const lines = headers.get('origin')
  if (lines === undefined) return undefined
  const [origin = ''] = lines
  const [, , host = ''] = ORIGIN.exec(origin.toLowerCase()) ?? []
  const local = LOOPBACK_NAMES.has(host) && (rules.loopback || rules.allowedOrigins === undefined)
  const listed = rules.allowedOrigins?.has(origin.toLowerCase()) === true
  if (lines.length === 1 && (local || listed) && URL.canParse(origin)) return origin
  throw rpcRefusal(403, CODE.invalidRequest, 'Forbidden origin', 'origin')
}

/** Row 3. After DNS rebinding only `Host` still shows the attacker's name. @throws Refusal 403 */
export function requireHost(headers: HeaderLines, rules: HttpRules): void {
  const [line = '', ...more] = headers.get('host') ?? []
  const host = line.toLowerCase()
  const name = host.replace(PORT, '')
  const local = LOOPBACK_NAMES.has(name) && (rules.loopback || rules.allowedHosts === undefined)
  const listed = rules.allowedHosts?.has(host) || rules.allowedHosts?.has(name)
  if (more.length === 0 && (local || listed)) return
  const message = 'Forbidden host: add the public host name to ALLOWED_HOSTS'
  throw rpcRefusal(403, CODE.invalidRequest, message, 'host')
}

/** @returns the path of a request target, without query; also of an absolute one (RFC 9112, 3.2.2). */
export function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  return path === '' ? '/' : path
}

/** Row 4. No JSON-RPC body: with one, 404 would mean an unknown method. @throws Refusal 404 */
export function requireEndpoint(path: string): void {
  if (path === ENDPOINT || path === `${ENDPOINT}/`) return
  throw new Refusal(404, `Not found. The MCP endpoint is ${ENDPOINT}.`, 'path')
}

/** Row 5. There is no stream to GET and no session to DELETE in this revision. @throws Refusal 405 */
export function requirePost(verb: string): void {
  if (verb === 'POST') return
  const sentence = 'Send each JSON-RPC message as a POST; this revision of MCP has no other verb.'
  throw new Refusal(405, sentence, 'verb', { Allow: 'POST' })
}

function isJson(type: string): boolean {
  if (type === 'application/json') return true // as nearly everybody writes it
  const charsets = [...type.matchAll(CHARSET)].map(([, charset]) => charset)
  return JSON_TYPE.test(type) && charsets.every((charset) => charset === 'utf-8')
}

/**
 * Row 7. Any other type could be sent by a page without a preflight. @throws Refusal 415
 */
export function requireJson(headers: HeaderLines): void {
  const [type = '', ...more] = headers.get('content-type') ?? []
  if (more.length === 0 && isJson(type.toLowerCase()) && !headers.has('content-encoding')) return
  const sentence = 'Send Content-Type: application/json, in UTF-8 and without Content-Encoding.'
  throw new Refusal(415, sentence, 'content type')
}
