/**
 * The `Authorization` header: exactly one bearer token, from there and from nowhere else; and the
 * challenges to whoever brings none, a bad one or one for less.
 *
 * Source: basic/authorization, "Token Requirements" and "Error Handling"; RFC 6750, sections 2.1 and 3.
 */
import type { HeaderLines } from './headers.ts'
import { Refusal } from './refusal.ts'

/** RFC 6750, section 2.1: the scheme in any case, one space or more, one b64token, nothing after it. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i
/** The scheme is the whole first word (a token of RFC 9110, section 5.6.2). */
const BEARER_SCHEME = /^bearer(?![\w!#$%&'*+\-.^`|~])/i
/** Longest token, in characters: far more than an access token has, far less than is worth checking. */
const MAX_TOKEN = 8192

/** What challenges tell a client that must get a token first; where there is nothing to tell, a bare `Bearer`. */
export type Hints = { readonly resource_metadata: string; readonly scope: string }

/**
 * @throws Refusal 401 without a token (no `error`: RFC 6750, section 3.1), 400 for a malformed or
 *   repeated header.
 */
export function bearerToken(headers: HeaderLines, hints?: Hints): string {
  const lines = headers.get('authorization') ?? []
  const [line = ''] = lines
  if (lines.length > 1) throw malformed('authorization repeated', hints)
  if (!BEARER_SCHEME.test(line)) throw unauthorized('token missing', hints)
  const token = BEARER.exec(line)?.[1]
  if (token === undefined) throw malformed('authorization malformed', hints)
  if (token.length > MAX_TOKEN) throw invalidToken('token too long', hints)
  return token
}

/** A token that is none, or not for here, or not any more: one answer for every cause. */
export function invalidToken(reason: string, hints?: Hints): Refusal {
  return unauthorized(reason, hints && { error: 'invalid_token', ...hints })
}

/** A good token that gives too little: 403, and the scope that the call needs. */
export function insufficientScope(scope: string, hints?: Hints): Refusal {
  const sentence = 'This call needs an access token with more scopes; WWW-Authenticate names them.'
  const challenge = challengeOf({
    error: 'insufficient_scope',
    scope,
    ...(hints && { resource_metadata: hints.resource_metadata }),
  })
  return new Refusal(403, sentence, 'scope missing', challenge)
}

function unauthorized(reason: string, parameters?: Readonly<Record<string, string>>): Refusal {
  return new Refusal(401, 'Send a valid access token as a bearer token.', reason, challengeOf(parameters))
}

function malformed(reason: string, hints?: Hints): Refusal {
  const sentence = 'Send one Authorization header: Bearer, a space and the token.'
  return new Refusal(400, sentence, reason, challengeOf(hints && { error: 'invalid_request', ...hints }))
}

function challengeOf(parameters: Readonly<Record<string, string>> = {}): Record<string, string> {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}="${escaped(value)}"`)
  return { 'WWW-Authenticate': `Bearer ${pairs.join(', ')}`.trimEnd() }
}

/** As a quoted-string may hold it (RFC 9110, section 5.6.4); a line end would start another header. */
function escaped(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')
}
