import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { at, type Json, type Message, type Reply } from '../client.ts'
import { gatedTool } from '../lib/gate.ts'
import { DEMO_USER, type Principal } from '../lib/principal.ts'
import { signer } from '../lib/seal.ts'
import { type Binding, digest, requestStates } from '../lib/state.ts'
import type { Tool } from '../lib/tool.ts'
import {
  answer,
  assertRefused,
  type Clock,
  EPOCH,
  QUESTION,
  REFUSED,
  ROLLBACK,
  resultOf,
  SECRET,
  type Served,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const OTHER_SECRET = 'test-secret-1-test-secret-1-test-secret-1'
const MINUTE = 60_000
const FLOW = 15 * MINUTE
const DONE = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
const YES = answer({ confirm: true, reason: 'p99 regression' })

const seal = signer([Buffer.from(SECRET)])

/** What the server wrote under the seal of a state. */
function textUnder(state: string): string {
  const opened = seal.open(state)
  assert.ok('text' in opened, 'the state has no good seal')
  return opened.text
}

const payloadOf = (state: string): Json => JSON.parse(textUnder(state))

/** The kind of call that a test makes: the rollback, unless it says otherwise. */
type Edit = (message: Message) => Message
type How = { args?: Json; tool?: string; edit?: Edit }

const yes = ({ call }: Served, requestState: unknown, { args, ...how }: How = {}) =>
  call(args, { requestState, inputResponses: YES }, how)

/** A yes with this state is refused for this reason, which only the log says, and does nothing. */
async function refused(served: Served, state: string, reason: string, how: How = {}): Promise<Reply> {
  const before = served.performed.length
  const reply = await yes(served, state, how)
  const { _meta, ...result } = Object(resultOf(reply))
  assert.deepEqual(
    { status: reply.status, reason: served.lines.at(-1)?.outcome, ...result },
    {
      status: 200,
      reason: `state refused: ${reason}`,
      resultType: 'complete',
      content: [{ type: 'text', text: REFUSED }],
      isError: true,
    },
  )
  assert.equal(served.performed.length, before)
  return reply
}

async function accepted(served: Served, state: string, how: How = {}): Promise<void> {
  const before = served.performed.length
  const reply = await yes(served, state, how)
  assert.equal(textOf(reply), DONE)
  assert.equal(served.performed.length, before + 1)
}

/** Asks again: a retry that brings no answer. */
async function askAgain({ call }: Served, requestState: string): Promise<string> {
  return stateOf(await call(undefined, { requestState }))
}

/** Sends the body as a text in which one spelling is replaced by another. */
function spelled(from: string, to: string): Edit {
  return ({ headers, body }) => {
    const text = JSON.stringify(body)
    assert.equal(text.includes(from), true, from)
    return { headers, body: text.replace(from, to) }
  }
}

/** A gated tool that takes every kind of JSON value, and asks the same whatever they are. */
function resizePool(resized: Json[], name = 'resize_pool'): Tool {
  return gatedTool({
    name,
    description: 'Resizes the pool. Asks first.',
    inputSchema: {
      type: 'object',
      properties: { size: { type: 'number' }, note: {}, options: { type: 'object' } },
      required: ['size'],
    },
    fields: {},
    ask: () => ({ question: 'Resize the pool?' }),
    cancelled: () => ({ text: 'The pool is as it was.' }),
    act: ({ arguments: args }) => {
      resized.push(args)
      return { text: 'Resized.' }
    },
  })
}

async function servedPool(t: TestContext) {
  const resized: Json[] = []
  const served = await serve(t, { tools: [resizePool(resized)] })
  const how = (args: Json): How => ({ tool: 'resize_pool', args })
  const ask = (args: Json) => served.ask(args, { tool: 'resize_pool' })
  return { served, resized, how, ask }
}

// What a state is bound to.

const principal = (issuer: string, subject: string, client = ''): Principal => {
  return { issuer, subject, client, scopes: new Set() }
}
const bindingOf = (changes: Partial<Binding> = {}): Binding => {
  const rollback = { method: 'tools/call', target: 'rollback_release', arguments: digest(ROLLBACK) }
  return { principal: DEMO_USER, ...rollback, ...changes }
}
const states = (audience = 'release-ops') =>
  requestStates(seal, { audience, ttlMs: 300_000, now: () => EPOCH })
const issued = (changes?: Partial<Binding>) => states().issue(bindingOf(changes), QUESTION, null)

test('the text under the seal of a state has this form, for ever, or states of an older program die', () => {
  const text =
    '{"v":1,"audience":"release-ops","method":"tools/call","target":"rollback_release"' +
    ',"principal":"QxZHEdOVidQWcd1oMmCsJ4vL54fSGJfLOQ4_B25DCTQ"' +
    ',"arguments":"gDbVKWauZ3kIxl1nHsPx6aZbVSvJd6V6SlGqlCEwygE"' +
    ',"question":"YMf0pGPfU-p--fVFkIlbNk_IeXCFwi3GHQNKU6QCWoE"' +
    ',"flow":"AAECAwQFBgcICQoLDA0ODw","round":2' +
    ',"issuedAt":1796083200000,"expiresAt":1796083500000,"flowEndsAt":1796084100000' +
    ',"data":{"kept":[1]}}'
  const question = 'YMf0pGPfU-p--fVFkIlbNk_IeXCFwi3GHQNKU6QCWoE'
  const flow = {
    id: 'AAECAwQFBgcICQoLDA0ODw',
    round: 2,
    endsAt: EPOCH + FLOW,
    question,
    data: { kept: [1] },
  }
  assert.deepEqual(states().open(seal.seal(text), bindingOf()), { flow })
  const again = states().issue(bindingOf(), QUESTION, flow.data, { ...flow, round: 1 })
  assert.equal(textUnder(again), text)
})

/** Issues a state for each caller and lets every caller try every state. */
function assertApart(principals: readonly Principal[]): void {
  for (const [mine, me] of principals.entries()) {
    const state = issued({ principal: me })
    for (const [theirs, other] of principals.entries()) {
      const opened = states().open(state, bindingOf({ principal: other }))
      const failure = 'failure' in opened ? opened.failure : undefined
      assert.equal(failure, mine === theirs ? undefined : 'principal', JSON.stringify([me, other]))
    }
  }
}

test('a caller’s state is refused from another subject, another client and another issuer', () => {
  assertApart([
    DEMO_USER,
    principal('https://issuer.example', 'alice', 'app-1'),
    principal('https://issuer.example', 'bob', 'app-1'),
    principal('https://issuer.example', 'alice', 'app-2'),
    principal('https://issuer.example', 'alice'),
    principal('https://other.example', 'alice', 'app-1'),
    principal('anonymous', 'Demo-User'),
    principal('', ''),
  ])
})

test('no separator in a name, and no shift between names, makes two callers one', () => {
  assertApart([
    principal('a', 'bc', 'd'),
    principal('ab', 'c', 'd'),
    principal('a', 'b', 'cd'),
    principal('abc', '', 'd'),
    principal('', 'abcd'),
    principal('a:bc', 'd'),
    principal('1:a2:bc', '', 'd'),
    principal('a', '2:bc1:d'),
    principal('a\0bc', 'd'),
    principal('a\0', 'bc', 'd'),
    principal('a', 'bc\0d'),
    principal('a|bc', 'd'),
    principal('é', 'x'),
    principal('e\u0301', 'x'),
    principal('Ã©', 'x'),
  ])
})

test('callers whose names hold different halves of a surrogate pair are different callers', () => {
  assertApart([principal('a', '\ud800'), principal('a', '\udfff'), principal('a', '\ufffd')])
})

test('a caller whose token was refreshed with other scopes is the same caller', () => {
  const alice = principal('https://issuer.example', 'alice')
  const state = issued({ principal: alice })
  const refreshed = { ...alice, scopes: new Set(['releases:write']) }
  const opened = states().open(state, bindingOf({ principal: refreshed }))
  assert.notEqual(at(opened, 'flow'), undefined)
})

test('a state of one method is refused by the others, whatever their target is called', () => {
  for (const method of ['prompts/get', 'resources/read', 'tools/list', 'Tools/call', '']) {
    assert.equal(at(states().open(issued(), bindingOf({ method })), 'failure'), 'method')
    assert.equal(at(states().open(issued({ method }), bindingOf()), 'failure'), 'method')
  }
})

test('a state of another server with the same secret is refused', async (t) => {
  const served = await serve(t)
  for (const STATE_AUDIENCE of ['release-ops-2', 'release-op', 'Release-ops', 'x']) {
    const other = await serve(t, { env: { STATE_AUDIENCE } })
    await refused(served, await other.ask(), 'audience')
    await refused(other, await served.ask(), 'audience')
    await accepted(other, await other.ask())
  }
  await accepted(served, await served.ask())
})

test('neither of two gated tools takes the other’s state, even for the same arguments and question', async (t) => {
  const [first, second]: [Json[], Json[]] = [[], []]
  const served = await serve(t, { tools: [resizePool(first), resizePool(second, 'resize_twin')] })
  const args = { size: 3 }
  const [pool, twin] = [
    { tool: 'resize_pool', args },
    { tool: 'resize_twin', args },
  ]
  const [ofPool, ofTwin] = [await served.ask(args, pool), await served.ask(args, twin)]
  await refused(served, ofPool, 'target', twin)
  await refused(served, ofTwin, 'target', pool)
  await refused(served, ofPool, 'target')
  await refused(served, await served.ask(), 'target', pool)
  assert.deepEqual([first, second, served.performed], [[], [], []])

  await yes(served, ofPool, pool)
  await yes(served, ofTwin, twin)
  assert.deepEqual([first, second], [[args], [args]])
})

test('a state is refused as soon as any argument differs', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const { service, version } = ROLLBACK
  for (const args of [
    { service: 'payments', version },
    { service, version: 'v1.41.1' },
    { service, version: 'V1.41.2' },
    { service, version: ' v1.41.2' },
    { service, version: 'v1.41.2\u200b' },
    { service: version, version: service },
    { service: 'сheckout', version },
    { service: 'ｃheckout', version },
  ]) {
    await refused(served, state, 'arguments', { args })
  }
  const missing = await yes(served, state, { args: { service } })
  assert.equal(textOf(missing), 'Invalid arguments: version is required.')
  assert.deepEqual(served.performed, [])
  await accepted(served, state)
})

