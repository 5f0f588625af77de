import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { at, type Json, type Message, message, paramHeaders, type Reply, send } from '../client.ts'
import type { Values } from '../lib/action.ts'
import { SIMULATED } from '../lib/action.ts'
import { edge } from '../lib/edge.ts'
import { httpServer } from '../lib/http-server.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import { jsonLog } from '../lib/log.ts'
import { methodTable, toolsFeature } from '../lib/methods.ts'
import { memoryStore, type OutcomeStore } from '../lib/outcome-store.ts'
import { compileSchema } from '../lib/schema.ts'
import { signer } from '../lib/seal.ts'
import { singleUse } from '../lib/single-use.ts'
import { requestStates } from '../lib/state.ts'
import { compileTools, paramHeadersOf } from '../lib/tool-definition.ts'
import { scaleService } from '../lib/tools/scale-service.ts'
import { compose } from '../server.ts'
import {
  answer,
  assertRefused,
  EPOCH,
  type Options,
  REFUSED,
  resultOf,
  SECRET,
  type Served,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const SCALE = { service: 'checkout', replicas: 12, idempotency_key: 'deploy-17' }
const HOW = { tool: 'scale_service' }
const QUESTION = 'Scale checkout to 12 replicas? Estimated cost: $388.80 a month.'
const DONE = 'Scaled checkout to 12 replicas. Estimated cost: $388.80 a month.'
const CANCELLED = 'Scaling cancelled. Nothing changed.'
const PERFORMED = { service: 'checkout', replicas: 12, reason: '' }
const OTHER_ARGUMENTS = 'This idempotency key was used with other arguments. Use a new key.'
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const YES = answer({ confirm: true })
const NO = answer({}, 'decline')

const questionOf = (reply: Reply) =>
  at(reply.body, 'result', 'inputRequests', 'confirm', 'params', 'message')
const structuredOf = (reply: Reply) => at(reply.body, 'result', 'structuredContent')

/** The flow that a state belongs to: the one member that asking again has to keep. */
function flowOf(state: string): unknown {
  const bytes = Buffer.from(state.slice('s1.'.length), 'base64url')
  return JSON.parse(bytes.toString('utf8', 8, bytes.length - 32)).flow // between key id and MAC
}

type Scaling = Served & {
  /** A first call, with these arguments beside those of {@link SCALE}. */
  readonly scale: (args?: Json) => Promise<Reply>
  /** An answer to the state of a call with the same arguments. */
  readonly say: (state: string, inputResponses: Json, args?: Json) => Promise<Reply>
  /** Asks, and says yes. */
  readonly approved: (args?: Json) => Promise<Reply>
}

async function scaling(t: TestContext, options: Options = {}): Promise<Scaling> {
  const served = await serve(t, options)
  const scale = (args: Json = {}) => served.call({ ...SCALE, ...args }, {}, HOW)
  const say = (requestState: string, inputResponses: Json, args: Json = {}) =>
    served.call({ ...SCALE, ...args }, { requestState, inputResponses }, HOW)
  const approved = async (args: Json = {}) => say(stateOf(await scale(args)), YES, args)
  return { ...served, scale, say, approved }
}

/** A tool error with this text, which asks nothing; nothing was done. */
function assertToolError({ performed }: Served, reply: Reply, text: string, label?: string): void {
  const { _meta, ...result } = Object(resultOf(reply))
  assert.deepEqual(
    result,
    { resultType: 'complete', content: [{ type: 'text', text }], isError: true },
    label,
  )
  assert.deepEqual(performed, [], label)
}

/** A question with this text; nothing was done. @returns the state that it hands out. */
function assertAsked({ performed }: Served, reply: Reply, question = QUESTION, label?: string): string {
  assert.equal(questionOf(reply), question, label)
  assert.equal(at(reply.body, 'result', 'resultType'), 'input_required', label)
  assert.deepEqual(performed, [], label)
  return stateOf(reply)
}

// What it asks and says.

test('it asks with the estimate, acts on a yes, and reports the estimate that was approved', async (t) => {
  const served = await scaling(t)
  const state = assertAsked(served, await served.scale())
  const done = await served.say(state, YES)
  const structuredContent = {
    status: 'performed',
    service: 'checkout',
    replicas: 12,
    estimated_usd_per_month: 388.8,
  }
  const { _meta, ...result } = Object(resultOf(done))
  assert.deepEqual(result, {
    resultType: 'complete',
    content: [DONE, JSON.stringify(structuredContent)].map((text) => ({ type: 'text', text })),
    structuredContent,
  })
  assert.deepEqual(served.performed, [PERFORMED])
})

test('the form has one box to tick and nothing to fill in', async (t) => {
  const served = await scaling(t)
  const asked = await served.scale()
  const form = at(asked.body, 'result', 'inputRequests', 'confirm', 'params', 'requestedSchema')
  assert.deepEqual(Object.keys(Object(at(form, 'properties'))), ['confirm'])
  assert.deepEqual(at(form, 'required'), ['confirm'])
  assert.deepEqual(served.performed, [])
})

test('one replica is one replica', async (t) => {
  const served = await scaling(t)
  const state = assertAsked(
    served,
    await served.scale({ replicas: 1 }),
    'Scale checkout to 1 replica? Estimated cost: $32.40 a month.',
  )
  const done = await served.say(state, YES, { replicas: 1 })
  assert.equal(textOf(done), 'Scaled checkout to 1 replica. Estimated cost: $32.40 a month.')
  assert.deepEqual(served.performed, [{ ...PERFORMED, replicas: 1 }])
})

test('a no changes nothing, in text and data', async (t) => {
  for (const no of [NO, answer(undefined, 'cancel'), answer({ confirm: false })]) {
    const served = await scaling(t)
    const cancelled = await served.say(stateOf(await served.scale()), no)
    assert.equal(textOf(cancelled), CANCELLED)
    assert.equal(at(structuredOf(cancelled), 'status'), 'cancelled')
    assert.equal(at(cancelled.body, 'result', 'isError'), undefined)
    assert.deepEqual(served.performed, [])
  }
})

test('a yes without a state, or with one for other arguments, is a yes to nothing', async (t) => {
  const served = await scaling(t)
  const state = stateOf(await served.scale())
  assertAsked(served, await served.call(SCALE, { inputResponses: YES }, HOW))
  const others = [
    { replicas: 13 },
    { service: 'cart' },
    { idempotency_key: 'x' },
    { max_spend_usd: 400 },
    { dry_run: false },
  ]
  for (const other of others) assertToolError(served, await served.say(state, YES, other), REFUSED)
  assert.equal(textOf(await served.say(state, YES)), DONE)
})

test('a question about a service with invisible characters in its name shows them', async (t) => {
  const served = await scaling(t)
  const shown = 'Scale a\\u{202e}b to 12 replicas? Estimated cost: $388.80 a month.'
  assertAsked(served, await served.scale({ service: 'a\u202eb' }), shown)
})

test('the price of a replica is the operator’s, and only the whole cost is rounded', async (t) => {
  const costs: [string, number, string][] = [
    ['32', 12, '$384.00'],
    ['0', 12, '$0.00'],
    ['32.405', 12, '$388.86'],
    ['0.005', 1, '$0.01'],
    ['0.005', 3, '$0.02'],
    ['0.004', 1000, '$4.00'],
    ['999999.999999', 1000, '$1000000000.00'],
  ]
  for (const [REPLICA_USD_PER_MONTH, replicas, cost] of costs) {
    const served = await scaling(t, { env: { REPLICA_USD_PER_MONTH } })
    const count = replicas === 1 ? '1 replica' : `${replicas} replicas`
    const question = `Scale checkout to ${count}? Estimated cost: ${cost} a month.`
    assertAsked(served, await served.scale({ replicas }), question)
  }
})

test('what is no price stops the start with what one looks like', async () => {
  for (const REPLICA_USD_PER_MONTH of ['free', '-1', '1e3', '.5', '$5', '1,000', '1.0000001', 'Infinity']) {
    await assert.rejects(compose({ STATE_SECRET: SECRET, REPLICA_USD_PER_MONTH }), {
      message: 'REPLICA_USD_PER_MONTH must be a price in US dollars, such as 32.40.',
    })
  }
  for (const REPLICA_USD_PER_MONTH of ['', ' ']) {
    await assert.rejects(
      compose({ STATE_SECRET: SECRET, REPLICA_USD_PER_MONTH }),
      /^Error: REPLICA_USD_PER_MONTH is empty/,
    )
  }
})

// Dry runs and spending limits.

test('a dry run tells the estimate, asks nothing and needs nobody to ask', async (t) => {
  const served = await scaling(t)
  const how = { ...HOW, capabilities: {} }
  const estimate = await served.call({ ...SCALE, dry_run: true }, {}, how)
  assert.equal(
    textOf(estimate),
    'Scaling checkout to 12 replicas would cost an estimated $388.80 a month. Nothing changed.',
  )
  assert.deepEqual(structuredOf(estimate), {
    status: 'estimated',
    service: 'checkout',
    replicas: 12,
    estimated_usd_per_month: 388.8,
  })
  assert.ok(!estimate.text.includes('requestState'))
  assert.deepEqual(served.performed, [])

  const asked = await served.call({ ...SCALE, dry_run: false }, {}, how)
  assertRefused(asked, 400, -32021, at(asked.body, 'id'))
  assert.deepEqual(served.performed, [])
})

test('a dry run uses up no idempotency key, and tells the estimate whatever became of the key', async (t) => {
  const served = await scaling(t)
  const dry = { dry_run: true }
  assert.equal(at(structuredOf(await served.scale(dry)), 'status'), 'estimated')
  assert.equal(textOf(await served.approved()), DONE)
  assert.equal(at(structuredOf(await served.scale(dry)), 'status'), 'estimated')
  assert.deepEqual(served.performed, [PERFORMED])
})

test('an estimate above max_spend_usd is an error that names both, and asks nothing', async (t) => {
  const served = await scaling(t)
  const limits: [number, string][] = [
    [388.79, '$388.79'],
    [300, '$300.00'],
    [0.5, '$0.50'],
    [0, '$0.00'],
  ]
  for (const [max_spend_usd, limit] of limits) {
    assertToolError(
      served,
      await served.scale({ max_spend_usd }),
      `The estimated cost of $388.80 a month is above max_spend_usd, ${limit}. Nothing changed.`,
    )
    const blind = await served.call({ ...SCALE, max_spend_usd }, {}, { ...HOW, capabilities: {} })
    assert.match(String(textOf(blind)), /above max_spend_usd/, 'nobody is asked, so nobody is needed')
  }
})

test('an estimate that is exactly max_spend_usd, or below it, is asked about', async (t) => {
  const served = await scaling(t)
  for (const max_spend_usd of [388.8, 388.81, 1000, 999_999_999]) {
    assertAsked(served, await served.scale({ max_spend_usd }))
  }
  assert.equal(textOf(await served.approved({ max_spend_usd: 388.8 })), DONE)
})

test('a max_spend_usd that is no amount of money is an argument error', async (t) => {
  const served = await scaling(t)
  for (const max_spend_usd of [388.801, 500.005, 0.001, 1e-7]) {
    for (const dry_run of [true, false]) {
      const refused = await served.scale({ max_spend_usd, dry_run })
      const rule = 'max_spend_usd must have at most two decimals'
      assertToolError(served, refused, `Invalid arguments: ${rule}.`, String(max_spend_usd))
    }
  }
  for (const max_spend_usd of [-1, '388.80', true, null, 1e12]) {
    const refused = await served.scale({ max_spend_usd })
    assert.match(String(textOf(refused)), /^Invalid arguments: max_spend_usd /)
    assertToolError(served, refused, String(textOf(refused)))
  }
})

test('arguments that are missing, malformed or out of range are an error, and nothing is asked', async (t) => {
  const served = await scaling(t)
  const cases: [Json, string][] = [
    [{ replicas: 0 }, 'replicas'],
    [{ replicas: 1001 }, 'replicas'],
    [{ replicas: undefined }, 'replicas'],
    [{ service: '' }, 'service'],
    [{ service: '\u200b' }, 'service'],
    [{ idempotency_key: undefined }, 'idempotency_key'],
    [{ idempotency_key: '' }, 'idempotency_key'],
    [{ idempotency_key: 'k'.repeat(201) }, 'idempotency_key'],
    [{ idempotency_key: 7 }, 'idempotency_key'],
    [{ dry_run: 'true' }, 'dry_run'],
  ]
  for (const [args, name] of cases) {
    const refused = await served.scale(args)
    assert.match(String(textOf(refused)), new RegExp(`^Invalid arguments: .*${name}`), JSON.stringify(args))
    assertToolError(served, refused, String(textOf(refused)))
  }
  for (const replicas of [1, 1000]) {
    const asked = await served.scale({ replicas })
    assert.equal(at(asked.body, 'result', 'resultType'), 'input_required')
  }
})

test('values that a command could not take are an argument error, before anybody is asked', async (t) => {
  const faultOf = ({ service }: Values) =>
    service === 'checkout' ? undefined : `service must not be ${service}`
  const served = await scaling(t, { action: { faultOf } })
  const faults: [string, string][] = [
    ['-rf', 'service must not be -rf'],
    ['--context=prod', 'service must not be --context=prod'],
  ]
  for (const [service, fault] of faults) {
    for (const more of [{}, { dry_run: true }]) {
      const refused = await served.scale({ service, ...more })
      assertToolError(served, refused, `Invalid arguments: ${fault}.`)
    }
  }
  assertAsked(served, await served.scale())
})

// A price that moves between the question and the answer.

/** Two instances with the same store and clock, and other prices. */
async function twoPrices(t: TestContext, before: string, after: string) {
  const clock = { now: EPOCH }
  const store = memoryStore(() => clock.now)
  const priced = (price: string) => scaling(t, { clock, store, env: { REPLICA_USD_PER_MONTH: price } })
  return [await priced(before), await priced(after)] as const
}

test('a price that rose is asked about again, with what changed; only a yes to the new one acts', async (t) => {
  const [old, risen] = await twoPrices(t, '32.40', '33')
  const now = 'Scale checkout to 12 replicas? Estimated cost: $396.00 a month.'
  const why = `The estimate rose from $388.80 to $396.00 since you were asked. ${now}`
  const first = assertAsked(old, await old.scale())
  const second = assertAsked(risen, await risen.say(first, YES), why)
  assert.equal(flowOf(second), flowOf(first))
  assertAsked(risen, await risen.say(first, YES), why, 'the first yes covers no more than before')
  assertAsked(risen, await risen.say(second, {}), now, 'it was said once why')

  const done = await risen.say(second, YES)
  assert.equal(textOf(done), 'Scaled checkout to 12 replicas. Estimated cost: $396.00 a month.')
  assert.equal(at(structuredOf(done), 'estimated_usd_per_month'), 396)
  assert.equal(textOf(await old.say(first, YES)), textOf(done), 'one flow, one act')
  assert.deepEqual([old.performed, risen.performed], [[], [PERFORMED]])
})

test('a price that rises by one cent is a price that rose, and one that rises again is asked about again', async (t) => {
  const [old, risen] = await twoPrices(t, '32.40', '32.4008')
  const asked = await risen.say(assertAsked(old, await old.scale()), YES)
  assert.match(String(questionOf(asked)), /^The estimate rose from \$388\.80 to \$388\.81 /)
  const dearest = await scaling(t, { env: { REPLICA_USD_PER_MONTH: '40' } })
  const again = await dearest.say(stateOf(asked), YES)
  assert.match(String(questionOf(again)), /^The estimate rose from \$388\.81 to \$480\.00 /)
  assert.deepEqual([old.performed, risen.performed, dearest.performed], [[], [], []])
})

test('a no is final also when the price has risen: nobody is asked again', async (t) => {
  const [old, risen] = await twoPrices(t, '32.40', '33')
  const state = assertAsked(old, await old.scale())
  assert.equal(textOf(await risen.say(state, NO)), CANCELLED)
  assert.equal(textOf(await old.say(state, YES)), CANCELLED)
  assert.deepEqual([old.performed, risen.performed], [[], []])
})

test('a price that fell or stayed is covered by the yes; the estimate that was approved is reported', async (t) => {
  for (const price of ['32.40', '32.400416', '32.39', '1', '0']) {
    const [old, now] = await twoPrices(t, '32.40', price)
    const done = await now.say(assertAsked(old, await old.scale()), YES)
    assert.equal(textOf(done), DONE, price)
    assert.equal(at(structuredOf(done), 'estimated_usd_per_month'), 388.8, price)
    assert.deepEqual(now.performed, [PERFORMED], price)
  }
})

test('a price that rose above max_spend_usd is an error; when it falls again the yes still counts', async (t) => {
  const [old, risen] = await twoPrices(t, '32.40', '33')
  const limit = { max_spend_usd: 390 }
  const state = assertAsked(old, await old.scale(limit))
  const error = 'The estimated cost of $396.00 a month is above max_spend_usd, $390.00. Nothing changed.'
  assertToolError(risen, await risen.say(state, YES, limit), error)
  assert.equal(textOf(await old.say(state, YES, limit)), DONE)
  assert.deepEqual([old.performed, risen.performed], [[PERFORMED], []])
})

test('asking about a new price does not move the flow’s deadline', async (t) => {
  const clock = { now: EPOCH }
  const store = memoryStore(() => clock.now)
  const priced = (price: string) => scaling(t, { clock, store, env: { REPLICA_USD_PER_MONTH: price } })
  const first = await priced('30')
  let state = assertAsked(
    first,
    await first.scale(),
    'Scale checkout to 12 replicas? Estimated cost: $360.00 a month.',
  )
  for (const price of ['31', '32', '33']) {
    clock.now += 4 * MINUTE
    state = stateOf(await (await priced(price)).say(state, YES))
  }
  clock.now = EPOCH + 15 * MINUTE
  const last = await priced('33')
  assertToolError(last, await last.say(state, YES), REFUSED)
})

// Idempotency keys.

test('an idempotency key is no approval: its first call asks, and so does every one until there is a yes', async (t) => {
  const served = await scaling(t)
  const states = [assertAsked(served, await served.scale()), assertAsked(served, await served.scale())]
  assert.equal(textOf(await served.say(states[0] ?? '', NO)), CANCELLED)
  assertAsked(served, await served.scale())
  assert.equal(textOf(await served.say(states[1] ?? '', YES)), DONE)
})

test('a repeat of a performed call gets its outcome whole, asks nobody and does nothing', async (t) => {
  const served = await scaling(t)
  const done = await served.approved()
  const repeats = [await served.scale(), await served.call(SCALE, {}, { ...HOW, capabilities: {} })]
  for (const repeat of repeats) assert.deepEqual(resultOf(repeat), resultOf(done))
  assert.deepEqual(served.performed, [PERFORMED])
})

test('a repeat gets its outcome also when the price has moved since, whichever way', async (t) => {
  for (const price of ['40', '20']) {
    const [old, now] = await twoPrices(t, '32.40', price)
    const limit = { max_spend_usd: 400 }
    assert.equal(textOf(await old.approved(limit)), DONE)
    assert.equal(textOf(await now.scale(limit)), DONE)
    assert.deepEqual([old.performed, now.performed], [[PERFORMED], []])
  }
})

test('the key of a performed call with any other argument is an error, and asks nothing', async (t) => {
  const served = await scaling(t)
  await served.approved({ max_spend_usd: 400 })
  const performed = served.performed.splice(0)
  const others = [
    { replicas: 13, max_spend_usd: 400 },
    { service: 'cart', max_spend_usd: 400 },
    { max_spend_usd: 401 },
    {},
  ]
  for (const other of others) assertToolError(served, await served.scale(other), OTHER_ARGUMENTS)
  assert.deepEqual(performed, [PERFORMED])
  assertAsked(
    served,
    await served.scale({ idempotency_key: 'deploy-18', replicas: 13 }),
    QUESTION.replace('12', '13').replace('388.80', '421.20'),
  )
})

test('two questions with one key, both answered yes, are one act', async (t) => {
  const served = await scaling(t)
  const states = [stateOf(await served.scale()), stateOf(await served.scale())]
  assert.notEqual(flowOf(states[0] ?? ''), flowOf(states[1] ?? ''))
  const replies = await Promise.all([...states, ...states].map((state) => served.say(state, YES)))
  assert.deepEqual(replies.map(textOf), [DONE, DONE, DONE, DONE])
  assert.deepEqual(served.performed, [PERFORMED])
})

test('of two questions with one key about other things, both answered yes, the first acts and the second is an error', async (t) => {
  const served = await scaling(t)
  const [twelve, six] = [stateOf(await served.scale()), stateOf(await served.scale({ replicas: 6 }))]
  assert.equal(textOf(await served.say(twelve, YES)), DONE)
  const performed = served.performed.splice(0)
  assertToolError(served, await served.say(six, YES, { replicas: 6 }), OTHER_ARGUMENTS)
  assert.deepEqual(performed, [PERFORMED])
})

test('a failed action is an error without data; its flow is over, and its key asks again', async (t) => {
  let works = false
  const failure = 'scale ended with status 1. Its last line: \u001b[31mno quota'
  const run = async () => (works ? undefined : failure)
  const served = await scaling(t, { action: { run } })
  const state = assertAsked(served, await served.scale())
  const text =
    'Scaling checkout to 12 replicas failed: scale ended with status 1. Its last line: \\u{1b}[31mno quota'
  assertToolError(served, await served.say(state, YES), text)
  works = true
  assertToolError(served, await served.say(state, YES), text, 'the outcome of that yes')
  const again = assertAsked(served, await served.scale())
  assert.equal(textOf(await served.say(again, YES)), DONE)
  assert.equal(textOf(await served.scale()), DONE)
  assert.deepEqual(served.performed, [PERFORMED])
})

test('a key is kept for 24 hours; after that the same call asks again', async (t) => {
  const clock = { now: EPOCH }
  const served = await scaling(t, { clock })
  assert.equal(textOf(await served.approved()), DONE)
  clock.now = EPOCH + DAY - 1
  assert.equal(textOf(await served.scale()), DONE)
  assert.deepEqual(served.performed.splice(0), [PERFORMED])
  clock.now = EPOCH + DAY
  const state = assertAsked(served, await served.scale())
  assert.equal(textOf(await served.say(state, YES)), DONE)
  assert.deepEqual(served.performed, [PERFORMED])
})

test('a key means nothing to another person, and nothing to the same one at another client', async (t) => {
  const { call, scaled } = await serveCallers(t)
  const callers = ['user-1 laptop', 'user-2 laptop', 'user-1 phone', 'user-1l aptop']
  for (const caller of callers) {
    const asked = await call(caller)
    assert.equal(questionOf(asked), QUESTION, caller)
    assert.equal(textOf(await call(caller, { requestState: stateOf(asked), inputResponses: YES })), DONE)
  }
  assert.deepEqual(scaled, callers)
  for (const caller of callers) assert.equal(textOf(await call(caller)), DONE)
  assert.deepEqual(scaled, callers)
})

/** A server whose callers are what one header says, as if authentication had found it out. */
async function serveCallers(t: TestContext) {
  const scaled: string[] = []
  const now = () => EPOCH
  const single = singleUse(memoryStore(now), MINUTE, now, new AbortController().signal)
  const action = {
    ...SIMULATED,
    run: async (_: object, __: string, { subject, client }: { subject: string; client: string }) => {
      scaled.push(`${subject} ${client}`)
      return undefined
    },
  }
  const tools = compileTools([scaleService(action, () => 32_400_000, single, now)])
  const states = requestStates(signer([Buffer.from(SECRET)]), { audience: 'a', ttlMs: 5 * MINUTE, now })
  const answer = edge({
    methods: methodTable({ name: 'a', version: '1' }, '', [
      toolsFeature(tools, { states, permits: [], singleUse: single }),
    ]),
    identity: {
      authenticate: (headers) => {
        const [subject = '', client = ''] = headers.get('x-caller')?.[0]?.split(' ') ?? []
        return { issuer: 'https://issuer.example', subject, client, scopes: new Set() }
      },
      authorize: () => {},
      documents: new Map(),
      audience: undefined,
    },
    rules: { loopback: true, allowedOrigins: undefined, allowedHosts: undefined },
    documents: new Map(),
    paramHeaders: paramHeadersOf(tools),
    maxBodyBytes: 10_000,
  })
  const http = httpServer(answer, jsonLog(false))
  t.after(() => stop(http, 0))
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  const inputSchema = tools.get('scale_service')?.definition.inputSchema
  const call = (caller: string, retry: Json = {}) => {
    const { headers, body } = message('tools/call', { name: 'scale_service', arguments: SCALE, ...retry })
    const mirrored = paramHeaders(inputSchema, SCALE)
    return send(url, { headers: [...headers, ...mirrored, ['X-Caller', caller]], body })
  }
  return { call, scaled }
}

// Once only.

test('an approval counts once, on whatever instance and however often it is sent', async (t) => {
  const [one, other] = await twoPrices(t, '32.40', '32.40')
  const state = assertAsked(one, await one.scale())
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? one : other).say(state, YES)),
  )
  assert.deepEqual(new Set(replies.map(textOf)), new Set([DONE]))
  assert.equal(one.performed.length + other.performed.length, 1)
})

