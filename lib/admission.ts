/**
 * From the bytes of a POST to a request that may be served: rows 9 to 19 of the admission table in
 * README. The order is part of the contract: the first check that fails answers.
 */
import { quote } from './display.ts'
import { addressed, parse, readEnvelope } from './envelope.ts'
import { type HeaderLines, requireMirrored, requireMirroredEncoded, requirePresent } from './headers.ts'
import type { Principal } from './principal.ts'
import { CODE, type JsonObject, own, SUPPORTED_VERSIONS } from './protocol.ts'
import { Refusal, rpcRefusal } from './refusal.ts'
import type { AdmittedRequest, Arrival, Methods, Serve } from './request.ts'
import { readCapabilities, readMeta, versionInBody } from './request-meta.ts'

export type Admitted = { readonly request: AdmittedRequest; readonly serve: Serve }

const VERSION_HEADER = 'MCP-Protocol-Version'

/** The methods that mirror a name into `Mcp-Name`, and where they keep it. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/**
 * @returns the request and the method that serves it, or undefined for a notification: it is
 *   accepted and has no effect, since this revision defines none from the client over HTTP.
 * @throws Refusal, with the request's id wherever it could be read.
 */
export function admit(
  body: Buffer,
  arrival: Arrival,
  principal: Principal,
  methods: Methods,
): Admitted | undefined {
  const { headers, note } = arrival
  const message = parse(body) //                                                row  9
  try {
    const envelope = readEnvelope(message) //                                   rows 10, 11
    if (envelope === undefined) return undefined
    const { id, method } = envelope
    note.method = quote(method)
    requirePresent(headers, VERSION_HEADER, versionInBody(envelope.params)) //  row 12
    const { params, meta, version } = readMeta(envelope.params) //              row 13
    requireMirrored(headers, VERSION_HEADER, version) //                        row 14
    requireSupported(version) //                                                row 15
    const capabilities = readCapabilities(meta) //                              row 16
    requireMirrored(headers, 'Mcp-Method', method) //                           row 17
    requireName(headers, method, params) //                                     row 18
    const serve = requireMethod(methods, method) //                             row 19
    return { request: { arrival, principal, id, method, params, meta, capabilities }, serve }
  } catch (thrown) {
    throw thrown instanceof Refusal ? addressed(thrown, message) : thrown
  }
}

/** Row 15. Judged before the rest of `_meta`: another revision may have other keys. */
function requireSupported(requested: string): void {
  if (SUPPORTED_VERSIONS.includes(requested)) return
  throw rpcRefusal(400, CODE.unsupportedVersion, 'Unsupported protocol version', 'version', {
    supported: SUPPORTED_VERSIONS,
    requested,
  })
}

/** Row 18. A name that is no string is left to the method, which knows what it needs. */
function requireName(headers: HeaderLines, method: string, params: JsonObject): void {
  const member = NAMED.get(method)
  const name = member === undefined ? undefined : own(params, member)
  if (typeof name === 'string') requireMirroredEncoded(headers, 'Mcp-Name', name)
}

/** Row 19. HTTP 404 with a JSON-RPC body, which tells it from the 404 of a wrong path. */
function requireMethod(methods: Methods, method: string): Serve {
  const serve = methods.get(method)
  if (serve !== undefined) return serve
  throw rpcRefusal(404, CODE.methodNotFound, `Method not found: ${quote(method)}`, 'method unknown')
}