test('a state is refused when a declared argument is added, removed or of another type', async (t) => {
  const { served, resized, how, ask } = await servedPool(t)
  const notes = [undefined, null, 0, 1, '1', '', 'null', true, false, [], {}, [1], [[1]], { '1': null }]
  const calls = notes.map((note): Json => (note === undefined ? { size: 1 } : { size: 1, note }))
  for (const asked of calls) {
    const state = await ask(asked)
    for (const retried of calls) {
      if (retried !== asked) await refused(served, state, 'arguments', how(retried))
    }
  }
  assert.deepEqual(resized, [])
  for (const args of calls) await yes(served, await ask(args), how(args))
  assert.deepEqual(resized, calls)
})

test('a state is refused when anything inside an argument differs, the order of a list included', async (t) => {
  const { served, resized, how, ask } = await servedPool(t)
  const args = { size: 1, options: { zones: ['a', 'b'], limits: { cpu: 2, deep: { er: [{ x: 0 }] } } } }
  const state = await ask(args)
  const text = JSON.stringify(args)
  for (const [from, to] of [
    ['["a","b"]', '["b","a"]'],
    ['["a","b"]', '["a","b","b"]'],
    ['["a","b"]', '["ab"]'],
    ['"cpu":2', '"cpu":3'],
    ['"cpu":2', '"Cpu":2'],
    ['"cpu":2,', ''],
    ['"x":0', '"x":false'],
    ['"x":0', '"x":0,"__proto__":{"x":0}'],
  ] as const) {
    await refused(served, state, 'arguments', how(JSON.parse(text.replace(from, to))))
  }
  assert.deepEqual(resized, [])
  await yes(served, state, how(args))
  assert.deepEqual(resized, [args])
})

