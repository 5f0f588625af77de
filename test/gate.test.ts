import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { at, type Json, type Message, message, paramHeaders, type Reply } from '../client.ts'
import { gatedTool } from '../lib/gate.ts'
import { plainTool, type Tool, toolResult } from '../lib/tool.ts'
import {
  answer,
  assertRefused,
  CANCELLED,
  type Clock,
  codeOf,
  EPOCH,
  errorOf,
  QUESTION,
  REFUSED,
  ROLLBACK,
  resultOf,
  type Served,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const YES = answer({ confirm: true })
const DONE = 'Rolled checkout back to v1.41.2. Reason: (none given)'
/** What changes the look of a text without being seen. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u

const formOf = (reply: Reply) => at(reply.body, 'result', 'inputRequests', 'confirm', 'params')
const questionOf = (reply: Reply) => at(formOf(reply), 'message')
const isError = (reply: Reply) => at(reply.body, 'result', 'isError') === true
const reply = ({ call }: Served, requestState: unknown, inputResponses: unknown, args?: Json) =>
  call(args, { requestState, inputResponses })

/** The flow that a state belongs to, from the text between its key id and its MAC. */
function flowOf(state: string): unknown {
  return JSON.parse(String(Buffer.from(state.slice(3), 'base64url').subarray(8, -32))).flow
}

/** The reply is this server's question and nothing was done. @returns the state that it hands out. */
function assertAsked(served: Served, asked: Reply, label?: string): string {
  assert.equal(asked.status, 200, label)
  assert.equal(at(asked.body, 'result', 'resultType'), 'input_required', label)
  assert.equal(questionOf(asked), QUESTION, label)
  assert.deepEqual(served.performed, [], label)
  return stateOf(asked)
}

/** The call is answered by a tool error, which a model can act on; nobody was asked, nothing done. */
function assertToolError(served: Served, refused: Reply, text: string | RegExp, label?: string): void {
  assert.deepEqual([refused.status, isError(refused)], [200, true], label)
  if (typeof text === 'string') assert.equal(textOf(refused), text, label)
  else assert.match(String(textOf(refused)), text, label)
  assert.doesNotMatch(refused.text, /requestState/, label)
  assert.deepEqual(served.performed, [], label)
}

// What each call gets.

test('the first call asks one question in one form, hands out a state and does nothing', async (t) => {
  const served = await serve(t)
  const asked = await served.call()
  assertAsked(served, asked)
  const { _meta, requestState, ...result } = Object(resultOf(asked))
  assert.deepEqual(Object.keys(result).sort(), ['inputRequests', 'resultType'])
  assert.deepEqual(Object.keys(result.inputRequests), ['confirm'])
  assert.deepEqual(Object.keys(result.inputRequests.confirm).sort(), ['method', 'params'])
  assert.equal(result.inputRequests.confirm.method, 'elicitation/create')
  const { mode, requestedSchema, ...form } = Object(formOf(asked))
  assert.deepEqual([mode, form], ['form', { message: QUESTION }])
  assert.deepEqual([requestedSchema.type, requestedSchema.required], ['object', ['confirm']])
  const { confirm, reason, ...others } = requestedSchema.properties
  assert.deepEqual([confirm.type, reason.type, reason.maxLength, others], ['boolean', 'string', 500, {}])
  assert.equal(typeof requestState, 'string')
  assert.doesNotMatch(JSON.stringify(formOf(asked)), /:\/\//)
})

test('a yes performs what was asked, and says so with the reason', async (t) => {
  const served = await serve(t)
  const done = await served.yes(await served.ask())
  const { _meta, ...result } = Object(resultOf(done))
  const structuredContent = { status: 'performed', ...ROLLBACK, reason: 'p99 regression' }
  const text = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
  const content = [text, JSON.stringify(structuredContent)].map((block) => ({ type: 'text', text: block }))
  assert.deepEqual(result, { resultType: 'complete', content, structuredContent })
  assert.deepEqual(served.performed, [{ ...ROLLBACK, reason: 'p99 regression' }])
})

test('a reason that is absent or blank is none', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const content of [{}, { reason: '' }, { reason: ' ' }, { reason: '\t\r\n \u00a0\u3000' }]) {
    const done = await reply(served, state, answer({ confirm: true, ...content }))
    assert.equal(textOf(done), DONE)
    assert.equal(at(done.body, 'result', 'structuredContent', 'reason'), '(none given)')
  }
  assert.deepEqual(new Set(served.performed.map(({ reason }) => reason)), new Set(['(none given)']))
})

