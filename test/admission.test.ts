import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, type Header, type Json, message, send, VERSION } from '../client.ts'
import { plainTool } from '../lib/tool.ts'
import {
  approvedCall,
  assertHeldBack,
  assertRefused,
  type Call,
  codeOf,
  plus,
  ROLLBACK,
  replacing,
  resultOf,
  sendBytes,
  serve,
  textOf,
  without,
} from './serve.ts'

const KEY = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
}
const NAME = 'rollback_release'
const LONG = 'x'.repeat(10_000)

/** The message with other members in its body; undefined leaves one out. */
const body = (call: Call, members: Json): Call => ({ ...call, body: { ...call.body, ...members } })
const params = (call: Call, members: Json): Call =>
  body(call, { params: { ...Object(call.body.params), ...members } })
const meta = (call: Call, members: Json): Call =>
  params(call, { _meta: { ...Object(at(call.body, 'params', '_meta')), ...members } })

/** A request of no tool, with the header that mirrors its name where the body has none. */
const named = (method: string, name: string, rest: Json = {}): Call =>
  plus(message(method, rest), 'Mcp-Name', name)

test('what is not JSON in UTF-8 is a parse error without id', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const good = JSON.stringify(call.body)
  const bytes = (...parts: (string | number)[]) =>
    Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(p) : Buffer.of(p))))
  const cases: (string | Buffer)[] = [
    '',
    ' ',
    '{',
    '{"jsonrpc":',
    good.slice(0, -1),
    `${good}}`,
    `${good}${good}`,
    `[${good}`,
    good.replace('{', '{,'),
    good.replace('"2.0"', "'2.0'"),
    good.replace('"2.0"', '"2.0\n"'),
    `${good}//`,
    'undefined',
    'NaN',
    `\ufeff${good}`,
    Buffer.from(good, 'utf16le'),
    bytes('{"more":"', 0xff, '",', good.slice(1)),
    bytes('{"more":"', 0xc3, '",', good.slice(1)), // the first half of a character
    bytes('{"more":"', 0xc0, 0x80, '",', good.slice(1)), // NUL, overlong
    bytes('{"more":"', 0xed, 0xa0, 0x80, '",', good.slice(1)), // half a surrogate pair
  ]
  for (const text of cases) {
    const reply = await send(served.url, { ...call, body: text })
    const label = text.toString().slice(0, 80)
    assert.equal(assertRefused(reply, 400, -32700, undefined, label), 'Parse error')
  }
  await assertHeldBack(served, call)
})

test('a batch, a response or what is no object is refused without id', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  for (const text of [
    [call.body],
    [call.body, call.body],
    [],
    null,
    true,
    5,
    '"text"',
    { jsonrpc: '2.0', id: 5, result: {} },
    { jsonrpc: '2.0', id: 5, result: null },
    { jsonrpc: '2.0', id: 5, error: { code: -32600, message: 'no' } },
    {},
  ]) {
    const reply = await send(served.url, { ...call, body: text })
    assertRefused(reply, 400, -32600, undefined, JSON.stringify(text).slice(0, 80))
  }
  await assertHeldBack(served, call)
})

test('a request that breaks JSON-RPC is refused with its id', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  for (const members of [
    { jsonrpc: undefined },
    { jsonrpc: '1.0' },
    { jsonrpc: '2' },
    { jsonrpc: 2 },
    { jsonrpc: null },
    { jsonrpc: ['2.0'] },
    { method: undefined },
    { method: null },
    { method: 5 },
    { method: ['tools/call'] },
    { method: {} },
    { result: {} },
    { error: { code: 1, message: 'no' } },
  ]) {
    const reply = await send(served.url, body(call, members))
    assertRefused(reply, 400, -32600, call.body.id, JSON.stringify(members))
  }
  await assertHeldBack(served, call)
})

test('an id is a string or a safe integer and comes back as it was', async (t) => {
  const { url } = await serve(t)
  for (const id of [
    '',
    '1',
    'abc',
    '世界 \u202e',
    LONG,
    1,
    0,
    -1,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
  ]) {
    const reply = await send(url, body(message('tools/list'), { id }))
    assert.deepEqual([reply.status, at(reply.body, 'id')], [200, id])
    const refused = await send(url, body(message('nope'), { id }))
    assertRefused(refused, 404, -32601, id)
  }
  const text = JSON.stringify(message('tools/list').body).replace(/"id":\d+/, '"id":1.0')
  const whole = await send(url, { ...message('tools/list'), body: text })
  assert.deepEqual([whole.status, at(whole.body, 'id')], [200, 1])
})

