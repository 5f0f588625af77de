/**
 * The result of a request, until it is text: "Servers SHOULD include
 * `io.modelcontextprotocol/serverInfo` in every result's `_meta`" (basic/index), so it is put in
 * here, where every result passes.
 */
import { type Implementation, isObject, type JsonObject, META } from './protocol.ts'

export type Result = JsonObject & { readonly resultType: 'complete' | 'input_required' }

/** A result that is the same whoever asks and whenever: it is turned into text once. */
export class FixedResult {
  readonly #result: Result
  #text: string | undefined

  constructor(result: Result) {
    this.#result = result
  }

  textFrom(server: Implementation): string {
    this.#text ??= resultText(this.#result, server)
    return this.#text
  }
}

/** @returns JSON text: the result, its own `_meta` kept, and in that the server's name and version. */
export function resultText(result: Result | FixedResult, server: Implementation): string {
  if (result instanceof FixedResult) return result.textFrom(server)
  const own = isObject(result._meta) ? result._meta : undefined
  // Not `{ ...own, more }`: a spread that comes first takes Node 20 a hundred times as long.
  const _meta = Object.assign({}, own, { [META.serverInfo]: server })
  return JSON.stringify(Object.assign({}, result, { _meta }))
}

/**
 * A complete result that may be kept for a while, by anybody, since it is the same for every caller.
 * Source: server/utilities/caching, "Cache Scope Field".
 */
export function cacheable(fields: JsonObject, ttlMs: number): FixedResult {
  return new FixedResult({ resultType: 'complete', ...fields, ttlMs, cacheScope: 'public' })
}
