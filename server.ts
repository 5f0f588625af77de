/**
 * release-ops: a stateless MCP server with risky tools behind a human confirmation gate.
 *
 * This file chooses the parts and wires them; nothing else reads the environment, opens a port or
 * looks at the clock. To make the server yours, change the tools, the identity and the secrets here.
 * A line that ends in `leaf` is all that a fork deletes, with its file, to be rid of that part.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { type Action, SIMULATED } from './lib/action.ts'
import { anonymousIdentity } from './lib/anonymous.ts'
import { oauthIdentityFrom } from './lib/auth-jwt.ts' // leaf: auth-jwt
import { tokensIdentityFrom } from './lib/auth-tokens.ts' // leaf: auth-tokens
import { commandFrom } from './lib/command.ts' // leaf: command
import { type Config, readConfig } from './lib/config.ts'
import { edge } from './lib/edge.ts'
import { encrypter } from './lib/encryption.ts' // leaf: encryption
import { Environment, firstOf, type Variables } from './lib/environment.ts'
import { type HttpServer, httpServer } from './lib/http-server.ts'
import { type Identity, scopes } from './lib/identity.ts'
import { runUntilSignal } from './lib/lifecycle.ts'
import { jsonLog, type Log } from './lib/log.ts'
import { methodTable, toolsFeature } from './lib/methods.ts'
import { memoryStore, type OutcomeStore } from './lib/outcome-store.ts' // leaf: single-use
import { rateLimitFrom } from './lib/rate-limit.ts' // leaf: rate-limit
import { redisStoreFrom } from './lib/redis-store.ts' // leaf: redis-store
import { textReply } from './lib/reply.ts'
import { signer } from './lib/seal.ts'
import { singleUse } from './lib/single-use.ts' // leaf: single-use
import { requestStates } from './lib/state.ts'
import type { Tool } from './lib/tool.ts'
import { compileTools, paramHeadersOf } from './lib/tool-definition.ts'
import { rollbackRelease } from './lib/tools/rollback-release.ts'
import { scaleServiceFrom } from './lib/tools/scale-service.ts' // leaf: scale-service
import { trail } from './lib/trail.ts' // leaf: trail

const INSTRUCTIONS = 'Release operations. rollback_release asks for confirmation.'

/** Ways to protect a state; the first is the default. */
const PROTECTIONS = {
  signed: signer,
  encrypted: encrypter, // leaf: encryption
}
/** Only REDIS_URL needs it, and then the operator installs it. */
const REDIS_PACKAGE: string = 'redis' // leaf: redis-store

/** What a test replaces. */
export type Parts = {
  readonly now?: () => number
  readonly log?: Log
  /** Stands in for ROLLBACK_COMMAND and SCALE_COMMAND. */
  readonly action?: Action
  /** Tools beside those of the list below. */
  readonly tools?: readonly Tool[]
  readonly store?: OutcomeStore // leaf: single-use
  readonly arrivalMs?: number
}

export type Composed = {
  readonly http: HttpServer
  readonly config: Config
  /** What whoever starts the server should know. */
  readonly notices: readonly string[]
}

/** @returns the whole server, not yet listening. @throws Error with a line for each thing to mend. */
export async function compose(variables: Variables, parts: Parts = {}): Promise<Composed> {
  const { now = Date.now } = parts
  const env = new Environment(variables)
  const config = readConfig(env)
  const { rules, secrets, actionMs, ttlMs } = config
  const log = parts.log ?? jsonLog(config.logging)

  const known = env.only<Identity>('Set either AUTH_TOKENS_FILE or AUTH_ISSUER, not both.', [
    oauthIdentityFrom(env, now), // leaf: auth-jwt
    tokensIdentityFrom(env), // leaf: auth-tokens
  ])
  const identity = known ?? anonymousIdentity(env, rules.loopback)
  const audience = config.audience ?? identity.audience ?? 'release-ops'
  const protect = env.pick('STATE_PROTECTION', PROTECTIONS)
  const stores = [parts.store] // leaf: single-use
  stores.push(await redisStoreFrom(env, () => import(REDIS_PACKAGE), audience, log.say)) // leaf: redis-store
  const stopping = new AbortController()
  const store = firstOf(stores) ?? memoryStore(now) // leaf: single-use
  const single = singleUse(store, actionMs, now, stopping.signal) // leaf: single-use
  const actionOf = (variable: string, names: readonly string[]): Action => {
    const real = firstOf([
      parts.action,
      commandFrom(env, variable, names, actionMs), // leaf: command
    ])
    if (real === undefined)
      env.warn(`${variable} is not set: what it would do with ${names.join(' and ')} is simulated.`)
    return real ?? SIMULATED
  }
  const tools = [
    rollbackRelease(actionOf('ROLLBACK_COMMAND', ['service', 'version'])),
    scaleServiceFrom(env, actionOf('SCALE_COMMAND', ['service', 'replicas']), single, now), // leaf: scale-service
    ...(parts.tools ?? []),
  ]
  const permits = [
    scopes(identity),
    rateLimitFrom(env, known === undefined && rules.loopback ? 0 : 120, now), // leaf: rate-limit
  ]
  env.finish()

  const seal = protect(secrets)
  const compiled = compileTools(tools)
  const services = {
    states: requestStates(seal, { audience, ttlMs, now }),
    permits,
    singleUse: single, // leaf: single-use
    trail: log.decision && trail(secrets[0], log.decision), // leaf: trail
  }
  const { name, version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
  const answer = edge({
    methods: methodTable({ name, version }, INSTRUCTIONS, [toolsFeature(compiled, services)]),
    identity,
    rules,
    documents: new Map([['/healthz', textReply('ok')], ...identity.documents]),
    paramHeaders: paramHeadersOf(compiled),
    maxBodyBytes: config.maxBodyBytes,
  })
  const keys = `State keys, the sealing one first: ${seal.keyIds.join(' ')}`
  const http = httpServer(answer, log, parts.arrivalMs)
  const drain = () => {
    http.drain()
    stopping.abort()
  }
  return { http: { ...http, drain }, config, notices: [...env.warnings, keys] }
}

/** Starts the server as its environment says, or says what is wrong with that. */
async function main(): Promise<void> {
  try {
    const { http, config, notices } = await compose(process.env)
    await runUntilSignal(http, config)
    for (const notice of notices) console.error(notice)
  } catch (problem) {
    console.error(problem instanceof Error ? problem.message : problem)
    process.exit(1)
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  await main()
}
