import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, type Json, message, type Reply, send } from '../client.ts'
import * as gateModule from '../lib/gate.ts'
import { type Approval, type GatedTool, gatedTool } from '../lib/gate.ts'
import { DEMO_USER } from '../lib/principal.ts'
import { signer } from '../lib/seal.ts'
import { plainTool, type Tool, toolResult } from '../lib/tool.ts'
import {
  answer,
  assertRefused,
  EPOCH,
  errorOf,
  REFUSED,
  ROLLBACK,
  resultOf,
  SECRET,
  type Served,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const YES = answer({ confirm: true })
const NAME_FORM = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Who are you?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
}
const INVALID_STATE = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
}

/** What a handler without a gate was called with. */
type Seen = { flow: boolean; data: unknown; name: unknown }

/** Asks for a name, without a gate, and finds in the state what it knew when it asked. */
function greet(seen: Seen[], data: Json[string] = { visits: 7 }): Tool {
  const text = { type: 'string' }
  const inputSchema = { type: 'object', properties: { service: text, version: text } }
  return plainTool({ name: 'greet', description: 'Greets by name.', inputSchema }, ({ flow, answers }) => {
    const name = at(answers, 'name', 'content', 'name')
    seen.push({ flow: flow !== undefined, data: flow?.data, name })
    if (flow === undefined || typeof name !== 'string') {
      return { inputRequests: { name: NAME_FORM }, data: data as null }
    }
    return toolResult({ text: `Hello ${name}, visit ${at(flow.data, 'visits')}.` })
  })
}

/** Never asks. */
function ping(seen: unknown[]): Tool {
  const definition = { name: 'ping', description: 'Says pong.', inputSchema: { type: 'object' } }
  return plainTool(definition, ({ flow, answers }) => {
    seen.push([flow, answers])
    return toolResult({ text: 'pong' })
  })
}

/** Asks for what it is told to ask, however wrong that is. */
function asks(asked: unknown): Tool {
  const definition = { name: 'asks', description: 'Asks for anything.', inputSchema: { type: 'object' } }
  return plainTool(definition, () => asked as { inputRequests: { [key: string]: typeof NAME_FORM } })
}

const named = (name: unknown) => ({ name: { action: 'accept', content: { name } } })
const asObject = ({ body }: Reply) => Object(body)

function retry(
  { call }: Served,
  tool: string,
  requestState: unknown,
  inputResponses: Json,
  args: Json = {},
) {
  return call(args, { requestState, inputResponses }, { tool })
}

// Handlers that ask without a gate.

test('a handler that asks is called again with the answer and with what it kept', async (t) => {
  const seen: Seen[] = []
  const served = await serve(t, { tools: [greet(seen)] })
  const asked = await served.call({}, {}, { tool: 'greet' })
  const { _meta, requestState, ...result } = Object(resultOf(asked))
  assert.deepEqual(result, { resultType: 'input_required', inputRequests: { name: NAME_FORM } })

  const done = await retry(served, 'greet', requestState, named('Ada'))
  assert.equal(textOf(done), 'Hello Ada, visit 7.')
  assert.deepEqual(seen, [
    { flow: false, data: undefined, name: undefined },
    { flow: true, data: { visits: 7 }, name: 'Ada' },
  ])
})

test('a handler may ask again, with a fresh state that has an expiry of its own', async (t) => {
  const served = await serve(t, { tools: [greet([])] })
  const first = await served.ask({}, { tool: 'greet' })
  served.clock.now = EPOCH + 299_999
  const again = stateOf(await retry(served, 'greet', first, { name: { action: 'cancel' } }))
  assert.notEqual(again, first)
  served.clock.now = EPOCH + 599_998
  assert.equal(textOf(await retry(served, 'greet', again, named('Ada'))), 'Hello Ada, visit 7.')
  assert.deepEqual(errorOf(await retry(served, 'greet', first, named('Ada'))), INVALID_STATE)
})

