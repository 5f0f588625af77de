/** The fixture by our own client: what each of its features promises, and what each refuses. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { at, type Json, type Reply, send } from '../../client.ts'
import { stop } from '../../lib/lifecycle.ts'
import { assertRefused, codeOf, errorOf, plus, resultOf, stateOf, textOf, without } from '../serve.ts'
import { openStream, type Stream } from '../stream.ts'
import { type Fixture, request, serveFixture } from './fixture-client.ts'

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
const WATCHED = 'test://watched-resource'
const GUARDED = 'test://guarded-resource'
const ASKING_PROMPT = 'test_input_required_result_prompt'
const INVALID_STATE = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
}

const filled = (key: string, content: Json) => ({ [key]: { action: 'accept', content } })
const CONTEXT = filled('user_context', { context: 'the launch' })
const ALLOW = filled('permission', { allow: true })
const resultType = (reply: Reply) => at(resultOf(reply), 'resultType')
const methodOf = (message: unknown) => at(message, 'method')
/** Sends what has to be refused. @returns the answer. */
async function assertInvalid(url: URL, method: string, params: Json): Promise<Reply> {
  const sent = request(method, params)
  const reply = await send(url, sent)
  assertRefused(reply, 200, -32602, at(sent.body, 'id'), JSON.stringify(params))
  return reply
}
const names = (reply: Reply, member: string, key = 'name') =>
  (at(resultOf(reply), member) as unknown[]).map((entry) => at(entry, key))

// Discovery and lists.

test('the fixture declares just what it serves', async (t) => {
  const { ask } = await serveFixture(t)
  const discovered = resultOf(await ask('server/discover'))
  assert.deepEqual(at(discovered, 'capabilities'), {
    tools: { listChanged: true },
    logging: {},
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
  })
})

for (const [method, member, key] of [
  ['tools/list', 'tools', 'name'],
  ['prompts/list', 'prompts', 'name'],
  ['resources/list', 'resources', 'uri'],
  ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
] as const) {
  test(`${method} has one order, says how long it holds, and knows no cursor`, async (t) => {
    const { ask, url } = await serveFixture(t)
    const first = await ask(method)
    assert.deepEqual(await ask(method).then((again) => at(again.body, 'result')), resultOf(first))
    assert.ok(names(first, member, key).length > 0, 'it lists something')
    assert.equal(typeof at(resultOf(first), 'ttlMs'), 'number')
    assert.equal(at(resultOf(first), 'cacheScope'), 'public')
    for (const cursor of ['', 'page-2', 0, null]) await assertInvalid(url, method, { cursor })
  })
}

for (const [list, member, trigger, key, extra] of [
  ['tools/list', 'tools', 'test_trigger_tool_change', 'name', 'test_dynamic_tool'],
  ['prompts/list', 'prompts', 'test_trigger_prompt_change', 'name', 'test_dynamic_prompt'],
  ['resources/list', 'resources', 'test_trigger_resource_change', 'uri', 'test://dynamic-resource'],
] as const) {
  test(`${list} changes for every connection alike, and back again`, async (t) => {
    const { ask, tool } = await serveFixture(t)
    const before = names(await ask(list), member, key)
    await tool(trigger)
    assert.deepEqual(names(await ask(list), member, key), [...before, extra])
    await tool(trigger)
    assert.deepEqual(names(await ask(list), member, key), before)
  })
}

test('what is not in the list at the moment is not served either', async (t) => {
  const { ask, tool } = await serveFixture(t)
  const calls = [
    () => tool('test_dynamic_tool'),
    () => ask('prompts/get', { name: 'test_dynamic_prompt' }),
    () => ask('resources/read', { uri: 'test://dynamic-resource' }),
  ]
  for (const call of calls) assert.equal(codeOf(await call()), -32602)
  for (const kind of ['tool', 'prompt', 'resource']) await tool(`test_trigger_${kind}_change`)
  for (const call of calls) assert.equal(resultType(await call()), 'complete')
})

// Prompts.

