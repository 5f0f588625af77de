/** A server without authentication: everybody is the same demo user, who tells no two people apart. */
import type { Environment } from './environment.ts'
import type { Identity } from './identity.ts'
import { DEMO_USER } from './principal.ts'

/** Beyond loopback this must be asked for: anybody who reaches the port may call every tool. */
export function anonymousIdentity(env: Environment, loopback: boolean): Identity {
  const allowed = env.choice('ALLOW_ANONYMOUS', ['0', '1']) === '1'
  const meant = env.hasProblem('AUTH_') // which is reported: the callers are not forgotten
  if (!loopback && !allowed && !meant) {
    env.problem(
      "HOST isn't loopback and nobody is authenticated: set AUTH_TOKENS_FILE or AUTH_ISSUER, or ALLOW_ANONYMOUS=1.",
    )
  }
  return {
    authenticate: () => DEMO_USER,
    authorize: () => {},
    documents: new Map(),
    audience: undefined,
  }
}
