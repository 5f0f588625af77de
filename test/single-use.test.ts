import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { at, type Json, message, type Reply } from '../client.ts'
import { gatedTool } from '../lib/gate.ts'
import { stop } from '../lib/lifecycle.ts'
import { methodTable, toolsFeature } from '../lib/methods.ts'
import { memoryStore, type OutcomeStore } from '../lib/outcome-store.ts'
import { DEMO_USER } from '../lib/principal.ts'
import { Refusal } from '../lib/refusal.ts'
import type { AdmittedRequest } from '../lib/request.ts'
import { signer } from '../lib/seal.ts'
import { singleUse } from '../lib/single-use.ts'
import { requestStates } from '../lib/state.ts'
import { toolResult } from '../lib/tool.ts'
import { compileTools } from '../lib/tool-definition.ts'
import {
  answer,
  assertRefused,
  type Clock,
  EPOCH,
  type Options,
  REFUSED,
  ROLLBACK,
  resultOf,
  SECRET,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const RUNNING = 'Already running. Ask again for the outcome.'
const UNKNOWN = 'The outcome is unknown.'
const OTHER = 'This idempotency key was used with other arguments. Use a new key.'
/** Only a claim that failed can say that nothing was done. */
const UNAVAILABLE =
  /^The store of outcomes is unavailable\. (Nothing was done|Ask again for the outcome)\.$/
const MINUTE = 60_000
/** An action's time limit, and how much later its outcome counts as unknown. */
const ACTION_MS = MINUTE
const OVERDUE_MS = ACTION_MS + 10_000
/** A flow's deadline, and until when its outcome is kept. */
const ENDS_AT = EPOCH + 15 * MINUTE
const KEPT_UNTIL = EPOCH + 30 * MINUTE

type Step = keyof OutcomeStore

/** A store that says what it is about to do; whoever listens may hold it up or make it fail. */
function told(
  store: OutcomeStore,
  tell: (step: Step, key: string, lifeMs?: number) => unknown,
): OutcomeStore {
  return {
    claim: async (key, value, lifeMs) => {
      await tell('claim', key, lifeMs)
      return store.claim(key, value, lifeMs)
    },
    read: async (key) => {
      await tell('read', key)
      return store.read(key)
    },
    settle: async (key, value, lifeMs) => {
      await tell('settle', key, lifeMs)
      return store.settle(key, value, lifeMs)
    },
  }
}

/** A store of one instance, whose clock can be moved. */
const newStore = (clock: Clock, capacity?: number) => memoryStore(() => clock.now, capacity)

/** Something that a test waits for, or keeps waiting; nobody waits for it beyond the test's end. */
function latch(t?: TestContext) {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  t?.after(open)
  return { open, opened }
}

/** One turn of the event loop: whatever can go on without it has gone on. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Waits, without a clock, until something has happened. */
async function until(t: TestContext, happened: () => boolean): Promise<void> {
  while (!happened() && !t.signal.aborted) await turn()
}

/** For tests that wait for the server: they fail instead of waiting for ever when it is broken. */
const PATIENT = { timeout: 10_000 }

// The rule itself, over a store and a clock that only waiting moves.

function scene(store?: OutcomeStore, whileWaiting: (waited: number) => unknown = () => {}) {
  const clock = { now: EPOCH }
  const acts: string[] = []
  let waited = 0
  const wait = async (ms: number) => {
    waited += ms
    clock.now += ms
    await whileWaiting(waited)
  }
  const stopping = new AbortController()
  const single = singleUse(store ?? newStore(clock), ACTION_MS, () => clock.now, stopping.signal, wait)
  const acting = (name: string, held?: Promise<unknown>) => async () => {
    acts.push(name)
    await held
    return toolResult({ text: name })
  }
  const run = async (name: string, held?: Promise<unknown>, keep = {}) =>
    single.once('key', acting(name, held), { until: KEPT_UNTIL, ...keep })
  const textOf = async (result: ReturnType<typeof single.recall>) => (await result)?.content[0]?.text
  return { clock, acts, single, stopping, run, textOf, waited: () => waited }
}

/** Refused as 503 with the JSON-RPC error of a failing store. */
async function assertUnavailable(step: Promise<unknown>, label?: string): Promise<void> {
  await assert.rejects(step, (refusal) => {
    assert.ok(refusal instanceof Refusal, label)
    assert.deepEqual([refusal.status, Object(refusal.body).code], [503, -32603], label)
    assert.match(Object(refusal.body).message, UNAVAILABLE, label)
    return true
  })
}

test('of 50 calls with one key one acts, and all get its outcome', async () => {
  const { acts, run, textOf, waited } = scene(undefined, turn)
  const calls = Array.from({ length: 50 }, (_, i) => textOf(run(`act ${i}`, turn())))
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(['act 0']))
  assert.deepEqual(acts, ['act 0'])
  assert.ok(waited() >= 49 * 100, 'it acted while the others waited')
})

