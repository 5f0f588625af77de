/**
 * The store of outcomes for several instances: Redis 7 or Valkey, through a client that the operator
 * installed. This file imports none; it needs one function of it.
 */
import type { Environment } from './environment.ts'
import type { OutcomeStore } from './outcome-store.ts'
import { isObject } from './protocol.ts'

/** The part of the npm package `redis` that is used. */
export type RedisClient = { readonly sendCommand: (args: string[]) => Promise<unknown> }

type ConnectingClient = RedisClient & {
  readonly on: (event: 'error', listener: (error: unknown) => void) => unknown
  readonly connect: () => Promise<unknown>
}

type RedisPackage = { readonly createClient: (options: object) => ConnectingClient }

function isRedisPackage(module: unknown): module is RedisPackage {
  return isObject(module) && typeof module.createClient === 'function'
}

/** Longest wait for an answer, in milliseconds: a store that hangs must not hold up the caller. */
const TIMEOUT_MS = 2000

/** What Redis is needed for, and how long ago it said something else, is for whoever runs the server. */
const INSTALL = 'REDIS_URL needs the npm package redis: run npm install redis, or unset REDIS_URL.'

/**
 * Reads REDIS_URL and connects in the background: until there is a connection, and whenever there is
 * none, each step fails and nothing is done.
 * @param load imports the npm package; `server.ts` alone names it.
 * @param audience keeps servers that share a Redis apart.
 * @param say takes a sentence for whoever runs the server.
 * @returns undefined when REDIS_URL is not set.
 */
export async function redisStoreFrom(
  env: Environment,
  load: () => Promise<unknown>,
  audience: string,
  say: (sentence: string) => void,
): Promise<OutcomeStore | undefined> {
  const url = env.text('REDIS_URL')
  if (url === undefined) return undefined
  const module = await load().catch(() => undefined)
  if (!isRedisPackage(module)) {
    // Outcomes kept anywhere else would let an approval count once on each instance.
    env.problem(INSTALL)
    return undefined
  }
  let client: ConnectingClient
  try {
    client = module.createClient({ url, disableOfflineQueue: true, RESP: 2 })
  } catch {
    env.problem('REDIS_URL is no address that the package redis takes: write it as redis://host:port.')
    return undefined
  }
  client.on('error', (error: unknown) => say(`Redis: ${error instanceof Error ? error.message : error}`))
  client.connect().catch(() => {}) // said by the listener
  return redisStore(client, `${audience}:`)
}

/** @param prefix keeps servers that share a Redis apart. */
export function redisStore(client: RedisClient, prefix: string): OutcomeStore {
  const command = async (...args: string[]): Promise<string | undefined> => {
    const reply = await withinTime(client.sendCommand(args))
    if (reply === null) return undefined
    if (typeof reply !== 'string') throw new TypeError(`Redis answered ${args[0]} with no text.`)
    return reply
  }
  return {
    // NX with GET is one atomic step since Redis 7.0: it writes if there is nothing, and tells.
    claim: (key, value, lifeMs) => command('SET', prefix + key, value, 'NX', 'GET', 'PX', String(lifeMs)),
    read: (key) => command('GET', prefix + key),
    settle: async (key, value, lifeMs) => {
      const life = String(Math.max(1, lifeMs))
      const reply = await command('SET', prefix + key, value, 'PX', life)
      if (reply !== 'OK') throw new Error('Redis did not keep an outcome.')
    },
  }
}

function withinTime(answer: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Redis gave no answer in time.')), TIMEOUT_MS)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
