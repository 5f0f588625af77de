/**
 * The one place where a `requestState` is opened and issued. It opens before any handler runs and
 * seals after the handler has asked, so that no author can forget either or get the order wrong.
 * Rows 24 and 25 of the admission table, for tools/call and every other method that may ask.
 *
 * Source: basic/patterns/mrtr, "Server Requirements".
 */
import { requireAnswerable } from './capabilities.ts'
import { CODE, isObject, type JsonObject, own } from './protocol.ts'
import { invalidParams, type Refusal, rpcRefusal } from './refusal.ts'
import type { AdmittedRequest, Result } from './request.ts'
import { digest, type States } from './state.ts'
import type { Ask, Call } from './tool.ts'

/** What a client adds to a request when it tries again. */
export type Retry = { readonly requestState: string | undefined; readonly answers: JsonObject }

/** A request for something that may ask before it answers. */
export type Errand<Answer extends JsonObject> = Retry & {
  readonly request: AdmittedRequest
  /** The tool's name; for other methods the prompt's name or the resource's URI. */
  readonly target: string
  /** Validated arguments. */
  readonly arguments: JsonObject
  readonly handle: (call: Call) => Ask | Answer | Promise<Ask | Answer>
  /** What a refused state gets; JSON-RPC -32602 where it is absent. */
  readonly refusedState: Answer | undefined
}

/** Part of row 20. @throws Refusal -32602 when a member is there and has the wrong type. */
export function readRetry(params: JsonObject): Retry {
  const requestState = own(params, 'requestState')
  const answers = Object.hasOwn(params, 'inputResponses') ? params.inputResponses : {}
  if (requestState !== undefined && typeof requestState !== 'string') {
    throw invalidParams('requestState must be a string')
  }
  if (isObject(answers)) return { requestState, answers }
  throw invalidParams('inputResponses must be an object')
}

/** @throws Refusal -32602 for a refused state, -32021 for a question that the client can't take. */
export async function run<Answer extends JsonObject>(
  states: States,
  errand: Errand<Answer>,
): Promise<Result> {
  const { request, target, requestState, answers, arguments: args, handle, refusedState } = errand
  const { method, principal, capabilities, signal, note } = request
  const binding = { principal, method, target, arguments: digest(args) }

  const opened = requestState === undefined ? undefined : states.open(requestState, binding)
  if (opened !== undefined && 'failure' in opened) {
    note.outcome = `state refused: ${opened.failure}`
    if (refusedState === undefined) throw invalidState()
    return { resultType: 'complete', ...refusedState }
  }

  const flow = opened?.flow
  const outcome = await handle({
    arguments: args,
    principal,
    capabilities,
    signal,
    note,
    flow,
    answers,
  })
  if (!isAsk(outcome)) return { resultType: 'complete', ...outcome }

  const { inputRequests, question = inputRequests, data = null } = outcome
  requireAnswerable(capabilities, inputRequests)
  note.outcome ??= flow === undefined ? 'asked' : 'asked again'
  const issued = states.issue(binding, question, data, flow)
  return { resultType: 'input_required', inputRequests, requestState: issued }
}

/** One text for every cause: which check failed would help only somebody who is guessing. */
function invalidState(): Refusal {
  const data = { reason: 'invalid_request_state' }
  return rpcRefusal(
    200,
    CODE.invalidParams,
    'Invalid or expired requestState',
    'state refused',
    data,
  )
}

function isAsk(outcome: Ask | JsonObject): outcome is Ask {
  return Object.hasOwn(outcome, 'inputRequests')
}