test('a handler of two questions keeps the first answer in its state, where no retry can change it', async (t) => {
  const colour = { ...NAME_FORM, params: { ...NAME_FORM.params, message: 'Which colour?' } }
  const definition = { name: 'paint', description: 'Paints a name.', inputSchema: { type: 'object' } }
  const paint = plainTool(definition, ({ flow, answers }) => {
    const [name, shade] = ['name', 'colour'].map((key) => at(answers, key, 'content', 'name'))
    if (typeof flow?.data === 'string') return toolResult({ text: `${flow.data} in ${shade}` })
    if (flow === undefined) return { inputRequests: { name: NAME_FORM } }
    return { inputRequests: { colour }, data: String(name) }
  })
  const served = await serve(t, { tools: [paint] })
  const first = await served.ask({}, { tool: 'paint' })
  const second = await retry(served, 'paint', first, named('Ada'))
  assert.deepEqual(at(second.body, 'result', 'inputRequests'), { colour })
  const answers = { ...named('Eve'), colour: { action: 'accept', content: { name: 'blue' } } }
  assert.equal(textOf(await retry(served, 'paint', stateOf(second), answers)), 'Ada in blue')
  assert.deepEqual(at((await retry(served, 'paint', first, answers)).body, 'result', 'inputRequests'), {
    colour,
  })
})

test('what a handler kept stays plain data, whatever its members are called', async (t) => {
  const data = JSON.parse(
    '{"__proto__":{"visits":1},"constructor":{"x":[null]},"text":"\\u202e é 😀","n":-0.5}',
  )
  const seen: Seen[] = []
  const served = await serve(t, { tools: [greet(seen, data)] })
  const state = await served.ask({}, { tool: 'greet' })
  assert.equal(textOf(await retry(served, 'greet', state, named('Ada'))), 'Hello Ada, visit undefined.')
  assert.deepEqual(seen.at(-1)?.data, data)
  assert.equal(Object.hasOwn(Object(seen.at(-1)?.data), '__proto__'), true)
})

test('a handler is told that no state came, so that it need not trust an answer to nothing', async (t) => {
  const seen: Seen[] = []
  const served = await serve(t, { tools: [greet(seen)] })
  const asked = await served.call({}, { inputResponses: named('Eve') }, { tool: 'greet' })
  assert.equal(at(asked.body, 'result', 'resultType'), 'input_required')
  assert.deepEqual(seen, [{ flow: false, data: undefined, name: 'Eve' }])
})

test('a state that a handler makes up itself is not sent: the boundary seals its own', async (t) => {
  const asked = { inputRequests: { name: NAME_FORM }, requestState: 'handmade', resultType: 'complete' }
  const served = await serve(t, { tools: [asks(asked)] })
  const reply = await served.call({}, {}, { tool: 'asks' })
  assert.equal(at(reply.body, 'result', 'resultType'), 'input_required')
  assert.match(stateOf(reply), /^s1\./)
  assert.doesNotMatch(reply.text, /handmade/)
})

// A refused state without a gate.