test('any other id is refused and not repeated; null is not the id of a notification', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const text = (id: string) => JSON.stringify(call.body).replace(/"id":\d+/, `"id":${id}`)
  for (const id of [
    'null',
    'true',
    'false',
    '1.5',
    '{}',
    '[]',
    '[1]',
    '1e400',
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
  ]) {
    const reply = await send(served.url, { ...call, body: text(id) })
    assertRefused(reply, 400, -32600, undefined, id)
  }
  const cancelled = { jsonrpc: '2.0', id: null, method: 'notifications/cancelled' }
  assertRefused(await send(served.url, { ...call, body: cancelled }), 400, -32600)
  await assertHeldBack(served, call)
})

test('members that no message has are ignored, and of two equal names the last one counts', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const twice = JSON.stringify(call.body).replace(`"${NAME}"`, `"${NAME}","name":"other"`)
  assertRefused(await send(served.url, { ...call, body: twice }), 400, -32020, call.body.id)
  await assertHeldBack(served, call)
  const more = params(body(call, { more: 1, Method: 'nope' }), { Name: 'other', more: null })
  assert.equal((await send(served.url, more)).status, 200)
  assert.equal(served.performed.length, 2)
})

test('every notification is taken with 202 and nothing else', async (t) => {
  const { url, performed } = await serve(t)
  const bare: Header[] = [['Content-Type', 'application/json']]
  const { headers } = message('notifications/cancelled')
  const old: Header[] = [...bare, ['MCP-Protocol-Version', '2025-06-18'], ['Mcp-Method', 'other']]
  for (const lines of [bare, headers, old]) {
    for (const notification of [
      { method: 'notifications/cancelled', params: { requestId: 1, reason: 'no' } },
      { method: 'notifications/cancelled' },
      { method: 'notifications/cancelled', params: {} },
      { method: 'notifications/cancelled', params: { requestId: null } },
      { method: 'notifications/initialized' },
      { method: 'notifications/unheard-of', params: [] },
    ]) {
      const reply = await send(url, { headers: lines, body: { jsonrpc: '2.0', ...notification } })
      const label = JSON.stringify(notification)
      assert.deepEqual([reply.status, reply.text], [202, ''], label)
      assert.equal(reply.headers['content-type'], undefined, label)
    }
  }
  assert.deepEqual(performed, [])
})

test('anything else without an id is refused without id and never executed', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  for (const method of ['tools/call', 'tools/list', 'nope', 'notification', 'Notifications/x', '']) {
    const reply = await send(served.url, body(call, { id: undefined, method }))
    assertRefused(reply, 400, -32600, undefined, method)
  }
  await assertHeldBack(served, call)
})

test('a cancelled notification stops no call of anybody', { timeout: 5000 }, async (t) => {
  let started = (_: AbortSignal) => {}
  const running = new Promise<AbortSignal>((resolve) => {
    started = resolve
  })
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const waits = plainTool(
    { name: 'waits', description: 'Waits.', inputSchema: { type: 'object' } },
    async ({ client: { signal } }) => {
      started(signal)
      await released
      return { content: [{ type: 'text', text: `aborted: ${signal.aborted}` }] }
    },
  )
  const { url } = await serve(t, { tools: [waits] })
  const call = message('tools/call', { name: 'waits' })
  const answer = send(url, call)
  await running
  const cancel = { method: 'notifications/cancelled', params: { requestId: call.body.id } }
  const taken = await send(url, { ...call, body: { jsonrpc: '2.0', ...cancel } })
  assert.equal(taken.status, 202)
  release()
  assert.equal(textOf(await answer), 'aborted: false')
})

test('the version header is there once and equals the body, character for character', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const header = 'MCP-Protocol-Version'
  const version = (value: string) => replacing(call, header, value)
  for (const [spoiled, says] of [
    [without(call, header), '(missing)'],
    [plus(call, header, VERSION), VERSION],
    [plus(call, header, '2025-11-25'), '2025-11-25'],
    [version('2025-11-25'), '2025-11-25'],
    [version('1900-01-01'), '1900-01-01'],
    [version(''), VERSION],
    [version(`${VERSION}, ${VERSION}`), VERSION],
    [version(`v${VERSION}`), `v${VERSION}`],
    [version('=?base64?MjAyNi0wNy0yOA==?='), '=?base64?'],
    [version(`${VERSION}\xa0`), VERSION],
    [meta(call, { [KEY.version]: 'v999.0.0' }), 'v999.0.0'],
  ] as const) {
    const reply = await sendBytes(served.url, spoiled)
    const text = assertRefused(reply, 400, -32020, call.body.id, says)
    for (const part of [header, says]) assert.ok(text.includes(part), `${text} lacks ${part}`)
  }
  await assertHeldBack(served, call)
})