test('whoever calls later gets the first outcome, however often, and nothing acts', async () => {
  const { acts, run, single } = scene()
  const first = await run('first')
  for (let i = 0; i < 3; i += 1) {
    assert.deepEqual(await run('later'), first)
    assert.deepEqual(await single.recall('key'), first)
  }
  assert.deepEqual(acts, ['first'])
})

test('a key that nobody used has no outcome, and another key is none of its business', async () => {
  const { acts, run, single } = scene()
  assert.equal(await single.recall('key'), undefined)
  await run('first')
  assert.equal(await single.recall('key2'), undefined)
  const other = await single.once('key2', async () => toolResult({ text: 'second' }), {
    until: KEPT_UNTIL,
  })
  assert.deepEqual([other.content[0]?.text, acts], ['second', ['first']])
})

test('others wait 5 s for the one that acts, and are then told to ask again', async () => {
  const never = new Promise(() => {})
  const { acts, run, single, waited, textOf } = scene()
  void run('first', never)
  assert.equal(await textOf(run('second')), RUNNING)
  assert.equal(waited(), 5000)
  assert.equal(await textOf(single.recall('key')), RUNNING)
  assert.equal(waited(), 10_000)
  const result = await single.recall('key')
  assert.equal(result?.isError, true)
  assert.deepEqual(acts, ['first'])
})

test('nobody waits in a process that is about to end: they are told to ask again', async () => {
  const never = new Promise(() => {})
  const { acts, run, single, stopping, waited, textOf } = scene(undefined, (waited) => {
    if (waited === 300) stopping.abort()
  })
  void run('first', never)
  assert.equal(await textOf(run('second')), RUNNING)
  assert.equal(await textOf(single.recall('key')), RUNNING)
  assert.deepEqual([waited(), acts], [300, ['first']])
})

test('an outcome that comes within the 5 s is what those who wait get', async () => {
  const finish = latch()
  const { acts, run, waited, textOf } = scene(undefined, (waited) => {
    if (waited === 4900) finish.open()
    return waited < 4900 ? undefined : first
  })
  const first = run('first', finish.opened)
  assert.equal(await textOf(run('second')), 'first')
  assert.equal(waited(), 4900)
  assert.deepEqual(acts, ['first'])
})

test('whoever was told to ask again gets the outcome when it is there', async () => {
  const finish = latch()
  const { acts, run, textOf } = scene()
  const first = run('first', finish.opened)
  assert.equal(await textOf(run('second')), RUNNING)
  finish.open()
  await first
  assert.equal(await textOf(run('third')), 'first')
  assert.deepEqual(acts, ['first'])
})

test('10 s after an action must have ended its outcome is unknown, at once, and it is never started again', async () => {
  const finish = latch()
  const { acts, clock, run, single, waited, textOf } = scene()
  const first = run('first', finish.opened)
  clock.now = EPOCH + OVERDUE_MS
  assert.equal(await textOf(run('second')), UNKNOWN)
  assert.equal(waited(), 100, 'up to that moment it may still end, so it was waited for')
  for (const later of [OVERDUE_MS + 1, 5 * MINUTE, 29 * MINUTE]) {
    clock.now = EPOCH + later
    assert.equal(await textOf(run('third')), UNKNOWN)
    assert.equal((await single.recall('key'))?.isError, true)
  }
  assert.equal(waited(), 100)
  finish.open()
  assert.equal((await first).content[0]?.text, 'first')
  assert.equal(await textOf(run('fourth')), 'first', 'an outcome that comes late is still the outcome')
  assert.deepEqual(acts, ['first'])
})

test('an action that fails has that outcome, and is not tried again', async () => {
  const { acts, single } = scene()
  const failing = async () => {
    acts.push('failing')
    return toolResult({ text: 'It failed.', isError: true })
  }
  for (let i = 0; i < 2; i += 1) {
    const result = await single.once('key', failing, { until: KEPT_UNTIL })
    assert.deepEqual([result.content[0]?.text, result.isError], ['It failed.', true])
  }
  assert.deepEqual(acts, ['failing'])
})

