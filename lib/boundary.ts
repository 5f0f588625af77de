/**
 * The one place where a `requestState` is opened and issued. It opens before any handler runs and
 * seals after the handler has asked, so that no author can forget either or get the order wrong.
 * Rows 24 and 25 of the admission table, for tools/call and every other method that may ask.
 *
 * Source: basic/patterns/mrtr, "Server Requirements".
 */
import { requireAnswerable } from './capabilities.ts'
import { CODE, type JsonObject, own } from './protocol.ts'
import { type Refusal, rpcRefusal } from './refusal.ts'
import type { AdmittedRequest, Decision, Trail } from './request.ts'
import type { Result } from './result.ts'
import type { Retry } from './retry.ts'
import { digest, type Flow, type States } from './state.ts'
import type { Ask, Call } from './tool.ts'

/** A request for something that may ask before it answers. */
export type Errand<Answer extends JsonObject> = {
  readonly request: AdmittedRequest
  readonly retry: Retry
  /** The tool's name; for other methods the prompt's name or the resource's URI. */
  readonly target: string
  /** Validated arguments. */
  readonly arguments: JsonObject
  readonly handle: (call: Call) => Ask | Answer | Promise<Ask | Answer>
  /** What a refused state gets; JSON-RPC -32602 where it is absent. */
  readonly refusedState: Answer | undefined
  /** Finds what came of a flow whose state has only expired. */
  readonly recall?: (flow: Flow) => Promise<Answer | undefined>
}

/** @throws Refusal -32602 for a refused state, -32021 for a question that the client can't take. */
export async function run<Answer extends JsonObject>(
  { states, trail }: { readonly states: States; readonly trail?: Trail },
  errand: Errand<Answer>,
): Promise<Result> {
  const { request, retry, target, arguments: args, handle, refusedState, recall } = errand
  const { arrival, method, principal, meta, capabilities } = request
  const { note } = arrival
  const { requestState, answers } = retry
  const binding = { principal, method, target, arguments: digest(args) }
  const decide = (decision: Decision, flow?: string, reason?: string) => {
    note.outcome = reason === undefined ? decision : `state refused: ${reason}`
    trail?.({ decision, reason, flow, tool: target, principal, arguments: binding.arguments })
  }

  const opened = requestState === undefined ? undefined : states.open(requestState, binding)
  if (opened !== undefined && 'failure' in opened) {
    const { failure, known } = opened
    const earlier = known && failure === 'expired' ? await recall?.(known) : undefined
    if (earlier !== undefined) return { resultType: 'complete', ...earlier }
    decide('refused', known?.id, failure)
    if (refusedState === undefined) throw invalidState()
    return { resultType: 'complete', ...refusedState }
  }

  const flow = opened?.flow
  const decided = (decision: Decision) => decide(decision, flow?.id)
  const call = {
    arguments: args,
    principal,
    client: arrival.peer,
    meta,
    capabilities,
    flow,
    answers,
    decided,
  }
  const outcome = await handle(call)
  if (!isAsk(outcome)) {
    note.outcome ??= own(outcome, 'isError') === true ? 'tool error' : 'ok'
    return { resultType: 'complete', ...outcome }
  }

  const { inputRequests, question = inputRequests, data = null } = outcome
  requireAnswerable(capabilities, inputRequests)
  const current = flow ?? states.begin()
  const issued = states.issue(binding, question, data, current)
  decide(flow === undefined ? 'asked' : 'asked again', current.id)
  return { resultType: 'input_required', inputRequests, requestState: issued }
}

/** One text for every cause: which check failed would help only somebody who is guessing. */
function invalidState(): Refusal {
  const data = { reason: 'invalid_request_state' }
  return rpcRefusal(200, CODE.invalidParams, 'Invalid or expired requestState', 'state refused', data)
}

function isAsk(outcome: Ask | JsonObject): outcome is Ask {
  return Object.hasOwn(outcome, 'inputRequests')
}