test('the order of members, white space and escapes make no difference', async (t) => {
  const served = await serve(t)
  const state = await served.ask({ service: 'a/b', version: 'v1' })
  const args = { service: 'a/b', version: 'v1' }
  const other = { version: 'v1', service: 'a/b' }
  const spellings: How[] = [
    { args: other },
    { args, edit: spelled('"a/b"', '"a\\/b"') },
    { args, edit: spelled('"a/b"', '"\\u0061\\u002F\\u0062"') },
    { args, edit: spelled('"a/b"', '\n\t "a/b"\r\n ') },
    { args, edit: spelled('"service"', '"\\u0073ervice"') },
    { args, edit: spelled('"arguments"', ' "\\u0061rguments"') },
  ]
  for (const how of spellings) {
    assert.equal(textOf(await yes(served, state, how)), 'Rolled a/b back to v1. Reason: p99 regression')
  }
  assert.equal(served.performed.length, spellings.length)
})

test('the order of members makes no difference at any depth', async (t) => {
  const { served, resized, how, ask } = await servedPool(t)
  const state = await ask({
    size: 1,
    note: [{ b: { d: 1, c: 2 }, a: [] }],
    options: { '10': 1, '9': 2, z: {} },
  })
  const other = { options: { z: {}, '9': 2, '10': 1 }, note: [{ a: [], b: { c: 2, d: 1 } }], size: 1 }
  await yes(served, state, how(other))
  assert.deepEqual(resized, [other])
})

