/**
 * How a hostile case is played: one spoilt request and its answer in most, several in the rest.
 */
import { isDeepStrictEqual } from 'node:util'
import { at, type Json, type Message, message, type Reply } from '../client.ts'
import { acted, CLOSED, describe, type Expectation, INCAPABLE, kindOf, shown } from './hostile-answers.ts'
import {
  asked,
  bytesOf,
  capable,
  changedAt,
  type Edit,
  framed,
  instead,
  plain,
  put,
  retryOf,
  type Shot,
  Skip,
  type Source,
  state,
  type Target,
  yes,
} from './hostile-requests.ts'

/** `got` when something else happened, `skip` when the case says nothing about this target. */
export type Verdict = 'pass' | { readonly got: string } | { readonly skip: string }

export type Play = {
  /** What has to happen. */
  readonly must: string
  /** @throws Skip and Fault, which are verdicts too. */
  readonly run: (target: Target) => Promise<Verdict>
}

export const sends = (source: Source, edit: Edit, { must, holds }: Expectation): Play => ({
  must,
  run: async (target) => {
    const sent = await edit(await source(target), target)
    const reply = await target.send(sent)
    return (await holds(reply, sent, target)) ? 'pass' : { got: describe(reply) }
  },
})

/** The same over a bare socket: the edit sees every line of the head, and the body as bytes. */
export const writes = (source: Source, edit: Edit, { must, holds }: Expectation): Play => ({
  must,
  run: async (target) => {
    const sent = await source(target)
    const bytes = bytesOf(await edit(framed(target, sent), target))
    const [reply = CLOSED, ...others] = await target.converse(bytes)
    if (!(await holds(reply, sent, target))) return { got: describe(reply) }
    const second = others.find((other) => at(other.body, 'result') !== undefined)
    return second === undefined ? 'pass' : { got: `a second answer: ${describe(second)}` }
  },
})

/** @param run @returns what went wrong, or undefined. */
const plays = (must: string, run: (target: Target) => Promise<string | undefined>): Play => ({
  must,
  run: async (target) => {
    const got = await run(target)
    return got === undefined ? 'pass' : { got }
  },
})

/** Part of a request, and then nobody is there any more. */
export const hangsUp = (source: Source, part: (request: Buffer) => Buffer): Play =>
  plays('a server that goes on serving others', async (target) => {
    await target.abandon(part(bytesOf(framed(target, await source(target)))))
    return stillServes(target)
  })

/** Bytes that are no HTTP. */
export const sendsNoise: Play = plays(
  'a 4xx status or a closed connection, and no harm',
  async (target) => {
    const [reply = CLOSED] = await target.converse(
      Buffer.from('\x16\x03\x01\x02\x00\x01\x00\r\n\r\n', 'latin1'),
    )
    return ['turned away', 'error', 'closed'].includes(kindOf(reply))
      ? stillServes(target)
      : describe(reply)
  },
)

async function stillServes(target: Target): Promise<string | undefined> {
  const reply = await target.send(message('server/discover'))
  return kindOf(reply) === 'done' ? undefined : describe(reply)
}

export const waitsFor100: Play = plays('the interim answer, then a result', async (target) => {
  const { body, start = '', headers } = framed(target, message('server/discover'))
  const head = bytesOf({ start, headers: [...headers, ['Expect', '100-continue']], body: '' })
  const [reply = CLOSED] = await target.converse(head, /^HTTP\/1\.1 100 /, body)
  return kindOf(reply) === 'done' ? undefined : describe(reply)
})

/** Two requests in one write. @returns their two answers. */
async function pipelined(target: Target, first: Shot, second: Shot): Promise<[Reply, Reply]> {
  const bytes = [framed(target, first, false), framed(target, second)].map(bytesOf)
  const [one = CLOSED, two = CLOSED] = await target.converse(Buffer.concat(bytes))
  return [one, two]
}

export const pipelines: Play = plays('two answers, in order', async (target) => {
  const [first, second] = [message('server/discover'), message('tools/list')]
  const replies = await pipelined(target, first, second)
  const inOrder = [first, second].every(({ body }, i) => at(replies[i]?.body, 'id') === body.id)
  return inOrder ? undefined : replies.map(describe).join(', then ')
})