test('a no is final, is no error and does nothing, whatever else the answer says', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const noes = [
    answer({ confirm: false }),
    answer({ confirm: false, reason: 'not now' }),
    ...['decline', 'cancel'].flatMap((action) => [
      { confirm: { action } },
      ...[{}, null, [], 'x', { confirm: true }, { confirm: 'true' }, { reason: 7 }].map((content) =>
        answer(content, action),
      ),
    ]),
  ]
  for (const no of noes) {
    const cancelled = await reply(served, state, no)
    const { _meta, ...result } = Object(resultOf(cancelled))
    const structuredContent = { status: 'cancelled', ...ROLLBACK }
    const content = [CANCELLED, JSON.stringify(structuredContent)].map((text) => ({ type: 'text', text }))
    assert.deepEqual(result, { resultType: 'complete', content, structuredContent }, JSON.stringify(no))
    assert.deepEqual(served.performed, [])
  }
  assert.equal(noes.length, 18)
})

test('answers that come without a state are answers to nothing: the question is asked', async (t) => {
  const served = await serve(t)
  const states = new Set<string>()
  const answers = [
    YES,
    answer({ confirm: false }),
    answer({}, 'decline'),
    { ...YES, requestState: 's1.x' },
    {},
  ]
  for (const inputResponses of answers) {
    states.add(assertAsked(served, await served.call(undefined, { inputResponses })))
  }
  assert.equal(states.size, answers.length)
  for (const state of states) assert.equal(textOf(await reply(served, state, YES)), DONE)
  assert.equal(served.performed.length, answers.length)
})

test('a state that comes without answers is asked again, with a fresh state of the same flow', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  served.clock.now = EPOCH + 1
  for (const retry of [{}, { inputResponses: {} }]) {
    const again = assertAsked(served, await served.call(undefined, { requestState: state, ...retry }))
    assert.notEqual(again, state)
    assert.equal(flowOf(again), flowOf(state))
  }
  const again = stateOf(await served.call(undefined, { requestState: state }))
  assert.equal(textOf(await reply(served, again, YES)), DONE)
})

test('two states of one flow differ even when no time passed between them', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  assert.notEqual(assertAsked(served, await served.call(undefined, { requestState: state })), state)
})

const MALFORMED: [label: string, inputResponses: unknown][] = [
  ...['true', 'false', 'yes', '', 1, 0, -1, null, [], [true], {}, { value: true }].map(
    (confirm): [string, Json] => [`confirm ${JSON.stringify(confirm)}`, answer({ confirm })],
  ),
  ...[undefined, null, [], [{ confirm: true }], 'confirm', 'true', true, 1, {}].map(
    (content): [string, Json] => [`content ${JSON.stringify(content)}`, answer(content)],
  ),
  ...['Accept', 'ACCEPT', 'accept ', 'accepted', 'approved', 'declined', 'Decline', 'yes', ''].map(
    (action): [string, Json] => [`action ${action}`, answer({ confirm: true }, action)],
  ),
  ...[undefined, null, true, 1, ['accept'], { accept: true }].map((action): [string, Json] => [
    `action ${JSON.stringify(action)}`,
    { confirm: { action, content: { confirm: true } } },
  ]),
  ...[null, true, 1, 12345, 'accept', '', [], [{ action: 'accept', content: { confirm: true } }]].map(
    (confirm): [string, Json] => [`answer ${JSON.stringify(confirm)}`, { confirm }],
  ),
  ['a wrapped answer', { confirm: { method: 'elicitation/create', result: YES.confirm } }],
  ['a response', { confirm: { jsonrpc: '2.0', id: 1, result: YES.confirm } }],
  ['no wrapping', { action: 'accept', content: { confirm: true } }],
  ['a flat answer', { confirm: { action: 'accept', confirm: true } }],
  [
    'a sampling result',
    { confirm: { role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'm' } },
  ],
  ['a roots result', { confirm: { roots: [{ uri: 'file:///', name: 'confirm' }] } }],
  ['another key', { Confirm: YES.confirm, confirmed: YES.confirm, rollback_release: YES.confirm }],
  ['a reason of 501 characters', answer({ confirm: true, reason: 'x'.repeat(501) })],
  ['a reason of 501 astral characters', answer({ confirm: true, reason: '😀'.repeat(501) })],
  ...[1, true, null, [], {}, ['x']].map((reason): [string, Json] => [
    `reason ${JSON.stringify(reason)}`,
    answer({ confirm: true, reason }),
  ]),
  ...[
    '{"__proto__":{"confirm":{"action":"accept","content":{"confirm":true}}}}',
    '{"constructor":{"action":"accept","content":{"confirm":true}}}',
    '{"confirm":{"__proto__":{"action":"accept","content":{"confirm":true}}}}',
    '{"confirm":{"action":"accept","__proto__":{"content":{"confirm":true}}}}',
    '{"confirm":{"action":"accept","content":{"__proto__":{"confirm":true}}}}',
    '{"confirm":{"action":"accept","content":{"constructor":{"confirm":true}}}}',
    '{"confirm":{"content":{"confirm":true},"__proto__":{"action":"accept"}}}',
  ].map((text): [string, Json] => [text, JSON.parse(text)]),
]