test('a state that has expired since it was used tells what was done; one that was not is refused', async (t) => {
  const clock = { now: EPOCH }
  const served = await scaling(t, { clock })
  const [used, unused] = [
    stateOf(await served.scale()),
    stateOf(await served.scale({ idempotency_key: 'other' })),
  ]
  assert.equal(textOf(await served.say(used, YES)), DONE)
  const performed = served.performed.splice(0)
  clock.now += 5 * MINUTE
  assert.equal(textOf(await served.say(used, YES)), DONE)
  assertToolError(served, await served.say(unused, YES, { idempotency_key: 'other' }), REFUSED)
  assert.deepEqual(performed, [PERFORMED])
})

test('a store that fails is 503 at every step of a call, and nothing is done; then the yes counts', async (t) => {
  const clock = { now: EPOCH }
  const memory = memoryStore(() => clock.now)
  let steps = Number.POSITIVE_INFINITY
  const step = () => {
    steps -= 1
    if (steps < 0) throw new Error('ECONNREFUSED')
  }
  const store: OutcomeStore = {
    ...memory,
    claim: async (...entry) => {
      step()
      return memory.claim(...entry)
    },
    read: async (key) => {
      step()
      return memory.read(key)
    },
  }
  const served = await scaling(t, { clock, store })
  const state = assertAsked(served, await served.scale())
  let refusals = 0
  for (let reached = 0; served.performed.length === 0; reached += 1) {
    steps = reached
    const reply = await served.say(state, YES)
    if (served.performed.length > 0) break
    assertRefused(reply, 503, -32603, at(reply.body, 'id'), `step ${reached}`)
    refusals += 1
  }
  assert.equal(refusals, 4, 'flow looked up, key looked up, flow claimed, key claimed')
  steps = Number.POSITIVE_INFINITY
  assert.equal(textOf(await served.say(state, YES)), DONE)
  assert.deepEqual(served.performed, [PERFORMED])
})

