/**
 * Callers from an OAuth issuer: signed access tokens, verified here with the issuer's public keys.
 * Source: basic/authorization, "Token Handling" and "Error Handling".
 */
import { readFile } from 'node:fs/promises'
import { bearerToken, type Challenge, insufficientScope, invalidToken } from './bearer.ts'
import type { Environment } from './environment.ts'
import type { Identity } from './identity.ts'
import { keySet, type LoadKeys } from './jwks.ts'
import { faultOf, isSignedBy, parseJwt } from './jwt.ts'
import type { Principal } from './principal.ts'
import { protectedResource } from './protected-resource.ts'
import type { JsonObject } from './protocol.ts'

/** Longest wait for the key server, in milliseconds, and its longest answer, in bytes. */
const FETCH_MS = 5000
const FETCH_BYTES = 256 * 1024
const LOOPBACK = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/
/** The scope that the metadata and the challenges name. */
const SCOPE = 'releases:write'

/**
 * Reads AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS: all of them or none.
 * @returns undefined when they are not set, or wrong, which is then a problem of the start.
 */
export function oauthIdentityFrom(env: Environment, now: () => number): Identity | undefined {
  const issuer = env.text('AUTH_ISSUER')
  const audience = env.text('AUTH_AUDIENCE')
  const jwks = env.text('AUTH_JWKS')
  if (issuer === undefined && audience === undefined && jwks === undefined) return undefined
  if (issuer === undefined || audience === undefined || jwks === undefined) {
    env.problem('AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS belong together: set all three or none.')
    return undefined
  }
  if (!isSecureUrl(issuer)) env.problem(`AUTH_ISSUER ${MUST}, such as https://id.example.com.`)
  if (!isSecureUrl(audience))
    env.problem(`AUTH_AUDIENCE ${MUST}: this server's, such as https://mcp.example.com/mcp.`)
  const isUrl = /^[a-z][a-z0-9+.-]+:\/\//i.test(jwks)
  if (isUrl && !isSecureUrl(jwks.replace(/\?.*/, '')))
    env.problem(`AUTH_JWKS ${MUST}, or the path of a file.`)
  if (!isSecureUrl(issuer) || !isSecureUrl(audience)) return undefined
  return oauthIdentity(issuer, audience, isUrl ? () => fetchText(jwks) : () => readFile(jwks, 'utf8'), now)
}

const MUST = 'must be an https URL (http on loopback only) without user, query or fragment'

function oauthIdentity(issuer: string, audience: string, load: LoadKeys, now: () => number): Identity {
  const keysFor = keySet(load, now)
  const { challenge, documents } = protectedResource(audience, issuer, SCOPE)
  return {
    async authenticate(headers) {
      const jwt = parseJwt(bearerToken(headers, challenge))
      if (typeof jwt === 'string') throw invalidToken(jwt, challenge)
      const keys = await keysFor(jwt)
      if (!keys.some((key) => isSignedBy(jwt, key))) throw invalidToken('token signature', challenge)
      const fault = faultOf(jwt.claims, issuer, audience, now())
      if (fault !== undefined) throw invalidToken(fault, challenge)
      return principalOf(jwt.claims, issuer, challenge)
    },
    authorize({ scopes }, scope) {
      if (!scopes.has(scope)) throw insufficientScope(scope, challenge)
    },
    documents,
    audience,
  }
}

/** `client_id` is what RFC 9068 asks for; `azp` is what some issuers write instead. */
function principalOf(claims: JsonObject, issuer: string, challenge: Challenge): Principal {
  const { sub, client_id: clientId, azp, scope, scp } = claims
  const client = clientId ?? azp ?? ''
  if (typeof client !== 'string') throw invalidToken('token client', challenge)
  const scopes = typeof scope === 'string' ? scope.split(' ') : Array.isArray(scp) ? scp.map(String) : []
  return { issuer, subject: String(sub), client, scopes: new Set(scopes) }
}

function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, search, hash } = new URL(text)
  const secure = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname))
  return secure && username + password + search + hash === '' && !/[\s"\\#?]/.test(text)
}

/** @throws Error for a redirect, a bad status, a late or a long answer. */
async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(FETCH_MS) })
  if (!response.ok || response.body === null) throw new Error(`The key server answered ${response.status}.`)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > FETCH_BYTES) throw new Error('The key set is too long.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