test('an answer that is neither yes nor no is asked again, in the same flow, and does nothing', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  served.clock.now = EPOCH + 1
  for (const [label, inputResponses] of MALFORMED) {
    const again = assertAsked(served, await reply(served, state, inputResponses), label)
    assert.notEqual(again, state, label)
    assert.equal(flowOf(again), flowOf(state), label)
  }
  assert.equal(textOf(await reply(served, state, YES)), DONE)
})

test('answers that are no object are a mistake of the program, not of a person', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const inputResponses of [null, [], [YES], 'yes', '', 12345, true]) {
    for (const retry of [{ inputResponses }, { requestState: state, inputResponses }]) {
      const refused = await served.call(undefined, retry)
      const id = Object(refused.body).id
      assert.match(assertRefused(refused, 200, -32602, id), /inputResponses must be an object/)
      assert.deepEqual(served.performed, [])
    }
  }
})

test('a state that is no string is refused, and an empty one is a bad one', async (t) => {
  const served = await serve(t)
  for (const requestState of [null, 0, 7, true, {}, [], [await served.ask()]]) {
    const refused = await reply(served, requestState, YES)
    const id = Object(refused.body).id
    assert.match(assertRefused(refused, 200, -32602, id), /requestState must be a string/)
    assert.deepEqual(served.performed, [])
  }
  assertToolError(served, await reply(served, '', YES), REFUSED)
})

test('what else comes with a yes is ignored', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const extras = [
    { ...YES, other: { action: 'decline' }, '': null },
    answer({ confirm: true, user: 'admin', force: 1 }),
    { confirm: { ...Object(YES.confirm), _meta: { x: 1 }, resultType: 'complete', id: 7 } },
    JSON.parse('{"__proto__":{"x":1},"confirm":{"action":"accept","content":{"confirm":true}}}'),
    JSON.parse('{"confirm":{"action":"accept","content":{"confirm":true,"__proto__":{"reason":"x"}}}}'),
    Object.fromEntries([...Array.from({ length: 2000 }, (_, n) => [`k${n}`, n]), ['confirm', YES.confirm]]),
  ]
  for (const inputResponses of extras) {
    assert.equal(textOf(await reply(served, state, inputResponses)), DONE)
  }
  assert.deepEqual(served.performed, Array(extras.length).fill({ ...ROLLBACK, reason: '(none given)' }))
})

test('no argument stands in for a person’s answer', async (t) => {
  const served = await serve(t)
  for (const extra of [
    { confirm: true },
    { force: true },
    { ...YES },
    { inputResponses: YES },
    { yes: 'yes' },
  ]) {
    const args = { ...ROLLBACK, ...extra }
    const state = assertAsked(served, await served.call(args))
    served.clock.now += 1
    assertAsked(served, await served.call(args, { requestState: state }))
  }
})

test('500 characters of reason are taken, however many units each of them needs', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const reason of ['x'.repeat(500), '😀'.repeat(500)]) {
    const done = await reply(served, state, answer({ confirm: true, reason }))
    assert.equal(textOf(done), `Rolled checkout back to v1.41.2. Reason: ${reason}`)
    assert.equal(served.performed.at(-1)?.reason, reason)
  }
})

// What is shown.

/** Texts that would rewrite what they stand in, and what is shown of them. */
const HOSTILE: [raw: string, shown: string][] = [
  ['check\u202eout', String.raw`check\u{202e}out`],
  ['check\u2066out\u2069', String.raw`check\u{2066}out\u{2069}`],
  ['check\nout\r\n', String.raw`check\u{a}out\u{d}\u{a}`],
  ['\u001b[2Jcheck\u001b[31mout', String.raw`\u{1b}[2Jcheck\u{1b}[31mout`],
  ['check\u200b\u200d\ufeffout', String.raw`check\u{200b}\u{200d}\u{feff}out`],
  ['a\u0000b\u0007c\u007fd\u009be', String.raw`a\u{0}b\u{7}c\u{7f}d\u{9b}e`],
  ['a\u2028b\u2029c', String.raw`a\u{2028}b\u{2029}c`],
  ['a\u00adb\u034fc\u3164d\ufe0fe', String.raw`a\u{ad}b\u{34f}c\u{3164}d\u{fe0f}e`],
  ['a\u{e0041}\u{e007f}b', String.raw`a\u{e0041}\u{e007f}b`],
  ['مرحبا é 世界 😀 ~', 'مرحبا é 世界 😀 ~'],
]

