import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { at, callTool, type Json, message, paramHeaders, send } from '../client.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import { DEMO_USER, type Principal, principalParts } from '../lib/principal.ts'
import type { Decided } from '../lib/request.ts'
import { plainTool } from '../lib/tool.ts'
import { trail } from '../lib/trail.ts'
import { compose } from '../server.ts'
import { startServer } from './instance.ts'
import {
  answer,
  CANCELLED,
  EPOCH,
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
const SCALE = { service: 'checkout', replicas: 12, idempotency_key: 'key-1' }
const TAG = /^[\w-]{16,}$/
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** The lines of the trail as they are written: JSON leaves out what is undefined. */
const linesOf = ({ decisions }: Served): Json[] => JSON.parse(JSON.stringify(decisions))
const decisionsOf = (served: Served) => linesOf(served).map(({ decision }) => decision)
/** The only value that all lines have in this member. */
function only(lines: readonly Json[], member: string): unknown {
  const values = [...new Set(lines.map((line) => line[member]))]
  assert.equal(values.length, 1, `${member}: ${JSON.stringify(values)}`)
  return values[0]
}

const retry = ({ call }: Served, requestState: unknown, inputResponses: unknown, args: Json = ROLLBACK) =>
  call(args, { requestState, inputResponses })

// One line for each decision.

test('an approval leaves three lines of one flow: asked, accepted, acted', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  assert.deepEqual(decisionsOf(served), ['asked'])
  await served.yes(state)
  assert.deepEqual(decisionsOf(served), ['asked', 'accepted', 'acted'])
  const lines = linesOf(served)
  for (const line of lines) {
    assert.deepEqual(Object.keys(line).sort(), ['arguments', 'decision', 'flow', 'principal', 'tool'])
  }
  assert.equal(only(lines, 'tool'), 'rollback_release')
  assert.match(String(only(lines, 'flow')), UUID)
  assert.match(String(only(lines, 'principal')), TAG)
  assert.match(String(only(lines, 'arguments')), /^[\w-]{43}$/)
})

test('the line says accepted before the action begins and acted once it has ended', async (t) => {
  const seen: unknown[][] = []
  const served: Served = await serve(t, {
    during: () => {
      seen.push(decisionsOf(served))
    },
  })
  await served.yes(await served.ask())
  assert.deepEqual(seen, [['asked', 'accepted']])
  assert.equal(decisionsOf(served).at(-1), 'acted')
})

test('asking again, however often, is a line of its own under the same flow', async (t) => {
  const served = await serve(t)
  let state = await served.ask()
  for (const unclear of [{}, answer({ confirm: 'true' }), answer({}, 'maybe'), { confirm: null }]) {
    state = stateOf(await retry(served, state, unclear))
  }
  assert.deepEqual(served.performed, [])
  await served.yes(state)
  const again = ['asked again', 'asked again', 'asked again', 'asked again']
  assert.deepEqual(decisionsOf(served), ['asked', ...again, 'accepted', 'acted'])
  only(linesOf(served), 'flow')
})

test('two questions are two flows', async (t) => {
  const served = await serve(t)
  await served.ask()
  await served.ask()
  const [first, second] = linesOf(served)
  assert.notEqual(first?.flow, second?.flow)
  assert.deepEqual({ ...first, flow: second?.flow }, second)
})

test('a no is declined or cancelled, as it was given, and nothing follows it', async (t) => {
  const noes: [Json, string][] = [
    [answer({ confirm: false }), 'declined'],
    [answer({}, 'decline'), 'declined'],
    [answer({ confirm: true }, 'decline'), 'declined'],
    [answer({}, 'cancel'), 'cancelled'],
    [answer({ confirm: true }, 'cancel'), 'cancelled'],
  ]
  for (const [no, decision] of noes) {
    const served = await serve(t)
    assert.equal(textOf(await retry(served, await served.ask(), no)), CANCELLED)
    assert.deepEqual(decisionsOf(served), ['asked', decision])
    only(linesOf(served), 'flow')
    assert.deepEqual(served.performed, [])
  }
})

