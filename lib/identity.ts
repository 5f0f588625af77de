/**
 * How callers are told apart. One implementation is chosen in `server.ts`; a fork that brings its own
 * writes one object of this type.
 */
import type { HeaderLines } from './headers.ts'
import type { Principal } from './principal.ts'
import type { Reply } from './reply.ts'
import type { Permit } from './request.ts'

export type Identity = {
  /** Row 6: the caller of one HTTP request, from its headers alone. Throws a Refusal (400, 401, 503). */
  readonly authenticate: (headers: HeaderLines) => Principal | Promise<Principal>
  /** Row 21: throws a Refusal 403 with its challenge when the principal lacks the scope. */
  readonly authorize: (principal: Principal, scope: string) => void
  /** Public documents, by path, e.g. the RFC 9728 metadata. */
  readonly documents: ReadonlyMap<string, Reply>
  /** What STATE_AUDIENCE is when it is not set; undefined without OAuth. */
  readonly audience: string | undefined
}

/** Row 21: a tool's scope is needed wherever callers are authenticated, on every call and retry. */
export function scopes({ authorize }: Identity): Permit {
  return ({ principal }, scope) => {
    if (scope !== undefined) authorize(principal, scope)
  }
}