test('a prompt is filled in with its arguments, and takes no others', async (t) => {
  const { ask } = await serveFixture(t)
  const args = { arg1: 'a', arg2: '\u202eb', arg3: 'c' }
  const { description, messages } = Object(
    resultOf(await ask('prompts/get', { name: 'test_prompt_with_arguments', arguments: args })),
  )
  assert.equal(description, 'A prompt with two arguments.')
  const text = "Prompt with arguments: arg1='a', arg2='\\u{202e}b'"
  assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text } }])
})

test('an unknown prompt and arguments that are missing or no texts are refused with -32602', async (t) => {
  const { url } = await serveFixture(t)
  const name = 'test_prompt_with_arguments'
  for (const params of [
    { name: 'constructor' },
    { name: 'nope' },
    { name, arguments: { arg1: 'a' } },
    { name, arguments: { arg1: 'a', arg2: 2 } },
    { name, arguments: { arg1: 'a', arg2: null } },
    { name, arguments: ['a', 'b'] },
    { name, arguments: { arg1: 'a', arg2: 'half a pair \ud800' } },
    { name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://nope' } },
  ]) {
    await assertInvalid(url, 'prompts/get', params)
  }
  await assertInvalid(url, 'prompts/get', { name: 7 })
})

test('a prompt that asks is answered when its state and its answer come back', async (t) => {
  const { ask } = await serveFixture(t)
  const asked = await ask('prompts/get', { name: ASKING_PROMPT })
  assert.equal(resultType(asked), 'input_required')
  assert.match(stateOf(asked), /^e1\./, 'the state is encrypted')
  const retry = { name: ASKING_PROMPT, requestState: stateOf(asked), inputResponses: CONTEXT }
  const done = await ask('prompts/get', retry)
  assert.equal(at(resultOf(done), 'messages', '0', 'content', 'text'), 'Use this context: the launch')
})

test('an answer without the state of its question gets the question', async (t) => {
  const { ask } = await serveFixture(t)
  const asked = [
    await ask('prompts/get', { name: ASKING_PROMPT, inputResponses: CONTEXT }),
    await ask('resources/read', { uri: GUARDED, inputResponses: ALLOW }),
  ]
  for (const reply of asked) assert.equal(resultType(reply), 'input_required')
})

// States of one thing, used on another.

test('a state opens nothing but what it was given out for', async (t) => {
  const fixture = await serveFixture(t)
  const { ask, tool } = fixture
  const states = {
    prompt: stateOf(await ask('prompts/get', { name: ASKING_PROMPT })),
    resource: stateOf(await ask('resources/read', { uri: GUARDED })),
    tool: stateOf(await tool('test_input_required_result_request_state')),
  }
  const answers = { ...CONTEXT, ...ALLOW, ...filled('confirm', { ok: true }) }
  const uses: { [of: string]: (requestState: string) => Promise<Reply> } = {
    prompt: (requestState) =>
      ask('prompts/get', { name: ASKING_PROMPT, requestState, inputResponses: answers }),
    resource: (requestState) =>
      ask('resources/read', { uri: GUARDED, requestState, inputResponses: answers }),
    tool: (requestState) =>
      tool('test_input_required_result_request_state', { requestState, inputResponses: answers }),
    'another prompt': (requestState) =>
      ask('prompts/get', { name: 'test_simple_prompt', requestState, inputResponses: answers }),
    'another resource': (requestState) =>
      ask('resources/read', { uri: WATCHED, requestState, inputResponses: answers }),
    'another tool': (requestState) =>
      tool('test_input_required_result_tampered_state', { requestState, inputResponses: answers }),
  }
  for (const [of, state] of Object.entries(states)) {
    for (const [on, use] of Object.entries(uses)) {
      const reply = await use(state)
      if (of === on) assert.equal(resultType(reply), 'complete', `${of} on itself`)
      else assert.deepEqual(errorOf(reply), INVALID_STATE, `the state of a ${of} on ${on}`)
    }
  }
})

test('a state of other arguments, of another start and one that was changed are refused', async (t) => {
  const { ask, tool } = await serveFixture(t)
  const other = await serveFixture(t)
  const name = 'test_sampling'
  const inputResponses = {
    response: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' },
  }
  const requestState = stateOf(await tool(name, { arguments: { prompt: 'Why?' } }))
  const bad: [what: string, Promise<Reply>][] = [
    ['other arguments', tool(name, { arguments: { prompt: 'How?' }, requestState, inputResponses })],
    ['another start', other.tool(name, { arguments: { prompt: 'Why?' }, requestState, inputResponses })],
    [
      'changed',
      tool(name, { arguments: { prompt: 'Why?' }, requestState: `${requestState}A`, inputResponses }),
    ],
  ]
  for (const [what, reply] of bad) assert.deepEqual(errorOf(await reply), INVALID_STATE, what)
  const prompt = stateOf(await ask('prompts/get', { name: ASKING_PROMPT }))
  for (const at of [4, prompt.length >> 1, prompt.length - 1]) {
    const changed = prompt.slice(0, at) + (prompt[at] === 'A' ? 'B' : 'A') + prompt.slice(at + 1)
    const retry = { name: ASKING_PROMPT, requestState: changed, inputResponses: CONTEXT }
    assert.deepEqual(errorOf(await ask('prompts/get', retry)), INVALID_STATE)
  }
  const honest = await tool(name, { arguments: { prompt: 'Why?' }, requestState, inputResponses })
  assert.equal(textOf(honest), 'LLM response: x')
})

test('an encrypted state shows nothing of what the first answer was', async (t) => {
  const { tool } = await serveFixture(t)
  const name = 'test_input_required_result_multi_round'
  const first = stateOf(await tool(name))
  const retry = { requestState: first, inputResponses: filled('step1', { name: 'Ada' }) }
  const second = await tool(name, retry)
  const shown = Buffer.from(stateOf(second).slice(3), 'base64url').toString('latin1')
  assert.doesNotMatch(shown, /Ada|step|multi_round/)
  const last = { requestState: stateOf(second), inputResponses: filled('step2', { color: 'blue' }) }
  assert.equal(textOf(await tool(name, last)), 'Hello, Ada! You said: accept {"color":"blue"}')
})

// What a client that didn't declare it is not asked.

test('a client is asked only what it declared, by prompts, resources and tools alike', async (t) => {
  const { ask, tool } = await serveFixture(t)
  const url = { elicitation: { url: {} } }
  const form = { requiredCapabilities: { elicitation: { form: {} } } }
  const cases: [Promise<Reply>, data: unknown][] = [
    [ask('prompts/get', { name: ASKING_PROMPT }, { capabilities: {} }), form],
    [ask('prompts/get', { name: ASKING_PROMPT }, { capabilities: url }), form],
    [ask('resources/read', { uri: GUARDED }, { capabilities: { sampling: {} } }), form],
    [tool('test_missing_capability', {}, { capabilities: {} }), { requiredCapabilities: { sampling: {} } }],
    [
      tool('test_input_required_result_list_roots', {}, { capabilities: { elicitation: {} } }),
      { requiredCapabilities: { roots: {} } },
    ],
    [
      tool(
        'test_input_required_result_multiple_inputs',
        {},
        { capabilities: { elicitation: {}, roots: {} } },
      ),
      { requiredCapabilities: { sampling: {} } },
    ],
  ]
  for (const [pending, data] of cases) {
    const reply = await pending
    assertRefused(reply, 400, -32021, at(reply.body, 'id'))
    assert.deepEqual(at(errorOf(reply), 'data'), data)
  }
})

test('no answer is read of a client that did not declare what it answers', async (t) => {
  const { tool } = await serveFixture(t)
  const inputResponses = filled('user_name', { name: 'Ada' })
  const name = 'test_input_required_result_elicitation'
  assert.equal(textOf(await tool(name, { inputResponses })), 'Hello, Ada!')
  const reply = await tool(name, { inputResponses }, { capabilities: {} })
  assert.equal(reply.status, 400)
  assert.equal(codeOf(reply), -32021)
})

test('a capability that is missing is told with its status, before a stream begins', async (t) => {
  const { open } = await serveFixture(t)
  const call = { name: 'test_streaming_elicitation', arguments: {} }
  const meta = { progressToken: 'p' }
  const refused = await open('tools/call', call, { capabilities: {}, meta })
  assert.equal(refused.status, 400)
  assert.equal(refused.headers['content-type'], 'application/json')
  const [error] = await refused.rest()
  assert.equal(at(error, 'error', 'code'), -32021)

  const asked = await (await open('tools/call', call, { meta })).rest()
  assert.deepEqual(asked.map(methodOf), ['notifications/progress', undefined])
  assert.equal(at(asked[1], 'result', 'resultType'), 'input_required')
})

test('malformed answers are asked for again, whatever else comes with them', async (t) => {
  const { tool } = await serveFixture(t)
  const name = 'test_input_required_result_multiple_inputs'
  const requestState = stateOf(await tool(name))
  const good = {
    user_name: { action: 'accept', content: { name: 'Ada' } },
    greeting: { role: 'assistant', content: [{ type: 'text', text: 'Hi.' }], model: 'm' },
    client_roots: { roots: [{ uri: 'file:///work' }] },
    another: 1,
  }
  for (const bad of [
    { user_name: { action: 'accept', content: { name: 7 } } },
    { user_name: { action: 'accept' } },
    { user_name: { action: 'agree', content: { name: 'Ada' } } },
    { greeting: { role: 'user', content: { type: 'text', text: 'Hi.' } } },
    { greeting: { role: 'assistant', content: { type: 'image' } } },
    { client_roots: { roots: [{ uri: 'http://example.com' }] } },
    { client_roots: [] },
  ]) {
    const inputResponses = { ...good, ...bad }
    const reply = await tool(name, { requestState, inputResponses })
    assert.equal(resultType(reply), 'input_required', JSON.stringify(bad))
  }
  const done = await tool(name, { requestState, inputResponses: good })
  assert.equal(textOf(done), 'Hello, Ada! Hi. Roots: file:///work')
})

// Resources.

test('a resource is read by its URI, or by a template that fits it', async (t) => {
  const { ask } = await serveFixture(t)
  const read = async (uri: string) => at(resultOf(await ask('resources/read', { uri })), 'contents', '0')
  const text = 'This is the content of the static text resource.'
  assert.deepEqual(await read('test://static-text'), {
    uri: 'test://static-text',
    mimeType: 'text/plain',
    text,
  })
  const binary = await read('test://static-binary')
  const bytes = Buffer.from(String(at(binary, 'blob')), 'base64')
  assert.equal(bytes.subarray(1, 4).toString(), 'PNG')
  const uri = 'test://template/a%20b/data'
  const data = JSON.stringify({ id: 'a b', templateTest: true, data: 'Data for ID: a b' })
  assert.deepEqual(await read(uri), { uri, mimeType: 'application/json', text: data })
})

test('a URI of no resource, or that is none, is refused with -32602 and repeated in data', async (t) => {
  const { url } = await serveFixture(t)
  for (const uri of [
    'test://nope',
    'test://static-text/',
    'TEST://static-text',
    'test://template//data',
    'test://template/a/b/data',
    'test://template/%/data',
    'test://template/a b/data',
    'test://template/\u4e16/data',
    'test://template/a/data#x',
    `test://template/${'a'.repeat(3000)}/data`,
    'static-text',
    '../../etc/passwd',
    '',
  ]) {
    const reply = await assertInvalid(url, 'resources/read', { uri })
    assert.deepEqual(errorOf(reply), { code: -32602, message: 'Resource not found', data: { uri } })
  }
  await assertInvalid(url, 'resources/read', { uri: 7 })
})

test('a resource that asks is read when the user allowed it, and by nobody else', async (t) => {
  const { ask } = await serveFixture(t)
  const requestState = stateOf(await ask('resources/read', { uri: GUARDED }))
  const read = async (answer: Json) => {
    const retry = { uri: GUARDED, requestState, inputResponses: { permission: answer } }
    return at(resultOf(await ask('resources/read', retry)), 'contents', '0', 'text')
  }
  assert.equal(await read({ action: 'accept', content: { allow: true } }), 'The guarded content.')
  for (const no of [{ action: 'decline' }, { action: 'accept', content: { allow: false } }])
    assert.equal(await read(no), '(The user kept this to themselves.)')
  assert.equal(await read({ action: 'accept', content: { allow: 'true' } }), undefined)
})

test('what came of a retry is not to be kept by anybody, and a question has no caching at all', async (t) => {
  const { ask } = await serveFixture(t)
  const caching = (reply: Reply) => ['ttlMs', 'cacheScope'].map((key) => at(resultOf(reply), key))
  assert.deepEqual(caching(await ask('resources/read', { uri: 'test://static-text' })), [
    3_600_000,
    'public',
  ])
  const asked = await ask('resources/read', { uri: GUARDED })
  assert.deepEqual(caching(asked), [undefined, undefined])
  const retry = { uri: GUARDED, requestState: stateOf(asked), inputResponses: ALLOW }
  assert.deepEqual(caching(await ask('resources/read', retry)), [0, 'private'])
  const empty = await ask('resources/read', { uri: 'test://static-text', inputResponses: {} })
  assert.deepEqual(caching(empty), [0, 'private'])
})

test('the header that mirrors a prompt or a URI must be there and say the same', async (t) => {
  const { url } = await serveFixture(t)
  for (const sent of [
    request('prompts/get', { name: ASKING_PROMPT }),
    request('resources/read', { uri: WATCHED }),
  ]) {
    const missing = without(sent, 'Mcp-Name')
    for (const wrong of [missing, plus(missing, 'Mcp-Name', 'test://static-text')]) {
      assertRefused(await send(url, wrong), 400, -32020, at(sent.body, 'id'))
    }
  }
})

// Completion.

test('completion gives what holds the typed text, the best first, and says how much there is', async (t) => {
  const { ask } = await serveFixture(t)
  const complete = async (ref: Json, name: string, value: string, more: Json = {}) =>
    at(
      resultOf(await ask('completion/complete', { ref, argument: { name, value }, ...more })),
      'completion',
    )
  const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }
  const words = (...values: string[]) => ({ values, total: values.length, hasMore: false })
  assert.deepEqual(await complete(prompt, 'arg1', 'PAR'), words('paris', 'park', 'party'))
  assert.deepEqual(await complete(prompt, 'arg1', 'test'), words('test', 'testing', 'latest'))
  const context = { context: { arguments: { arg1: 'park' } } }
  assert.deepEqual(await complete(prompt, 'arg2', 'par', context), words('paris', 'party'))
  assert.deepEqual(await complete(prompt, 'arg1', 'zzz'), words())

  const template = { type: 'ref/resource', uri: 'test://template/{id}/data' }
  const all = await complete(template, 'id', '')
  assert.equal((at(all, 'values') as unknown[]).length, 100)
  assert.deepEqual([at(all, 'total'), at(all, 'hasMore')], [250, true])
  assert.deepEqual(await complete(template, 'id', '25'), words('25', '250', '125', '225'))
})

