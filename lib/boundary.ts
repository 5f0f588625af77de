/**
 * The one place where a `requestState` is opened and issued. It opens before any handler runs and
 * seals after the handler has asked, so that no author can forget either or get the order wrong.
 * Rows 24 and 25 of the admission table, for tools/call and every other method that may ask.
 *
 * Source: basic/patterns/mrtr, "Server Requirements".
 */
import { requireAnswerable } from './capabilities.ts'
import { type JsonObject, own } from './protocol.ts'
import { invalidState } from './refusal.ts'
import type { AdmittedRequest, Decision, Trail } from './request.ts'
import type { Result } from './result.ts'
import type { Retry } from './retry.ts'
import { digest, type Flow, type NewFlow, type States } from './state.ts'
import { type Ask, type Call, isAsk } from './tool.ts'

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
  { states, trail }: { readonly states: States; readonly trail?: Trail | undefined },
  errand: Errand<Answer>,
): Promise<Result> {
  const { request, retry, target, arguments: args, refusedState } = errand
  const { arrival, method, principal, meta, capabilities } = request
  const { peer: client, note } = arrival
  const binding = { principal, method, target, arguments: digest(args) }
  let current: NewFlow | undefined
  const decided = (decision: Decision, reason?: string) => {
    note.outcome = reason === undefined ? decision : `state refused: ${reason}`
    const flow = current?.id
    trail?.({ decision, reason, flow, tool: target, principal, arguments: binding.arguments })
  }

  const opened = retry.requestState === undefined ? undefined : states.open(retry.requestState, binding)
  if (opened !== undefined && 'failure' in opened) {
    const { failure, known } = opened
    const earlier = known && failure === 'expired' ? await errand.recall?.(known) : undefined
    if (earlier !== undefined) return { resultType: 'complete', ...earlier }
    current = known
    decided('refused', failure)
    if (refusedState === undefined) throw invalidState()
    return { resultType: 'complete', ...refusedState }
  }

  const flow = opened?.flow
  current = flow
  const { answers } = retry
  const call = { arguments: args, principal, client, meta, capabilities, flow, answers, decided }
  const outcome = await errand.handle(call)
  if (!isAsk(outcome)) {
    note.outcome ??= own(outcome, 'isError') === true ? 'tool error' : 'ok'
    return { resultType: 'complete', ...outcome }
  }

  const { inputRequests, question = inputRequests, data = null } = outcome
  requireAnswerable(capabilities, inputRequests)
  current ??= states.begin()
  const requestState = states.issue(binding, question, data, current)
  decided(flow === undefined ? 'asked' : 'asked again')
  return { resultType: 'input_required', inputRequests, requestState }
}
