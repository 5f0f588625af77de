/**
 * Callers from an OAuth issuer: signed access tokens, verified here with the issuer's public keys.
 * Source: basic/authorization, "Token Handling" and "Error Handling".
 */
import { readFile } from 'node:fs/promises'
import { bearerToken, type Hints, insufficientScope, invalidToken } from './bearer.ts'
import type { Environment } from './environment.ts'
import type { Identity } from './identity.ts'
import { keySet, keysAt, type LoadKeys, readKeySet } from './jwks.ts'
import { faultOf, isSignedBy, parseJwt } from './jwt.ts'
import type { Principal } from './principal.ts'
import { protectedResource } from './protected-resource.ts'
import type { JsonObject } from './protocol.ts'

const LOOPBACK = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/
/** The scope that the metadata and the challenges name. */
const SCOPE = 'releases:write'
const MUST = 'must be an https URL (http on loopback only) without user, query or fragment'

/**
 * Reads AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS: all of them or none.
 * @returns undefined when they are not set, or wrong, which is then a problem of the start.
 */
export function oauthIdentityFrom(env: Environment, now: () => number): Identity | undefined {
  const issuer = env.text('AUTH_ISSUER')
  const audience = env.text('AUTH_AUDIENCE')
  const jwks = env.text('AUTH_JWKS')
  if (issuer === undefined && audience === undefined && jwks === undefined) return undefined
  if (!issuer?.trim() || !audience?.trim() || !jwks?.trim()) {
    env.problem('AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS belong together: set all three or none.')
    return undefined
  }
  if (!isSecureUrl(issuer)) env.problem(`AUTH_ISSUER ${MUST}, such as https://id.example.com.`)
  if (!isSecureUrl(audience))
    env.problem(`AUTH_AUDIENCE ${MUST}: this server's own, such as https://mcp.example.com/mcp.`)
  const load = loadFrom(env, jwks)
  if (!isSecureUrl(issuer) || !isSecureUrl(audience) || load === undefined) return undefined
  return oauthIdentity(issuer, audience, load, now)
}

/** A file is read now, because a mistake in it is better told at the start; a key server may come later. */
function loadFrom(env: Environment, jwks: string): LoadKeys | undefined {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(jwks)) {
    if (isSecureUrl(jwks.replace(/\?[^#]*/, ''))) return keysAt(jwks)
    env.problem(
      'AUTH_JWKS must be an https URL (http on loopback only) without user, or the path of a file.',
    )
    return undefined
  }
  const file = env.file('AUTH_JWKS')
  if (file === undefined) return undefined
  if (!holdsKeys(file.toString('utf8'))) {
    env.problem(
      'AUTH_JWKS must name a JSON Web Key Set with an RSA (2048 bits), P-256 or Ed25519 public key.',
    )
  }
  return () => readFile(jwks, 'utf8')
}

function holdsKeys(text: string): boolean {
  try {
    return readKeySet(text).length > 0
  } catch {
    return false
  }
}

function oauthIdentity(issuer: string, audience: string, load: LoadKeys, now: () => number): Identity {
  const keysFor = keySet(load, now)
  const { hints, documents } = protectedResource(audience, issuer, SCOPE)
  return {
    async authenticate(headers) {
      const jwt = parseJwt(bearerToken(headers, hints))
      if (typeof jwt === 'string') throw invalidToken(jwt, hints)
      const keys = await keysFor(jwt)
      if (!keys.some((key) => isSignedBy(jwt, key))) throw invalidToken('token signature', hints)
      const fault = faultOf(jwt.claims, issuer, audience, now())
      if (fault !== undefined) throw invalidToken(fault, hints)
      return principalOf(jwt.claims, issuer, hints)
    },
    authorize({ scopes }, scope) {
      if (!scopes.has(scope)) throw insufficientScope(scope, hints)
    },
    documents,
    audience,
  }
}

/** `client_id` is what RFC 9068 asks for; `azp` is what some issuers write instead. So with `scp`. */
function principalOf(claims: JsonObject, issuer: string, hints: Hints): Principal {
  const { sub, client_id: clientId, azp, scope, scp } = claims
  const client = [clientId, azp, ''].find((claim) => claim !== undefined)
  if (typeof client !== 'string') throw invalidToken('token client', hints)
  const listed = typeof scope === 'string' ? scope : scp
  const words: unknown[] =
    typeof listed === 'string' ? listed.split(' ') : Array.isArray(listed) ? listed : []
  const scopes = words.filter((word) => typeof word === 'string' && word !== '')
  return { issuer, subject: String(sub), client, scopes: new Set(scopes.map(String)) }
}

/** The text as it stands becomes part of metadata and comparisons: nothing that URL would have mended. */
function isSecureUrl(text: string): boolean {
  if (!/^https?:\/\/[!-~]+$/i.test(text) || /["\\#?]/.test(text) || !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  return username + password === '' && (protocol === 'https:' || LOOPBACK.test(hostname))
}
