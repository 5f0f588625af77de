/**
 * What the steps of a request hand to each other: from the HTTP edge to admission, from there to a
 * method, and back.
 */
import type { HeaderLines } from './headers.ts'
import type { Principal } from './principal.ts'
import type { JsonObject, RequestId } from './protocol.ts'
import type { FixedResult, Result } from './result.ts'

/** What one request leaves in the log. Each step writes what it knows; nothing a peer sent unquoted. */
export type Note = { method?: string; tool?: string; outcome?: string }

/** Whoever waits for the answer to one request. */
export type Peer = {
  /** Whether the client has disconnected, so that nobody will read the answer. */
  readonly gone: boolean
  /** Aborted when the client disconnects, which is how it cancels (basic/patterns/cancellation). */
  readonly signal: AbortSignal
  /**
   * Sends a notification that belongs to this request, ahead of its answer: the answer becomes a
   * stream of events. Resolves when there is room for the next one, or nobody left to read it.
   */
  notify(method: string, params: JsonObject): Promise<void>
}

/** A request as the HTTP edge knows it before its body is read. */
export type Arrival = {
  readonly headers: HeaderLines
  readonly peer: Peer
  readonly note: Note
  /** The socket's other end, which behind a proxy is the proxy. */
  readonly address: string
}

/** A request that passed rows 1 to 19 of the admission table. */
export type AdmittedRequest = {
  readonly arrival: Arrival
  readonly principal: Principal
  readonly id: RequestId
  readonly method: string
  readonly params: JsonObject
  /** `params._meta`, its known members well typed. */
  readonly meta: JsonObject
  readonly capabilities: JsonObject
}

/** Row 21: may this principal call a tool with this scope, now? Throws a Refusal 403 or 429. */
export type Permit = (request: AdmittedRequest, scope: string | undefined) => void

/** Serves one JSON-RPC method. Throws a Refusal to answer with an error. */
export type Method = (request: AdmittedRequest) => Result | FixedResult | Promise<Result | FixedResult>

/** A part of what a server offers: what it declares, and the methods that it serves. */
export type Feature = {
  readonly capabilities: JsonObject
  readonly methods: Readonly<Record<string, Method>>
}

/** The same, down to the JSON text of the result. */
export type Serve = (request: AdmittedRequest) => Promise<string>

/** A Map, not an object: the name comes from a peer, and `constructor` must not be found. */
export type Methods = ReadonlyMap<string, Serve>

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