// What it promises about itself.

test('it is listed after rollback_release, with hints that it changes things and what it answers', async (t) => {
  const { url, performed } = await serve(t)
  const list = at((await send(url, message('tools/list'))).body, 'result', 'tools') as Json[]
  assert.deepEqual(
    list.map(({ name }) => name),
    ['rollback_release', 'scale_service'],
  )
  const { inputSchema, outputSchema, annotations } = Object(list[1])
  assert.deepEqual(inputSchema.required, ['service', 'replicas', 'idempotency_key'])
  const types = Object.entries<Json>(inputSchema.properties).map(([name, { type }]) => [name, type])
  assert.deepEqual(types, [
    ['service', 'string'],
    ['replicas', 'integer'],
    ['idempotency_key', 'string'],
    ['max_spend_usd', 'number'],
    ['dry_run', 'boolean'],
  ])
  const { service, replicas } = inputSchema.properties
  assert.deepEqual([service['x-mcp-header'], replicas['x-mcp-header']], ['Service', 'Replicas'])
  assert.deepEqual([replicas.minimum, replicas.maximum], [1, 1000])
  assert.deepEqual([annotations.readOnlyHint, annotations.destructiveHint], [false, true])
  assert.equal(outputSchema.type, 'object')
  assert.deepEqual(performed, [])
})

