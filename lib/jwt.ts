/**
 * Signed JWT access tokens, read strictly. The key decides the algorithm, never the token: `none`,
 * HMAC and anything that does not fit the key are refused.
 *
 * Source: RFC 7515, 7518, 7519; RFC 8725 (best practices); RFC 9068 (access tokens).
 */
import { isUtf8 } from 'node:buffer'
import { constants, type KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto'
import { canonicalJson } from './canonical.ts'
import { isObject, type JsonObject, own } from './protocol.ts'
import { strictBase64url } from './seal.ts'

export type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA'

export type Jwt = {
  readonly algorithm: Algorithm
  readonly keyId: string | undefined
  readonly claims: JsonObject
  /** What was signed, and the signature. */
  readonly signed: Buffer
  readonly signature: Buffer
}

const ALGORITHMS: ReadonlySet<string> = new Set(['RS256', 'PS256', 'ES256', 'EdDSA'])
/** RFC 9068 asks for `at+jwt`; many issuers write `JWT` or nothing. */
const TYPES: ReadonlySet<unknown> = new Set([
  undefined,
  'jwt',
  'application/jwt',
  'at+jwt',
  'application/at+jwt',
])
/** How far apart the issuer's clock and this one may be, in seconds; little beside a token's life. */
const SKEW = 60

/** @returns the parts of a token whose signature nobody has checked yet, or why it is none. */
export function parseJwt(token: string): Jwt | string {
  const parts = token.split('.')
  const [header, payload, signature] = parts.map(strictBase64url)
  if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined) {
    return 'token malformed'
  }
  const head = readObject(header)
  const claims = readObject(payload)
  if (head === undefined || claims === undefined) return 'token malformed'
  const { alg, kid, typ } = head
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'token algorithm'
  // "If any of the listed extension Header Parameters are not understood […] the JWS is invalid."
  if (Object.hasOwn(head, 'crit')) return 'token crit'
  if (!TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ)) return 'token type'
  if (kid !== undefined && typeof kid !== 'string') return 'token malformed'
  const signed = Buffer.from(token.slice(0, token.lastIndexOf('.')))
  return { algorithm: alg as Algorithm, keyId: kid, claims, signed, signature }
}

/** @returns the algorithms that a public key may be used with; none for a kind that isn't taken. */
export function algorithmsOf(key: KeyObject): readonly Algorithm[] {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'rsa' && (details?.modulusLength ?? 0) >= 2048) return ['RS256', 'PS256']
  if (type === 'ec' && details?.namedCurve === 'prime256v1') return ['ES256']
  return type === 'ed25519' ? ['EdDSA'] : []
}

/** @returns whether the key signed the token; false when it is no key for the token's algorithm. */
export function isSignedBy({ algorithm, signed, signature }: Jwt, key: KeyObject): boolean {
  if (!algorithmsOf(key).includes(algorithm)) return false
  const input: VerifyKeyObjectInput = { key }
  if (algorithm === 'PS256') {
    const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
    Object.assign(input, { padding, saltLength })
  }
  if (algorithm === 'ES256') input.dsaEncoding = 'ieee-p1363'
  try {
    return verify(algorithm === 'EdDSA' ? null : 'sha256', signed, input, signature)
  } catch {
    return false // a signature that is not even one in form
  }
}

/**
 * @param now in milliseconds since 1970.
 * @returns why the claims are not good for this server now, or undefined.
 */
export function faultOf(
  claims: JsonObject,
  issuer: string,
  audience: string,
  now: number,
): string | undefined {
  const { iss, aud, exp, nbf, iat, sub } = claims
  const seconds = now / 1000
  if (iss !== issuer) return 'token issuer'
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (!audiences.some((one) => typeof one === 'string' && sameResource(one, audience)))
    return 'token audience'
  if (typeof exp !== 'number' || !(seconds < exp)) return 'token expired'
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= seconds + SKEW)) return 'token early'
  if (iat !== undefined && !(typeof iat === 'number' && iat <= seconds + SKEW)) return 'token early'
  const named = typeof sub === 'string' && sub !== '' && sub.length <= 255 && !/\p{Cs}/u.test(sub)
  return named ? undefined : 'token subject'
}

/** "Implementations SHOULD accept uppercase scheme and host components"; the rest is exact. */
function sameResource(one: string, other: string): boolean {
  const fold = (uri: string) => uri.replace(/^[^/]+:\/\/[^/]*/, (origin) => origin.toLowerCase())
  return fold(one) === fold(other)
}

/** A JSON object without repeated members, of which two readers might take different ones. */
function readObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined
  const text = bytes.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    canonicalJson(value) // refuses what other parsers may read differently
    return isObject(value) && membersIn(text) === membersOf(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Members written in a JSON text: the colons outside its strings. */
function membersIn(text: string): number {
  return text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
}

function membersOf(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + membersOf(item), 0)
  if (!isObject(value)) return 0
  return Object.keys(value).reduce((sum, name) => sum + 1 + membersOf(own(value, name)), 0)
}