test('a failed action may be tried again only where that is asked for, until it succeeds', async () => {
  const { acts, single, run, textOf } = scene()
  const failing = async () => {
    acts.push('failing')
    return toolResult({ text: 'It failed.', isError: true })
  }
  const keep = { until: KEPT_UNTIL, retryFailed: true }
  for (let i = 0; i < 2; i += 1) await single.once('key', failing, keep)
  assert.equal(await single.recall('key'), undefined)
  assert.equal(await textOf(run('works', undefined, keep)), 'works')
  assert.equal(await textOf(run('later', undefined, keep)), 'works')
  assert.deepEqual(acts, ['failing', 'failing', 'works'])
})

test('an action that throws leaves an unknown outcome, and is not started again', async () => {
  const { acts, run, single, textOf } = scene()
  const thrown = new Error('ECONNRESET')
  await assert.rejects(run('first', Promise.reject(thrown)), thrown)
  assert.equal(await textOf(run('second')), UNKNOWN)
  assert.equal(await textOf(single.recall('key')), UNKNOWN)
  assert.deepEqual(acts, ['first'])
})

test('a key that was used for one thing is an error for any other thing, running or done', async () => {
  const finish = latch()
  const { acts, run, single, textOf, waited } = scene()
  const first = run('first', finish.opened, { about: 'one' })
  for (let i = 0; i < 2; i += 1) {
    for (const about of ['two', '', 'One']) {
      const result = await run('second', undefined, { about })
      assert.deepEqual([result.content[0]?.text, result.isError], [OTHER, true])
      assert.equal(await textOf(single.recall('key', about)), OTHER)
    }
    finish.open()
    await first
  }
  assert.equal(await textOf(single.recall('key', 'one')), 'first')
  assert.equal(waited(), 0)
  assert.deepEqual(acts, ['first'])
})

// Stores that fail.

const broken = async () => {
  throw new Error('ECONNREFUSED 10.0.0.7:6379')
}

test('a store that can not be asked is 503, before anything acts', async () => {
  const claims = scene({ ...newStore({ now: EPOCH }), claim: broken })
  await assertUnavailable(claims.run('first'))
  const reads = scene({ ...newStore({ now: EPOCH }), read: broken })
  await assertUnavailable(reads.single.recall('key'))
  assert.deepEqual([...claims.acts, ...reads.acts], [])
})

test('a store that throws at once is a store that fails: nothing is lost or done by that', async () => {
  const thrower = () => {
    throw new Error('The client is closed.')
  }
  const claims = scene({ ...newStore({ now: EPOCH }), claim: thrower })
  await assertUnavailable(claims.run('first'), 'claim')
  const reads = scene({ ...newStore({ now: EPOCH }), read: thrower })
  await assertUnavailable(reads.single.recall('key'), 'read')
  assert.deepEqual([...claims.acts, ...reads.acts], [])
  const settles = scene({ ...newStore({ now: EPOCH }), settle: thrower })
  assert.equal(await settles.textOf(settles.run('first')), 'first', 'settle')
})

test('a store that fails while somebody waits for an outcome is 503 for that one', async () => {
  const store = newStore({ now: EPOCH })
  const { acts, run } = scene({ ...store, read: broken })
  void run('first', new Promise(() => {}))
  await assertUnavailable(run('second'))
  assert.deepEqual(acts, ['first'])
})

test('a store that fails after the action changes neither its outcome nor that it acts once', async () => {
  const clock = { now: EPOCH }
  const { acts, run, textOf, clock: mine } = scene({ ...newStore(clock), settle: broken })
  assert.equal(await textOf(run('first')), 'first')
  assert.equal(await textOf(run('second')), RUNNING)
  mine.now = EPOCH + OVERDUE_MS + 1
  assert.equal(await textOf(run('third')), UNKNOWN)
  assert.deepEqual(acts, ['first'])
})

test('whatever else a store returns as an entry is an unknown outcome, never leave to act', async () => {
  const result = { content: [{ type: 'text', text: 'x' }] }
  const entries = [
    '',
    'null',
    '7',
    '[]',
    '{}',
    '{"state":"done"',
    'garbage',
    'OK',
    '\0',
    ...[
      { state: 'done', result }, // about nothing
      { about: 7, state: 'done', result },
      { about: '', state: 'done' },
      { about: '', state: 'done', result: 'x' },
      { about: '', state: 'done', result: { content: 'x' } },
      { about: '', state: 'done', result: null },
      { about: '', state: 'running' },
      { about: '', state: 'running', since: '0' },
      { about: '', state: 'running', since: null },
      { about: '', state: 'Running', since: EPOCH },
      { about: '', since: EPOCH, result },
      [{ about: '', state: 'done', result }],
    ].map((entry) => JSON.stringify(entry)),
    ...([null, 7, true, {}, [], Buffer.from('x')] as unknown as string[]),
  ]
  for (const entry of entries) {
    const { acts, run, single, textOf } = scene({
      claim: async () => entry,
      read: async () => entry,
      settle: async () => {},
    })
    assert.equal(await textOf(run('first')), UNKNOWN, JSON.stringify(entry))
    assert.equal(await textOf(single.recall('key')), UNKNOWN, JSON.stringify(entry))
    assert.deepEqual(acts, [], JSON.stringify(entry))
  }
})