test('structured content is what the outputSchema promises, repeated as text, and absent from errors', async (t) => {
  const served = await scaling(t)
  const list = at((await send(served.url, message('tools/list'))).body, 'result', 'tools', '1')
  const { check } = compileSchema(Object(at(list, 'outputSchema')), 'outputSchema')
  assert.notEqual(check({ status: 'performed' }), undefined, 'the schema can refuse')
  const cancelled = await served.say(stateOf(await served.scale()), NO)
  const results: [string, Reply][] = [
    ['estimated', await served.scale({ dry_run: true })],
    ['cancelled', cancelled],
    ['performed', await served.approved()],
    ['performed', await served.scale()],
  ]
  for (const [status, reply] of results) {
    const structured = structuredOf(reply)
    assert.equal(check(structured), undefined, status)
    assert.equal(at(structured, 'status'), status)
    const { content } = Object(resultOf(reply))
    assert.deepEqual([content.length, content[1].text], [2, JSON.stringify(structured)])
  }
  for (const error of [{ replicas: 13 }, { idempotency_key: '2', max_spend_usd: 1 }, { dry_run: 1 }]) {
    const reply = await served.scale(error)
    assert.deepEqual([at(reply.body, 'result', 'isError'), structuredOf(reply)], [true, undefined])
  }
  assert.deepEqual(served.performed, [PERFORMED])
})