test('a bad state stops a call before its handler, whether or not that ever asks', async (t) => {
  const [seen, pinged]: [Seen[], unknown[]] = [[], []]
  const served = await serve(t, { tools: [greet(seen), ping(pinged)] })
  const seal = signer([Buffer.from(SECRET)])
  const state = await served.ask({}, { tool: 'greet' })
  const calls = seen.length
  const hostile = [
    '',
    'x',
    `${state}-TAMPERED`,
    state.slice(0, -1),
    state.replace('s1.', 's2.'),
    's1.'.repeat(5000),
    seal.seal('{}'),
    await served.ask(),
    await served.ask({ version: 'v1' }, { tool: 'greet' }),
  ]
  seen.length = calls
  for (const tool of ['greet', 'ping']) {
    for (const requestState of hostile) {
      const refused = await retry(served, tool, requestState, named('Eve'))
      assert.equal(refused.status, 200)
      const { id, ...rest } = asObject(refused)
      assert.deepEqual(rest, { jsonrpc: '2.0', error: INVALID_STATE })
      assert.match(String(served.lines.at(-1)?.outcome), /^state refused/)
    }
  }
  assert.deepEqual(errorOf(await retry(served, 'ping', state, {})), INVALID_STATE)
  served.clock.now = EPOCH + 300_000
  assert.deepEqual(errorOf(await retry(served, 'greet', state, named('Ada'))), INVALID_STATE)
  assert.deepEqual([seen.length, pinged, served.performed], [calls, [], []])

  served.clock.now = EPOCH
  assert.equal(textOf(await retry(served, 'greet', state, named('Ada'))), 'Hello Ada, visit 7.')
  assert.equal(textOf(await served.call({}, {}, { tool: 'ping' })), 'pong')
})

test('the state of a handler without a gate opens no gate, and the state of a gate no such handler', async (t) => {
  const seen: Seen[] = []
  const served = await serve(t, { tools: [greet(seen)] })
  const ofGreet = await served.ask(ROLLBACK, { tool: 'greet' })
  const ofGate = await served.ask(ROLLBACK)
  const calls = seen.length

  assert.equal(textOf(await retry(served, 'rollback_release', ofGreet, YES, ROLLBACK)), REFUSED)
  assert.equal(served.lines.at(-1)?.outcome, 'state refused: target')
  assert.deepEqual(errorOf(await retry(served, 'greet', ofGate, named('Eve'), ROLLBACK)), INVALID_STATE)
  assert.equal(served.lines.at(-1)?.outcome, 'state refused: target')
  assert.deepEqual([seen.length, served.performed], [calls, []])

  assert.equal(textOf(await retry(served, 'greet', ofGreet, named('Ada'), ROLLBACK)), 'Hello Ada, visit 7.')
  await retry(served, 'rollback_release', ofGate, YES, ROLLBACK)
  assert.equal(served.performed.length, 1)
})

test('what a handler keeps in its state can’t make it the state of a gate', async (t) => {
  const forged = { target: 'rollback_release', flow: 'x', question: 'x', confirm: true, v: 1 }
  const served = await serve(t, { tools: [greet([], forged)] })
  const state = await served.ask(ROLLBACK, { tool: 'greet' })
  assert.equal(textOf(await retry(served, 'rollback_release', state, YES, ROLLBACK)), REFUSED)
  assert.deepEqual(served.performed, [])
})

test('a state on a method that never asks is ignored', async (t) => {
  const { url, performed } = await serve(t)
  for (const method of ['tools/list', 'server/discover']) {
    const plain = await send(url, message(method))
    for (const requestState of ['x', '', 7, null, {}]) {
      const ignored = await send(url, message(method, { requestState, inputResponses: YES }))
      assert.deepEqual(resultOf(ignored), resultOf(plain))
    }
  }
  assert.deepEqual(performed, [])
})

// What a client must be able to answer.