test('an action that fails, or breaks, was accepted and has failed', async (t) => {
  const failing = await serve(t, { action: { run: async () => 'it went wrong.' } })
  const breaking = await serve(t, {
    action: {
      run: async () => {
        throw new Error('it broke')
      },
    },
  })
  assert.equal((await failing.yes(await failing.ask())).status, 200)
  assert.equal((await breaking.yes(await breaking.ask())).status, 500)
  for (const served of [failing, breaking]) {
    assert.deepEqual(decisionsOf(served), ['asked', 'accepted', 'failed'])
    only(linesOf(served), 'flow')
    assert.deepEqual(served.performed, [])
  }
})

test('every repeat of an approval that may be used again is accepted and acted again', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  await served.yes(state)
  await served.yes(state)
  assert.deepEqual(decisionsOf(served), ['asked', 'accepted', 'acted', 'accepted', 'acted'])
  only(linesOf(served), 'flow')
})

test('of any number of retries of an approval that counts once, one line says acted', async (t) => {
  const served = await serve(t)
  const tool = { tool: 'scale_service' }
  const state = await served.ask(SCALE, tool)
  const yes = () =>
    served.call(SCALE, { requestState: state, inputResponses: answer({ confirm: true }) }, tool)
  await Promise.all([yes(), yes(), yes()])
  await yes()
  assert.equal(served.performed.length, 1)
  assert.equal(decisionsOf(served).filter((decision) => decision === 'acted').length, 1)
  assert.equal(only(linesOf(served), 'tool'), 'scale_service')
  only(linesOf(served), 'flow')
})

/** A state that is good on this server, but for the first argument of these. */
type Refusable = (served: Served, t: TestContext) => Promise<unknown>

const from = async (t: TestContext, served: Served, env: { [name: string]: string }) =>
  (await serve(t, { env, clock: served.clock })).ask()

/** What is refused, by the reason that the line gives. */
const REFUSALS: [reason: string, state: Refusable, args?: Json][] = [
  ['malformed', async () => ''],
  ['malformed', async ({ ask }) => `${await ask()}=`],
  ['malformed', async () => 'not a state'],
  ['too_long', async () => 's1.'.padEnd(100_000, 'A')],
  ['unknown_key', (served, t) => from(t, served, { STATE_SECRET: OTHER_SECRET })],
  ['bad_seal', async ({ ask }) => spoilt(await ask())],
  ['audience', (served, t) => from(t, served, { STATE_AUDIENCE: 'another-server' })],
  ['target', ({ ask }) => ask(SCALE, { tool: 'scale_service' })],
  ['arguments', ({ ask }) => ask(), { ...ROLLBACK, version: 'v1.0.0' }],
  [
    'future',
    async ({ ask, clock }) => {
      const state = await ask()
      clock.now -= 60_001
      return state
    },
  ],
  [
    'expired',
    async ({ ask, clock }) => {
      const state = await ask()
      clock.now += 300_000
      return state
    },
  ],
]

/** The same state with another last byte under the seal. */
function spoilt(state: string): string {
  const bytes = Buffer.from(state.slice(3), 'base64url')
  const last = bytes.length - 33
  bytes.writeUInt8(bytes.readUInt8(last) ^ 1, last)
  return state.slice(0, 3) + bytes.toString('base64url')
}

test('a refused state leaves one line with the reason, which the client is not told', async (t) => {
  for (const [reason, stateFrom, args = ROLLBACK] of REFUSALS) {
    const served = await serve(t)
    const state = await stateFrom(served, t)
    const before = served.decisions.length
    const refused = await retry(served, state, answer({ confirm: true }), args)
    const { content, isError, ...rest } = Object(resultOf(refused))
    assert.deepEqual([content, isError], [[{ type: 'text', text: REFUSED }], true], reason)
    assert.deepEqual(Object.keys(rest).sort(), ['_meta', 'resultType'], reason)
    const [line, ...more] = linesOf(served).slice(before)
    assert.deepEqual([line?.decision, line?.reason, more], ['refused', reason, []])
    assert.equal(line?.tool, 'rollback_release')
    assert.match(String(line?.principal), TAG)
    assert.deepEqual(served.performed, [])
  }
})

test('a refused line has the digest of the arguments that came with the state, not of the approved ones', async (t) => {
  const served = await serve(t)
  const other = { ...ROLLBACK, version: 'v1.0.0' }
  await retry(served, await served.ask(), answer({ confirm: true }), other)
  await served.ask(other)
  const [asked, refused, askedOther] = linesOf(served)
  assert.notEqual(refused?.arguments, asked?.arguments)
  assert.equal(refused?.arguments, askedOther?.arguments)
  assert.deepEqual(served.performed, [])
})