test('an argument can’t rewrite the question, and what is performed is the argument itself', async (t) => {
  const served = await serve(t)
  for (const [raw, shown] of HOSTILE) {
    for (const args of [
      { ...ROLLBACK, service: raw },
      { ...ROLLBACK, version: raw },
    ]) {
      const [service, version] = [args.service, args.version].map((text) => (text === raw ? shown : text))
      const asked = await served.call(args)
      assert.equal(questionOf(asked), `Roll ${service} back to ${version}? This restarts every instance.`)

      const done = await reply(served, stateOf(asked), YES, args)
      const text = `Rolled ${service} back to ${version}. Reason: (none given)`
      const structured = { status: 'performed', service, version, reason: '(none given)' }
      assertShown(done, text, structured)
      assert.deepEqual(served.performed.at(-1), { ...args, reason: '(none given)' })

      const declined = await reply(served, stateOf(asked), answer({}, 'decline'), args)
      assertShown(declined, CANCELLED, { status: 'cancelled', service, version })
    }
  }
  assert.equal(served.performed.length, 2 * HOSTILE.length)
})

test('an answer can’t rewrite the result, and what is performed is the answer itself', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const [raw, shown] of [...HOSTILE, ['half \ud83d', String.raw`half \u{d83d}`]] as const) {
    const reason = `<${raw}>`
    const done = await reply(served, state, answer({ confirm: true, reason }))
    const structured = { status: 'performed', ...ROLLBACK, reason: `<${shown}>` }
    assertShown(done, `Rolled checkout back to v1.41.2. Reason: <${shown}>`, structured)
    assert.equal(served.performed.at(-1)?.reason, reason)
  }
})

/** All three ways in which a result says the same: text, structured data, and that data as text. */
function assertShown(done: Reply, text: string, structured: Json): void {
  assert.equal(textOf(done), text)
  assert.deepEqual(at(done.body, 'result', 'structuredContent'), structured)
  const block = String(at(done.body, 'result', 'content', '1', 'text'))
  assert.deepEqual(JSON.parse(block), structured)
  assert.doesNotMatch(text + block, INVISIBLE)
  assert.doesNotMatch(done.text, INVISIBLE)
}

// Arguments.

test('arguments of 1 to 200 characters of any script are taken', async (t) => {
  const served = await serve(t)
  const texts = [
    'x',
    '世',
    'ä',
    '😀',
    '.',
    '-',
    '\u0301',
    'x'.repeat(200),
    '世'.repeat(200),
    '😀'.repeat(200),
  ]
  for (const text of [...texts, ' v1 ', '\u200bv1', 'a/b:c@d#e', '=?base64?eA==?=', '__proto__', 'null']) {
    const args = { service: text, version: text }
    const state = await served.ask(args)
    await reply(served, state, YES, args)
    assert.deepEqual(served.performed.at(-1), { ...args, reason: '(none given)' }, text)
  }
})

test('an argument that is missing, too long, empty or of another type is named, and nobody is asked', async (t) => {
  const served = await serve(t)
  const { service, version } = ROLLBACK
  const good = await served.ask()
  for (const [args, text] of [
    [{ version }, 'service is required'],
    [{ service }, 'version is required'],
    [{}, 'service is required'],
    [{ service: null, version }, 'service must be a string'],
    [{ service, version: null }, 'version must be a string'],
    [{ service, version: 1.41 }, 'version must be a string'],
    [{ service, version: true }, 'version must be a string'],
    [{ service, version: [version] }, 'version must be a string'],
    [{ service, version: {} }, 'version must be a string'],
    [{ service: '', version }, 'service must have at least 1 character'],
    [{ service, version: '' }, 'version must have at least 1 character'],
    [{ service: 'x'.repeat(201), version }, 'service must have at most 200 characters'],
    [{ service, version: '😀'.repeat(201) }, 'version must have at most 200 characters'],
  ] as const) {
    for (const retry of [{}, { requestState: good, inputResponses: YES }]) {
      assertToolError(served, await served.call(args, retry), `Invalid arguments: ${text}.`)
    }
  }
  assert.equal(served.performed.length, 0)
  assert.equal(textOf(await reply(served, good, YES)), DONE)
})

