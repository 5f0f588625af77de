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

  /** @param write what makes the text of it. */
  textBy(write: (result: Result) => string): string {
    this.#text ??= write(this.#result)
    return this.#text
  }
}

/**
 * @returns what makes the JSON text of a result: its own `_meta` is kept, and the name and version of
 *   the server are put into it.
 */
export function resultWriter(server: Implementation): (result: Result | FixedResult) => string {
  const identity = { [META.serverInfo]: server }
  const ending = `,"_meta":${JSON.stringify(identity)}}`
  function write(result: Result): string {
    const { _meta } = result
    // Few results have a `_meta`. Behind the text of the others it costs less than a copy of them.
    if (_meta === undefined) return JSON.stringify(result).slice(0, -1) + ending
    // Not `{ ..._meta, more }`: a spread that comes first takes Node 20 a hundred times as long.
    const merged = Object.assign({}, isObject(_meta) ? _meta : undefined, identity)
    return JSON.stringify(Object.assign({}, result, { _meta: merged }))
  }
  return (result) => (result instanceof FixedResult ? result.textBy(write) : write(result))
}

/**
 * A complete result that may be kept for a while, by anybody, since it is the same for every caller.
 * Source: server/utilities/caching, "Cache Scope Field".
 */
export function cacheable(fields: JsonObject, ttlMs: number): FixedResult {
  return new FixedResult({ resultType: 'complete', ...fields, ttlMs, cacheScope: 'public' })
}