test('a question is asked only of a client that declared just that, to the mode', async (t) => {
  const elicit = (params: Json) => ({ method: 'elicitation/create', params })
  const url = elicit({ mode: 'url', message: 'Sign in.', url: 'https://example.com/' })
  const sample = (params: Json) => ({ method: 'sampling/createMessage', params })
  const form = elicit({ message: 'Name?', requestedSchema: NAME_FORM.params.requestedSchema })
  const lacking = {
    elicitation: [{}, { elicitation: { url: {} } }, { sampling: {}, roots: {} }],
    url: [{}, { elicitation: {} }, { elicitation: { form: {} } }],
    sampling: [{}, { elicitation: {} }],
    tools: [{}, { sampling: {} }, { sampling: { context: {} } }],
    roots: [{}, { elicitation: {}, sampling: {} }],
  }
  const cases: [asked: unknown, needed: Json, lacking: Json[]][] = [
    [NAME_FORM, { elicitation: { form: {} } }, lacking.elicitation],
    [form, { elicitation: { form: {} } }, lacking.elicitation],
    [url, { elicitation: { url: {} } }, lacking.url],
    [sample({ messages: [] }), { sampling: {} }, lacking.sampling],
    [sample({ messages: [], tools: [] }), { sampling: { tools: {} } }, lacking.tools],
    [{ method: 'roots/list' }, { roots: {} }, lacking.roots],
  ]
  for (const [asked, needed, insufficient] of cases) {
    const served = await serve(t, { tools: [asks({ inputRequests: { one: asked } })] })
    const call = (capabilities: Json) => served.call({}, {}, { tool: 'asks', capabilities })
    for (const capabilities of insufficient) {
      const refused = await call(capabilities)
      const [name = ''] = Object.keys(needed)
      assert.equal(
        assertRefused(refused, 400, -32021, asObject(refused).id),
        `This tool needs a client that supports ${name}.`,
      )
      assert.deepEqual(at(errorOf(refused), 'data'), { requiredCapabilities: needed })
      assert.doesNotMatch(refused.text, /requestState/)
    }
    for (const capabilities of [needed, { ...needed, roots: {}, experimental: {} }]) {
      assert.deepEqual(at((await call(capabilities)).body, 'result', 'inputRequests'), { one: asked })
    }
  }
})

test('of several questions each needs its capability', async (t) => {
  const inputRequests = { name: NAME_FORM, roots: { method: 'roots/list' } }
  const served = await serve(t, { tools: [asks({ inputRequests })] })
  for (const [capabilities, missing] of [
    [{ roots: {} }, { elicitation: { form: {} } }],
    [{ elicitation: {} }, { roots: {} }],
  ] as const) {
    const refused = await served.call({}, {}, { tool: 'asks', capabilities })
    assert.deepEqual(at(errorOf(refused), 'data'), { requiredCapabilities: missing })
  }
  const capabilities = { roots: {}, elicitation: {} }
  const asked = await served.call({}, {}, { tool: 'asks', capabilities })
  assert.deepEqual(at(asked.body, 'result', 'inputRequests'), inputRequests)
})

test('each question stands under a key of its own in the text that is sent', async (t) => {
  const inputRequests = { name: NAME_FORM, again: NAME_FORM, roots: { method: 'roots/list' } }
  const served = await serve(t, { tools: [asks({ inputRequests })] })
  const capabilities = { roots: {}, elicitation: {} }
  const { text } = await served.call({}, {}, { tool: 'asks', capabilities })
  const keys = [...text.matchAll(/"(\w+)":\{"method":/g)].map(([, key]) => key)
  assert.deepEqual(keys, Object.keys(inputRequests))
})

test('a handler that asks nothing, or what no client knows, hands out nothing', async (t) => {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }
  for (const inputRequests of [
    {},
    { one: { method: 'tools/call' } },
    { one: { method: 'Elicitation/create' } },
    { one: { method: '' } },
    { one: NAME_FORM, two: { method: 'prompts/get' } },
  ]) {
    const served = await serve(t, { tools: [asks({ inputRequests, data: 'kept' })] })
    const failed = await served.call({}, {}, { tool: 'asks', capabilities })
    assert.equal(assertRefused(failed, 500, -32603, asObject(failed).id), 'Internal error')
    assert.doesNotMatch(failed.text, /requestState/)
    assert.equal(served.failures.length, 1)
  }
})

test('data that is too much for a state is an internal error, and nothing is handed out', async (t) => {
  const data = 'x'.repeat(8000)
  const served = await serve(t, { tools: [asks({ inputRequests: { name: NAME_FORM }, data })] })
  const failed = await served.call({}, {}, { tool: 'asks' })
  assert.equal(assertRefused(failed, 500, -32603, asObject(failed).id), 'Internal error')
  assert.doesNotMatch(failed.text, /xxx/)
  assert.equal(served.failures.length, 1)

  const half = { inputRequests: { name: NAME_FORM }, data: data.slice(4000) }
  const roomy = await serve(t, { tools: [asks(half)] })
  assert.match(await roomy.ask({}, { tool: 'asks' }), /^s1\./)
})