test('an unsupported version is told what is supported, whatever else is wrong', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  for (const requested of [
    '1900-01-01',
    '2025-11-25',
    '2025-03-26',
    '2099-01-01',
    'v999.0.0',
    '__proto__',
    'length',
    '0',
    '',
  ]) {
    const header = replacing(call, 'MCP-Protocol-Version', requested)
    const old = meta(header, { [KEY.version]: requested })
    for (const spoiled of [
      old,
      meta(old, { [KEY.capabilities]: undefined, [KEY.clientInfo]: 5, [KEY.logLevel]: 'loud' }),
      without(without(old, 'Mcp-Method'), 'Mcp-Name'),
      body(old, { method: 'server/discover' }),
      params(old, { name: 'no_such_tool', arguments: [] }),
    ]) {
      const reply = await send(served.url, spoiled)
      const text = assertRefused(reply, 400, -32022, call.body.id, requested)
      assert.equal(text, 'Unsupported protocol version')
      assert.deepEqual(at(reply.body, 'error', 'data'), { supported: [VERSION], requested })
    }
  }
  await assertHeldBack(served, call)
})

test('one request with an unsupported version does not spoil the next', async (t) => {
  const { url } = await serve(t)
  assert.equal((await send(url, message('server/discover', {}, {}, '1900-01-01'))).status, 400)
  assert.equal((await send(url, message('server/discover'))).status, 200)
})

test('params, _meta and the version in it must be there; the message names what is not', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const cases: [key: string, spoiled: Call][] = []
  for (const wrong of [undefined, null, [], 'text', 5, true]) {
    cases.push(['params', body(call, { params: wrong })])
    cases.push(['_meta', params(call, { _meta: wrong })])
  }
  for (const wrong of [undefined, null, 20260728, ['2026-07-28'], {}, true]) {
    cases.push([KEY.version, meta(call, { [KEY.version]: wrong })])
  }
  cases.push([KEY.version, params(call, { _meta: {} })])
  for (const [key, spoiled] of cases) {
    const text = assertRefused(await send(served.url, spoiled), 400, -32602, call.body.id, key)
    assert.ok(text.includes(key), `${text} lacks ${key}`)
  }
  await assertHeldBack(served, call)
})

test('every known key of _meta has its type; the message names the key', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const wrong: [key: string, values: unknown[]][] = [
    [
      KEY.capabilities,
      [
        undefined,
        null,
        [],
        'elicitation',
        5,
        true,
        { elicitation: true },
        { elicitation: null },
        { elicitation: [] },
        { elicitation: { form: true } },
        { elicitation: { form: {}, url: 'yes' } },
        { roots: [] },
        { sampling: 1 },
        { sampling: { context: 1 } },
        { sampling: { tools: [] } },
        { experimental: [] },
        { experimental: { x: 1 } },
        { extensions: { 'com.example/x': null } },
      ],
    ],
    [
      KEY.clientInfo,
      [
        null,
        [],
        'client',
        {},
        { name: 'client' },
        { name: 1, version: '1' },
        { name: 'client', version: 1 },
        { name: 'client', version: '1', title: 5 },
        { name: 'client', version: '1', icons: {} },
      ],
    ],
    [KEY.logLevel, [null, 5, 'loud', 'DEBUG', '', {}]],
    ['progressToken', [null, 1.5, true, {}, []]],
  ]
  for (const [key, values] of wrong) {
    for (const value of values) {
      const reply = await send(served.url, meta(call, { [key]: value }))
      const label = `${key}: ${JSON.stringify(value)}`
      const text = assertRefused(reply, 400, -32602, call.body.id, label)
      assert.ok(text.includes(key), `${text} lacks ${key}`)
    }
  }
  const { [KEY.capabilities]: _, ...inherited } = Object(at(call.body, 'params', '_meta'))
  const text = JSON.stringify(params(call, { _meta: { ...inherited, PROTO: 0 } }).body)
  const proto = `"__proto__":{"${KEY.capabilities}":{"elicitation":{}}}`
  const reply = await send(served.url, { ...call, body: text.replace('"PROTO":0', proto) })
  assertRefused(reply, 400, -32602, call.body.id)
  await assertHeldBack(served, call)
})

