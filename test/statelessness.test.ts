/** What a connection must not mean: requests that follow each other on one have nothing in common. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, type Header, type Json, message, type Reply } from '../client.ts'
import { head, raw } from './raw.ts'
import { answer, type Call, codeOf, plus, ROLLBACK, serve, stateOf, textOf, without } from './serve.ts'

const META = 'io.modelcontextprotocol'
const CLOSE: Header = ['Connection', 'close']

const called = (more: Json = {}, capabilities?: Json): Call => {
  const params = { name: 'rollback_release', arguments: ROLLBACK, ...more }
  return plus(message('tools/call', params, capabilities), 'Mcp-Param-Service', ROLLBACK.service)
}

/** The call with more in its `_meta`. */
function wishing(call: Call, members: Json): Call {
  const params = Object(call.body.params)
  return { ...call, body: { ...call.body, params: { ...params, _meta: { ...params._meta, ...members } } } }
}

/** One connection: each call goes out when the one before has its answer, and the last one ends it. */
function oneAfterAnother(url: URL, ...calls: readonly Call[]): Promise<Reply[]> {
  const script = calls.flatMap(({ headers, body }, i): (string | RegExp)[] => {
    const text = JSON.stringify(body)
    const lines: Header[] = [
      ['Host', url.host],
      ['Content-Length', `${Buffer.byteLength(text)}`],
      ...headers,
    ]
    const answered = new RegExp(`^(HTTP/1.1 [^]*?){${i + 1}}(}|\r\n\r\n)$`)
    const last = i === calls.length - 1
    return [head(last ? [...lines, CLOSE] : lines) + text, ...(last ? [] : [answered])]
  })
  return raw(url, ...script)
}

test('what one request says of its client counts for no other on its connection', async (t) => {
  const { url, performed } = await serve(t)
  const replies = await oneAfterAnother(
    url,
    called(),
    called({}, {}),
    message('server/discover', {}, {}, '1900-01-01'),
    without(message('server/discover'), 'MCP-Protocol-Version'),
    message('server/discover', {}, {}),
    called({}, { sampling: {} }),
    called(),
  )
  assert.deepEqual(
    replies.map((reply) => [reply.status, codeOf(reply) ?? at(reply.body, 'result', 'resultType')]),
    [
      [200, 'input_required'],
      [400, -32021],
      [400, -32022],
      [400, -32020],
      [200, 'complete'],
      [400, -32021],
      [200, 'input_required'],
    ],
  )
  assert.deepEqual(performed, [])
})

test('a connection carries one answer to each request and nothing else, whatever was asked for', async (t) => {
  const { url, ask, performed } = await serve(t)
  const wishes = { [`${META}/logLevel`]: 'debug', progressToken: 'p' }
  const everything = {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: { listChanged: true },
  }
  const yes = { requestState: await ask(), inputResponses: answer({ confirm: true }) }
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
  const calls = [
    message('server/discover', {}, everything),
    wishing(message('tools/list', {}, everything), wishes),
    wishing(called({}, everything), wishes),
    wishing(called(yes, everything), wishes),
    { ...message('tools/list'), body: cancelled },
    message('subscriptions/listen', { notifications: { toolsListChanged: true } }),
    message('tools/list'),
  ]
  const replies = await oneAfterAnother(url, ...calls)
  assert.deepEqual(
    replies.map(({ status, body }) => [status, at(body, 'id')]),
    calls.map(({ body }, i) => [[200, 200, 200, 200, 202, 404, 200][i], at(body, 'id')]),
  )
  for (const { headers, text, body } of replies) {
    assert.equal(at(body, 'method'), undefined, text)
    assert.doesNotMatch(String(headers['content-type']), /event-stream/)
  }
  assert.equal(performed.length, 1)
})

test('the list of tools is the same on every connection and after every call', async (t) => {
  const { url, ask, performed } = await serve(t)
  const yes = { requestState: await ask(), inputResponses: answer({ confirm: true }) }
  const list = () => message('tools/list')
  const listed = (replies: readonly Reply[]) =>
    replies.map(({ body }) => at(body, 'result', 'tools')).filter((tools) => tools !== undefined)
  const one = listed(await oneAfterAnother(url, list(), called(), list(), called(yes), list()))
  const others = await Promise.all([oneAfterAnother(url, list()), oneAfterAnother(url, called(), list())])
  assert.deepEqual([one.length, performed.length], [3, 1])
  for (const tools of [...one, ...others.flatMap(listed)]) assert.deepEqual(tools, one[0])
})

test('a question that nobody answers leaves nothing running', async (t) => {
  const [one, two] = [await serve(t), await serve(t)]
  const timers = [t.mock.method(globalThis, 'setTimeout'), t.mock.method(globalThis, 'setInterval')]
  for (let i = 0; i < 50; i += 1) await one.ask()
  assert.deepEqual(
    timers.map(({ mock }) => mock.callCount()),
    [0, 0],
  )
  const done = await two.yes(stateOf(await one.call()))
  assert.equal(textOf(done), 'Rolled checkout back to v1.41.2. Reason: p99 regression')
  assert.deepEqual([one.performed.length, two.performed.length], [0, 1])
})
