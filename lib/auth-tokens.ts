/**
 * Callers from a file: each line has the SHA-256 of a token, the name of its holder and the scopes it
 * carries. For a team behind TLS, and for trying things out; an organisation has an issuer.
 */
import { hash } from 'node:crypto'
import { bearerToken, type Challenge, insufficientScope, invalidToken } from './bearer.ts'
import type { Environment } from './environment.ts'
import type { Identity } from './identity.ts'
import type { Principal } from './principal.ts'

const LINE = /^([0-9a-f]{64})[\t ]+(\S+)((?:[\t ]+\S+)*)$/i
/** There is no metadata to point at, so the challenge is a bare `Bearer`. */
const CHALLENGE: Challenge = { fields: [], explains: false }

/** Reads AUTH_TOKENS_FILE. @returns undefined when it is not set. */
export function tokensIdentityFrom(env: Environment): Identity | undefined {
  const file = env.file('AUTH_TOKENS_FILE')
  if (file === undefined) return undefined
  const holders = readHolders(file.toString('utf8'), env)
  return {
    authenticate(headers) {
      // Found by digest: the time this takes says nothing about the token.
      const holder = holders.get(hash('sha256', bearerToken(headers, CHALLENGE), 'hex'))
      if (holder === undefined) throw invalidToken('token unknown', CHALLENGE)
      return holder
    },
    authorize({ scopes }, scope) {
      if (!scopes.has(scope)) throw insufficientScope(scope, CHALLENGE)
    },
    documents: new Map(),
    audience: undefined,
  }
}

function readHolders(text: string, env: Environment): Map<string, Principal> {
  const holders = new Map<string, Principal>()
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const [, digest = '', subject = '', scopes = ''] = LINE.exec(line) ?? []
    const where = `AUTH_TOKENS_FILE, line ${index + 1}`
    if (digest === '')
      env.problem(`${where}: write the token's SHA-256 in hexadecimal, a subject and scopes.`)
    if (holders.has(digest.toLowerCase()))
      env.problem(`${where}: this token is there twice; delete one line.`)
    const principal = { issuer: 'tokens-file', subject, client: '', scopes: new Set(scopes.split(/\s+/)) }
    holders.set(digest.toLowerCase(), principal)
  }
  if (holders.size === 0) env.problem('AUTH_TOKENS_FILE has no token: README shows how to make a line.')
  return holders
}