test('completion for what does not exist, and malformed, is refused with -32602', async (t) => {
  const { url } = await serveFixture(t)
  const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }
  const argument = { name: 'arg1', value: '' }
  for (const params of [
    {},
    { ref },
    { argument },
    { ref: 'ref/prompt', argument },
    { ref: { ...ref, name: 'nope' }, argument },
    { ref: { type: 'ref/tool', name: 'test_simple_text' }, argument },
    { ref: { type: 'ref/resource', uri: 'test://static-text' }, argument },
    {
      ref: { type: 'ref/resource', uri: 'test://template/{id}/data' },
      argument: { name: 'constructor', value: '' },
    },
    { ref, argument: { name: 'arg3', value: '' } },
    { ref, argument: { name: 'arg1' } },
    { ref, argument: { name: 'arg1', value: 1 } },
    { ref, argument, context: [] },
    { ref, argument, context: { arguments: { arg2: 2 } } },
  ]) {
    await assertInvalid(url, 'completion/complete', params)
  }
})

// Progress and log messages.

test('progress is reported to whoever gave a token, with that token, growing, and ends with the response', async (t) => {
  const { open, tool } = await serveFixture(t)
  const call = { name: 'test_tool_with_progress', arguments: {} }
  for (const progressToken of ['p-1', 0]) {
    const stream = await open('tools/call', call, { meta: { progressToken } })
    assert.equal(stream.headers['content-type'], 'text/event-stream')
    const messages = await stream.rest()
    const last = messages.pop()
    assert.equal(at(last, 'result', 'resultType'), 'complete')
    assert.deepEqual(new Set(messages.map(methodOf)), new Set(['notifications/progress']))
    const params = messages.map((message) => at(message, 'params'))
    assert.deepEqual(
      params.map((p) => [at(p, 'progress'), at(p, 'total')]),
      [
        [0, 100],
        [50, 100],
        [100, 100],
      ],
    )
    assert.ok(
      params.every((p) => at(p, 'progressToken') === progressToken),
      'it is the token of the request',
    )
  }
  const plain = await tool('test_tool_with_progress')
  assert.match(String(plain.headers['content-type']), /^application\/json/)
})