test('a state that this server has sealed is refused under its flow, so that a misuse can be traced', async (t) => {
  for (const [reason, stateFrom, args = ROLLBACK] of REFUSALS) {
    const own = ['target', 'arguments', 'future', 'expired'].includes(reason)
    const served = await serve(t)
    const state = await stateFrom(served, t)
    await retry(served, state, answer({ confirm: true }), args)
    const lines = linesOf(served)
    assert.deepEqual(served.performed, [])
    if (own) assert.match(String(only(lines, 'flow')), UUID, reason)
    else assert.equal(lines.at(-1)?.flow, undefined, reason)
  }
})

test('a call that asks nobody anything leaves no line', async (t) => {
  const inputSchema = { type: 'object' } as const
  const greet = plainTool({ name: 'greet', description: 'Greets.', inputSchema }, () => ({
    content: [{ type: 'text', text: 'Hello' }],
  }))
  const served = await serve(t, { tools: [greet] })
  await served.call({}, {}, { tool: 'greet' })
  await served.call({}) // arguments refused
  await served.call(ROLLBACK, {}, { capabilities: {} }) // a client that can't ask
  await served.call({ ...SCALE, dry_run: true }, {}, { tool: 'scale_service' })
  await served.call({ ...SCALE, max_spend_usd: 1 }, {}, { tool: 'scale_service' })
  await send(served.url, message('tools/list'))
  assert.deepEqual(linesOf(served), [])
  assert.deepEqual(served.performed, [])
})

test('the digest is of what is validated: order, spelling and extra arguments make no other one', async (t) => {
  const served = await serve(t)
  const { service, version } = ROLLBACK
  await served.ask({ service, version })
  await served.ask({ version, service })
  await served.ask({ service, version, undeclared: 'anything' })
  const same = only(linesOf(served), 'arguments')
  await served.ask({ service: version, version: service })
  await served.ask({ service, version: `${version} ` })
  const others = linesOf(served)
    .slice(3)
    .map((line) => line.arguments)
  assert.equal(new Set([same, ...others]).size, 3)
})

// Who: a tag that only the secret's holder can make.

test('a caller has one tag on all replicas with one secret, and another with another secret', async (t) => {
  const tagOf = async (env: { [name: string]: string }) => {
    const served = await serve(t, { env })
    await served.yes(await served.ask())
    return only(linesOf(served), 'principal')
  }
  const first = await tagOf({ STATE_SECRET: SECRET })
  assert.equal(await tagOf({ STATE_SECRET: SECRET, STATE_AUDIENCE: 'another-server' }), first)
  assert.equal(await tagOf({ STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: OTHER_SECRET }), first)
  assert.notEqual(await tagOf({ STATE_SECRET: OTHER_SECRET }), first)
})

test('a tag is no plain hash of the caller, so a list of names does not give it away', async (t) => {
  const served = await serve(t)
  await served.ask()
  const tag = String(only(linesOf(served), 'principal'))
  const guesses = [DEMO_USER.subject, principalParts(DEMO_USER), JSON.stringify(DEMO_USER)]
  for (const guess of guesses) {
    for (const encoding of ['base64url', 'hex'] as const) {
      for (const algorithm of ['sha1', 'sha256', 'sha512', 'md5']) {
        assert.notEqual(hash(algorithm, guess, encoding).slice(0, tag.length), tag)
      }
    }
  }
  assert.doesNotMatch(JSON.stringify(linesOf(served)), new RegExp(DEMO_USER.subject))
})

const decidedBy = (principal: Principal): Decided => {
  const [decision, reason, flow, tool] = ['asked', undefined, 'f', 't'] as const
  return { decision, reason, flow, tool, principal, arguments: 'd' }
}

test('two callers have two tags, also the same person at another client or issuer', () => {
  const lines: Json[] = []
  const write = trail(Buffer.from(SECRET), (line) => lines.push(line as Json))
  const people: [issuer: string, subject: string, client: string][] = [
    ['https://a.example', 'alice', ''],
    ['https://a.example', 'bob', ''],
    ['https://a.example', 'alice', 'client'],
    ['https://b.example', 'alice', ''],
    ['https://a.examplea', 'lice', ''],
    ['https://a.example', 'alicec', 'lient'],
    ['', 'https://a.example', 'alice'],
  ]
  for (const [issuer, subject, client] of people) {
    write(decidedBy({ issuer, subject, client, scopes: new Set() }))
  }
  assert.equal(new Set(lines.map((line) => line.principal)).size, people.length)
})