test('an entry that is gone while somebody waits for it is an unknown outcome, never leave to act', async () => {
  const store = newStore({ now: EPOCH })
  const { acts, run, textOf } = scene({ ...store, read: async () => undefined })
  void run('first', new Promise(() => {}))
  assert.equal(await textOf(run('second')), UNKNOWN)
  assert.deepEqual(acts, ['first'])
})

// The store of one instance.

test('a full store refuses and forgets nobody; room is made by what has ended', async () => {
  const clock = { now: EPOCH }
  const store = newStore(clock, 2)
  assert.equal(await store.claim('a', 'A', MINUTE), undefined)
  assert.equal(await store.claim('b', 'B', 2 * MINUTE), undefined)
  await assert.rejects(store.claim('c', 'C', MINUTE), /full/)
  assert.equal(await store.claim('a', 'other', MINUTE), 'A', 'a known key is answered also then')
  await store.settle('a', 'done', MINUTE)
  assert.deepEqual(
    [await store.read('a'), await store.read('b'), await store.read('c')],
    ['done', 'B', undefined],
  )

  clock.now += MINUTE - 1
  await assert.rejects(store.claim('c', 'C', MINUTE), /full/)
  clock.now += 1
  assert.equal(await store.claim('c', 'C', MINUTE), undefined)
  assert.deepEqual(
    [await store.read('a'), await store.read('b'), await store.read('c')],
    [undefined, 'B', 'C'],
  )
})

test('a full store is 503, and nothing acts', async () => {
  const clock = { now: EPOCH }
  const store = newStore(clock, 1)
  const { acts, run } = scene(store)
  await store.claim('another', 'x', MINUTE)
  await assertUnavailable(run('first'))
  assert.deepEqual(acts, [])
  clock.now += MINUTE
  await run('first')
  assert.deepEqual(acts, ['first'])
})

test('an entry lives exactly as long as it was given, and a life of 0 gives its key up', async () => {
  const clock = { now: EPOCH }
  const store = newStore(clock)
  await store.claim('key', 'one', 1000)
  clock.now += 999
  assert.equal(await store.claim('key', 'two', 1000), 'one')
  clock.now += 1
  assert.equal(await store.read('key'), undefined)
  assert.equal(await store.claim('key', 'two', 1000), undefined)
  await store.settle('key', 'three', 5000)
  clock.now += 4999
  assert.equal(await store.read('key'), 'three')
  await store.settle('key', 'four', 0)
  assert.equal(await store.read('key'), undefined)
})

test('the store of a server without Redis holds ten thousand outcomes', async () => {
  const store = newStore({ now: EPOCH })
  for (let i = 0; i < 10_000; i += 1) assert.equal(await store.claim(`key ${i}`, 'x', MINUTE), undefined)
  await assert.rejects(store.claim('one more', 'x', MINUTE), /full/)
  assert.equal(await store.read('key 0'), 'x')
})

// A tool that is single use, over HTTP.

const NODE = { node: 'n1' }
const DRAIN = { tool: 'drain_node' }
const CANCELLED = 'Not drained.'
const drainedFor = (ticket: string) => `Drained n1 for ${ticket}.`

/** A gated tool of one's own, whose approval counts once; each answer can tell itself by its ticket. */
function drainTool(drained: string[], during: () => unknown = () => {}) {
  return gatedTool({
    name: 'drain_node',
    description: 'Drains a node. Asks first.',
    inputSchema: { type: 'object', properties: { node: { type: 'string' } }, required: ['node'] },
    singleUse: true,
    fields: { ticket: { type: 'string' } },
    ask: ({ node }) => ({ question: `Drain ${node}?` }),
    cancelled: () => ({ text: CANCELLED }),
    act: async ({ arguments: { node }, answers: { ticket = 'none' } }) => {
      await during()
      drained.push(ticket)
      return { text: `Drained ${node} for ${ticket}.` }
    },
  })
}

type Draining = Options & { readonly during?: () => unknown; readonly drained?: string[] }

async function draining(t: TestContext, { during, drained = [], ...options }: Draining = {}) {
  const served = await serve(t, { ...options, tools: [drainTool(drained, during)] })
  const say = (requestState: string, inputResponses: Json, how = {}) =>
    served.call(NODE, { requestState, inputResponses }, { ...DRAIN, ...how })
  return {
    ...served,
    drained,
    say,
    ask: () => served.ask(NODE, DRAIN),
    yes: (state: string, ticket: string) => say(state, answer({ confirm: true, ticket })),
    no: (state: string) => say(state, answer({}, 'decline')),
  }
}