test('log messages come at the level that the request names, and above, on its own answer only', async (t) => {
  const { open, tool } = await serveFixture(t)
  const { stream: other } = await subscribed(open, { toolsListChanged: true })
  const call = { name: 'test_logging_tool', arguments: {} }
  const levels = async (level: string) => {
    const stream = await open('tools/call', call, { meta: { [LOG_LEVEL]: level } })
    const messages = await stream.rest()
    assert.equal(at(messages.pop(), 'result', 'resultType'), 'complete')
    assert.ok(
      messages.every((message) => methodOf(message) === 'notifications/message'),
      'nothing else comes',
    )
    return messages.map((message) => at(message, 'params', 'level'))
  }
  assert.deepEqual(await levels('debug'), ['debug', 'warning', 'error'])
  assert.deepEqual(await levels('info'), ['warning', 'error'])
  assert.deepEqual(await levels('warning'), ['warning', 'error'])
  assert.deepEqual(await levels('critical'), [])
  const silent = await tool('test_logging_tool')
  assert.match(String(silent.headers['content-type']), /^application\/json/, 'no level, no message')
  assert.equal((await tool('test_logging_tool', {}, { meta: { [LOG_LEVEL]: 'loud' } })).status, 400)

  await tool('test_trigger_tool_change')
  assert.equal(methodOf(await other.next()), 'notifications/tools/list_changed', 'no message came before')
})