test('good values of known keys and any values of unknown ones pass', async (t) => {
  const { url } = await serve(t)
  const capabilities = (value: Json) => ({ [KEY.capabilities]: value })
  for (const members of [
    { [KEY.clientInfo]: undefined },
    { [KEY.clientInfo]: { name: '', version: '', more: 5 } },
    { [KEY.logLevel]: 'debug' },
    { progressToken: 'x' },
    { progressToken: 0 },
    capabilities({}),
    capabilities({ roots: { listChanged: true }, sampling: { tools: {} }, future: 5 }),
    capabilities({ elicitation: { form: {}, url: {}, future: true } }),
    capabilities({ experimental: { x: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }),
    { 'com.example/x': 1, 'io.modelcontextprotocol/future': null, x: [] },
    { traceparent: 'garbage', tracestate: 5, baggage: null },
  ]) {
    const reply = await send(url, meta(message('tools/list'), members))
    assert.equal(reply.status, 200, JSON.stringify(members))
    assert.ok(!reply.text.includes('garbage'))
  }
})

test('Mcp-Method is there once and equals the method, with case and never decoded', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const header = 'Mcp-Method'
  const method = (value: string) => replacing(call, header, value)
  for (const [spoiled, says] of [
    [without(call, header), '(missing)'],
    [plus(call, header, 'tools/call'), 'tools/call'],
    [plus(call, header, 'tools/list'), 'tools/list'],
    [plus(call, 'MCP-METHOD', 'tools/call'), 'tools/call'],
    [method('tools/list'), 'tools/list'],
    [method('TOOLS/CALL'), 'TOOLS/CALL'],
    [method('tools/cal'), 'tools/cal'],
    [method('tools/call/'), 'tools/call/'],
    [method(''), 'tools/call'],
    [method('=?base64?dG9vbHMvY2FsbA==?='), '=?base64?'],
    [method('tools/call\xa0'), 'tools/call'],
  ] as const) {
    const text = assertRefused(await sendBytes(served.url, spoiled), 400, -32020, call.body.id, says)
    for (const part of [header, says, 'tools/call']) assert.ok(text.includes(part), text)
  }
  await assertHeldBack(served, call)
})

test('names of headers have no case, and space around a value is none of it', async (t) => {
  const { url } = await serve(t)
  const { headers, body } = message('tools/list')
  for (const spell of [
    (name: string) => name.toLowerCase(),
    (name: string) => name.toUpperCase(),
    (name: string) => name.replace(/./g, (c, i) => (i % 2 ? c.toUpperCase() : c.toLowerCase())),
  ]) {
    const spelled = headers.map(([name, value]): Header => [spell(name), `  ${value}\t `])
    assert.equal((await send(url, { headers: spelled, body })).status, 200)
  }
})

test('Mcp-Name is there once and equals the name of the tool', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const header = 'Mcp-Name'
  const other = (value: string) => replacing(call, header, value)
  for (const [spoiled, says] of [
    [without(call, header), '(missing)'],
    [plus(call, header, NAME), NAME],
    [plus(call, header, 'other'), 'other'],
    [plus(call, 'MCP-NAME', NAME), NAME],
    [other('something_else'), 'something_else'],
    [other('Rollback_Release'), 'Rollback_Release'],
    [other('rollback_releas'), 'rollback_releas'],
    [other(''), NAME],
    [other('=?base64?c29tZXRoaW5nX2Vsc2U=?='), NAME],
    [other(`${NAME}\xe9`), NAME],
    [other(`${NAME}\xa0`), NAME],
  ] as const) {
    const text = assertRefused(await sendBytes(served.url, spoiled), 400, -32020, call.body.id, says)
    for (const part of [header, says, NAME]) assert.ok(text.includes(part), text)
  }
  await assertHeldBack(served, call)
})

