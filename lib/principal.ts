/**
 * Who is asking. A principal comes from the authenticated HTTP request and from nowhere else: not
 * from `clientInfo`, not from an argument, not from an answer (client/elicitation, "Identifying the
 * User").
 */
import { hash } from 'node:crypto'

export type Principal = {
  /** Who vouches for the subject; `anonymous` where nobody does. */
  readonly issuer: string
  readonly subject: string
  /** The OAuth client that holds the token, or ''. Two clients of one user are two principals. */
  readonly client: string
  readonly scopes: ReadonlySet<string>
}

/** The principal of a server without authentication. It tells no two people apart. */
export const DEMO_USER: Principal = {
  issuer: 'anonymous',
  subject: 'demo-user',
  client: '',
  scopes: new Set(),
}

/**
 * @param salt makes the digests of one principal differ, so that they can't be linked or guessed
 *   from a list computed beforehand.
 * @returns SHA-256 in base64url over the principal's parts.
 */
export function principalDigest(principal: Principal, salt: string): string {
  return hash('sha256', lengthPrefixed([salt]) + principalParts(principal), 'base64url')
}

const known = new WeakMap<Principal, string>()

/** @returns one text for each principal, and another for any other one; put together once. */
export function principalParts(principal: Principal): string {
  const earlier = known.get(principal)
  if (earlier !== undefined) return earlier
  const parts = lengthPrefixed([principal.issuer, principal.subject, principal.client])
  known.set(principal, parts)
  return parts
}

/**
 * Without the lengths, `a` + `bc` and `ab` + `c` would be one person; and without JSON's escapes, two
 * names with different halves of a surrogate pair, which UTF-8 has no different bytes for.
 */
function lengthPrefixed(parts: readonly string[]): string {
  const escaped = parts.map((part) => JSON.stringify(part))
  return escaped.map((part) => `${part.length}:${part}`).join('')
}
