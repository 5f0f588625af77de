/**
 * Callers from a file: each line has the SHA-256 of a token, the name of its holder and the scopes it
 * carries. For a team behind TLS, and for trying things out; an organisation has an issuer.
 */
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { bearerToken, insufficientScope, invalidToken } from './bearer.ts'
import type { Environment } from './environment.ts'
import type { Identity } from './identity.ts'
import type { Principal } from './principal.ts'

const LINE = /^([0-9a-f]{64})[\t ]+(\S+)((?:[\t ]+\S+)*)$/i

/** Reads AUTH_TOKENS_FILE. @returns undefined when it is not set. */
export function tokensIdentityFrom(env: Environment): Identity | undefined {
  const file = env.file('AUTH_TOKENS_FILE')
  if (file === undefined) return undefined
  if (!isUtf8(file)) env.problem('AUTH_TOKENS_FILE must be UTF-8 text.')
  const holders = readHolders(file.toString('utf8'), env)
  return {
    authenticate(headers) {
      // Found by its digest, which nobody can steer: the time this takes tells nothing of a token.
      const holder = holders.get(hash('sha256', bearerToken(headers), 'hex'))
      if (holder === undefined) throw invalidToken('token unknown')
      return holder
    },
    authorize({ scopes }, scope) {
      if (!scopes.has(scope)) throw insufficientScope(scope)
    },
    documents: new Map(),
    audience: undefined,
  }
}

/** Problems name a line by its number: a token that was put there by mistake must not be printed. */
function readHolders(text: string, env: Environment): Map<string, Principal> {
  const holders = new Map<string, Principal>()
  const problems: string[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const [match, digest = '', subject = '', rest = ''] = LINE.exec(line) ?? []
    const key = digest.toLowerCase()
    const where = `AUTH_TOKENS_FILE, line ${index + 1}`
    if (match === undefined) {
      problems.push(`${where}: write the token's SHA-256 in hexadecimal, a subject and scopes.`)
    } else if (holders.has(key)) {
      problems.push(`${where}: this token is there twice; delete one line.`)
    } else {
      const scopes = new Set(rest.match(/\S+/g))
      holders.set(key, { issuer: 'tokens-file', subject, client: '', scopes })
    }
  }
  for (const problem of problems) env.problem(problem)
  if (holders.size === 0 && problems.length === 0) {
    env.problem('AUTH_TOKENS_FILE has no token: README shows how to make a line.')
  }
  return holders
}