test('one number has many spellings and one digest, and the action gets what was digested', async (t) => {
  const { served, resized, how, ask } = await servedPool(t)
  for (const [size, spellings] of [
    [1, ['1.0', '1e0', '10e-1', '1.000', '0.1E+1']],
    [100, ['1e2', '100.0', '1E+2', '1000e-1']],
    [0, ['-0', '0.0', '-0.0', '0e9']],
    [0.1, ['1e-1', '0.10', '0.1000000000000000055511151231257827']],
    [-5, ['-5.0', '-50e-1']],
  ] as const) {
    const state = await ask({ size })
    for (const spelling of spellings) {
      const edit = spelled(`"size":${size}`, `"size":${spelling}`)
      assert.equal(textOf(await yes(served, state, { ...how({ size }), edit })), 'Resized.', spelling)
      assert.equal(Object.is(resized.at(-1)?.size, size), true, spelling)
    }
  }
})

test('a number that not every reader reads the same reaches no question and no action', async (t) => {
  const { served, resized, how, ask } = await servedPool(t)
  for (const [size, spelling] of [
    [2 ** 53, '9007199254740993'],
    [1, '9007199254740992'],
    [1, '-9007199254740993'],
    [1, '1e400'],
    [1, '-1e400'],
    [1, '1e300'],
  ] as const) {
    const edit = spelled(`"size":${size}`, `"size":${spelling}`)
    const state = await ask({ size: 1 })
    for (const reply of [
      await served.call({ size }, {}, { tool: 'resize_pool', edit }),
      await yes(served, state, { ...how({ size }), edit }),
    ]) {
      assert.match(String(textOf(reply)), /^Invalid arguments: size /, spelling)
    }
  }
  assert.deepEqual(resized, [])
})

test('what is undeclared is neither digested nor performed', async (t) => {
  const served = await serve(t)
  const state = await served.ask({ ...ROLLBACK, task_progress: 1, nested: [[]] })
  for (const extra of [
    '{}',
    '{"task_progress":2}',
    '{"force":true,"confirm":true}',
    '{"reason":"from the arguments"}',
    '{"__proto__":{"version":"v0"}}',
    '{"constructor":{"prototype":{}},"toString":1}',
    '{"Service":"payments","version ":"v0"}',
    '{"huge":1e400,"half":"\\ud800"}',
  ]) {
    await accepted(served, state, { args: { ...JSON.parse(extra), ...ROLLBACK } })
    const edit = spelled('"version"', `${extra.slice(1, -1) || '"x":0'},"version"`)
    await accepted(served, state, { edit })
  }
  assert.deepEqual(served.performed, Array(16).fill({ ...ROLLBACK, reason: 'p99 regression' }))
})

test('of a repeated member the last is shown, digested and performed alike', async (t) => {
  const served = await serve(t)
  const edit = spelled('"version":"v1.41.2"', '"version":"v9","version":"v1.41.2"')
  const asked = await served.call(undefined, {}, { edit })
  assert.equal(asked.text.includes(JSON.stringify(QUESTION)), true)
  await accepted(served, stateOf(asked))
  await accepted(served, await served.ask(), { edit })
  await refused(served, stateOf(asked), 'arguments', { args: { ...ROLLBACK, version: 'v9' } })
  assert.deepEqual(new Set(served.performed.map(({ version }) => version)), new Set(['v1.41.2']))
})

test('texts are compared as they are: composed and decomposed accents differ', async (t) => {
  const served = await serve(t)
  const [composed, decomposed] = ['caf\u00e9', 'cafe\u0301']
  for (const [one, other] of [
    [composed, decomposed],
    [decomposed, composed],
  ] as const) {
    const state = await served.ask({ ...ROLLBACK, service: one })
    await refused(served, state, 'arguments', { args: { ...ROLLBACK, service: other } })
    await yes(served, state, { args: { ...ROLLBACK, service: one } })
    assert.equal(served.performed.at(-1)?.service, one)
  }
  assert.equal(served.performed.length, 2)
})