test('streams at the same time have each their own progress and no event id', async (t) => {
  const { open } = await serveFixture(t)
  const call = { name: 'test_tool_with_progress', arguments: {} }
  const tokens = ['a', 'b', 'c', 'd']
  const streams = await Promise.all(
    tokens.map((progressToken) => open('tools/call', call, { meta: { progressToken } })),
  )
  for (const [i, stream] of streams.entries()) {
    const messages = await stream.rest() // each event is a type and data, and fails to be read otherwise
    const seen = messages.slice(0, -1).map((message) => at(message, 'params', 'progressToken'))
    assert.deepEqual(seen, Array(3).fill(tokens[i]))
  }
})

test('a tool ends early when its client hangs up', async (t) => {
  const { open, http } = await serveFixture(t)
  const call = { name: 'test_tool_with_progress', arguments: {} }
  const stream = await open('tools/call', call, { meta: { progressToken: 1 } })
  await stream.next()
  stream.hangUp()
  while (http.serving() > 0) await new Promise(setImmediate)
  await stop(http, 0)
})

// Subscriptions.

const EVERY_LIST = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

/** Opens a subscription. @returns the stream after its first message, which is checked. */
async function subscribed(
  open: Fixture['open'],
  notifications: Json,
): Promise<{ readonly stream: Stream; readonly acknowledged: unknown; readonly id: unknown }> {
  const stream = await open('subscriptions/listen', { notifications })
  assert.equal(stream.headers['content-type'], 'text/event-stream')
  const first = await stream.next()
  assert.equal(methodOf(first), 'notifications/subscriptions/acknowledged')
  const id = at(first, 'params', '_meta', SUBSCRIPTION_ID)
  return { stream, acknowledged: at(first, 'params', 'notifications'), id }
}