test('a yes that is sent again gets the first outcome whole, and nothing acts', async (t) => {
  const { ask, yes, drained } = await draining(t)
  const state = await ask()
  const first = await yes(state, 'T-1')
  assert.equal(textOf(first), drainedFor('T-1'))
  for (const ticket of ['T-1', 'T-2']) assert.deepEqual(resultOf(await yes(state, ticket)), resultOf(first))
  assert.deepEqual(drained, ['T-1'])
})

test('of 50 yeses at once to two instances one acts, and all get its outcome', PATIENT, async (t) => {
  const clock = { now: EPOCH }
  const drained: string[] = []
  const all = latch(t)
  let reads = 0
  // Each call looks for an outcome first: the action ends when all 50 have looked.
  const store = told(newStore(clock), (step) => {
    if (step === 'read') reads += 1
    if (reads === 50) all.open()
  })
  const options = { clock, store, drained, during: () => all.opened }
  const instances = [await draining(t, options), await draining(t, options)] as const
  const state = await instances[0].ask()
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, i) => instances[i % 2 === 0 ? 0 : 1].yes(state, `T-${i}`)),
  )
  assert.equal(drained.length, 1)
  assert.deepEqual(new Set(replies.map(textOf)), new Set([drainedFor(drained[0] ?? '')]))
})

test('of 50 yeses and noes at once the first decides for all', async (t) => {
  const { ask, yes, no, drained } = await draining(t)
  const state = await ask()
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? no(state) : yes(state, `T-${i}`))),
  )
  const [text, ...others] = new Set(replies.map(textOf))
  assert.deepEqual(others, [])
  assert.ok(drained.length <= 1)
  assert.equal(text, drained[0] === undefined ? CANCELLED : drainedFor(drained[0]))
})

test('asking again makes more states of one flow, and of all of them one acts once', async (t) => {
  const clock = { now: EPOCH }
  const { ask, say, yes, drained } = await draining(t, { clock })
  const states = [await ask()]
  for (const unclear of [answer({}), {}, answer({ confirm: 'true' })]) {
    clock.now += 1
    const again = await say(states.at(-1) ?? '', unclear)
    assert.equal(at(again.body, 'result', 'resultType'), 'input_required')
    states.push(stateOf(again))
  }
  assert.equal(new Set(states).size, 4)
  assert.deepEqual(drained, [])
  const replies = await Promise.all(states.map((state, i) => yes(state, `T-${i}`)))
  assert.equal(drained.length, 1)
  assert.deepEqual(new Set(replies.map(textOf)), new Set([drainedFor(drained[0] ?? '')]))
})

test('two questions are two flows, and each may act once', async (t) => {
  const { ask, yes, drained } = await draining(t)
  const states = [await ask(), await ask()]
  for (const [i, state] of states.entries()) {
    for (let times = 0; times < 2; times += 1)
      assert.equal(textOf(await yes(state, `T-${i}`)), drainedFor(`T-${i}`))
  }
  assert.deepEqual(drained, ['T-0', 'T-1'])
})

test('a no consumes the flow: a yes after it, to any state of it, is told that it was cancelled', async (t) => {
  for (const no of [answer({}, 'decline'), answer(undefined, 'cancel'), answer({ confirm: false })]) {
    const { ask, say, yes, drained } = await draining(t)
    const state = await ask()
    const again = stateOf(await say(state, answer({})))
    const cancelled = await say(again, no)
    assert.equal(textOf(cancelled), CANCELLED)
    for (const later of [again, state])
      assert.deepEqual(resultOf(await yes(later, 'T-1')), resultOf(cancelled))
    assert.deepEqual(drained, [])
  }
})

test('a no after the yes is told what was done', async (t) => {
  const { ask, yes, no, drained } = await draining(t)
  const state = await ask()
  const done = await yes(state, 'T-1')
  assert.deepEqual(resultOf(await no(state)), resultOf(done))
  assert.deepEqual(drained, ['T-1'])
})

test('once there is an outcome nobody is asked again, whatever is answered and by whatever client', async (t) => {
  const { ask, say, yes, drained } = await draining(t)
  const state = await ask()
  const done = await yes(state, 'T-1')
  for (const unclear of [{}, answer({}), answer({ confirm: 'true' }), { confirm: null }]) {
    assert.deepEqual(resultOf(await say(state, unclear)), resultOf(done))
  }
  const blind = await say(state, answer({ confirm: true }), { capabilities: {} })
  assert.deepEqual(resultOf(blind), resultOf(done))
  assert.deepEqual(drained, ['T-1'])
})