test('arguments that are absent or null are none, and those that are no object are refused', async (t) => {
  const served = await serve(t)
  const absent = ({ headers, body }: Message): Message => {
    const { arguments: _, ...params } = Object(at(body, 'params'))
    return { headers, body: { ...Object(body), params } }
  }
  const none: Reply[] = [
    await served.call({}, {}, { edit: absent }),
    await served.call({}, { arguments: null }),
  ]
  for (const refused of none) assertToolError(served, refused, 'Invalid arguments: service is required.')
  for (const args of ['{}', [], [ROLLBACK], 7, true, JSON.stringify(ROLLBACK)]) {
    const refused = await served.call({}, { arguments: args })
    assert.match(
      assertRefused(refused, 200, -32602, Object(refused.body).id),
      /arguments must be an object/,
    )
  }
  assert.deepEqual(served.performed, [])
})

const INVISIBLE_NAMES = [
  ' ',
  '   \t\n',
  '\u00a0',
  '\u3000',
  '\u200b',
  '\u200b\u200d\u2060',
  '\ufeff',
  '\u00ad',
  '\u202e\u202c',
  '\u3164\u115f\u1160\uffa0',
  '\ufe0f',
  '\u0000\u001b',
]

test('an argument that nobody could see is no argument', async (t) => {
  const served = await serve(t)
  for (const name of INVISIBLE_NAMES) {
    const refused = await served.call({ ...ROLLBACK, version: name })
    assertToolError(served, refused, /^Invalid arguments: version /, JSON.stringify(name))
    assert.doesNotMatch(String(textOf(refused)), INVISIBLE)
    assertToolError(
      served,
      await served.call({ ...ROLLBACK, service: name }),
      /^Invalid arguments: service /,
    )
  }
})

test('an argument of tag characters or other invisible ones beyond U+FFFF is no argument either', async (t) => {
  const served = await serve(t)
  for (const name of ['\u{e0041}\u{e0042}', '\u{e0100}', '\u{1d173}', '\u{1bca0}']) {
    const refused = await served.call({ ...ROLLBACK, version: name })
    assertToolError(served, refused, /^Invalid arguments: version /, JSON.stringify(name))
  }
})

test('half a surrogate pair is no text', async (t) => {
  const served = await serve(t)
  for (const half of ['\ud800', 'v1\udc00', '\udfff\ud83d']) {
    const refused = await served.call({ ...ROLLBACK, version: half })
    assertToolError(served, refused, /^Invalid arguments: version /)
    // No header can carry it, so for a mirrored argument that is what is wrong.
    assert.equal(codeOf(await served.call({ ...ROLLBACK, service: half })), -32020)
  }
  assert.deepEqual(served.performed, [])
})

test('a mirrored argument of the wrong type fails at its header', async (t) => {
  const served = await serve(t)
  for (const service of [42, true, ['checkout'], {}]) {
    const refused = await served.call({ ...ROLLBACK, service })
    const text = assertRefused(refused, 400, -32020, Object(refused.body).id)
    assert.match(text, /Mcp-Param-Service/)
  }
  assert.deepEqual(served.performed, [])
})

test('arguments that are nested without end are a tool error, at once', async (t) => {
  const served = await serve(t)
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const edit = ({ headers, body }: Message): Message => {
    return { headers, body: JSON.stringify(body).replace('"v1.41.2"', `"v1.41.2","deep":${deep}`) }
  }
  assertToolError(served, await served.call(undefined, {}, { edit }), /^Invalid arguments: /)
})

// The client's capability.

const FORM_NEEDED = {
  code: -32021,
  message: 'This tool needs a client that supports elicitation.',
  data: { requiredCapabilities: { elicitation: { form: {} } } },
}

test('a client that declares form elicitation, in any of three ways, is asked', async (t) => {
  const served = await serve(t)
  for (const elicitation of [
    {},
    { form: {} },
    { form: {}, url: {} },
    { form: { later: true }, other: {} },
  ]) {
    assertAsked(served, await served.call(undefined, {}, { capabilities: { elicitation } }))
  }
})

test('a client that declares none, or only other modes, is told what is needed: on every call', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const retries = [YES, answer({}, 'decline'), answer({}), {}].map((inputResponses) => ({ inputResponses }))
  for (const capabilities of [
    {},
    { elicitation: { url: {} } },
    { elicitation: { Form: {} } },
    { Elicitation: { form: {} } },
    { sampling: {}, roots: {}, experimental: { elicitation: {} } },
  ]) {
    const calls = [{}, ...retries, ...retries.map((retry) => ({ requestState: state, ...retry }))]
    for (const retry of calls) {
      const refused = await served.call(undefined, retry, { capabilities })
      assert.deepEqual([refused.status, errorOf(refused)], [400, FORM_NEEDED])
      assert.deepEqual(served.performed, [])
    }
  }
  assert.equal(textOf(await reply(served, state, YES)), DONE)
})