test('an encoded Mcp-Name is decoded, and refused when it is not canonical', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const encoded = (value: string) => replacing(call, 'Mcp-Name', `=?base64?${value}?=`)
  for (const value of [
    'cm9sbGJhY2tfcmVsZWFzZQ', // no padding
    'cm9sbGJhY2tfcmVsZWFzZQ=',
    'cm9sbGJhY2tfcmVsZWFzZQ===',
    'cm9sbGJhY2tfcmVsZWFzZR==', // spare bits
    'cm9sbGJhY2tf!cmVsZWFzZQ==', // alphabet
    'cm9sbGJhY2tf cmVsZWFzZQ==',
    'cm9sbGJhY2tfcmVsZWFzZQ==x',
    '=cm9sbGJhY2tfcmVsZWFzZQ==',
    '',
    '=',
    '!!!',
    '/w==', // not UTF-8
    '77u/cm9sbGJhY2tfcmVsZWFzZQ==', // a byte order mark before the name
  ]) {
    const reply = await send(served.url, encoded(value))
    assertRefused(reply, 400, -32020, call.body.id, value)
  }
  await assertHeldBack(served, call)
  assert.equal((await send(served.url, encoded('cm9sbGJhY2tfcmVsZWFzZQ=='))).status, 200)
  assert.equal(served.performed.length, 2)
})

test('a name that only looks encoded is literal, and one beyond ASCII must be encoded', async (t) => {
  const { url } = await serve(t)
  const code = async (name: string, header: string) =>
    codeOf(await sendBytes(url, replacing(message('tools/call', { name }), 'Mcp-Name', header)))
  for (const name of [
    '=?base64?ZWNobw==',
    'ZWNobw==?=',
    '=?base64?=',
    '=?BASE64?ZWNobw==?=',
    '=?Base64?ZWNobw==?=',
    'x=?base64?ZWNobw==?=',
    'a\tb',
  ]) {
    assert.equal(await code(name, name), -32602, name) // it passed: no such tool
  }
  assert.equal(await code('café', '=?base64?Y2Fmw6k=?='), -32602)
  assert.equal(await code('café', 'caf\xe9'), -32020)
  assert.equal(await code('café', 'caf\xc3\xa9'), -32020)
  assert.equal(await code('caf\xc3\xa9', 'caf\xc3\xa9'), -32020)
})

test('Mcp-Name is asked for by three methods only, and only when the body has a name', async (t) => {
  const { url, performed } = await serve(t)
  for (const method of ['tools/list', 'server/discover']) {
    const junk = plus(plus(message(method, { uri: 'x' }), 'Mcp-Name', 'junk'), 'Mcp-Name', '\xe9')
    assert.equal((await sendBytes(url, junk)).status, 200, method)
  }
  for (const [method, member] of [
    ['prompts/get', 'name'],
    ['resources/read', 'uri'],
  ] as const) {
    const call = without(message(method, { [member]: 'x' }), 'Mcp-Name')
    const { id } = call.body
    const text = assertRefused(await sendBytes(url, call), 400, -32020, id)
    assert.match(text, /Mcp-Name/)
    assertRefused(await sendBytes(url, plus(call, 'Mcp-Name', 'y')), 400, -32020, id)
    assertRefused(await sendBytes(url, plus(call, 'Mcp-Name', 'x')), 404, -32601, id)
  }
  for (const name of [undefined, null, 5, {}, [NAME], true]) {
    const call = without(message('tools/call', { name, arguments: ROLLBACK }), 'Mcp-Name')
    const label = JSON.stringify(name)
    const text = assertRefused(await sendBytes(url, call), 200, -32602, call.body.id, label)
    assert.match(text, /\bname\b/)
  }
  assert.deepEqual(performed, [])
})

test('a method that is not served is 404 with its name, whatever a prototype has', async (t) => {
  const { url } = await serve(t)
  for (const method of [
    'nope/x',
    'Tools/List',
    'tools/list/',
    'tools',
    '',
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'get',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'resources/list',
    'resources/templates/list',
    'prompts/list',
    'completion/complete',
    'subscriptions/listen',
    'roots/list',
    'elicitation/create',
    'notifications/cancelled',
    'notifications/initialized',
  ]) {
    const call = message(method)
    const text = assertRefused(await send(url, call), 404, -32601, call.body.id, method)
    assert.equal(text, `Method not found: ${method}`)
  }
})