test('service and replicas are mirrored in headers, which must say the same number in any decimal form', async (t) => {
  const served = await scaling(t)
  const withReplicas = (value: string | undefined) => ({
    ...HOW,
    edit: ({ headers, body }: Message): Message => {
      const others = headers.filter(([name]) => name !== 'Mcp-Param-Replicas')
      return { headers: value === undefined ? others : [...others, ['Mcp-Param-Replicas', value]], body }
    },
  })
  for (const value of ['12', '12.0', '12.000', '012']) {
    assertAsked(served, await served.call(SCALE, {}, withReplicas(value)), QUESTION, value)
  }
  for (const value of [undefined, '13', '12.5', '1.2e1', '0xc', ' ', 'twelve', '-12', '12,0']) {
    const refused = await served.call(SCALE, {}, withReplicas(value))
    const label = String(value)
    assert.match(assertRefused(refused, 400, -32020, at(refused.body, 'id'), label), /Mcp-Param-Replicas/)
    assert.deepEqual(served.performed, [], label)
  }
  const edit = ({ headers, body }: Message): Message => {
    return { headers: headers.filter(([name]) => name !== 'Mcp-Param-Service'), body }
  }
  const refused = await served.call(SCALE, {}, { ...HOW, edit })
  assert.match(assertRefused(refused, 400, -32020, at(refused.body, 'id')), /Mcp-Param-Service/)
  assert.deepEqual(served.performed, [])
})
