/**
 * The `Authorization` header: exactly one bearer token, from there and from nowhere else.
 * Source: basic/authorization, "Token Requirements"; RFC 6750, sections 2.1 and 3.
 */
import type { HeaderLines } from './headers.ts'
import { Refusal } from './refusal.ts'

/** RFC 6750, section 2.1: the scheme in any case, one space or more, one b64token, nothing after it. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i
const BEARER_SCHEME = /^bearer( |$)/i
/** Longest token, in characters: far more than an access token has, far less than is worth checking. */
const MAX_TOKEN = 8192

/** The fields of a challenge beside `error`, e.g. `resource_metadata="…"`; none for a bare `Bearer`. */
export type Challenge = {
  readonly fields: readonly string[]
  /** Whether a challenge to a bad token says `error="invalid_token"`. */
  readonly explains: boolean
}

/**
 * @throws Refusal 401 without a token (no `error`: RFC 6750, section 3.1), 400 for a malformed or
 *   repeated header.
 */
export function bearerToken(headers: HeaderLines, challenge: Challenge): string {
  const lines = headers.get('authorization') ?? []
  const [line = ''] = lines
  if (lines.length > 1) throw malformed('authorization repeated', challenge)
  if (!BEARER_SCHEME.test(line)) throw unauthorized('token missing', challenge)
  const token = BEARER.exec(line)?.[1]
  if (token === undefined) throw malformed('authorization malformed', challenge)
  if (token.length > MAX_TOKEN) throw invalidToken('token too long', challenge)
  return token
}

/** A token that is none, or not for here, or not any more: one answer for every cause. */
export function invalidToken(reason: string, challenge: Challenge): Refusal {
  return unauthorized(reason, challenge, challenge.explains ? ['error="invalid_token"'] : [])
}

/** "When a client makes a request with an access token with insufficient scope": 403. */
export function insufficientScope(scope: string, challenge: Challenge): Refusal {
  const own = challenge.fields.filter((field) => !field.startsWith('scope='))
  const value = challengeOf(['error="insufficient_scope"', `scope="${scope}"`, ...own])
  const sentence = `This needs an access token with the scope ${scope}.`
  return new Refusal(403, sentence, 'scope missing', { 'WWW-Authenticate': value })
}

function unauthorized(reason: string, { fields }: Challenge, error: readonly string[] = []): Refusal {
  const value = challengeOf([...error, ...fields])
  return new Refusal(401, 'Send a valid access token as a bearer token.', reason, {
    'WWW-Authenticate': value,
  })
}

function malformed(reason: string, { fields, explains }: Challenge): Refusal {
  const value = challengeOf([...(explains ? ['error="invalid_request"'] : []), ...fields])
  const sentence = 'Send one Authorization header: Bearer, a space and the token.'
  return new Refusal(400, sentence, reason, { 'WWW-Authenticate': value })
}

function challengeOf(fields: readonly string[]): string {
  return fields.length === 0 ? 'Bearer' : `Bearer ${fields.join(', ')}`
}