test('a name in a message is escaped and cut', async (t) => {
  const { url } = await serve(t)
  const odd = 'a\u0007\n\u202e\u200b\u2028b'
  for (const [call, status, code] of [
    [message(`nope/${LONG}`), 404, -32601],
    [message('nope\t\tx'), 404, -32601],
    [replacing(message(`nope/${odd}`), 'Mcp-Method', 'other'), 400, -32020],
    [replacing(message('tools/list'), 'Mcp-Method', LONG), 400, -32020],
    [replacing(message('tools/list'), 'MCP-Protocol-Version', LONG), 400, -32020],
    [replacing(message('tools/call', { name: LONG }), 'Mcp-Name', 'x'), 400, -32020],
    [message('tools/call', { name: LONG }), 200, -32602],
    [message('tools/call', { name: odd }), 200, -32602],
    [message('tools/call', { name: '\u{e0041}'.repeat(50) }), 200, -32602],
    [message('tools/call', { name: `${'x'.repeat(79)}𝄞𝄞` }), 200, -32602], // cut in mid-pair
    [replacing(message('tools/call', { name: '\ud800' }), 'Mcp-Name', 'x'), 400, -32020],
  ] as const) {
    const label = call.headers.map(([, value]) => value.slice(0, 30)).join(' ')
    const reply = await send(url, call)
    const text = assertRefused(reply, status, code, call.body.id, label) // no invisible character
    assert.ok(text.length < 1000, `${text.length} characters`)
    assert.ok(!text.includes(LONG.slice(0, 500)))
  }
})

test('every error to initialize names the supported versions, in text and as data', async (t) => {
  const { url } = await serve(t)
  const client = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old' } }
  const bare: Call = {
    headers: [['Content-Type', 'application/json']],
    body: { jsonrpc: '2.0', id: 0, method: 'initialize', params: client },
  }
  const modern = message('initialize')
  const old = message('initialize', {}, {}, '2025-11-25')
  const { id } = modern.body
  const cases: [spoiled: Call, status: number, code: number, id: unknown][] = [
    [bare, 400, -32020, 0],
    [plus(bare, 'MCP-Protocol-Version', '2025-11-25'), 400, -32602, 0],
    [body(bare, { params: undefined }), 400, -32020, 0],
    [body(bare, { jsonrpc: '1.0' }), 400, -32600, 0],
    [body(bare, { id: null }), 400, -32600, undefined],
    [body(bare, { id: undefined }), 400, -32600, undefined],
    [body(bare, { result: {} }), 400, -32600, 0],
    [old, 400, -32022, old.body.id],
    [meta(modern, { [KEY.capabilities]: undefined }), 400, -32602, id],
    [without(modern, 'Mcp-Method'), 400, -32020, id],
    [modern, 404, -32601, id],
  ]
  for (const [spoiled, status, code, expected] of cases) {
    const reply = await send(url, spoiled)
    const label = JSON.stringify(spoiled)
    assert.match(assertRefused(reply, status, code, expected, label), /\b2026-07-28\b/, label)
    const { supported, ...more } = Object(at(reply.body, 'error', 'data'))
    assert.deepEqual(supported, [VERSION], label)
    assert.deepEqual(more, code === -32022 ? { requested: '2025-11-25' } : {}, label)
  }
})

test('an unknown tool is an error on HTTP 200, whatever a prototype has', async (t) => {
  const { url, performed } = await serve(t)
  for (const name of [
    'no_such_tool',
    '__proto__',
    'constructor',
    'toString',
    'get',
    'Rollback_release',
    'rollback_release ',
    'size',
    '0',
    '',
  ]) {
    const call = message('tools/call', { name, arguments: ROLLBACK })
    const text = assertRefused(await send(url, call), 200, -32602, call.body.id, name)
    assert.equal(text, `Unknown tool: ${name}`)
  }
  assert.deepEqual(performed, [])
})

test('no cursor was ever given out, so none is known', async (t) => {
  const { url } = await serve(t)
  for (const cursor of ['garbage', '', 'undefined', '0', 5, 0, null, {}, [], false]) {
    const call = message('tools/list', { cursor })
    const label = JSON.stringify(cursor)
    const text = assertRefused(await send(url, call), 200, -32602, call.body.id, label)
    assert.match(text, /\bcursor\b/)
  }
  assert.equal((await send(url, message('server/discover', { cursor: 5 }))).status, 200)
})

test('arguments are an object, which the message says', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  for (const wrong of [[], [ROLLBACK], JSON.stringify(ROLLBACK), '', 5, 0, true, false]) {
    for (const spoiled of [
      params(call, { arguments: wrong }),
      without(params(call, { arguments: wrong }), 'Mcp-Param-Service'),
    ]) {
      const reply = await send(served.url, spoiled)
      const text = assertRefused(reply, 200, -32602, call.body.id, JSON.stringify(wrong))
      assert.match(text, /arguments.*object/)
    }
  }
  await assertHeldBack(served, call)
})