test('scopes are no part of who somebody is', () => {
  const lines: Json[] = []
  const write = trail(Buffer.from(SECRET), (line) => lines.push(line as Json))
  const alice = { issuer: 'i', subject: 'alice', client: 'c' }
  write(decidedBy({ ...alice, scopes: new Set() }))
  write(decidedBy({ ...alice, scopes: new Set(['releases:write']) }))
  only(lines, 'principal')
})

// What no line may hold.

/** Stands in every value that a client brings in {@link session}. */
const CANARY = 'cAnArY'

type Session = { readonly written: string; readonly states: string[] }

/** A server that writes its log as it does in production, and all that a bad client may do to it. */
async function session(t: TestContext, env: { [name: string]: string } = {}): Promise<Session> {
  let written = ''
  t.mock.method(process.stderr, 'write', (chunk: unknown) => {
    written += chunk
    return true
  })
  const clock = { now: EPOCH }
  let fate = 'well'
  const action = {
    faultOf: () => undefined,
    run: async () => {
      if (fate === 'break') throw new Error('the action broke')
      return fate === 'fail' ? `${CANARY} is what the program said last` : undefined
    },
  }
  const outputSchema = { type: 'object', properties: { n: { type: 'integer', maximum: 3 } } } as const
  const inputSchema = { type: 'object', properties: { n: { type: 'string' } } } as const
  const broken = plainTool(
    { name: 'broken', description: 'Breaks.', inputSchema, outputSchema },
    ({ arguments: { n } }) => ({
      content: [],
      structuredContent: { n: n ?? '' },
    }),
  )
  const { http } = await compose(
    { STATE_SECRET: SECRET, RATE_LIMIT_PER_MINUTE: '100', ...env },
    { now: () => clock.now, action, tools: [broken] },
  )
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp?query=${CANARY}`)
  const states: string[] = []

  const token: [string, string] = ['Authorization', `Bearer ${CANARY}.token.${CANARY}`]
  const args = { service: `${CANARY} service`, version: `${CANARY} version` }
  const schema = { properties: { service: { 'x-mcp-header': 'Service' } } }
  const call = async (given: Json, more: Json = {}, name = 'rollback_release') => {
    const { headers, body } = message('tools/call', { name, arguments: given, ...more })
    const own = name === 'broken' ? [] : paramHeaders(schema, given)
    const reply = await send(url, { headers: [...headers, ...own, token], body })
    const state = at(reply.body, 'result', 'requestState')
    if (typeof state === 'string') states.push(state)
    return stateOf(reply)
  }
  const content = { confirm: true, reason: `${CANARY} reason` }
  const yes = (requestState: string, given: Json = args) =>
    call(given, { requestState, inputResponses: answer(content) })

  await yes(await call(args))
  for (fate of ['fail', 'break']) await yes(await call(args))
  const state = await call(args)
  for (const answers of [
    answer({ confirm: CANARY }),
    answer({ ...content, reason: CANARY.repeat(100) }),
    answer(content, CANARY),
    { [CANARY]: CANARY },
  ]) {
    await call(args, { requestState: state, inputResponses: answers })
  }
  await call(args, { requestState: state, inputResponses: answer(content, 'decline') })
  await call(args, { requestState: state, inputResponses: answer({ confirm: false, reason: CANARY }) })
  await yes(state, { ...args, version: `${CANARY} other` })
  for (const forged of [`${state}A`, state.slice(0, -1), state.toUpperCase(), CANARY, `s1.${CANARY}`]) {
    await yes(forged)
  }
  clock.now += 300_000
  await yes(state)
  const scaling = { service: CANARY, replicas: 3, idempotency_key: `${CANARY} key` }
  await call(scaling, { requestState: state }, 'scale_service')
  for (const bad of [
    { ...args, service: { [CANARY]: CANARY } },
    { [CANARY]: CANARY },
    { ...args, version: '' },
  ]) {
    await call(bad)
  }
  await call(args, { requestState: 7, inputResponses: CANARY })
  await call({ n: CANARY }, {}, 'broken')
  const { headers, body } = message('tools/call', { name: 'rollback_release', arguments: args })
  const spoil = (name: string, value: string) =>
    headers.map(([n, v]): [string, string] => [n, n === name ? value : v])
  for (const spoilt of [
    { headers: spoil('Mcp-Name', CANARY), body },
    { headers: spoil('Mcp-Method', CANARY), body },
    { headers: spoil('MCP-Protocol-Version', CANARY), body },
    { headers: spoil('Content-Type', `text/${CANARY}`), body },
    { headers: [...headers, ['Mcp-Param-Service', CANARY]] as [string, string][], body },
    { headers: [...headers, ['Origin', `https://${CANARY}.example`]] as [string, string][], body },
    { headers, body: `{"${CANARY}": ${CANARY}` },
    { headers, body: { jsonrpc: '2.0', id: CANARY, method: 'tools/call', params: { name: CANARY } } },
    { headers, body: [CANARY] },
  ]) {
    await send(url, { ...spoilt, headers: [...spoilt.headers, token] })
  }
  await send(new URL(`/${CANARY}`, url), { headers, body })
  for (let i = 0; i < 100; i++) await call(args) // until it is too often

  await stop(http, 0)
  t.mock.restoreAll()
  return { written, states }
}