test('an acknowledgment is the first message and names what was asked for and can be sent, no more', async (t) => {
  const { open } = await serveFixture(t)
  const cases: [asked: Json, agreed: Json][] = [
    [EVERY_LIST, EVERY_LIST],
    [{ toolsListChanged: true, promptsListChanged: false }, { toolsListChanged: true }],
    [{}, {}],
    [{ tasksChanged: true, toString: true }, {}],
    [
      { resourceSubscriptions: [WATCHED, 'test://nope', WATCHED, 'test://template/7/data'] },
      { resourceSubscriptions: [WATCHED, 'test://template/7/data'] },
    ],
    [{ resourceSubscriptions: [] }, { resourceSubscriptions: [] }],
  ]
  for (const [asked, agreed] of cases) {
    const { stream, acknowledged } = await subscribed(open, asked)
    assert.deepEqual(acknowledged, agreed)
    stream.hangUp()
  }
})

test('a subscription without a filter, or with a malformed one, is refused before a stream begins', async (t) => {
  const { url, changes } = await serveFixture(t)
  for (const notifications of [
    undefined,
    null,
    [],
    'toolsListChanged',
    { toolsListChanged: 1 },
    { promptsListChanged: null },
    { resourceSubscriptions: WATCHED },
    { resourceSubscriptions: [7] },
  ]) {
    await assertInvalid(url, 'subscriptions/listen', { notifications })
  }
  assert.equal(changes.listening, 0)
})