test('a handler that throws hands out nothing and says nothing of why', async (t) => {
  const definition = { name: 'throws', description: 'Throws.', inputSchema: { type: 'object' } }
  const thrower = plainTool(definition, () => {
    throw new TypeError('secret detail at /srv/app.ts:7')
  })
  const served = await serve(t, { tools: [thrower] })
  const failed = await served.call({}, {}, { tool: 'throws' })
  assert.equal(assertRefused(failed, 500, -32603, asObject(failed).id), 'Internal error')
  assert.doesNotMatch(failed.text, /detail/)
  assert.equal(served.failures.length, 1)
})

// What an author writes, and what an author can't.

test('another gated tool is one definition in the list, and has the whole gate', async (t) => {
  const deleted: string[] = []
  const deleteBranch = gatedTool({
    name: 'delete_branch',
    description: 'Deletes a branch. Asks the user first.',
    inputSchema: { type: 'object', properties: { branch: { type: 'string' } }, required: ['branch'] },
    fields: { ticket: { type: 'string' } },
    ask: ({ branch }) => ({ question: `Delete ${branch} for good?` }),
    cancelled: ({ branch }) => ({ text: `${branch} is still there.` }),
    act: ({ arguments: { branch }, answers }) => {
      deleted.push(branch)
      return { text: `Deleted ${branch} for ${answers.ticket ?? 'nobody'}.` }
    },
  })

  const served = await serve(t, { tools: [deleteBranch] })
  const args = { branch: 'old' }
  const reply = (requestState: string, inputResponses: Json, other = args) =>
    retry(served, 'delete_branch', requestState, inputResponses, other)
  const asked = await served.call(args, {}, { tool: 'delete_branch' })
  const form = Object(at(asked.body, 'result', 'inputRequests', 'confirm', 'params'))
  assert.equal(form.message, 'Delete old for good?')
  assert.deepEqual(Object.keys(form.requestedSchema.properties), ['confirm', 'ticket'])
  const state = stateOf(asked)

  assert.equal(textOf(await reply(state, answer({}, 'decline'))), 'old is still there.')
  assert.equal(textOf(await reply(state, YES, { branch: 'main' })), REFUSED)
  assert.equal(textOf(await reply(`${state}x`, YES)), REFUSED)
  assert.match(stateOf(await reply(state, answer({ confirm: 'true' }))), /^s1\./)
  assert.deepEqual(deleted, [])

  const yes = answer({ confirm: true, ticket: 'OPS-1' })
  assert.equal(textOf(await reply(state, yes)), 'Deleted old for OPS-1.')
  assert.deepEqual(deleted, ['old'])
})

test('nobody but the gate can make an approval', () => {
  type Act = GatedTool<{ type: 'object' }, { note: { type: 'string' } }>['act']
  /** Never called: the compiler is what is tested, by each line that it must refuse. */
  function forge(act: Act, given: Parameters<Act>[0]) {
    const look = { arguments: given.arguments, answers: given.answers, principal: DEMO_USER }
    act(given)
    // @ts-expect-error something that looks like an approval is none
    act(look)
    // @ts-expect-error nor is a copy of one, nor one with its arguments replaced
    act({ ...given, arguments: {} })
    // @ts-expect-error the class itself can't be had: only its type is exported
    return new gateModule.Approval({}, {}, DEMO_USER) as Approval<object, object>
  }
  assert.equal(typeof forge, 'function')
  const classes = Object.values(gateModule).filter((value) => /^class\b/.test(String(value)))
  assert.deepEqual(classes, [])
})