test('no line of the log holds a state, a token, an argument, a reason, an answer or an outcome', async (t) => {
  const { written, states } = await session(t)
  const lines = written.split('\n').filter((line) => line !== '')
  const kinds = lines.map((line) => Object.keys(JSON.parse(line)))
  for (const member of ['decision', 'outcome', 'failure']) {
    assert.ok(
      kinds.some((members) => members.includes(member)),
      `no line has ${member}`,
    )
  }
  const decisions = new Set(lines.map((line) => at(JSON.parse(line), 'decision')))
  for (const decision of ['asked', 'asked again', 'accepted', 'declined', 'refused', 'acted', 'failed']) {
    assert.ok(decisions.has(decision), decision)
  }
  assert.ok(written.includes('429'), 'no call was too many')
  const held = lines.filter((line) => line.toLowerCase().includes(CANARY.toLowerCase()))
  assert.deepEqual(held, [])
  assert.ok(states.length > 10, 'too few states')
  for (const state of states) {
    for (let start = 11; start + 24 <= state.length; start += 24) {
      assert.ok(!written.includes(state.slice(start, start + 24)), 'a part of a state')
    }
    assert.ok(!written.includes(state.slice(-20)), 'the end of a state')
  }
  for (const secret of [SECRET, DEMO_USER.subject, 'Bearer']) assert.ok(!written.includes(secret), secret)
})

test('with LOG=off neither requests nor decisions are written, and internal errors still are', async (t) => {
  const { written } = await session(t, { LOG: 'off' })
  const lines = written.split('\n').filter((line) => line !== '')
  assert.match(written, /the action broke/)
  for (const line of lines) assert.deepEqual(Object.keys(JSON.parse(line)), ['failure'])
  assert.ok(!written.includes(CANARY), 'a value of the client')
})

test('with LOG=off the start still says what whoever starts the server should know', async (t) => {
  const server = await startServer({ LOG: 'off' })
  t.after(() => server.process.kill('SIGKILL'))
  const asked = await callTool(server.url, 'rollback_release', ROLLBACK)
  const inputResponses = answer({ confirm: true })
  await callTool(server.url, 'rollback_release', ROLLBACK, { requestState: stateOf(asked), inputResponses })
  await server.stop()
  const said = server.stderr()
  for (const notice of [/^STATE_SECRET is not set/m, /^ROLLBACK_COMMAND is not set/m, /^State keys/m]) {
    assert.match(said, notice)
  }
  assert.doesNotMatch(said, /^\{/m)
})

test('each decision is one line of JSON on stderr, beside the line of its request', async (t) => {
  const server = await startServer({ STATE_SECRET: SECRET })
  t.after(() => server.process.kill('SIGKILL'))
  const asked = await callTool(server.url, 'rollback_release', ROLLBACK)
  const inputResponses = answer({ confirm: true })
  await callTool(server.url, 'rollback_release', ROLLBACK, { requestState: stateOf(asked), inputResponses })
  await server.stop()
  const lines = server
    .stderr()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): Json => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ decision, method }) => decision ?? method),
    ['tools/list', 'asked', 'tools/call', 'tools/list', 'accepted', 'acted', 'tools/call'],
  )
})