test('a subscription gets each change of what it asked for, with its id, and nothing else', async (t) => {
  const { open, tool } = await serveFixture(t)
  const tools = await subscribed(open, { toolsListChanged: true })
  const prompts = await subscribed(open, { promptsListChanged: true })
  const watching = await subscribed(open, { resourceSubscriptions: [WATCHED] })
  const elsewhere = await subscribed(open, { resourceSubscriptions: ['test://static-text'] })
  const all = await subscribed(open, { ...EVERY_LIST, resourceSubscriptions: [WATCHED] })
  const changes = ['tool_change', 'prompt_change', 'resource_change', 'resource_update', 'tool_change']
  for (const change of changes) await tool(`test_trigger_${change}`)

  const expect = async ({ stream, id }: typeof all, ...methods: string[]) => {
    for (const method of methods) {
      const uri = method === 'resources/updated' ? { uri: WATCHED } : {}
      const params = { ...uri, _meta: { [SUBSCRIPTION_ID]: id } }
      assert.deepEqual(await stream.next(), { jsonrpc: '2.0', method: `notifications/${method}`, params })
    }
  }
  await expect(tools, 'tools/list_changed', 'tools/list_changed')
  await expect(prompts, 'prompts/list_changed')
  await expect(watching, 'resources/updated')
  const lists = ['tools/list_changed', 'prompts/list_changed', 'resources/list_changed']
  await expect(all, ...lists, 'resources/updated', 'tools/list_changed')

  // One more of its own for each, so that anything that came too much would stand before it.
  for (const change of ['prompt_change', 'resource_update']) await tool(`test_trigger_${change}`)
  await expect(prompts, 'prompts/list_changed')
  await expect(watching, 'resources/updated')
  assert.equal(new Set([tools, prompts, watching, elsewhere, all].map(({ id }) => id)).size, 5)
})

test('the resource that was announced as updated reads otherwise than before', async (t) => {
  const { open, ask, tool } = await serveFixture(t)
  const { stream } = await subscribed(open, { resourceSubscriptions: [WATCHED] })
  const read = async () =>
    at(resultOf(await ask('resources/read', { uri: WATCHED })), 'contents', '0', 'text')
  const before = await read()
  await tool('test_trigger_resource_update')
  assert.equal(at(await stream.next(), 'params', 'uri'), WATCHED)
  assert.notEqual(await read(), before)
})

test('the id of a subscription is that of its request, also where it is a text', async (t) => {
  const { url, tool } = await serveFixture(t)
  const { headers, body } = request('subscriptions/listen', { notifications: { toolsListChanged: true } })
  const stream = await openStream(url, { headers, body: { ...body, id: 'sub-1' } })
  assert.equal(at(await stream.next(), 'params', '_meta', SUBSCRIPTION_ID), 'sub-1')
  await tool('test_trigger_tool_change')
  assert.equal(at(await stream.next(), 'params', '_meta', SUBSCRIPTION_ID), 'sub-1')
})

