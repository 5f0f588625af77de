/**
 * What the steps of a request hand to each other: from the HTTP edge to admission, from there to a
 * method, and back.
 */
import type { HeaderLines } from './headers.ts'
import type { Principal } from './principal.ts'
import type { JsonObject, RequestId } from './protocol.ts'

/** What one request leaves in the log. Each step writes what it knows; nothing a peer sent unquoted. */
export type Note = { method?: string; tool?: string; outcome?: string }

/** A request as the HTTP edge knows it before its body is read. */
export type Arrival = {
  readonly headers: HeaderLines
  readonly principal: Principal
  /** Aborted when the client disconnects, which is how it cancels (basic/patterns/cancellation). */
  readonly signal: AbortSignal
  readonly note: Note
  /** The socket's other end, which behind a proxy is the proxy. */
  readonly address: string
}

/** A request that passed rows 1 to 19 of the admission table. */
export type AdmittedRequest = Arrival & {
  readonly id: RequestId
  readonly method: string
  readonly params: JsonObject
  readonly capabilities: JsonObject
}

/** Row 21: may this principal call a tool with this scope, now? Throws a Refusal 403 or 429. */
export type Permit = (request: AdmittedRequest, scope: string | undefined) => void

export type Result = JsonObject & { readonly resultType: 'complete' | 'input_required' }

/** Serves one JSON-RPC method. Throws a Refusal to answer with an error. */
export type Method = (request: AdmittedRequest) => Result | Promise<Result>

/** A Map, not an object: the name comes from a peer, and `constructor` must not be found. */
export type Methods = ReadonlyMap<string, Method>

export type Decision =
  | 'asked'
  | 'asked again'
  | 'accepted'
  | 'declined'
  | 'cancelled'
  | 'refused'
  | 'acted'
  | 'failed'

/** One decision about a call, for the trail. */
export type Decided = {
  readonly decision: Decision
  /** Why, for a refused one. */
  readonly reason: string | undefined
  /** The same for every line of one question; undefined where no state told of it. */
  readonly flow: string | undefined
  readonly tool: string
  readonly principal: Principal
  /** Digest of the arguments. */
  readonly arguments: string
}

export type Trail = (decided: Decided) => void