/** On one connection, so that a server which remembers anything by connection is found out. */
export const reliesOnBefore: Play = plays(`the question, then ${INCAPABLE.must}`, async (target) => {
  const [first, second] = [target.call(target.args()), target.call(target.args())]
  const incapable = await capable({})(second, target)
  const [one, two] = await pipelined(target, first, incapable)
  if (kindOf(one) !== 'asked') return describe(one)
  return (await INCAPABLE.holds(two, incapable, target)) ? undefined : `a question, then ${describe(two)}`
})

export const listsAsAnother: Play = plays('the same tools', async (target) => {
  const reply = await target.send(message('tools/list', {}, { sampling: {}, roots: {} }))
  const tools = at(reply.body, 'result', 'tools')
  const first = Array.isArray(tools) ? tools.slice(0, target.tools.length) : []
  return isDeepStrictEqual(first, target.tools.slice(0, first.length)) && first.length > 0
    ? undefined
    : describe(reply)
})

/** A text or a status that differs tells an attacker which check it was that failed. */
export const comparesRefusals: Play = plays('one refusal, whatever the cause', async (target) => {
  const edits = [
    (state: string) => changedAt(state, 0),
    (state: string) => changedAt(state, state.length - 10),
    (state: string) => state.slice(0, state.length / 2),
    () => 'x',
    () => '',
  ].map(state)
  const shots = [await elsewhere(target)]
  for (const edit of edits) shots.push(await edit(await yes(target), target))
  const refusals: string[] = []
  for (const shot of shots) {
    const reply = await target.send(shot)
    if (!['error', 'failed'].includes(kindOf(reply))) return describe(reply)
    refusals.push(shown(`HTTP ${reply.status} ${JSON.stringify({ ...Object(reply.body), id: undefined })}`))
  }
  const odd = refusals.find((refusal) => refusal !== refusals[0])
  return odd === undefined ? undefined : `${refusals[0]} and ${odd}`
})

/** A yes to one call on another one that the tool would ask about as well. @throws Skip when it would not. */
async function elsewhere(target: Target): Promise<Shot> {
  const question = await asked(target)
  const other = await plain((argument) => `${argument}-other`)(target.call(question.args), target)
  if (kindOf(await target.send(other)) !== 'asked') throw new Skip('no text argument takes another value')
  const args = at(other.body, 'params', 'arguments') as Json
  return retryOf(target, { ...question, args }, target.yes)
}

export const saysYesTwice: Play = plays(
  'the action, then its result again or a refusal',
  async (target) => {
    const shot = await yes(target)
    const replies = [await target.send(shot), await target.send(await renumbered(shot, target))]
    const [first = CLOSED, second = CLOSED] = replies
    const sound = (await acted(second, target)) || ['failed', 'error'].includes(kindOf(second))
    return (await acted(first, target)) && sound ? undefined : replies.map(describe).join(', then ')
  },
)

/** A state alone can't be spent: that a later yes is served is no fault, unless it breaks something. */
export const changesItsMind: Play = plays('the no, then any answer but a broken one', async (target) => {
  const question = await asked(target)
  const shot = retryOf(target, question, target.yes)
  const no = await target.send(await instead({ action: 'decline' })(shot, target))
  if ((await acted(no, target)) || !['done', 'failed'].includes(kindOf(no))) return describe(no)
  const then = await target.send(await renumbered(shot, target))
  return ['done', 'failed', 'error', 'asked'].includes(kindOf(then)) ? undefined : describe(then)
})

export const hurries: Play = plays('the action, and no broken answer', async (target) => {
  const shot = await yes(target)
  const shots = [shot, await renumbered(shot, target), await renumbered(shot, target)]
  const replies = await Promise.all(shots.map(target.send))
  const broken = replies.find((reply) => !['done', 'failed', 'error'].includes(kindOf(reply)))
  if (broken !== undefined) return describe(broken)
  const all = await Promise.all(replies.map((reply) => acted(reply, target)))
  return all.includes(true) ? undefined : replies.map(describe).join(', ')
})

/** The same request under an id of its own. */
const renumbered = (shot: Message, target: Target) => put(message('x').body.id, 'id')(shot, target)