test('a client that declares elicitation as something else than objects is told so', async (t) => {
  const served = await serve(t)
  const retry = { requestState: await served.ask(), inputResponses: YES }
  for (const elicitation of [true, null, [], 'form', { form: true }, { form: null }, { form: [] }]) {
    for (const call of [{}, retry]) {
      const refused = await served.call(undefined, call, { capabilities: { elicitation } })
      const text = assertRefused(refused, 400, -32602, Object(refused.body).id)
      assert.match(text, /clientCapabilities/)
      assert.deepEqual(served.performed, [])
    }
  }
})

test('a refused state is refused whatever the client can do', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const capabilities of [{}, { elicitation: { url: {} } }, { elicitation: {} }]) {
    const retry = { requestState: `${state}-TAMPERED`, inputResponses: YES }
    assertToolError(served, await served.call(undefined, retry, { capabilities }), REFUSED)
  }
})

test('a call that asks nobody needs no capability', async (t) => {
  const version = plainTool(
    { name: 'version', description: 'Tells the version.', inputSchema: { type: 'object' } },
    () => toolResult({ text: 'v1' }),
  )
  const served = await serve(t, { tools: [version] })
  const capabilities = {}
  assert.equal(textOf(await served.call({}, {}, { tool: 'version', capabilities })), 'v1')
  const wrong = await served.call({ ...ROLLBACK, version: 7 }, {}, { capabilities })
  assertToolError(served, wrong, 'Invalid arguments: version must be a string.')
  const unknown = await served.call({}, {}, { tool: 'no_such_tool', capabilities })
  assert.deepEqual(errorOf(unknown), { code: -32602, message: 'Unknown tool: no_such_tool' })
})

// More than one call at a time.

test('a state may be used again while it lives: the same rollback twice ends in the same place', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  for (const count of [1, 2]) {
    assert.equal(textOf(await reply(served, state, YES)), DONE)
    assert.equal(served.performed.length, count)
  }
  served.clock.now = EPOCH + 300_000
  const late = await reply(served, state, YES)
  assert.deepEqual([isError(late), textOf(late)], [true, REFUSED])
  assert.equal(served.performed.length, 2)
})

test('20 retries at once are all answered, and each acts on its own arguments', async (t) => {
  const served = await serve(t)
  const calls = Array.from({ length: 20 }, (_, n) => ({ ...ROLLBACK, version: `v${n % 4}` }))
  const states = await Promise.all(calls.map((args) => served.ask(args)))
  const wrong = calls.map((args, n) => reply(served, states[(n + 1) % 20], YES, args))
  assert.deepEqual(new Set((await Promise.all(wrong)).map(textOf)), new Set([REFUSED]))
  assert.deepEqual(served.performed, [])

  const done = await Promise.all(calls.map((args, n) => reply(served, states[n], YES, args)))
  assert.deepEqual(
    done.map(textOf),
    calls.map(({ version }) => `Rolled checkout back to ${version}. Reason: (none given)`),
  )
  assert.equal(served.performed.length, 20)
})

test('a retry may have the id of the first call, or of any other one', async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const edit = ({ headers, body }: Message) => ({ headers, body: { ...Object(body), id: 'one' } })
  const calls = Array.from({ length: 5 }, (_, n) =>
    served.call(undefined, n % 2 ? {} : { requestState: state, inputResponses: YES }, { edit }),
  )
  for (const [n, answered] of (await Promise.all(calls)).entries()) {
    assert.equal(Object(answered.body).id, 'one')
    assert.equal(at(answered.body, 'result', 'resultType'), n % 2 ? 'input_required' : 'complete')
  }
  assert.equal(served.performed.length, 3)
})

/** A yes that is yet to be sent, by a client that may hang up at any time. */
function approval({ url }: Served, tool: string, args: Json, requestState: string) {
  const { headers, body } = message('tools/call', {
    name: tool,
    arguments: args,
    requestState,
    inputResponses: YES,
  })
  const mirrored = paramHeaders({ properties: { service: { 'x-mcp-header': 'Service' } } }, args)
  const text = JSON.stringify(body)
  const lines = [['Host', url.host], ['Content-Length', `${text.length}`], ...headers, ...mirrored]
  const outgoing = request(url, { method: 'POST', headers: lines.flat(), agent: false })
  outgoing.on('error', () => {})
  return { request: outgoing, body: text }
}

/** For tests that would wait for ever where the server does not do its part. */
const HANGS = { timeout: 10_000 }

/** Waits, without a clock, until the log has a line more. */
async function nextLine({ signal }: TestContext, { lines }: Served, before: number) {
  while (lines.length === before && !signal.aborted) await new Promise((resolve) => setImmediate(resolve))
  return lines.at(-1)
}

/** Something that a test waits for, or keeps waiting. */
function latch() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

