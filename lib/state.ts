/**
 * `requestState`: what the server would otherwise have to remember between two calls, sealed and
 * handed to the client. Everything that makes an approval mean one thing is bound in it, and every
 * binding is checked again when it comes back, whoever brings it.
 *
 * Source: basic/patterns/mrtr, "Server Requirements", items 4 and 5.
 */
import { hash, randomUUID, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from './canonical.ts'
import { type Principal, principalDigest } from './principal.ts'
import type { Json } from './protocol.ts'
import type { Seal, SealFailure } from './seal.ts'
import {
  FLOW_MS,
  isTime,
  type Payload,
  readPayload,
  type Untimely,
  untimely,
  writePayload,
} from './state-payload.ts'

/** What a state is good for: this caller, this method, this target, these arguments. */
export type Binding = {
  readonly principal: Principal
  readonly method: string
  /** The tool's name; for the other methods that can ask, the prompt's name or resource's URI. */
  readonly target: string
  /** {@link digest} of the validated arguments. */
  readonly arguments: string
}

/** A question and what may follow it, from the first time it is asked to its last answer. */
export type Flow = {
  readonly id: string
  /** How often the question was put; no two states of a flow are the same. */
  readonly round: number
  /** In milliseconds since 1970. Asking again never moves it. */
  readonly endsAt: number
  /** {@link digest} of the question as it was put. */
  readonly question: string
  readonly data: Json
}

export type NewFlow = Pick<Flow, 'id' | 'round' | 'endsAt'>

/** Why a state is refused: for the log, never for the client. */
export type StateFailure = SealFailure | 'payload' | Misplaced | Untimely
type Misplaced = 'audience' | 'principal' | 'method' | 'target' | 'arguments'

/** A state that was sealed for this caller tells its flow even when it is refused, for the trail. */
export type Opened = { readonly flow: Flow } | { readonly failure: StateFailure; readonly known?: Flow }

const TRACEABLE: ReadonlySet<StateFailure> = new Set(['method', 'target', 'arguments', 'future', 'expired'])

export type States = {
  readonly open: (state: string, binding: Binding) => Opened
  readonly begin: () => NewFlow
  /** @param flow the running flow when its question is asked again, else a new one. */
  readonly issue: (binding: Binding, question: unknown, data: Json, flow?: NewFlow) => string
}

/**
 * @param audience this server's name; other servers with the same secret need another.
 * @param ttlMs how long one question may stay unanswered, in milliseconds.
 * @param now the clock, in milliseconds since 1970.
 */
export function requestStates(
  seal: Seal,
  { audience, ttlMs, now }: { audience: string; ttlMs: number; now: () => number },
): States {
  function begin(): NewFlow {
    return { id: randomUUID(), round: 0, endsAt: now() + FLOW_MS }
  }

  function issue(binding: Binding, question: unknown, data: Json, flow = begin()): string {
    const issuedAt = now()
    if (!isTime(issuedAt)) throw new RangeError('The clock gives no time, so no state is issued.')
    const { principal, method, target } = binding
    const payload: Payload = {
      v: 1,
      audience,
      method,
      target,
      principal: principalDigest(principal, flow.id),
      arguments: binding.arguments,
      question: digest(question),
      flow: flow.id,
      round: flow.round + 1,
      issuedAt,
      expiresAt: Math.min(issuedAt + ttlMs, flow.endsAt),
      flowEndsAt: flow.endsAt,
      data,
    }
    return seal.seal(writePayload(payload))
  }

  function open(state: string, binding: Binding): Opened {
    const opened = seal.open(state)
    if ('failure' in opened) return opened
    const payload = readPayload(opened.text)
    if (payload === undefined) return { failure: 'payload' }
    const { flow: id, round, flowEndsAt: endsAt, question, data } = payload
    const flow = { id, round, endsAt, question, data }
    const failure = misplaced(payload, binding) ?? untimely(payload, now())
    if (failure === undefined) return { flow }
    return TRACEABLE.has(failure) ? { failure, known: flow } : { failure }
  }

  function misplaced(payload: Payload, binding: Binding): Misplaced | undefined {
    const principal = principalDigest(binding.principal, payload.flow)
    if (!same(payload.audience, audience)) return 'audience'
    if (!same(payload.principal, principal)) return 'principal'
    if (!same(payload.method, binding.method)) return 'method'
    if (!same(payload.target, binding.target)) return 'target'
    if (!same(payload.arguments, binding.arguments)) return 'arguments'
    return undefined
  }

  return { open, begin, issue }
}

/** @returns SHA-256 of a JSON value's RFC 8785 text, in base64url. */
export function digest(value: unknown): string {
  return hash('sha256', canonicalJson(value), 'base64url')
}

/** In constant time for equal lengths; the lengths are no secret. */
function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
