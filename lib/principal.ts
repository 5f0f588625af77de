/**
 * Who is asking. A principal comes from the authenticated HTTP request and from nowhere else: not
 * from `clientInfo`, not from an argument, not from an answer (client/elicitation, "Identifying the
 * User").
 */
import { hash } from 'node:crypto'
import type { HeaderLines } from './headers.ts'

export type Principal = {
  /** Who vouches for the subject; `anonymous` where nobody does. */
  readonly issuer: string
  readonly subject: string
  /** The OAuth client that holds the token, or ''. Two clients of one user are two principals. */
  readonly client: string
  readonly scopes: ReadonlySet<string>
}

/**
 * Row 6 of the admission table: the caller of one HTTP request, from its headers. Throws a Refusal
 * when there is none. A fork that brings its own identity writes one function of this type.
 */
export type Authenticate = (headers: HeaderLines) => Principal | Promise<Principal>

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
 * @returns SHA-256 in base64url over the length-prefixed parts. Without the lengths, `a` + `bc`
 *   and `ab` + `c` would be one person.
 */
export function principalDigest({ issuer, subject, client }: Principal, salt: string): string {
  const parts = [salt, issuer, subject, client]
  return hash('sha256', parts.map((p) => `${Buffer.byteLength(p)}:${p}`).join(''), 'base64url')
}
