/**
 * Row 21: "Servers MUST rate limit tool invocations" (server/tools, "Security Considerations"). A
 * token bucket for each caller: a burst of one minute's calls, then one at a time.
 */
import type { Environment } from './environment.ts'
import { DEMO_USER, principalParts } from './principal.ts'
import { Refusal } from './refusal.ts'
import type { AdmittedRequest, Permit } from './request.ts'

type Bucket = { tokens: number; at: number }

/** An application's own code, outside all that JSON-RPC and MCP reserve. */
const RATE_LIMITED = 1429
/** Callers that are remembered at once; a bucket that is full again is forgotten. */
const CALLERS = 10_000
const MINUTE_MS = 60_000
/** What sums of fractions may be off by: whoever waits as long as was said is let in. */
const ROUNDING = 1e-6

/**
 * Reads RATE_LIMIT_PER_MINUTE; 0 switches the limit off.
 * @param fallback calls a minute when it is not set.
 */
export function rateLimitFrom(env: Environment, fallback: number, now: () => number): Permit {
  const what = 'a number of calls; 0 switches the limit off'
  const perMinute = env.integer('RATE_LIMIT_PER_MINUTE', fallback, 0, 1_000_000, what)
  const take = tokenBuckets(perMinute, now)
  return perMinute === 0 ? () => {} : (request) => take(callerOf(request))
}

/** The principal, or where there is none the other end of the socket. */
function callerOf({ principal, arrival }: AdmittedRequest): string {
  return principal === DEMO_USER ? arrival.address : principalParts(principal)
}

/** @returns what takes one token of a caller's. @throws Refusal 429 when there is none. */
function tokenBuckets(perMinute: number, now: () => number): (caller: string) => void {
  const buckets = new Map<string, Bucket>()

  const refilled = ({ tokens, at }: Bucket, time: number) =>
    Math.min(perMinute, tokens + (Math.max(0, time - at) * perMinute) / MINUTE_MS)

  return (caller) => {
    const time = now()
    const bucket = buckets.get(caller)
    if (bucket !== undefined && time < bucket.at) bucket.at = time // the clock was set back
    const tokens = refilled(bucket ?? { tokens: perMinute, at: time }, time)
    if (tokens < 1 - ROUNDING) throw refused(tokens) // the bucket stays as it is: asking costs nothing
    buckets.delete(caller) // the Map's order is then that of the last call
    if (buckets.size >= CALLERS) forget(time)
    buckets.set(caller, { tokens: tokens - 1, at: time })
  }

  function refused(tokens: number): Refusal {
    const wait = ((1 - tokens) * MINUTE_MS) / perMinute
    const seconds = Math.max(1, Math.ceil(Math.ceil(wait - ROUNDING) / 1000))
    const error = { code: RATE_LIMITED, message: `Too many calls. Try again in ${seconds} s.` }
    return new Refusal(429, error, 'rate limit', { 'Retry-After': String(seconds) })
  }

  /** Drops every bucket that is full again, and where there is none the one used longest ago. */
  function forget(time: number): void {
    for (const [caller, bucket] of buckets) {
      if (refilled(bucket, time) >= perMinute) buckets.delete(caller)
    }
    const [oldest] = buckets.keys()
    if (buckets.size >= CALLERS && oldest !== undefined) buckets.delete(oldest)
  }
}