test('a client that loses the answer gets the outcome when it sends its yes again', PATIENT, async (t) => {
  const [started, finish] = [latch(t), latch(t)]
  const served = await draining(t, {
    during: () => {
      started.open()
      return finish.opened
    },
  })
  const state = await served.ask()
  const before = served.lines.length
  const socketOf = once(served.http.server, 'connection')
  const lost = hangingYes(served.url, state)
  const [socket] = await socketOf
  await started.opened
  lost.destroy()
  await once(socket, 'close')
  assert.deepEqual(served.drained, [])
  finish.open()
  await until(t, () => served.lines.length > before)
  assert.equal(textOf(await served.yes(state, 'T-2')), drainedFor('T-1'))
  assert.deepEqual(served.drained, ['T-1'])
})

/** A yes for ticket T-1 whose answer nobody waits for. */
function hangingYes(url: URL, requestState: string) {
  const inputResponses = answer({ confirm: true, ticket: 'T-1' })
  const params = { name: 'drain_node', arguments: NODE, requestState, inputResponses }
  const { headers, body } = message('tools/call', params)
  const text = JSON.stringify(body)
  const lines = [['Host', url.host], ['Content-Length', `${text.length}`], ...headers]
  const outgoing = request(url, { method: 'POST', headers: lines.flat(), agent: false })
  return outgoing.on('error', () => {}).end(text)
}

test(
  'a client that hangs up while the store is still being asked has changed its mind',
  PATIENT,
  async (t) => {
    const clock = { now: EPOCH }
    const [claiming, gone] = [latch(t), latch(t)]
    const store = told(newStore(clock), (step) => {
      if (step !== 'claim') return undefined
      claiming.open()
      return gone.opened
    })
    const served = await draining(t, { clock, store })
    const state = await served.ask()
    const before = served.lines.length
    const socketOf = once(served.http.server, 'connection')
    const outgoing = hangingYes(served.url, state)
    const [socket] = await socketOf
    await claiming.opened
    outgoing.destroy()
    await once(socket, 'close')
    gone.open()
    await until(t, () => served.lines.length > before)
    assert.deepEqual(served.drained, [])
    assert.equal(textOf(await served.yes(state, 'T-2')), drainedFor('T-2'), 'its flow is not used up')
    assert.deepEqual(served.drained, ['T-2'])
  },
)

test(
  'a yes while another one acts waits, is told to ask again, and then gets the outcome',
  PATIENT,
  async (t) => {
    const clock = { now: EPOCH }
    const [started, finish] = [latch(t), latch(t)]
    let reads = 0
    // The second yes reads once and finds the first one acting; when it looks again 5 s have passed.
    const store = told(newStore(clock), (step) => {
      if (step === 'read') reads += 1
      if (step === 'read' && reads === 3) clock.now += 5000
    })
    const during = () => {
      started.open()
      return finish.opened
    }
    const { ask, yes, drained } = await draining(t, { clock, store, during })
    const state = await ask()
    const first = yes(state, 'T-1')
    await started.opened
    const second = await yes(state, 'T-2')
    assert.equal(textOf(second), RUNNING)
    assert.equal(at(second.body, 'result', 'isError'), true)
    assert.deepEqual([drained, reads], [[], 3])

    clock.now = EPOCH + OVERDUE_MS + 1
    assert.equal(textOf(await yes(state, 'T-3')), UNKNOWN)
    assert.deepEqual(drained, [])
    finish.open()
    assert.equal(textOf(await first), drainedFor('T-1'))
    assert.equal(textOf(await yes(state, 'T-4')), drainedFor('T-1'))
    assert.deepEqual(drained, ['T-1'])
  },
)

test('a stop does not wait for a yes that waits for the action of another instance', PATIENT, async (t) => {
  const clock = { now: EPOCH }
  const [started, finish, waiting] = [latch(t), latch(t), latch(t)]
  const store = newStore(clock)
  const during = () => {
    started.open()
    return finish.opened
  }
  const acting = await draining(t, { clock, store, during })
  let reads = 0
  const looked = told(store, (step) => {
    if (step === 'read') reads += 1
    if (reads === 2) waiting.open() // once to find that somebody acts, once more after waiting
  })
  const other = await draining(t, { clock, store: looked })
  const state = await acting.ask()
  const first = acting.yes(state, 'T-1')
  await started.opened
  const second = other.yes(state, 'T-2')
  await waiting.opened // whose 5 s never pass: this clock stands still
  await stop(other.http, ACTION_MS)
  assert.equal(textOf(await second), RUNNING)
  finish.open()
  assert.equal(textOf(await first), drainedFor('T-1'))
  assert.deepEqual([acting.drained, other.drained], [['T-1'], []])
})