/** A gated tool, and what it did. */
function drainTool(drained: Json[], ask = ({ node }: { node: string }) => `Drain ${node}?`): Tool {
  return gatedTool({
    name: 'drain_node',
    description: 'Drains a node. Asks first.',
    inputSchema: { type: 'object', properties: { node: { type: 'string' } }, required: ['node'] },
    fields: {},
    ask: (args) => ({ question: ask(args) }),
    cancelled: () => ({ text: 'Not drained.' }),
    act: ({ arguments: { node } }) => {
      drained.push({ node })
      return { text: `Drained ${node}.` }
    },
  })
}

test('a client that hangs up before the action starts has changed its mind', HANGS, async (t) => {
  const drained: Json[] = []
  const gate = drainTool(drained)
  const [reached, ended] = [latch(), latch()]
  t.after(ended.open)
  const patient: Tool = {
    ...gate,
    handle: async (call, ...more) => {
      if (call.flow === undefined) return gate.handle(call, ...more)
      reached.open()
      if (!call.client.signal.aborted) await Promise.race([once(call.client.signal, 'abort'), ended.opened])
      return gate.handle(call, ...more)
    },
  }
  const served = await serve(t, { tools: [patient] })
  const args = { node: 'n1' }
  const state = await served.ask(args, { tool: 'drain_node' })
  const before = served.lines.length

  const { request: outgoing, body } = approval(served, 'drain_node', args, state)
  outgoing.end(body)
  await reached.opened
  outgoing.destroy()
  const line = await nextLine(t, served, before)
  assert.deepEqual([line?.tool, line?.status], ['drain_node', 499])
  assert.deepEqual([drained, served.failures], [[], []])
})

test('a client that hangs up with its request half sent has approved nothing', HANGS, async (t) => {
  const served = await serve(t)
  const state = await served.ask()
  const before = served.lines.length
  const arrival = once(served.http.server, 'request')
  const outgoing = approval(served, 'rollback_release', ROLLBACK, state)
  outgoing.request.write(outgoing.body.slice(0, -1))
  await arrival
  outgoing.request.destroy()
  await nextLine(t, served, before)
  assert.deepEqual([served.performed, served.failures], [[], []])
})

test('an action that runs when its client hangs up is finished and logged', HANGS, async (t) => {
  const [started, finish] = [latch(), latch()]
  t.after(finish.open)
  const during = () => {
    started.open()
    return finish.opened
  }
  const served = await serve(t, { during })
  const state = await served.ask()
  const before = served.lines.length

  const connection = once(served.http.server, 'connection')
  const { request: outgoing, body } = approval(served, 'rollback_release', ROLLBACK, state)
  outgoing.end(body)
  const [socket] = await connection
  await started.opened
  assert.deepEqual(served.performed, [])
  outgoing.destroy()
  await once(socket, 'close')
  assert.equal(served.lines.length, before)

  finish.open()
  const line = await nextLine(t, served, before)
  assert.equal(line?.tool, 'rollback_release')
  assert.deepEqual(served.performed, [{ ...ROLLBACK, reason: '(none given)' }])
  assert.deepEqual(served.failures, [])
})

test('an action that fails is an internal error and can be tried again', async (t) => {
  let broken = true
  const during = () => {
    if (broken) throw new Error('ECONNREFUSED 10.0.0.7 at /srv/deploy.ts')
  }
  const served = await serve(t, { during })
  const state = await served.ask()
  const failed = await reply(served, state, YES)
  assert.equal(assertRefused(failed, 500, -32603, Object(failed.body).id), 'Internal error')
  assert.deepEqual([served.performed, served.failures.length], [[], 1])
  broken = false
  assert.equal(textOf(await reply(served, state, YES)), DONE)
})

// A question that reads otherwise.

async function twoWordings(t: TestContext, [one, other]: [Tool, Tool], clock: Clock = { now: EPOCH }) {
  const servers = [
    await serve(t, { tools: [one], clock }),
    await serve(t, { tools: [other], clock }),
  ] as const
  const args = { node: 'n1' }
  const how = { tool: 'drain_node' }
  const yes = ({ call }: Served, requestState: string) =>
    call(args, { requestState, inputResponses: YES }, how)
  return { servers, yes, clock, ask: (served: Served) => served.ask(args, how) }
}

