/** People who confirm actions all the time, through an honest client, and what befell them. */
import { setTimeout as pause } from 'node:timers/promises'
import { at, type Json, message, paramHeaders, type Reply, send } from '../../client.ts'
import { answer, stateOf, textOf } from '../serve.ts'

/** How long a person thinks, and a client waits before it sends again, in milliseconds. */
const PACE_MS = 50

const YES = answer({ confirm: true })
const UNKNOWN = 'The outcome is unknown.'
const RUNNING = 'Already running. Ask again for the outcome.'

export type Tally = {
  confirmed: number
  /** Requests that were sent again because nobody answered: 502 or no connection. */
  unanswered: number
  /** Requests that were sent again because an instance had no store of outcomes: 503. */
  unavailable: number
  /** The services that were to be scaled, one for each approval. */
  readonly scaled: string[]
  /** Those of them of which nobody could say whether they were. */
  readonly unknown: string[]
  /** Answers that no honest client should get. */
  readonly refusals: string[]
}

/** Says yes, and resolves when that was done. */
export type Yes = () => Promise<void>

export type People = {
  readonly tally: Tally
  /** Asks to scale a service: single use. Without a name it is one that nobody else scales. */
  readonly scale: (service?: string) => Promise<Yes>
  readonly rollBack: () => Promise<Yes>
  /** Confirms one after the other until the end of the load. */
  readonly confirm: (until: AbortSignal) => Promise<void>
  /** Waits for all yeses that were said by now. */
  readonly settled: () => Promise<unknown>
}

/**
 * @param scaled how often a service was really scaled: where a person looks.
 * @param signal ends all that still waits.
 */
export async function people(
  url: URL,
  scaled: (service: string) => number,
  signal: AbortSignal,
): Promise<People> {
  const tally: Tally = {
    confirmed: 0,
    unanswered: 0,
    unavailable: 0,
    scaled: [],
    unknown: [],
    refusals: [],
  }
  const tools = at((await send(url, message('tools/list'))).body, 'result', 'tools')
  const schemaOf = (name: string) =>
    Object.values(Object(tools)).map((tool) => (at(tool, 'name') === name ? at(tool, 'inputSchema') : {}))
  const open = new Set<Promise<void>>()
  let intents = 0

  /** Sends again what nobody answered, and asks again where the answer says to. */
  async function call(tool: string, args: Json, retry: Json = {}): Promise<Reply & { tries: number }> {
    const mirrored = schemaOf(tool).flatMap((schema) => paramHeaders(schema, args))
    for (let tries = 1; ; tries++) {
      const { headers, body } = message('tools/call', { name: tool, arguments: args, ...retry })
      const reply = await send(url, { headers: [...headers, ...mirrored], body }).catch(() => undefined)
      if (reply === undefined || reply.status === 502) tally.unanswered++
      else if (reply.status === 503) tally.unavailable++
      else if (textOf(reply) !== RUNNING) return { ...reply, tries }
      await pause(PACE_MS, undefined, { signal })
    }
  }

  /** @param unknown what to do where nobody can say what came of it. */
  async function flow(tool: string, args: Json, done: string, unknown?: () => Promise<void>): Promise<Yes> {
    const asked = await call(tool, args)
    if (at(asked.body, 'result', 'resultType') !== 'input_required') tally.refusals.push(asked.text)
    const retry = { requestState: stateOf(asked), inputResponses: YES }
    const confirm = async () => {
      const reply = await call(tool, args, retry)
      if (textOf(reply) === done) tally.confirmed++
      else if (textOf(reply) === UNKNOWN && reply.tries > 1 && unknown !== undefined) await unknown()
      else tally.refusals.push(reply.text)
    }
    return () => {
      const confirming = confirm().finally(() => open.delete(confirming))
      open.add(confirming)
      return confirming
    }
  }

  const scale = (service = `s${++intents}`): Promise<Yes> => {
    tally.scaled.push(service)
    const args = { service, replicas: 12, idempotency_key: service }
    const done = `Scaled ${service} to 12 replicas. Estimated cost: $388.80 a month.`
    return flow('scale_service', args, done, async () => {
      tally.unknown.push(service)
      // As the answer says: look before you ask again.
      if (scaled(service) === 0) await (await scale(`${service}-again`))()
    })
  }

  const rollBack = () => {
    const version = `v${++intents}`
    const done = `Rolled checkout back to ${version}. Reason: (none given)`
    return flow('rollback_release', { service: 'checkout', version }, done)
  }

  async function confirm(until: AbortSignal): Promise<void> {
    for (let turn = 0; !until.aborted; turn++) {
      const yes = await (turn % 2 === 0 ? scale() : rollBack())
      await pause(PACE_MS, undefined, { signal })
      await yes()
    }
  }

  return { tally, scale, rollBack, confirm, settled: () => Promise.all(open) }
}