test('an action that breaks is an internal error, and after it an unknown outcome', async (t) => {
  let tries = 0
  const during = () => {
    tries += 1
    throw new Error('ECONNRESET')
  }
  const { ask, yes, drained, failures } = await draining(t, { during })
  const state = await ask()
  const broke = await yes(state, 'T-1')
  assert.equal(assertRefused(broke, 500, -32603, at(broke.body, 'id')), 'Internal error')
  for (let i = 0; i < 2; i += 1) assert.equal(textOf(await yes(state, 'T-2')), UNKNOWN)
  assert.deepEqual([tries, drained, failures.length], [1, [], 1])
})

// A state that has expired.

test('a state that has only expired gets the outcome of its flow, to 15 minutes after the flow’s end', async (t) => {
  const clock = { now: EPOCH }
  const { ask, yes, no, drained } = await draining(t, { clock })
  const state = await ask()
  const done = await yes(state, 'T-1')
  for (const now of [EPOCH + 5 * MINUTE, ENDS_AT, KEPT_UNTIL - 1]) {
    clock.now = now
    assert.deepEqual(resultOf(await yes(state, 'T-2')), resultOf(done))
    assert.deepEqual(resultOf(await no(state)), resultOf(done))
  }
  clock.now = KEPT_UNTIL
  assert.equal(textOf(await yes(state, 'T-2')), REFUSED)
  assert.deepEqual(drained, ['T-1'])
})

test('an expired state tells also of a no, and of what another state of its flow did', async (t) => {
  const clock = { now: EPOCH }
  const { ask, say, yes, no, drained } = await draining(t, { clock })
  const declined = await ask()
  await no(declined)
  const early = await ask()
  clock.now += 4 * MINUTE
  const late = stateOf(await say(early, answer({})))
  clock.now += 2 * MINUTE
  assert.equal(textOf(await yes(declined, 'T-1')), CANCELLED)
  assert.equal(textOf(await yes(early, 'T-1')), REFUSED, 'nothing was done yet, so it has only expired')
  assert.deepEqual(drained, [])
  assert.equal(textOf(await yes(late, 'T-2')), drainedFor('T-2'))
  assert.equal(textOf(await yes(early, 'T-3')), drainedFor('T-2'))
  assert.deepEqual(drained, ['T-2'])
})

test('an expired state that nobody used is refused like any other, and nothing is done', async (t) => {
  const clock = { now: EPOCH }
  const { ask, yes, no, drained } = await draining(t, { clock })
  const state = await ask()
  for (const now of [EPOCH + 5 * MINUTE, ENDS_AT, KEPT_UNTIL]) {
    clock.now = now
    for (const refused of [await yes(state, 'T-1'), await no(state)]) {
      assert.deepEqual([textOf(refused), at(refused.body, 'result', 'isError')], [REFUSED, true])
    }
  }
  assert.deepEqual(drained, [])
})

test('an expired state is no way to the outcome for other arguments, another tool or a changed text', async (t) => {
  const clock = { now: EPOCH }
  const served = await draining(t, { clock })
  const state = await served.ask()
  await served.yes(state, 'T-1')
  clock.now += 5 * MINUTE
  const retry = { requestState: state, inputResponses: answer({ confirm: true }) }
  assert.equal(textOf(await served.call({ node: 'n2' }, retry, DRAIN)), REFUSED)
  assert.equal(textOf(await served.call(ROLLBACK, retry)), REFUSED)
  assert.equal(textOf(await served.yes(`${state}A`, 'T-2')), REFUSED)
  assert.deepEqual([served.drained, served.performed], [['T-1'], []])
})

test('an outcome is kept to 15 minutes after its flow’s end, however late it came', async (t) => {
  const clock = { now: EPOCH }
  const lives: [Step, number][] = []
  const store = told(newStore(clock), (step, _, lifeMs) => {
    if (lifeMs !== undefined) lives.push([step, lifeMs])
  })
  const during = () => {
    clock.now += 20_000
  }
  const { ask, yes, drained } = await draining(t, { clock, store, during })
  const state = await ask()
  clock.now += 4 * MINUTE
  await yes(state, 'T-1')
  assert.deepEqual(lives, [
    ['claim', 26 * MINUTE],
    ['settle', 26 * MINUTE - 20_000],
  ])
  assert.deepEqual(drained, ['T-1'])
})

// Stores that fail, over HTTP.