test('what identifies nothing may differ: client info, progress token, unknown members, the request’s id', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const versionKey = '"io.modelcontextprotocol/protocolVersion"'
  for (const edit of [
    spelled('"release-ops-client"', '"another-client"'),
    spelled(versionKey, `"progressToken":"p",${versionKey}`),
    spelled(versionKey, `"traceparent":"00-0-0-00",${versionKey}`),
    spelled('"name":"rollback_release"', '"name":"rollback_release","task":{"ttl":1}'),
    ({ headers, body }: Message) => ({ headers, body: { ...Object(body), id: 1 } }),
    ({ headers, body }: Message) => ({ headers, body: { ...Object(body), id: 'first' } }),
  ]) {
    await accepted(served, state, { edit })
  }
})

// Time.

test('a state is good until one millisecond before its expiry', async (t) => {
  for (const [STATE_TTL_SECONDS, ttl] of [
    [undefined, 300_000],
    ['1', 1000],
    ['900', 900_000],
  ] as const) {
    const served = await serve(t, { env: { STATE_TTL_SECONDS } })
    const state = await served.ask()
    served.clock.now = EPOCH + ttl - 1
    await accepted(served, state)
    for (const late of [ttl, ttl + 1, 10 * ttl, 1e12]) {
      served.clock.now = EPOCH + late
      await refused(served, state, 'expired')
    }
  }
})

test('clocks of instances may be 60 seconds apart and no more', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const behind of [1, 59_999, 60_000]) {
    served.clock.now = EPOCH - behind
    await accepted(served, state)
  }
  for (const behind of [60_001, FLOW, 1e12]) {
    served.clock.now = EPOCH - behind
    await refused(served, state, 'future')
  }
})

test('asking again never moves the end of a flow, and no state outlives it', async (t) => {
  const served = await serve(t)
  const { clock } = served
  let state = await served.ask()
  const first = payloadOf(state)
  assert.equal(first.flowEndsAt, EPOCH + FLOW)

  const expiries = [first.expiresAt]
  for (const minute of [4, 8, 12, 14.9]) {
    clock.now = EPOCH + minute * MINUTE
    state = await askAgain(served, state)
    const { flow, flowEndsAt, expiresAt, issuedAt } = payloadOf(state)
    assert.deepEqual([flow, flowEndsAt, issuedAt], [first.flow, EPOCH + FLOW, clock.now])
    expiries.push(expiresAt)
  }
  assert.deepEqual(
    expiries.map((expiry) => (Number(expiry) - EPOCH) / MINUTE),
    [5, 9, 13, 15, 15],
  )
  clock.now = EPOCH + FLOW - 1
  state = await askAgain(served, state)
  await accepted(served, state)
  clock.now = EPOCH + FLOW
  await refused(served, state, 'expired')
  const again = await served.call(undefined, { requestState: state })
  assert.equal(textOf(again), REFUSED)
  assert.equal(served.performed.length, 1)
})

test('a flow that wanders to an instance with a slower clock ends no later', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  served.clock.now = EPOCH - MINUTE
  const again = await askAgain(served, state)
  assert.equal(payloadOf(again).flowEndsAt, EPOCH + FLOW)
  await accepted(served, again)
})

test('without a time nothing is handed out and nothing is accepted', async (t) => {
  const clock: Clock = { now: EPOCH }
  const served = await serve(t, { clock })
  const state = await served.ask()
  for (const [count, now] of [Number.NaN, -1, Infinity, -Infinity, 1e18, EPOCH + 0.5].entries()) {
    clock.now = now
    const asked = await served.call()
    assert.equal(assertRefused(asked, 500, -32603, idOf(asked)), 'Internal error')
    assert.equal(served.failures.length, count + 1)
    const retried = await yes(served, state)
    assert.equal(textOf(retried), REFUSED, String(now))
    assert.match(String(served.lines.at(-1)?.outcome), /^state refused: (lifetime|future|expired)$/)
  }
  assert.deepEqual(served.performed, [])
  clock.now = EPOCH
  await accepted(served, state)
})

test('a clock that throws ends the request, before anything is handed out or done', async (t) => {
  let broken = false
  const clock: Clock = {
    get now() {
      if (broken) throw new Error('no clock at /dev/rtc')
      return EPOCH
    },
  }
  const served = await serve(t, { clock })
  const state = await served.ask()
  broken = true
  for (const reply of [await served.call(), await yes(served, state)]) {
    assert.equal(assertRefused(reply, 500, -32603, idOf(reply)), 'Internal error')
  }
  assert.deepEqual(served.performed, [])
  broken = false
  await accepted(served, state)
})

