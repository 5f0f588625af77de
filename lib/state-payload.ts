/**
 * The text under the seal of a `requestState`, and reading it back. A good seal says who wrote the
 * text, not that this version of the program did, so every field is checked again.
 */
import { isObject, type Json, type JsonObject } from './protocol.ts'

/** A flow ends this long after its first question, and no state outlives it. */
export const FLOW_MS = 15 * 60_000
/** How far apart the clocks of two replicas may be. */
const CLOCK_SKEW_MS = 60_000

/** The sealed text is this record as JSON, members in this order, and nothing else. */
export type Payload = {
  readonly v: 1
  readonly audience: string
  readonly method: string
  readonly target: string
  /** Digest of the principal, salted with the flow. */
  readonly principal: string
  /** Digest of the validated arguments. */
  readonly arguments: string
  /** Digest of the question as it was put. */
  readonly question: string
  /** A random UUID; every state of one flow carries the same. */
  readonly flow: string
  /** How often the question was put, this time included. */
  readonly round: number
  /** Times are in milliseconds since 1970. */
  readonly issuedAt: number
  readonly expiresAt: number
  readonly flowEndsAt: number
  /** What the handler wants to find again. */
  readonly data: Json
}

export function writePayload(p: Payload): string {
  return JSON.stringify({
    v: p.v,
    audience: p.audience,
    method: p.method,
    target: p.target,
    principal: p.principal,
    arguments: p.arguments,
    question: p.question,
    flow: p.flow,
    round: p.round,
    issuedAt: p.issuedAt,
    expiresAt: p.expiresAt,
    flowEndsAt: p.flowEndsAt,
    data: p.data,
  })
}

/** @returns undefined for anything that {@link writePayload} would not have written. */
export function readPayload(text: string): Payload | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  // Written again it must be the same text: no extra, missing, repeated or reordered member.
  return isObject(value) && isPayload(value) && writePayload(value) === text ? value : undefined
}

function isPayload(value: JsonObject): value is JsonObject & Payload {
  const { v, audience, method, target, principal, question, flow, data } = value
  const texts = [audience, method, target, principal, value.arguments, question, flow]
  const times = [value.round, value.issuedAt, value.expiresAt, value.flowEndsAt]
  const typed = texts.every((text) => typeof text === 'string') && times.every(isTime)
  return v === 1 && typed && data !== undefined
}

export type Untimely = 'lifetime' | 'future' | 'expired'

/** How a payload stands in time: each comparison says what must hold, so a clock that fails refuses. */
export function untimely({ issuedAt, expiresAt, flowEndsAt }: Payload, now: number): Untimely | undefined {
  const inOrder = issuedAt < expiresAt && expiresAt <= flowEndsAt && expiresAt <= issuedAt + FLOW_MS
  const bounded = flowEndsAt <= issuedAt + FLOW_MS + CLOCK_SKEW_MS
  if (!(inOrder && bounded && isTime(now))) return 'lifetime'
  if (!(issuedAt <= now + CLOCK_SKEW_MS)) return 'future'
  if (!(now < expiresAt)) return 'expired'
  return undefined
}

/** A whole, non-negative number of milliseconds: not NaN, not a date far out of range. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
