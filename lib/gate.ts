/**
 * The confirmation gate: a kind of tool that acts only after a person said yes to exactly that.
 *
 * An author writes what is asked and what is done. What lies between is here, in this order: the
 * state was opened and matched by the boundary, the question is the one that was asked, the answer
 * is a yes. Only then is there an {@link Approval}, and `act` can't be called without one.
 *
 * An approval is what the client reported. It does not prove that a person was there, and it is no
 * credential: who may call the tool was decided before.
 */
import { FORM, requireCapability } from './capabilities.ts'
import { visible } from './display.ts'
import { type FieldAnswers, type Fields, yesNoForm } from './form.ts'
import type { Principal } from './principal.ts'
import { own } from './protocol.ts'
import { goneClient } from './refusal.ts'
import type { Infer, JsonSchema } from './schema.ts'
import { digest } from './state.ts'
import type { ToolDefinition } from './tool.ts'
import { type Ask, type Call, type Done, type Outcome, type Tool, toolResult } from './tool.ts'

/** What an author writes. */
export type GatedTool<S extends JsonSchema, F extends Fields> = ToolDefinition & {
  readonly inputSchema: S
  /** The question, in one line; it depends on nothing but the arguments. */
  readonly ask: (args: Infer<S>) => string
  /** What else the form asks for. */
  readonly fields: F
  /** What is said after a no. */
  readonly cancelled: (args: Infer<S>) => Done
  readonly act: (approval: Approval<Infer<S>, FieldAnswers<F>>) => Done | Promise<Done>
}

/** A person's yes to one question about these arguments. Only this file can make one. */
class Approval<Args, Answers> {
  readonly arguments: Args
  readonly answers: Answers
  /** A private member makes the type nominal: no object literal passes for an approval. */
  readonly #principal: Principal

  constructor(args: Args, answers: Answers, principal: Principal) {
    this.arguments = args
    this.answers = answers
    this.#principal = principal
  }

  get principal(): Principal {
    return this.#principal
  }
}

export type { Approval }

const KEY = 'confirm'
const REFUSED_STATE = 'Confirmation expired or was tampered with. Start again.'
const CHANGED = 'The question has changed since it was asked.'

/** @throws Error when the form can't be shown. */
export function gatedTool<const S extends JsonSchema, const F extends Fields>(
  spec: GatedTool<S, F>,
): Tool {
  const { ask, fields, cancelled, act, ...definition } = spec
  const { requestedSchema, read } = yesNoForm(spec.name, fields)

  async function handle({ arguments: checked, answers, flow, ...call }: Call): Promise<Outcome> {
    const args = checked as Infer<S> // by the validator of this very schema
    requireCapability(call.capabilities, FORM) //                         row 25
    const question = visible(ask(args))
    if (flow === undefined) return asking(question)
    if (flow.question !== digest(pinned(question))) return asking(question, CHANGED)

    const answer = read(own(answers, KEY))
    if (answer.kind === 'unclear') return asking(question)
    if (answer.kind === 'no') return toolResult(cancelled(args))
    if (call.signal.aborted) throw goneClient()
    return toolResult(await act(new Approval(args, answer.fields, call.principal)))
  }

  /** @param remark says why it is asked again; the state is bound to the question without it. */
  function asking(question: string, remark?: string): Ask {
    const message = remark === undefined ? question : `${remark} ${question}`
    const params = { mode: 'form', message, requestedSchema }
    const inputRequests = { [KEY]: { method: 'elicitation/create', params } }
    return { inputRequests, question: pinned(question) }
  }

  const pinned = (message: string) => ({ message, requestedSchema })

  return { ...definition, handle, refusedState: REFUSED_STATE }
}