test('a client that hangs up has ended its subscription, and no other', async (t) => {
  const { open, tool, changes } = await serveFixture(t)
  const one = await subscribed(open, { toolsListChanged: true })
  const two = await subscribed(open, { toolsListChanged: true })
  assert.equal(changes.listening, 2)
  one.stream.hangUp()
  while (changes.listening > 1) await new Promise(setImmediate)
  await tool('test_trigger_tool_change')
  assert.equal(methodOf(await two.stream.next()), 'notifications/tools/list_changed')
})

test('a server that stops answers each subscription before it ends it', async (t) => {
  const { open, http, changes } = await serveFixture(t)
  const subscriptions = [await subscribed(open, {}), await subscribed(open, EVERY_LIST)]
  const stopped = stop(http, 60_000)
  for (const { stream, id } of subscriptions) {
    const [last, ...more] = await stream.rest()
    assert.equal(at(last, 'id'), id)
    assert.equal(at(last, 'result', 'resultType'), 'complete')
    assert.equal(at(last, 'result', '_meta', SUBSCRIPTION_ID), id)
    assert.equal(
      at(last, 'result', '_meta', 'io.modelcontextprotocol/serverInfo', 'name'),
      'conformance-fixture',
    )
    assert.deepEqual(more, [])
  }
  await stopped
  assert.equal(changes.listening, 0)
})

test('a subscription is checked like any request', async (t) => {
  const { url, ask, changes } = await serveFixture(t)
  const sent = request('subscriptions/listen', { notifications: EVERY_LIST })
  assertRefused(await send(url, without(sent, 'Mcp-Method')), 400, -32020, at(sent.body, 'id'))
  assertRefused(await send(url, without(sent, 'MCP-Protocol-Version')), 400, -32020, at(sent.body, 'id'))
  const foreign = await send(url, plus(sent, 'Origin', 'https://evil.example'))
  assert.equal(foreign.status, 403)
  const meta = { 'io.modelcontextprotocol/clientCapabilities': 7 }
  const malformed = await ask('subscriptions/listen', { notifications: {} }, { meta })
  assert.deepEqual([malformed.status, codeOf(malformed)], [400, -32602])
  assert.equal(changes.listening, 0)
})

test('for a client that reads nothing one change of a kind is kept, and no stop is held up', async (t) => {
  const { url, http, changes } = await serveFixture(t)
  const [CHANGES, SIZE] = [400, 200_000] // together more than the two ends of a connection hold
  const { headers, body } = request('subscriptions/listen', { notifications: EVERY_LIST })
  const text = JSON.stringify({ ...body, id: 'x'.repeat(SIZE) }) // each notification repeats its id
  const lines = [['Host', url.host], ['Content-Length', String(text.length)], ...headers]
  const socket = connect(Number(url.port), url.hostname)
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n${text}`)
  while (changes.listening === 0) await new Promise(setImmediate)
  for (let change = 0; change < CHANGES; change += 1) {
    changes.announce({ method: 'notifications/tools/list_changed' })
    await new Promise(setImmediate)
  }
  const stopped = stop(http, 60_000)
  while (http.serving() > 0) await new Promise(setImmediate)
  let told = 0
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    told += chunk.split('list_changed"').length - 1
  })
  await once(socket, 'close')
  await stopped
  assert.ok(told > 0 && told < CHANGES / 2, `it was told ${told} times`)
})

test('each method is limited in rate, like tools', async (t) => {
  const { ask } = await serveFixture(t, { RATE_LIMIT_PER_MINUTE: '3' })
  const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }
  const calls = [
    () => ask('completion/complete', { ref, argument: { name: 'arg1', value: '' } }),
    () => ask('prompts/get', { name: 'test_simple_prompt' }),
    () => ask('resources/read', { uri: WATCHED }),
  ]
  for (const call of calls) assert.equal((await call()).status, 200)
  for (const call of [...calls, () => ask('subscriptions/listen', { notifications: {} })]) {
    const refused = await call()
    assert.equal(refused.status, 429)
    assert.ok(refused.headers['retry-after'] !== undefined, 'it says when to come again')
  }
})
