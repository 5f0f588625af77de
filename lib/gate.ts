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
import { type Answered, type FieldAnswers, type Fields, yesNoForm } from './form.ts'
import type { Principal } from './principal.ts'
import { type Json, type JsonObject, own, type ToolResult } from './protocol.ts'
import { goneClient } from './refusal.ts'
import type { Infer, JsonSchema } from './schema.ts'
import { digest, type Flow } from './state.ts'
import {
  type Ask,
  type Call,
  type Done,
  type Outcome,
  onceKey,
  type SingleUse,
  type Tool,
  type ToolDefinition,
  toolResult,
} from './tool.ts'

/** What an author writes. */
export type GatedTool<S extends JsonSchema, F extends Fields> = ToolDefinition & {
  readonly inputSchema: S
  readonly scope?: string
  readonly singleUse?: boolean
  /** The question, or what is said without asking anything. */
  readonly ask: (args: Infer<S>, principal: Principal) => Asked | Promise<Asked>
  /** What else the form asks for. */
  readonly fields: F
  /** What is said after a no. */
  readonly cancelled: (args: Infer<S>) => Done
  readonly act: (
    approval: Approval<Infer<S>, FieldAnswers<F>>,
  ) => Done | ToolResult | Promise<Done | ToolResult>
}

type Asked = Question | Done | ToolResult

/** What a person is asked, in one line. */
export type Question = {
  readonly question: string
  /** The question without its terms, where it has some: a yes to other words is none. */
  readonly about?: string
  /** What the yes is worth beyond the arguments, e.g. a price; kept in the state. */
  readonly terms?: Json
  /** Whether a yes to other terms covers these: undefined, or what changed, which is then said. */
  readonly changedSince?: (approved: Json) => string | undefined
}

/** A person's yes to one question about these arguments. Only this file can make one. */
class Approval<Args, Answers> {
  readonly arguments: Args
  readonly answers: Answers
  /** As they were when the person said yes. */
  readonly terms: Json
  /** A private member makes the type nominal: no object literal passes for an approval. */
  readonly #principal: Principal

  constructor(args: Args, answers: Answers, terms: Json, principal: Principal) {
    this.arguments = args
    this.answers = answers
    this.terms = terms
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
/** How long an outcome is kept beyond its flow, for whoever lost the answer, in milliseconds. */
const KEEP_MS = 15 * 60_000

/** @throws Error when the form can't be shown. */
export function gatedTool<const S extends JsonSchema, const F extends Fields>(spec: GatedTool<S, F>): Tool {
  const { ask, fields, cancelled, act, ...definition } = spec
  const { requestedSchema, read } = yesNoForm(spec.name, fields)
  const form = digest(requestedSchema)

  async function handle(call: Call, single?: SingleUse): Promise<Outcome> {
    const { flow } = call
    const args = call.arguments as Infer<S> // by the validator of this very schema
    if (flow === undefined) {
      const asked = await ask(args, call.principal)
      return 'question' in asked ? asking(asked) : toolResult(asked)
    }
    const key = onceKey(spec.name, flow)
    const earlier = single && (await single.recall(key))
    if (earlier !== undefined) return earlier

    const answer = read(own(call.answers, KEY))
    if (answer.kind !== 'no') {
      const asked = await ask(args, call.principal)
      if (!('question' in asked)) return toolResult(asked)
      const change = changeOf(asked, flow)
      if (answer.kind === 'unclear' || change !== undefined) return asking(asked, change)
    }
    requireCapability(call.capabilities, FORM) // row 25; the boundary looks before each question
    if (single === undefined) return await conclude(call, answer, flow.data)
    return single.once(key, () => conclude(call, answer, flow.data), { until: flow.endsAt + KEEP_MS })
  }

  async function conclude(call: Call, answer: Answered<F>, terms: Json): Promise<ToolResult> {
    const { client, decided, principal } = call
    const args = call.arguments as Infer<S>
    if (client.gone) throw goneClient()
    decided(answer.kind === 'yes' ? 'accepted' : answer.decision)
    if (answer.kind === 'no') return toolResult(cancelled(args))
    let done: Done | ToolResult | undefined
    try {
      done = await act(new Approval(args, answer.fields, terms, principal))
      return toolResult(done)
    } finally {
      decided(done === undefined || done.isError === true ? 'failed' : 'acted')
    }
  }

  /** @param change says why it is asked again; the state is bound to the question without it. */
  function asking(asked: Question, change?: string): Ask {
    const { question, terms = null } = asked
    const message = visible(change === undefined ? question : `${change} ${question}`)
    const params = { mode: 'form', message, requestedSchema }
    const inputRequests = { [KEY]: { method: 'elicitation/create', params } }
    return { inputRequests, question: pinned(asked), data: terms }
  }

  function changeOf(asked: Question, flow: Flow): string | undefined {
    return flow.question === digest(pinned(asked)) ? asked.changedSince?.(flow.data) : CHANGED
  }

  function pinned({ question, about = question }: Question): JsonObject {
    return { question: visible(about), form }
  }

  return { ...definition, handle, refusedState: REFUSED_STATE }
}