/** The error of a store that fails, with the request's id; and nothing was done. */
function assertUnserved(reply: Reply, id: unknown, done: readonly unknown[], label: string): void {
  assert.match(String(assertRefused(reply, 503, -32603, id, label)), UNAVAILABLE)
  assert.deepEqual(done, [], label)
}

test('a store that fails is 503 with the request’s id and nothing is done; when it is back the yes counts', async (t) => {
  for (const failing of ['read', 'claim'] as const) {
    const clock = { now: EPOCH }
    let fails = true
    const store = told(newStore(clock), (step) => (step === failing && fails ? broken() : undefined))
    const served = await draining(t, { clock, store })
    const state = await served.ask()
    let id: unknown
    const edit = (message: Json) => {
      id = at(message.body, 'id')
      return message
    }
    for (const saying of [answer({ confirm: true, ticket: 'T-1' }), answer({}, 'decline')]) {
      assertUnserved(await served.say(state, saying, { edit }), id, served.drained, failing)
    }
    fails = false
    assert.equal(textOf(await served.yes(state, 'T-2')), drainedFor('T-2'))
    assert.deepEqual(served.drained, ['T-2'])
    fails = failing === 'read'
    clock.now += 5 * MINUTE
    const expired = await served.say(state, answer({ confirm: true }), { edit })
    if (fails) assertUnserved(expired, id, served.drained.slice(1), 'expired')
    else assert.equal(textOf(expired), drainedFor('T-2'))
    assert.deepEqual(served.drained, ['T-2'])
  }
})

test('a store that fails after the action hides nothing: its outcome is the answer, and it acts once', async (t) => {
  const clock = { now: EPOCH }
  const store = told(newStore(clock), (step) => {
    if (step === 'settle') return broken()
    clock.now += 1000
    return undefined
  })
  const { ask, yes, drained, failures } = await draining(t, { clock, store })
  const state = await ask()
  assert.equal(textOf(await yes(state, 'T-1')), drainedFor('T-1'))
  clock.now += OVERDUE_MS + 1
  assert.equal(textOf(await yes(state, 'T-2')), UNKNOWN)
  assert.deepEqual([drained, failures], [['T-1'], []])
})

test('a full store is 503 and nothing is done, also to whoever would say no', async (t) => {
  const clock = { now: EPOCH }
  const { ask, say, yes, drained } = await draining(t, { clock, store: newStore(clock, 1) })
  const [one, other] = [await ask(), await ask()]
  await yes(one, 'T-1')
  for (const saying of [answer({ confirm: true }), answer({}, 'decline')]) {
    const refused = await say(other, saying)
    assertUnserved(refused, at(refused.body, 'id'), drained.slice(1), 'full')
  }
  assert.equal(textOf(await yes(one, 'T-2')), drainedFor('T-1'))
  assert.deepEqual(drained, ['T-1'])
})

// Tools that are not single use, and tools that can't be.

test('rollback_release stays stateless: it needs no store, and its approval acts again', async (t) => {
  const store = told(newStore({ now: EPOCH }), broken)
  const { ask, yes, performed } = await serve(t, { store })
  const state = await ask()
  for (let i = 0; i < 2; i += 1) {
    assert.equal(textOf(await yes(state)), 'Rolled checkout back to v1.41.2. Reason: p99 regression')
  }
  assert.equal(performed.length, 2)
})

test('without a store a tool that is single use is not offered, and nobody can make it act', async () => {
  const drained: string[] = []
  const states = requestStates(signer([Buffer.from(SECRET)]), {
    audience: 'release-ops',
    ttlMs: 5 * MINUTE,
    now: () => EPOCH,
  })
  const tools = toolsFeature(compileTools([drainTool(drained)]), { states, permits: [] })
  const methods = methodTable({ name: 'a', version: '1' }, '', [tools])
  const ask = async (method: string, params: Json) => {
    const request: AdmittedRequest = {
      id: 1,
      method,
      params,
      arrival: {
        headers: new Map(),
        note: {},
        address: '',
        peer: { gone: false, signal: new AbortController().signal, notify: async () => {} },
      },
      principal: DEMO_USER,
      meta: {},
      capabilities: { elicitation: {} },
    }
    return JSON.parse(String(await methods.get(method)?.(request)))
  }
  const call = async (retry: Json = {}) =>
    ask('tools/call', { name: 'drain_node', arguments: NODE, ...retry })
  const list = await ask('tools/list', {})
  const asked = await call().catch(() => ({}))
  const requestState = at(asked, 'requestState')
  const inputResponses = answer({ confirm: true })
  for (let i = 0; i < 2; i += 1) await call({ requestState, inputResponses }).catch(() => {})
  assert.deepEqual([list?.tools, drained], [[], []])
})
