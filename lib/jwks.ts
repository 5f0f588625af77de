/**
 * The issuer's public keys. They are cached, fetched again for an unknown key id at a bounded rate,
 * and a key server that can't be reached is our outage, never the caller's fault.
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
/** Longest wait for the key server, in milliseconds, and its longest answer, in bytes. */
const FETCH_MS = 5000
const FETCH_BYTES = 256 * 1024

/** @returns a function to the keys that may have signed a token; it throws a Refusal 503. */
export function keySet(load: LoadKeys, now: () => number): (jwt: Jwt) => Promise<readonly KeyObject[]> {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let failed = false
  let loading: Promise<void> | undefined

  /** Milliseconds; a clock that was set back makes what is known old, not young for ever. */
  const since = (moment: number) => (now() < moment ? Number.POSITIVE_INFINITY : now() - moment)

  async function fetchNow(): Promise<void> {
    triedAt = now()
    try {
      keys = readKeySet(await load())
      loadedAt = triedAt
      failed = false
    } catch {
      failed = true
    }
  }

  /** One fetch at a time; whoever comes meanwhile waits for it. */
  async function refresh(): Promise<void> {
    if (loading === undefined && since(triedAt) >= MIN_INTERVAL_MS) {
      loading = fetchNow().finally(() => {
        loading = undefined
      })
    }
    await loading
  }

  return async (jwt) => {
    if (since(loadedAt) >= MAX_AGE_MS || matching(keys, jwt).length === 0) await refresh()
    const found = matching(keys, jwt)
    // A server that is away for one refresh costs nothing; for two, its keys are no longer known. While
    // it is away, an unknown key may be its newest: that can't be told, and isn't the caller's fault.
    if (since(loadedAt) >= 2 * MAX_AGE_MS || (failed && found.length === 0)) throw unavailable()
    return found
  }
}

/** @returns the keys with the token's key id; without one the only key for its algorithm, if only one is. */
function matching(keys: readonly Key[], { keyId, algorithm }: Jwt): readonly KeyObject[] {
  const fitting = keys.filter(({ algorithms }) => algorithms.includes(algorithm))
  const found = keyId === undefined ? fitting : fitting.filter(({ id }) => id === keyId)
  return keyId === undefined && found.length > 1 ? [] : found.map(({ key }) => key)
}

/** @throws Error when the text is no key set; a key in it that isn't taken is left out. */
export function readKeySet(text: string): readonly Key[] {
  const keys = own(Object(JSON.parse(text)), 'keys')
  if (!Array.isArray(keys)) throw new TypeError('A key set has keys.')
  return keys.flatMap((jwk) => (isObject(jwk) ? readKey(jwk) : []))
}

function readKey(jwk: JsonWebKey & { readonly [member: string]: unknown }): Key[] {
  const { kid, use, alg, key_ops: operations } = jwk
  const forSignatures = use === undefined || use === 'sig'
  const forVerifying =
    operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
  if (!forSignatures || !forVerifying) return []
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const algorithms = algorithmsOf(key).filter((one) => alg === undefined || alg === one)
    const id = typeof kid === 'string' ? kid : undefined
    return algorithms.length === 0 ? [] : [{ id, algorithms, key }]
  } catch {
    return [] // a kind of key that Node doesn't know
  }
}

/** Throws an Error for a redirect, a bad status, a late or a long answer. */
export function keysAt(url: string, limitMs = FETCH_MS): LoadKeys {
  return async () => {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(limitMs) })
    if (!response.ok || response.body === null)
      throw new Error(`The key server answered ${response.status}.`)
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of response.body) {
      size += chunk.length
      if (size > FETCH_BYTES) throw new Error('The key set is too long.')
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  }
}

function unavailable(): Refusal {
  const sentence = "The issuer's keys can't be had right now. Try again."
  return new Refusal(503, sentence, 'keys unavailable', { 'Retry-After': RETRY_AFTER_SECONDS })
}