test('absent and null arguments are {}: the tool error names what is missing', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const bare = without(call, 'Mcp-Param-Service')
  for (const none of [undefined, null, {}]) {
    const reply = await send(served.url, params(bare, { arguments: none }))
    assert.equal(reply.status, 200)
    assert.equal(at(resultOf(reply), 'isError'), true)
    assert.match(String(textOf(reply)), /\bservice\b.*required/)
  }
  await assertHeldBack(served, call)
})

test('what a retry brings has its type, and is ignored where nothing is retried', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const wrong: [member: string, values: unknown[]][] = [
    ['inputResponses', [null, [], [1], 'yes', '', 5, 0, true, false]],
    ['requestState', [null, 5, 0, {}, [], [at(call.body, 'params', 'requestState')], true, false]],
  ]
  for (const [member, values] of wrong) {
    for (const value of values) {
      const label = `${member}: ${JSON.stringify(value)}`
      const reply = await send(served.url, params(call, { [member]: value }))
      const text = assertRefused(reply, 200, -32602, call.body.id, label)
      assert.ok(text.includes(member), text)
      for (const method of ['tools/list', 'server/discover']) {
        const ignored = await send(served.url, message(method, { [member]: value }))
        assert.equal(at(resultOf(ignored), 'resultType'), 'complete', `${method} with ${label}`)
      }
    }
  }
  await assertHeldBack(served, call)
})

const FAILS = { description: 'Fails.', inputSchema: { type: 'object' } } as const

test('an unforeseen failure says Internal error and nothing of itself', async (t) => {
  const thrown = [
    new Error('secret in /srv/release-ops/tool.ts'),
    new TypeError('secret'),
    'secret',
    { code: -32022, message: 'secret', status: 404 },
    null,
    undefined,
  ]
  const tools = thrown.map((what, i) =>
    plainTool({ ...FAILS, name: `fails_${i}` }, () => {
      throw what
    }),
  )
  const rejects = plainTool({ ...FAILS, name: 'rejects' }, () => Promise.reject(thrown[0]))
  const { url, failures } = await serve(t, { tools: [...tools, rejects] })
  for (const name of [...tools.map(({ name }) => name), 'rejects']) {
    const call = message('tools/call', { name })
    const reply = await send(url, call)
    assert.equal(assertRefused(reply, 500, -32603, call.body.id, name), 'Internal error')
    assert.equal(at(reply.body, 'error', 'data'), undefined)
    assert.doesNotMatch(reply.text, /secret|Error:|\.ts|\bat /)
  }
  assert.deepEqual(failures, [...thrown, thrown[0]])
  assert.equal((await send(url, message('server/discover'))).status, 200)
})

test('every error repeats a readable id, and uses no code that is reserved or retired', async (t) => {
  const fails = plainTool({ ...FAILS, name: 'fails' }, () => {
    throw new Error('broken')
  })
  const served = await serve(t, { tools: [fails] })
  const call = await approvedCall(served)
  const list = message('tools/list')
  const first = params(call, { requestState: undefined, inputResponses: undefined })
  const table: [status: number, code: number, spoiled: Call][] = [
    [400, -32600, body(call, { jsonrpc: '1.0' })],
    [400, -32600, body(call, { method: 5 })],
    [400, -32600, body(call, { error: {} })],
    [400, -32020, without(call, 'MCP-Protocol-Version')],
    [400, -32602, params(call, { _meta: undefined })],
    [400, -32020, meta(call, { [KEY.version]: 'other' })],
    [400, -32022, { ...call, ...message('tools/call', { name: 'x' }, {}, '1900-01-01') }],
    [400, -32602, meta(call, { [KEY.capabilities]: [] })],
    [400, -32020, without(call, 'Mcp-Method')],
    [400, -32020, without(call, 'Mcp-Name')],
    [404, -32601, message('nope')],
    [404, -32601, message('initialize')],
    [200, -32602, params(list, { cursor: '' })],
    [200, -32602, message('tools/call', { name: 'nope' })],
    [200, -32602, params(call, { arguments: [] })],
    [200, -32602, params(call, { requestState: 5 })],
    [200, -32602, params(call, { inputResponses: [] })],
    [400, -32020, without(call, 'Mcp-Param-Service')],
    [400, -32021, meta(first, { [KEY.capabilities]: {} })],
    [500, -32603, message('tools/call', { name: 'fails' })],
  ]
  const codes = new Set<unknown>()
  for (const [status, code, spoiled] of table) {
    for (const id of ['abc', '', 101, 0]) {
      const reply = await send(served.url, body(spoiled, { id }))
      assertRefused(reply, status, code, id, `${code} to ${JSON.stringify(id)}`)
      codes.add(codeOf(reply))
    }
    const unreadable = await send(served.url, body(spoiled, { id: null }))
    assertRefused(unreadable, 400, -32600)
    codes.add(codeOf(unreadable))
  }
  codes.add(codeOf(await send(served.url, { ...call, body: '{' })))
  for (const code of codes) {
    const defined = [-32020, -32021, -32022].includes(Number(code))
    assert.ok(defined || Number(code) < -32099 || Number(code) > -32000, String(code))
    assert.ok(Number.isInteger(code))
  }
  await assertHeldBack(served, call)
})