const idOf = (reply: Reply) => Object(reply.body).id

// A good seal says who wrote a state, not that it is one.

/** A good state, the text under it changed and sealed again with the server's own secret. */
async function minted(served: Served, change: (text: string) => string): Promise<string> {
  const text = textUnder(await served.ask())
  const changed = change(text)
  assert.notEqual(changed, text)
  return seal.seal(changed)
}

const setting = (member: string, value: string) => (text: string) => {
  return text.replace(new RegExp(`"${member}":("[^"]*"|[^,}]*)`), `"${member}":${value}`)
}
const dropping = (member: string) => (text: string) =>
  text.replace(new RegExp(`"${member}":("[^"]*"|[^,}]*),?`), '').replace(',}', '}')

const TEXT_MEMBERS = ['audience', 'method', 'target', 'principal', 'arguments', 'question', 'flow']
const TIME_MEMBERS = ['issuedAt', 'expiresAt', 'flowEndsAt']

test('what is written under a good seal by this server is accepted when it is sealed again', async (t) => {
  const served = await serve(t)
  const text = textUnder(await served.ask())
  assert.deepEqual(
    Object.keys(JSON.parse(text)).sort(),
    ['v', 'data', 'round', ...TEXT_MEMBERS, ...TIME_MEMBERS].sort(),
  )
  await accepted(served, seal.seal(text))
  await accepted(served, await minted(served, setting('data', '{"kept":[1]}')))
})

test('under a good seal, only version 1 is a version', async (t) => {
  const served = await serve(t)
  for (const v of ['true', '1.0', '1e0', '01', '2', '0', '-1', '"1"', 'null', '[1]', '{}']) {
    await refused(served, await minted(served, setting('v', v)), 'payload')
  }
})

test('under a good seal, no text may be of another type', async (t) => {
  const served = await serve(t)
  for (const member of TEXT_MEMBERS) {
    for (const value of ['null', '1', 'true', '[]', '{}', '["tools/call"]']) {
      await refused(served, await minted(served, setting(member, value)), 'payload')
    }
  }
})

test('under a good seal, a time is a whole number of milliseconds that a double holds exactly', async (t) => {
  const served = await serve(t)
  for (const member of ['round', ...TIME_MEMBERS]) {
    for (const value of [
      `"${EPOCH}"`,
      `${EPOCH}.0`,
      `${EPOCH}.5`,
      '-1',
      '-0',
      '1e18',
      '1e400',
      '9007199254740992',
      'null',
      'true',
      `[${EPOCH}]`,
      '{}',
      '"2026-12-01T00:00:00Z"',
    ]) {
      await refused(served, await minted(served, setting(member, value)), 'payload')
    }
  }
})

test('under a good seal, every member is there, once, in its place, and no other', async (t) => {
  const served = await serve(t)
  for (const member of ['v', 'data', 'round', ...TEXT_MEMBERS, ...TIME_MEMBERS]) {
    await refused(served, await minted(served, dropping(member)), 'payload')
  }
  const spoiled: ((text: string) => string)[] = [
    (text) => text.replace('"v":1', '"v":1,"v":1'),
    (text) => text.replace('"v":1', '"v":2,"v":1'),
    (text) => text.replace('"audience"', '"audience":"x","audience"'),
    (text) => text.replace('}', ',"admin":true}'),
    (text) => text.replace('{', '{"admin":true,'),
    (text) => text.replace('{', '{"__proto__":{"v":1},'),
    (text) => text.replace('{"v":1,', '{').replace(/}$/, ',"v":1}'),
    (text) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse())),
    (text) => `[${text}]`,
    (text) => JSON.stringify(text),
  ]
  for (const change of spoiled) await refused(served, await minted(served, change), 'payload')
})

test('under a good seal, the text has one spelling', async (t) => {
  const served = await serve(t)
  for (const change of [
    (text: string) => ` ${text}`,
    (text: string) => `${text}\n`,
    (text: string) => `\ufeff${text}`,
    (text: string) => text.replace('{', '{ '),
    (text: string) => text.replace('"v"', '"\\u0076"'),
    (text: string) => text.replace('release-ops', 'release\\u002dops'),
    (text: string) => text.replace('tools/call', 'tools\\/call'),
    (text: string) =>
      text.replace(
        `${EPOCH}`,
        `${EPOCH}`.replace(/0+$/, (zeros) => `e${zeros.length}`),
      ),
    (text: string) => text + text,
  ]) {
    await refused(served, await minted(served, change), 'payload')
  }
})