test('a yes to a question that now reads otherwise is a yes to nothing: it is asked again, and why', async (t) => {
  const drained: Json[] = []
  const dear = ({ node }: { node: string }) => `Drain ${node}? 3 pods will restart.`
  const tools: [Tool, Tool] = [drainTool(drained), drainTool(drained, dear)]
  const { servers, yes, ask, clock } = await twoWordings(t, tools)
  const [old, current] = servers
  const state = await ask(old)
  clock.now += 1

  const again = await yes(current, state)
  assert.equal(at(again.body, 'result', 'resultType'), 'input_required')
  const shown = String(questionOf(again))
  assert.match(shown, /^\S.* Drain n1\? 3 pods will restart\.$/)
  assert.match(shown, /changed/)
  assert.equal(flowOf(stateOf(again)), flowOf(state))
  assert.notEqual(stateOf(again), state)
  assert.deepEqual(drained, [])

  assert.equal(questionOf(await yes(current, state)), shown)
  assert.match(String(questionOf(await yes(old, stateOf(again)))), / Drain n1\?$/)
  assert.deepEqual(drained, [])

  assert.equal(textOf(await yes(current, stateOf(again))), 'Drained n1.')
  assert.equal(textOf(await yes(old, state)), 'Drained n1.')
  assert.equal(drained.length, 2)
})

test('a yes to a form that now asks for more is asked again', async (t) => {
  const drained: Json[] = []
  const form = (fields: Json) =>
    gatedTool({
      name: 'drain_node',
      description: 'Drains a node. Asks first.',
      inputSchema: { type: 'object', properties: { node: { type: 'string' } } },
      fields: fields as { [field: string]: Json },
      ask: () => ({ question: 'Drain it?' }),
      cancelled: () => ({ text: 'Not drained.' }),
      act: ({ arguments: args }) => {
        drained.push(args)
        return { text: 'Drained.' }
      },
    })
  const tools: [Tool, Tool] = [form({}), form({ ticket: { type: 'string' } })]
  const { servers, yes, ask } = await twoWordings(t, tools)
  const again = await yes(servers[1], await ask(servers[0]))
  assert.match(String(questionOf(again)), /changed.* Drain it\?$/)
  assert.deepEqual(drained, [])
  assert.equal(textOf(await yes(servers[1], stateOf(again))), 'Drained.')
})

test('a question that never reads the same twice is never taken for answered, and its flow ends', async (t) => {
  const drained: Json[] = []
  let asked = 0
  const restless = () => {
    asked += 1
    return `Drain it? Token ${asked}.`
  }
  const { servers, yes, ask, clock } = await twoWordings(t, [drainTool(drained, restless), drainTool([])])
  let state = await ask(servers[0])
  for (let minute = 1; minute < 15; minute += 1) {
    clock.now = EPOCH + minute * 60_000
    state = stateOf(await yes(servers[0], state))
    assert.match(state, /^s1\./)
  }
  clock.now = EPOCH + 15 * 60_000
  assert.equal(textOf(await yes(servers[0], state)), REFUSED)
  assert.deepEqual(drained, [])
})

// What an author can't get wrong.

test('an action gets the fields of its form and nothing else that an answer holds', async (t) => {
  const noted: unknown[] = []
  const note = gatedTool({
    name: 'note',
    description: 'Takes a note. Asks first.',
    inputSchema: { type: 'object' },
    fields: { ticket: { type: 'string' } },
    ask: () => ({ question: 'Take a note?' }),
    cancelled: () => ({ text: 'Not noted.' }),
    act: ({ answers }) => {
      noted.push(answers)
      return { text: 'Noted.' }
    },
  })
  const served = await serve(t, { tools: [note] })
  const requestState = await served.ask({}, { tool: 'note' })
  const extras = JSON.parse('{"admin":true,"__proto__":{"ticket":"OPS-2"},"Ticket":"OPS-3"}')
  for (const ticket of [{ ticket: 'OPS-1' }, {}]) {
    const inputResponses = answer({ ...extras, ...ticket, confirm: true })
    assert.equal(
      textOf(await served.call({}, { requestState, inputResponses }, { tool: 'note' })),
      'Noted.',
    )
    assert.deepEqual(noted.at(-1), ticket)
  }
})

test('a form that no client could show, or that has a confirm of its own, makes no tool', () => {
  const withFields = (fields: { [field: string]: Json }) => () =>
    gatedTool({
      name: 'drain_node',
      description: 'Drains a node.',
      inputSchema: { type: 'object' },
      fields,
      ask: () => ({ question: 'Drain it?' }),
      cancelled: () => ({ text: 'Not drained.' }),
      act: () => ({ text: 'Drained.' }),
    })
  assert.doesNotThrow(withFields({ ticket: { type: 'string' }, force: { type: 'boolean' } }))
  for (const [field, schema] of [
    ['confirm', { type: 'boolean' }],
    ['details', { type: 'object' }],
    ['hosts', { type: 'array' }],
    ['any', {}],
    ['maybe', { type: ['string', 'null'] }],
  ] as const) {
    assert.throws(withFields({ [field]: schema }), new RegExp(`drain_node.*${field}`))
  }
})
