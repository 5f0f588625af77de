/**
 * From an HTTP request to the reply to it. {@link edge} returns the whole server as one function;
 * the row numbers are those of the admission table in README.
 */
import { admit } from './admission.ts'
import { readBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import {
  allowedOrigin,
  type HttpRules,
  pathOf,
  requireEndpoint,
  requireHost,
  requireJson,
  requirePost,
} from './http-rules.ts'
import type { Answer } from './http-server.ts'
import type { Identity } from './identity.ts'
import { ACCEPTED, preflightReply, type Reply, resultReply } from './reply.ts'
import type { Methods } from './request.ts'

export type EdgeOptions = {
  readonly methods: Methods
  readonly identity: Identity
  readonly rules: HttpRules
  /** Documents that anybody may GET, by path: no token, any Host. */
  readonly documents: ReadonlyMap<string, Reply>
  /** The `Mcp-Param-*` names of all tools, which a browser asks for in its preflight. */
  readonly paramHeaders: readonly string[]
  readonly maxBodyBytes: number
}

/** @returns a function from a request to its reply; it throws a Refusal at the first row that fails. */
export function edge(options: EdgeOptions): Answer {
  const { methods, identity, rules, documents, maxBodyBytes } = options
  const preflight = preflightReply(options.paramHeaders)

  return async (exchange: Exchange): Promise<Reply> => {
    const { request, headers } = exchange
    const { method: verb = '', url = '' } = request
    const path = pathOf(url)

    exchange.origin = allowedOrigin(headers, rules) //                               row  1
    const document = documents.get(path) //                                          row  2
    if (document !== undefined && (verb === 'GET' || verb === 'HEAD')) return document
    requireHost(headers, rules) //                                                   row  3
    requireEndpoint(path) //                                                         row  4
    if (verb === 'OPTIONS' && exchange.origin !== undefined) return preflight //     row  5
    requirePost(verb) //                                                             row  5
    const principal = await identity.authenticate(headers) //                        row  6
    requireJson(headers) //                                                          row  7
    const body = await readBody(request, headers, maxBodyBytes) //                   row  8
    const admitted = admit(body, exchange, principal, methods) //                    rows 9 to 19
    if (admitted === undefined) return ACCEPTED //                                   row 11

    const { id } = admitted.request
    exchange.serving = id
    return resultReply(id, await admitted.serve(admitted.request)) //                rows 20 to 25
  }
}