test('under a good seal, what is no JSON object is no state', async (t) => {
  const served = await serve(t)
  const texts = ['', ' ', 'null', 'true', '7', '"x"', '[]', '{}', '{', 'x', 'undefined', '{"v":1}', '\0']
  for (const text of texts) await refused(served, seal.seal(text), 'payload')
})

test('under a good seal, bytes that are no UTF-8 are no state', async (t) => {
  const served = await serve(t)
  const derived = (use: string, size: number) =>
    Buffer.from(hkdfSync('sha256', SECRET, '', `release-ops signed state v1: ${use}`, size))
  const sealed = (bytes: Buffer) => {
    const signed = Buffer.concat([derived('id', 8), bytes])
    const mac = createHmac('sha256', derived('key', 32)).update('s1.').update(signed).digest()
    return `s1.${Buffer.concat([signed, mac]).toString('base64url')}`
  }
  const [head = '', tail = ''] = textUnder(await served.ask()).split('null')
  await accepted(served, sealed(Buffer.from(`${head}"é"${tail}`)))
  const before = served.performed.length
  for (const hex of ['ff', 'c3', 'eda080', 'c0af']) {
    const bytes = Buffer.concat([Buffer.from(`${head}"`), Buffer.from(hex, 'hex'), Buffer.from(`"${tail}`)])
    const reply = await yes(served, sealed(bytes))
    assert.equal(textOf(reply), REFUSED, hex)
  }
  assert.equal(served.performed.length, before)
})

const timed = (issuedAt: number, expiresAt: number, flowEndsAt: number) => (text: string) => {
  const times = Object.entries({ issuedAt, expiresAt, flowEndsAt })
  return times.reduce((changed, [member, time]) => setting(member, String(time))(changed), text)
}