test('of two faults the earlier row of the admission table answers', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const old = meta(replacing(call, 'MCP-Protocol-Version', 'old'), { [KEY.version]: 'old' })
  const noVersion = without(call, 'MCP-Protocol-Version')
  const notification = { id: undefined, method: 'notifications/x' }
  const prompt = without(named('prompts/get', 'x', { name: 'x' }), 'Mcp-Name')
  const unknown = named('resources/list', 'x', { cursor: 5 })
  const list = message('tools/list', { cursor: 5 })
  const cases: [rows: string, spoiled: Call | string, status: number, code: number, says?: RegExp][] = [
    ['9, 10', '[{"jsonrpc":', 400, -32700],
    ['10, 11', body(call, { ...notification, jsonrpc: '1.0' }), 400, -32600],
    ['10, 12', body(noVersion, { jsonrpc: '1.0' }), 400, -32600],
    ['11, 12', body(noVersion, { id: undefined }), 400, -32600],
    ['12, 13', body(noVersion, { params: undefined }), 400, -32020],
    ['13, 14', meta(replacing(call, 'MCP-Protocol-Version', 'old'), { [KEY.version]: 1 }), 400, -32602],
    ['14, 15', meta(call, { [KEY.version]: 'old' }), 400, -32020, /Version/],
    ['14, 15', replacing(call, 'MCP-Protocol-Version', 'old'), 400, -32020, /Version/],
    ['15, 16', meta(old, { [KEY.capabilities]: [] }), 400, -32022],
    ['15, 17', without(old, 'Mcp-Method'), 400, -32022],
    ['16, 17', without(meta(call, { [KEY.logLevel]: 5 }), 'Mcp-Method'), 400, -32602, /logLevel/],
    ['17, 18', without(without(call, 'Mcp-Name'), 'Mcp-Method'), 400, -32020, /Mcp-Method/],
    ['17, 19', replacing(unknown, 'Mcp-Method', 'other'), 400, -32020],
    ['18, 19', prompt, 400, -32020, /Mcp-Name/],
    ['18, 20', params(replacing(call, 'Mcp-Name', 'x'), { arguments: [] }), 400, -32020],
    ['19, 20', unknown, 404, -32601],
    ['17, 20', replacing(list, 'Mcp-Method', 'other'), 400, -32020],
    ['20, 22', without(params(call, { requestState: 5 }), 'Mcp-Param-Service'), 200, -32602],
    ['20, 22', params(replacing(call, 'Mcp-Param-Service', 'x'), { inputResponses: [] }), 200, -32602],
    ['20, 22', params(call, { arguments: 'text' }), 200, -32602],
    ['20, 24', params(call, { requestState: 'forged', arguments: [] }), 200, -32602],
  ]
  for (const [rows, spoiled, status, code, says] of cases) {
    const text = typeof spoiled === 'string'
    const reply = await send(served.url, text ? { ...call, body: spoiled } : spoiled)
    const id = text ? undefined : spoiled.body.id
    assert.match(assertRefused(reply, status, code, id, rows), says ?? /./, rows)
  }
  await assertHeldBack(served, call)
})

test('after the headers come the arguments, and after them the state', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const bad = params(call, { arguments: { ...ROLLBACK, version: 5 }, requestState: 'forged' })
  const headers = await send(served.url, replacing(bad, 'Mcp-Param-Service', 'other'))
  assertRefused(headers, 400, -32020, call.body.id)
  const args = await send(served.url, bad)
  assert.equal(at(resultOf(args), 'isError'), true)
  assert.match(String(textOf(args)), /\bversion\b/)
  await assertHeldBack(served, call)
})
