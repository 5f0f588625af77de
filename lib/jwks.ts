/**
 * The issuer's public keys, from a file or a URL. They are cached, fetched again for an unknown key
 * id at a bounded rate, and an unreachable key server is our outage, never the caller's fault.
 *
 * Source: RFC 7517.
 */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { type Algorithm, algorithmsOf, type Jwt } from './jwt.ts'
import { isObject, own } from './protocol.ts'
import { Refusal } from './refusal.ts'

/** @returns the text of a key set. */
export type LoadKeys = () => Promise<string>

type Key = {
  readonly id: string | undefined
  readonly algorithms: readonly Algorithm[]
  readonly key: KeyObject
}

/** Keys are fetched again after this long, so that a withdrawn one is gone, in milliseconds. */
const MAX_AGE_MS = 10 * 60_000
/** The shortest time between two fetches: a stranger's key ids must not become the key server's load. */
const MIN_INTERVAL_MS = 30_000
const RETRY_AFTER_SECONDS = '30'

/** @returns a function to the keys that may have signed a token; it throws a Refusal 503. */
export function keySet(load: LoadKeys, now: () => number): (jwt: Jwt) => Promise<readonly KeyObject[]> {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let loading: Promise<void> | undefined

  /** One fetch at a time; whoever comes meanwhile waits for it. */
  function refresh(): Promise<void> {
    if (loading === undefined && now() - triedAt < MIN_INTERVAL_MS) return Promise.resolve()
    triedAt = loading === undefined ? now() : triedAt
    loading ??= load()
      .then((text) => {
        keys = readKeys(text)
        loadedAt = now()
      })
      .catch(() => {}) // judged by the age of what there is
      .finally(() => {
        loading = undefined
      })
    return loading
  }

  return async (jwt) => {
    if (now() - loadedAt >= MAX_AGE_MS) await refresh()
    let fitting = keys.filter((key) => fits(key, jwt))
    if (fitting.length === 0) {
      await refresh()
      fitting = keys.filter((key) => fits(key, jwt))
    }
    // A key server that is away for one refresh costs nothing; for two, its keys are no longer known.
    if (!(now() - loadedAt < 2 * MAX_AGE_MS)) throw unavailable()
    return fitting.map(({ key }) => key)
  }
}

function fits({ id, algorithms }: Key, { keyId, algorithm }: Jwt): boolean {
  return (keyId === undefined || keyId === id) && algorithms.includes(algorithm)
}

/** @throws Error when the text is no key set; a key in it that isn't taken is left out. */
function readKeys(text: string): Key[] {
  const keys = own(Object(JSON.parse(text)), 'keys')
  if (!Array.isArray(keys)) throw new TypeError('A key set has keys.')
  return keys.flatMap((jwk) => (isObject(jwk) ? readKey(jwk) : []))
}

function readKey(jwk: JsonWebKey & { readonly [member: string]: unknown }): Key[] {
  const { kid, use, alg, key_ops: operations } = jwk
  const forSignatures = use === undefined || use === 'sig'
  const forVerifying = !Array.isArray(operations) || operations.includes('verify')
  if (!forSignatures || !forVerifying) return []
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const algorithms = algorithmsOf(key).filter((one) => alg === undefined || alg === one)
    return [{ id: typeof kid === 'string' ? kid : undefined, algorithms, key }]
  } catch {
    return [] // a kind of key that Node doesn't know
  }
}

function unavailable(): Refusal {
  const sentence = "The issuer's keys can't be had right now. Try again."
  return new Refusal(503, sentence, 'keys unavailable', { 'Retry-After': RETRY_AFTER_SECONDS })
}