test('under a good seal, a life out of order or beyond its bounds is refused', async (t) => {
  const served = await serve(t)
  const minute = (minutes: number) => EPOCH + minutes * MINUTE
  // As a peer with the longest life that the configuration allows would write it.
  await accepted(served, await minted(served, timed(EPOCH, minute(15), minute(15))))
  for (const [issuedAt, expiresAt, flowEndsAt] of [
    [EPOCH, EPOCH, minute(15)],
    [EPOCH, EPOCH - 1, minute(15)],
    [EPOCH, minute(5), minute(5) - 1],
    [EPOCH, minute(5), minute(16) + 1],
    [minute(-12), minute(5), minute(5)],
    [0, minute(5), minute(5)],
    [EPOCH, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ] as const) {
    await refused(served, await minted(served, timed(issuedAt, expiresAt, flowEndsAt)), 'lifetime')
  }
})

test('under a good seal, one question may stay unanswered for 15 minutes and no longer', async (t) => {
  const served = await serve(t)
  const end = EPOCH + FLOW
  await refused(served, await minted(served, timed(EPOCH, end + 1, end + 1)), 'lifetime')
  await refused(served, await minted(served, timed(EPOCH, end + MINUTE, end + MINUTE)), 'lifetime')
})

// Instances.

test('an instance that shares secret and audience takes over a flow, one that does not refuses it', async (t) => {
  const [one, two] = [await serve(t), await serve(t)]
  await accepted(two, await one.ask())
  await accepted(one, await askAgain(two, await one.ask()))

  const stranger = await serve(t, { env: { STATE_SECRET: OTHER_SECRET } })
  await refused(stranger, await one.ask(), 'unknown_key')
  await refused(one, await stranger.ask(), 'unknown_key')
  await accepted(stranger, await stranger.ask())
})

test('a secret is replaced in three steps, each of which refuses no state of its neighbours', async (t) => {
  const secrets = (STATE_SECRET: string, STATE_SECRET_ACCEPTED?: string) =>
    serve(t, { env: { STATE_SECRET, STATE_SECRET_ACCEPTED } })
  const before = await secrets(SECRET)
  const coming = await secrets(SECRET, OTHER_SECRET)
  const going = await secrets(OTHER_SECRET, SECRET)
  const after = await secrets(OTHER_SECRET)
  const steps = [before, coming, going, after]
  const opensAt = [
    [true, true, true, false],
    [true, true, true, false],
    [false, true, true, true],
    [false, true, true, true],
  ]
  for (const [issuer, opens] of opensAt.entries()) {
    const state = (await steps[issuer]?.ask()) ?? ''
    for (const [step, good] of opens.entries()) {
      const served = steps[step] ?? before
      if (good) await accepted(served, state)
      else await refused(served, state, 'unknown_key')
    }
  }
  assert.equal(before.performed.length + after.performed.length, 4)
})

// What a refusal shows, and to whom.

test('every refusal is the same to the last byte, whatever the reason, and only the log knows it', async (t) => {
  const served = await serve(t, { tools: [resizePool([])] })
  const { clock } = served
  const state = await served.ask()
  const stranger = await serve(t, { env: { STATE_SECRET: OTHER_SECRET } })
  const namesake = await serve(t, { env: { STATE_AUDIENCE: 'namesake' } })
  const pool = await served.ask({ size: 1 }, { tool: 'resize_pool' })
  const alice = { ...bindingOf(), principal: principal('a', 'alice') }

  const cases: [reason: string, state: string, now?: number][] = [
    ['malformed', ''],
    ['malformed', `${state}=`],
    ['too_long', 's1.'.repeat(5000)],
    ['unknown_key', await stranger.ask()],
    ['bad_seal', state.slice(0, 60) + (state[60] === 'A' ? 'B' : 'A') + state.slice(61)],
    ['payload', seal.seal('{}')],
    ['audience', await namesake.ask()],
    ['principal', states().issue(alice, QUESTION, null)],
    ['method', issued({ method: 'prompts/get' })],
    ['target', pool],
    ['arguments', await served.ask({ ...ROLLBACK, version: 'v1' })],
    ['lifetime', await minted(served, timed(EPOCH, EPOCH, EPOCH + FLOW))],
    ['future', state, EPOCH - FLOW],
    ['expired', state, EPOCH + FLOW],
  ]
  const answers = new Set<string>()
  for (const [reason, spoilt, now = EPOCH] of cases) {
    clock.now = now
    const { status, headers, text, body } = await refused(served, spoilt, reason)
    const { date, ...rest } = headers
    const id = `"id":${Object(body).id}`
    assert.deepEqual([typeof date, text.includes(id)], ['string', true])
    answers.add(
      JSON.stringify([status, rest['content-type'], Object.keys(rest), text.replace(id, '"id":0')]),
    )
  }
  assert.equal(answers.size, 1)
  assert.deepEqual(served.performed, [])
})

test('no log line holds a state, an argument or an answer', async (t) => {
  const served = await serve(t)
  const { call, lines, decisions, failures, clock } = served
  const args = { service: 'very-secret-service', version: 'v-hidden-version' }
  const state = await served.ask(args)
  await served.yes(state, args)
  await call(args, { requestState: state })
  await call(args, { requestState: state, inputResponses: answer({}, 'decline') })
  await served.yes(`${state}\r\n\u001b[31mFORGED`, args)
  await served.yes(state.slice(0, -1), args)
  await served.yes(state)
  clock.now = Number.NaN
  await call(args)
  clock.now = EPOCH + FLOW
  await served.yes(state, args)

  const log = JSON.stringify([lines, decisions, failures.map(String)])
  assert.match(log, /state refused: malformed.*state refused: expired/)
  const body = state.slice(3)
  for (const part of body.match(/.{20}/g) ?? []) assert.equal(log.includes(part), false, part)
  for (const hidden of ['secret-service', 'hidden-version', 'p99', 'FORGED', SECRET, 'demo-user']) {
    assert.equal(log.includes(hidden), false, hidden)
  }
})

test('a state holds no argument, no question, no caller’s name and no secret', async (t) => {
  const served = await serve(t)
  const args = { service: 'very-secret-service', version: 'v-hidden-version' }
  const state = await served.ask(args)
  assert.match(state, /^s1\.[A-Za-z0-9_-]+$/)
  const bytes = Buffer.from(state.slice(3), 'base64url').toString('latin1')
  assert.equal(bytes.includes('rollback_release'), true)
  for (const hidden of [
    'secret-service',
    'hidden-version',
    'Roll ',
    'demo-user',
    'anonymous',
    'test-secret',
  ]) {
    assert.equal(bytes.includes(hidden), false, hidden)
  }
})

test('two states for the same question have nothing in common that tells whose or what they are', async (t) => {
  const served = await serve(t)
  const [one, two] = [payloadOf(await served.ask()), payloadOf(await served.ask())]
  assert.notEqual(one.flow, two.flow)
  assert.notEqual(one.principal, two.principal)
  assert.match(String(one.flow), /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
})
