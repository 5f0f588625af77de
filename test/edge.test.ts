import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { at, type Header, message, type Reply, send } from '../client.ts'
import { plainTool } from '../lib/tool.ts'
import { head, raw } from './raw.ts'
import {
  approvedCall,
  assertHeldBack,
  assertRefused,
  type Call,
  plus,
  replacing,
  serve,
  without,
} from './serve.ts'

const EVIL: Header = ['Origin', 'https://evil.example']
const PAGE: Header = ['Origin', 'http://localhost:5173']
const VERBS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']
/** Configured for every interface, though the test listens on loopback. */
const PUBLIC = { HOST: '0.0.0.0', ALLOW_ANONYMOUS: '1' }
const CLOSE: Header = ['Connection', 'close']

const discover = (...headers: Header[]): Call => {
  const call = message('server/discover')
  return { ...call, headers: [...call.headers, ...headers] }
}

/** A server with a call that performs the rollback unless something refuses it. */
async function approved(t: TestContext, env = {}) {
  const served = await serve(t, { env })
  return { ...served, served, call: await approvedCall(served) }
}

/** A call as bytes; `lines` stand before its own. */
function bytesOf({ headers, body }: Call, lines: readonly Header[], start?: string): string {
  const text = JSON.stringify(body)
  const length: Header = ['Content-Length', String(Buffer.byteLength(text))]
  return head([...lines, ...headers, length], start) + text
}

/** The same on a connection that ends with it. */
const wire = (call: Call, lines: readonly Header[], start?: string) =>
  bytesOf(call, [...lines, CLOSE], start)

/** The one answer to such bytes. */
async function only(answers: Promise<Reply[]>): Promise<Reply> {
  const [answer, ...more] = await answers
  assert.ok(answer)
  assert.deepEqual(more, [])
  return answer
}

const corsOf = ({ headers }: Reply) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'))

/** One line for a person: no JSON, no markup. */
function assertSentence({ headers, text }: Reply): void {
  assert.match(String(headers['content-type']), /^text\/plain/)
  assert.match(text, /^[A-Z][^\n{<]+\.\n?$/)
}

test('a page on a loopback name may call, whatever its port, scheme and case', async (t) => {
  const { url } = await serve(t)
  for (const origin of [
    'http://localhost',
    'http://localhost:5173',
    'https://localhost:8443',
    'http://127.0.0.1:6274',
    'https://127.0.0.1',
    'http://[::1]:3000',
    'http://[::1]',
    'HTTP://LOCALHOST:5173',
    'http://LocalHost',
  ]) {
    const reply = await send(url, discover(['Origin', origin]))
    assert.equal(reply.status, 200, origin)
    assert.equal(reply.headers['access-control-allow-origin'], origin)
  }
})

test('an origin that is not exactly a loopback one is forbidden, and reads nothing', async (t) => {
  const { url, served, call } = await approved(t)
  for (const origin of [
    '',
    'null',
    'https://evil.example',
    'http://localhost.evil.example',
    'http://evil-localhost',
    'http://127.0.0.1.evil.example',
    'http://localhost.',
    'http://localhost:3000@evil.example',
    'http://evil.example/#http://localhost',
    'http://evil.example?http://localhost',
    'http://evil.example\\@localhost',
    'http://localhost\\@evil.example',
    'http://user@localhost',
    'http://user:password@localhost',
    'http://localhost/',
    'http://localhost/mcp',
    'http://localhost?',
    'http://localhost#',
    'http://localhost:',
    'http://localhost:port',
    'http://localhost:-1',
    'http://localhost http://localhost',
    'http://localhost, http://localhost',
    'http://localhost,https://evil.example',
    'http://127.0.0.2',
    'http://127.1',
    'http://2130706433',
    'http://0.0.0.0',
    'http://[::]',
    'http://[::1',
    'http://::1',
    'http://[::ffff:127.0.0.1]',
    'localhost',
    'localhost:5173',
    '//localhost',
    'http:localhost',
    'http:/localhost',
    'file://',
    'file://localhost',
    'ws://localhost',
    'ftp://localhost',
    'vscode-webview://abc',
    'vscode-webview://localhost',
    'chrome-extension://localhost',
    'xhttp://localhost',
  ]) {
    const reply = await send(url, plus(call, 'Origin', origin))
    assert.equal(assertRefused(reply, 403, -32600, undefined, origin), 'Forbidden origin')
    assert.deepEqual(corsOf(reply), [], origin)
  }
  await assertHeldBack(served, call)
})

test('two Origin lines are forbidden, even when each alone is allowed', async (t) => {
  const { url, served, call } = await approved(t)
  for (const [first, second] of [
    ['http://localhost', 'http://localhost'],
    ['http://localhost', 'https://evil.example'],
    ['https://evil.example', 'http://localhost'],
  ] as const) {
    const reply = await send(url, plus(plus(call, 'Origin', first), 'Origin', second))
    assertRefused(reply, 403, -32600)
  }
  await assertHeldBack(served, call)
})

test('a foreign origin is forbidden on every verb and path, preflights and /healthz too', async (t) => {
  const { url } = await serve(t)
  for (const verb of VERBS) {
    for (const path of ['/mcp', '/mcp/', '/healthz', '/other', '*']) {
      const label = `${verb} ${path}`
      const lines: Header[] = [['Host', url.host], EVIL, ['Content-Length', '0'], CLOSE]
      const preflight: Header = ['Access-Control-Request-Method', 'POST']
      const reply = await only(raw(url, head([...lines, preflight], `${label} HTTP/1.1`)))
      assert.equal(reply.status, 403, label)
      assert.deepEqual(corsOf(reply), [], label)
      if (verb !== 'HEAD') assertRefused(reply, 403, -32600, undefined, label)
    }
  }
})

test('ALLOWED_ORIGINS adds exact origins to the loopback ones', async (t) => {
  const env = { ALLOWED_ORIGINS: 'https://app.example.com,https://other.example:8443' }
  const { url } = await serve(t, { env })
  for (const [origin, status] of [
    ['https://app.example.com', 200],
    ['https://APP.example.com', 200],
    ['https://other.example:8443', 200],
    ['http://localhost:5173', 200],
    ['http://app.example.com', 403],
    ['https://app.example.com:8443', 403],
    ['https://other.example', 403],
    ['https://www.app.example.com', 403],
    ['https://app.example.com.evil.example', 403],
    ['null', 403],
  ] as const) {
    const reply = await send(url, discover(['Origin', origin]))
    assert.equal(reply.status, status, origin)
    const shown = reply.headers['access-control-allow-origin']
    assert.equal(shown, status === 200 ? origin : undefined)
  }
})

test('loopback origins are only the default where the server is public', async (t) => {
  const ALLOWED_ORIGINS = 'https://app.example.com'
  const listed = await serve(t, { env: { ...PUBLIC, ALLOWED_ORIGINS } })
  assert.equal((await send(listed.url, discover(PAGE))).status, 403)
  assert.equal((await send(listed.url, discover(['Origin', ALLOWED_ORIGINS]))).status, 200)
  const unset = await serve(t, { env: PUBLIC })
  assert.equal((await send(unset.url, discover(PAGE))).status, 200)
})

test('/healthz answers GET and HEAD before it looks at Host, and no other verb', async (t) => {
  const { url } = await serve(t)
  const ask = (verb: string, host: string) =>
    only(raw(url, head([['Host', host], CLOSE], `${verb} /healthz HTTP/1.1`)))
  for (const host of [url.host, 'evil.example', '10.0.0.7:8080']) {
    const got = await ask('GET', host)
    assert.deepEqual([got.status, got.text], [200, 'ok'], host)
    const probed = await ask('HEAD', host)
    assert.deepEqual([probed.status, probed.text], [200, ''], host)
  }
  for (const verb of ['POST', 'PUT', 'DELETE']) assert.equal((await ask(verb, url.host)).status, 404)
})

test('Host is a loopback name, with or without a port, in any case', async (t) => {
  const { url } = await serve(t)
  for (const host of [
    url.host,
    'localhost',
    'localhost:3000',
    'LOCALHOST:3000',
    '127.0.0.1',
    '127.0.0.1:1',
    '[::1]',
    '[::1]:3000',
  ]) {
    assert.equal((await only(raw(url, wire(discover(), [['Host', host]])))).status, 200, host)
  }
})

test('any other Host is forbidden, by a message that names ALLOWED_HOSTS', async (t) => {
  const { url, served, call } = await approved(t)
  for (const host of [
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    'evil-localhost',
    '127.0.0.1.evil.example',
    'localhost.',
    'localhost:abc',
    'localhost:3000:3000',
    'localhost@evil.example',
    'user@localhost',
    'localhost/',
    'localhost,evil.example',
    'localhost evil.example',
    'http://localhost',
    '127.0.0.2',
    '127.1',
    '0.0.0.0',
    '::1',
    '[::1',
    '[::1]x',
    '[::]',
    '[::ffff:127.0.0.1]',
  ]) {
    const reply = await only(raw(url, wire(call, [['Host', host]])))
    assert.match(assertRefused(reply, 403, -32600, undefined, host), /ALLOWED_HOSTS/)
  }
  await assertHeldBack(served, call)
})

test('a missing, empty or repeated Host is refused, on HTTP/1.0 too', async (t) => {
  const { url, served, call } = await approved(t)
  const local: Header = ['Host', url.host]
  const foreign: Header = ['Host', 'evil.example']
  const ask = (version: string, ...lines: Header[]) =>
    only(raw(url, wire(call, lines, `POST /mcp HTTP/${version}`)))
  assert.equal((await ask('1.1')).status, 400)
  assertRefused(await ask('1.0'), 403, -32600)
  assertRefused(await ask('1.1', ['Host', '']), 403, -32600)
  assertRefused(await ask('1.1', local, local), 403, -32600)
  assertRefused(await ask('1.1', local, foreign), 403, -32600)
  assertRefused(await ask('1.1', foreign, local), 403, -32600)
  await assertHeldBack(served, call)
  assert.equal((await ask('1.0', local)).status, 200)
})

test('ALLOWED_HOSTS counts the port only where an entry names one', async (t) => {
  const ALLOWED_HOSTS = 'mcp.example.com,other.example:8443,[2001:db8::1]'
  const cases = [
    ['mcp.example.com', 200],
    ['MCP.example.com', 200],
    ['mcp.example.com:8443', 200],
    ['other.example:8443', 200],
    ['other.example', 403],
    ['other.example:443', 403],
    ['[2001:db8::1]', 200],
    ['[2001:DB8::1]:3000', 200],
    ['[2001:db8::2]', 403],
    ['mcp.example.com.', 403],
    ['www.mcp.example.com', 403],
    ['mcp.example.com.evil.example', 403],
    ['mcp.example.com:x', 403],
  ] as const
  const local = await serve(t, { env: { ALLOWED_HOSTS } })
  const open = await serve(t, { env: { ...PUBLIC, ALLOWED_HOSTS } })
  const unset = await serve(t, { env: PUBLIC })
  const ask = async (url: URL, host: string) =>
    (await only(raw(url, wire(discover(), [['Host', host]])))).status
  for (const [host, status] of cases) {
    assert.equal(await ask(local.url, host), status, host)
    assert.equal(await ask(open.url, host), status, host)
  }
  assert.equal(await ask(local.url, 'localhost'), 200)
  assert.equal(await ask(open.url, 'localhost'), 403)
  assert.equal(await ask(unset.url, 'localhost'), 200)
  assert.equal(await ask(unset.url, 'mcp.example.com'), 403)
})

test('the endpoint is /mcp, also with a trailing slash, a query, or as an absolute target', async (t) => {
  const { url } = await serve(t)
  for (const target of [
    '/mcp',
    '/mcp/',
    '/mcp?x=1',
    '/mcp/?x=/other',
    `http://${url.host}/mcp`,
    'http://evil.example/mcp',
    'HTTP://evil.example/mcp?x=1',
  ]) {
    const bytes = wire(discover(), [['Host', url.host]], `POST ${target} HTTP/1.1`)
    assert.equal((await only(raw(url, bytes))).status, 200, target)
  }
})

test('every other path is 404 in plain text that names the endpoint', async (t) => {
  const { url, served, call } = await approved(t)
  for (const target of [
    '/',
    '/other',
    '/MCP',
    '/mcp2',
    '/mcp/x',
    '/mcp//',
    '//mcp',
    '/x/mcp',
    '/mcp/../mcp',
    '/%6dcp',
    '/mcp%2f',
    '/?/mcp',
    '/sse',
    'http://evil.example',
    'http://evil.example/other?/mcp',
    '*',
  ]) {
    const reply = await only(raw(url, wire(call, [['Host', url.host]], `POST ${target} HTTP/1.1`)))
    assert.equal(reply.status, 404, target)
    assertSentence(reply)
    assert.match(reply.text, /\/mcp\b/)
  }
  await assertHeldBack(served, call)
})

test('every verb but POST is 405 with Allow and one sentence', async (t) => {
  const { url, served, call } = await approved(t)
  for (const verb of VERBS.filter((verb) => verb !== 'POST')) {
    for (const path of ['/mcp', '/mcp/?x=1']) {
      const bytes = wire(call, [['Host', url.host]], `${verb} ${path} HTTP/1.1`)
      const reply = await only(raw(url, bytes))
      assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST'], `${verb} ${path}`)
      if (verb === 'HEAD') assert.equal(reply.text, '')
      else assertSentence(reply)
    }
  }
  await assertHeldBack(served, call)
})

test('a GET for a stream gets its 405 at once, and so does a verb whose body is on its way', async (t) => {
  const { url } = await serve(t)
  const stream: Header[] = [
    ['Accept', 'text/event-stream'],
    ['Last-Event-ID', '7'],
    ['Mcp-Session-Id', 'x'],
  ]
  const got = raw(url, head([['Host', url.host], ...stream, CLOSE], 'GET /mcp HTTP/1.1'))
  assert.equal((await only(got)).status, 405)
  const lines: Header[] = [['Host', url.host], ['Content-Length', '5'], CLOSE]
  const answered = /^HTTP\/1\.1 405 [\s\S]*\r\n\r\n[\s\S]*\./
  await only(raw(url, head(lines, 'PUT /mcp HTTP/1.1'), answered, '12345'))
})

test('a preflight from an allowed page is complete: every header by name, no wildcard', async (t) => {
  const mirrors = plainTool(
    {
      name: 'mirrors',
      description: 'Has a mirrored argument.',
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
      },
    },
    () => ({ content: [] }),
  )
  const { url } = await serve(t, { tools: [mirrors] })
  const lines: Header[] = [
    ['Host', url.host],
    PAGE,
    ['Access-Control-Request-Method', 'POST'],
    ['Access-Control-Request-Headers', 'authorization,content-type,mcp-method,mcp-param-service'],
    CLOSE,
  ]
  const reply = await only(raw(url, head(lines, 'OPTIONS /mcp HTTP/1.1')))
  assert.deepEqual([reply.status, reply.text], [204, ''])
  assert.equal(reply.headers['access-control-allow-origin'], PAGE[1])
  assert.match(String(reply.headers.vary), /\bOrigin\b/)
  assert.match(String(reply.headers['access-control-allow-methods']), /\bPOST\b/)
  const names = String(reply.headers['access-control-allow-headers']).toLowerCase().split(/, */)
  for (const name of [
    'accept',
    'authorization',
    'content-type',
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'mcp-param-service',
    'mcp-param-region',
  ]) {
    assert.ok(names.includes(name), `${name} is not among ${names}`)
  }
  assert.ok(!names.includes('*'))
})

test('a preflight for another path is 404, and one to a foreign Host is forbidden', async (t) => {
  const { url } = await serve(t)
  const ask = (path: string, host: string) =>
    only(raw(url, head([['Host', host], PAGE, CLOSE], `OPTIONS ${path} HTTP/1.1`)))
  assert.equal((await ask('/other', url.host)).status, 404)
  assert.equal((await ask('*', url.host)).status, 404)
  assertRefused(await ask('/mcp', 'evil.example'), 403, -32600)
})

test('every answer to an allowed page, errors too, carries the CORS headers', async (t) => {
  const fails = plainTool({ name: 'fails', description: 'Fails.', inputSchema: { type: 'object' } }, () => {
    throw new Error('broken')
  })
  const served = await serve(t, { tools: [fails], env: { MAX_BODY_BYTES: '2000' } })
  const { url } = served
  const page = (call: Call) => send(url, plus(call, ...PAGE))
  const list = message('tools/list')
  const lines: Header[] = [['Host', url.host], PAGE, CLOSE]
  const answers: [status: number, reply: Promise<Reply>][] = [
    [200, page(list)],
    [200, page(message('tools/list', { cursor: 'x' }))],
    [200, only(raw(url, head(lines, 'GET /healthz HTTP/1.1')))],
    [202, page({ ...list, body: { jsonrpc: '2.0', method: 'notifications/x' } })],
    [204, only(raw(url, head(lines, 'OPTIONS /mcp HTTP/1.1')))],
    [400, page({ ...list, body: { jsonrpc: '1.0' } })],
    [400, page(without(list, 'Mcp-Method'))],
    [403, only(raw(url, head([['Host', 'evil.example'], PAGE, CLOSE])))],
    [404, only(raw(url, head(lines, 'GET /other HTTP/1.1')))],
    [404, page(message('nope'))],
    [405, only(raw(url, head(lines, 'GET /mcp HTTP/1.1')))],
    [413, page({ ...list, body: { long: 'x'.repeat(2000) } })],
    [415, page(replacing(list, 'Content-Type', 'text/plain'))],
    [500, page(message('tools/call', { name: 'fails' }))],
  ]
  for (const [status, answer] of answers) {
    const reply = await answer
    assert.equal(reply.status, status)
    assert.equal(reply.headers['access-control-allow-origin'], PAGE[1], String(status))
    assert.match(String(reply.headers.vary), /\bOrigin\b/, String(status))
    const exposed = String(reply.headers['access-control-expose-headers']).split(/, */)
    assert.deepEqual(exposed.sort(), ['Retry-After', 'WWW-Authenticate'], String(status))
  }
})

test('an answer to no page carries no CORS header', async (t) => {
  const { url } = await serve(t)
  assert.deepEqual(corsOf(await send(url, discover())), [])
})

test('application/json is accepted in every legal spelling', async (t) => {
  const { url } = await serve(t)
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json ; charset=utf-8',
    'application/json;Charset=utf-8',
    'application/json; profile=x',
    'application/json; x-charset=latin1',
    'application/json; profile=x; charset=utf-8',
  ]) {
    const reply = await send(url, replacing(discover(), 'Content-Type', type))
    assert.equal(reply.status, 200, type)
  }
})

test('any other content, above all what a page may send without a preflight, is 415', async (t) => {
  const { url, served, call } = await approved(t)
  const typed = (type: string) => replacing(call, 'Content-Type', type)
  const cases: Call[] = [
    without(call, 'Content-Type'),
    typed(''),
    typed('text/plain'),
    typed('text/plain; application/json'),
    typed('text/plain;charset=application/json'),
    typed('application/x-www-form-urlencoded'),
    typed('multipart/form-data; boundary=x'),
    typed('application/jsonp'),
    typed('application/json-seq'),
    typed('application/json+x'),
    typed('application/jso'),
    typed('xapplication/json'),
    typed('json'),
    typed('text/json'),
    typed('application/json, text/plain'),
    typed('text/plain, application/json'),
    typed('application/json; charset=latin1'),
    typed('application/json; charset=utf-16'),
    typed('application/json; charset=us-ascii'),
    typed('application/json; charset="iso-8859-1"'),
    typed('application/json; charset=utf-8; charset=latin1'),
    plus(call, 'Content-Type', 'text/plain'),
    plus(typed('text/plain'), 'Content-Type', 'application/json'),
    plus(call, 'Content-Encoding', 'gzip'),
    plus(call, 'Content-Encoding', 'identity'),
  ]
  for (const spoiled of cases) {
    const reply = await send(url, spoiled)
    assert.equal(reply.status, 415, JSON.stringify(spoiled.headers))
    assertSentence(reply)
    assert.match(reply.text, /application\/json/)
  }
  await assertHeldBack(served, call)
})

test('Accept is not judged, and the answer is JSON', async (t) => {
  const { url } = await serve(t)
  const bare = without(discover(), 'Accept')
  for (const call of [
    bare,
    plus(bare, 'Accept', '*/*'),
    plus(bare, 'Accept', 'application/json'),
    plus(bare, 'Accept', 'text/event-stream'),
    plus(bare, 'Accept', 'text/html'),
    plus(bare, 'Accept', 'application/json;q=0'),
  ]) {
    const reply = await send(url, call)
    assert.deepEqual([reply.status, reply.headers['content-type']], [200, 'application/json'])
  }
})

const LARGE = Buffer.alloc(8 * 1024 * 1024, ' ')
const LARGE_CHUNK = Buffer.concat([
  Buffer.from(`${LARGE.length.toString(16)}\r\n`),
  LARGE,
  Buffer.from('\r\n0\r\n\r\n'),
])
const DECLARED: Header = ['Content-Length', String(LARGE.length)]
const CHUNKED: Header = ['Transfer-Encoding', 'chunked']
const JSON_TYPE: Header = ['Content-Type', 'application/json']

test('a body that is too large gets a 413 that arrives, and the connection ends', async (t) => {
  const { url } = await serve(t, { env: { MAX_BODY_BYTES: '2000' } })
  for (const [framing, bytes] of [
    [DECLARED, LARGE],
    [CHUNKED, LARGE_CHUNK],
  ] as const) {
    for (const more of [[], [CLOSE]]) {
      const lines: Header[] = [['Host', url.host], JSON_TYPE, framing, ...more]
      const reply = await only(raw(url, head(lines), bytes))
      assert.equal(reply.status, 413)
      assertSentence(reply)
      assert.match(reply.text, /2000 .*MAX_BODY_BYTES/)
      assert.equal(reply.headers.connection, 'close')
    }
  }
  assert.equal((await send(url, discover())).status, 200)
})

test('the 413 does not wait for the body', async (t) => {
  const { url } = await serve(t, { env: { MAX_BODY_BYTES: '2000' } })
  const answered = /^HTTP\/1\.1 413 [\s\S]*MAX_BODY_BYTES/
  const declared = head([['Host', url.host], JSON_TYPE, ['Content-Length', '2001']])
  await only(raw(url, declared, answered, 'x'.repeat(2001)))
  const chunked = head([['Host', url.host], JSON_TYPE, CHUNKED])
  await only(raw(url, `${chunked}7d1\r\n${'x'.repeat(2001)}\r\n`, answered, '0\r\n\r\n'))
})

test('the limit is in bytes and itself allowed, 1 MiB unless set', async (t) => {
  for (const [env, limit] of [
    [{}, 1_048_576],
    [{ MAX_BODY_BYTES: '2000' }, 2000],
  ] as const) {
    const { url, performed, served, call } = await approved(t, env)
    const spaced = (size: number) => {
      const text = JSON.stringify({ ...call.body, more: '世界' })
      return text + ' '.repeat(size - Buffer.byteLength(text))
    }
    const chunked = (size: number) => {
      const text = `${size.toString(16)}\r\n${spaced(size)}\r\n0\r\n\r\n`
      return head([['Host', url.host], CHUNKED, ...call.headers, CLOSE]) + text
    }
    assert.equal((await send(url, { ...call, body: spaced(limit + 1) })).status, 413)
    assert.equal((await only(raw(url, chunked(limit + 1)))).status, 413)
    await assertHeldBack(served, call)
    assert.equal((await send(url, { ...call, body: spaced(limit) })).status, 200)
    assert.equal((await only(raw(url, chunked(limit)))).status, 200)
    assert.equal(performed.length, 3)
  }
})

test('a chunked body is put together byte by byte, also in the middle of a character', async (t) => {
  const { url } = await serve(t)
  const args = { service: 'checkout', version: '世界' }
  const params = { name: 'rollback_release', arguments: args }
  const call = plus(message('tools/call', params), 'Mcp-Param-Service', 'checkout')
  const bytes = Buffer.from(JSON.stringify(call.body))
  const chunks = [...bytes].flatMap((byte) => [Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')])
  const lines = head([['Host', url.host], CHUNKED, ...call.headers, CLOSE])
  const end = Buffer.from('0\r\n\r\n')
  const reply = await only(raw(url, Buffer.concat([Buffer.from(lines), ...chunks, end])))
  assert.equal(
    at(reply.body, 'result', 'inputRequests', 'confirm', 'params', 'message'),
    'Roll checkout back to 世界? This restarts every instance.',
  )
})

test('a client that waits for 100 Continue gets it, and then its answer', async (t) => {
  const { url } = await serve(t)
  const { headers, body } = discover(['Expect', '100-continue'], CLOSE)
  const text = JSON.stringify(body)
  const lines: Header[] = [['Host', url.host], ['Content-Length', String(text.length)], ...headers]
  const answers = await raw(url, head(lines), /^HTTP\/1\.1 100 Continue\r\n\r\n/, text)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [100, 200],
  )
})

test('an expectation that no server meets opens no way past the checks', async (t) => {
  const { url, served, call } = await approved(t)
  const unmet = plus(plus(call, 'Expect', 'a-miracle'), ...EVIL)
  assertRefused(await only(raw(url, wire(unmet, [['Host', url.host]]))), 403, -32600)
  await assertHeldBack(served, call)
})

/** Lets the next look at the clock find every unfinished request too late. */
function endPatience({ server }: { server: { requestTimeout: number; headersTimeout: number } }) {
  assert.ok(server.requestTimeout > 0 && server.requestTimeout <= 20_000)
  assert.ok(server.headersTimeout > 0 && server.headersTimeout <= 20_000)
  server.headersTimeout = server.requestTimeout = 1
}

test('a request that does not arrive in full in time gets 408, and the connection ends', async (t) => {
  const { url, http, served, call } = await approved(t)
  endPatience(http)
  const allButOneByte = wire(call, [['Host', url.host]]).slice(0, -1)
  const halfHead = `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\n`
  const answers = await Promise.all([only(raw(url, allButOneByte)), only(raw(url, halfHead))])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [408, 408],
  )
  await assertHeldBack(served, call)
})

test('a page can read that its request came too late', async (t) => {
  const { url, http } = await serve(t)
  endPatience(http)
  const reply = await only(raw(url, wire(discover(PAGE), [['Host', url.host]]).slice(0, -1)))
  assert.equal(reply.status, 408)
  assert.equal(reply.headers['access-control-allow-origin'], PAGE[1])
})

const NOTHING = { content: [] }
const PLAIN = { name: 'plain', description: 'A tool.', inputSchema: { type: 'object' } } as const

test('a client that hangs up in mid-body has sent no request, whatever had arrived', async (t) => {
  let ran = 0
  const counts = plainTool(PLAIN, () => {
    ran += 1
    return NOTHING
  })
  const { url, http, lines, failures } = await serve(t, { tools: [counts] })
  const call = message('tools/call', { name: 'plain' })
  const text = JSON.stringify(call.body) // a complete message, one byte short of what was declared
  const length: Header = ['Content-Length', String(text.length + 1)]
  const accepted = once(http.server, 'connection')
  const arrived = once(http.server, 'request')
  const socket = connect(Number(url.port), url.hostname)
  const [other] = await accepted
  const gone = once(other, 'close')
  socket.write(head([['Host', url.host], length, ...call.headers]) + text)
  await arrived
  socket.destroy()
  await gone
  assert.equal((await send(url, discover())).status, 200)
  assert.deepEqual([ran, failures], [0, []])
  assert.deepEqual(
    lines.map(({ status }) => status),
    [200, 499, 200],
  )
  await send(url, call)
  assert.equal(ran, 1)
})

test('a client that hangs up cancels the tool that runs for it', { timeout: 5000 }, async (t) => {
  const socket = new Socket()
  let cancelled = () => {}
  const aborted = new Promise<void>((resolve) => {
    cancelled = resolve
  })
  const waits = plainTool(PLAIN, async ({ client: { signal } }) => {
    assert.equal(signal.aborted, false)
    const end = once(signal, 'abort')
    socket.destroy()
    await end
    cancelled()
    return NOTHING
  })
  const { url } = await serve(t, { tools: [waits] })
  socket.connect(Number(url.port), url.hostname)
  socket.write(bytesOf(message('tools/call', { name: 'plain' }), [['Host', url.host]]))
  await aborted
})

test('requests in one write are answered in their order, though the second is done first', async (t) => {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const waits = plainTool(PLAIN, async () => {
    await released
    return NOTHING
  })
  const frees = plainTool({ ...PLAIN, name: 'frees' }, () => {
    release()
    return NOTHING
  })
  const { url } = await serve(t, { tools: [waits, frees] })
  const first = message('tools/call', { name: 'plain' })
  const second = message('tools/call', { name: 'frees' })
  const host: Header = ['Host', url.host]
  const answers = await raw(url, bytesOf(first, [host]) + wire(second, [host]))
  assert.deepEqual(
    answers.map(({ status, body }) => [status, at(body, 'id')]),
    [
      [200, first.body.id],
      [200, second.body.id],
    ],
  )
})

test('a good request is answered although nonsense follows it on its connection', async (t) => {
  const { url } = await serve(t)
  const call = discover()
  const [reply] = await raw(url, `${bytesOf(call, [['Host', url.host]])}\r\n\x01\x02\x03\r\n\r\n`)
  assert.deepEqual([reply?.status, at(reply?.body, 'id')], [200, call.body.id])
})

test('a CONNECT is answered by the same rows as any other request, and its connection ends', async (t) => {
  const { url, served, call } = await approved(t)
  const connect = (...lines: Header[]) =>
    only(raw(url, head([['Host', url.host], ...lines], `CONNECT ${url.host} HTTP/1.1`)))
  assert.equal((await connect()).status, 404)
  assert.equal((await connect(EVIL)).status, 403)
  assert.equal(
    (await only(raw(url, wire(call, [['Host', url.host]], 'CONNECT /mcp HTTP/1.1')))).status,
    405,
  )
  await assertHeldBack(served, call)
})

test('a byte that no header may hold is a header mismatch without id', async (t) => {
  const { url, served, call } = await approved(t)
  for (const line of [
    'X-Note: a\x01b',
    'X-Note: a\x00b',
    'X-Note: a\x7fb',
    'X-Note: a\x1fb',
    'X Note: a',
    'X-Nöte: a',
    '\x02: a',
  ]) {
    const bytes = bytesOf(call, [['Host', url.host]], `POST /mcp HTTP/1.1\r\n${line}`)
    const reply = await only(raw(url, Buffer.from(bytes, 'latin1')))
    const label = JSON.stringify(line)
    assertRefused(reply, 400, -32020, undefined, label)
    assert.equal(reply.headers.connection, 'close', label)
  }
  await assertHeldBack(served, call)
})

test('what else the parser refuses is 400, and headers beyond 16 KiB are 431', async (t) => {
  const { url, served, call } = await approved(t)
  const text = JSON.stringify(call.body)
  const host: Header = ['Host', url.host]
  const length: Header = ['Content-Length', String(text.length)]
  const other: Header = ['Content-Length', String(text.length - 1)]
  const chunk = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
  const cases: [status: number, bytes: string][] = [
    [400, head([host, length, CHUNKED, ...call.headers]) + chunk],
    [400, head([host, CHUNKED, length, ...call.headers]) + chunk],
    [400, head([host, length, other, ...call.headers]) + text],
    [400, head([host, ['Content-Length', '-1'], ...call.headers]) + text],
    [400, `${head([host, CHUNKED, ...call.headers])}x\r\n${text}\r\n0\r\n\r\n`],
    [400, head([host, length, ...call.headers], 'POST /mcp HTTP/9.9') + text],
    [400, 'nonsense\r\n\r\n'],
    [431, head([host, length, ['Mcp-Name', 'x'.repeat(20_000)], ...call.headers]) + text],
  ]
  for (const [status, bytes] of cases) {
    const reply = await only(raw(url, bytes))
    assert.equal(reply.status, status, bytes.slice(0, 100))
    assert.equal(reply.headers.connection, 'close')
  }
  await assertHeldBack(served, call)
})

test('idle connections are kept for at least 30 s, and the client is told', async (t) => {
  const { url, http } = await serve(t)
  const host: Header = ['Host', url.host]
  const answered = /^HTTP[\s\S]*\}$/
  const [reply] = await raw(url, bytesOf(discover(), [host]), answered, wire(discover(), [host]))
  assert.notEqual(reply?.headers.connection, 'close')
  const [, seconds] = /\btimeout=(\d+)/.exec(String(reply?.headers['keep-alive'])) ?? []
  assert.ok(Number(seconds) >= 30, `timeout=${seconds}`)
  assert.ok(http.server.keepAliveTimeout >= 30_000)
})

test('headers of sessions and resumed streams are ignored and never sent back', async (t) => {
  const { url } = await serve(t)
  const plain = await send(url, discover())
  const old = await send(url, discover(['Mcp-Session-Id', 'dead'], ['Last-Event-ID', '7']))
  const refused = await send(url, {
    ...discover(['Mcp-Session-Id', 'dead'], ['Last-Event-ID', '7']),
    body: {},
  })
  assert.deepEqual(at(old.body, 'result'), at(plain.body, 'result'))
  for (const { headers } of [plain, old, refused]) {
    const sent = Object.keys(headers).filter((name) => /session|event-id/.test(name))
    assert.deepEqual(sent, [])
  }
})

test('of two faults the earlier row of the admission table answers', async (t) => {
  const { url, served, call } = await approved(t, { MAX_BODY_BYTES: '2000' })
  const host: Header = ['Host', url.host]
  const foreign: Header = ['Host', 'evil.example']
  const empty: Header = ['Content-Length', '0']
  const long: Call = { ...call, body: { ...call.body, more: 'x'.repeat(2000) } }
  const typed = (other: Call) => replacing(other, 'Content-Type', 'text/plain')
  const get = (target: string) => `GET ${target} HTTP/1.1`
  const cases: [rows: string, bytes: string, status: number, code?: number, says?: RegExp][] = [
    ['0, 1', wire(plus(call, ...EVIL), [host, ['X-Note', 'a\x01b']]), 400, -32020],
    ['0, 3', wire(call, [foreign, ['X-Note', 'a\x01b']]), 400, -32020],
    ['1, 2', head([host, EVIL, empty, CLOSE], get('/healthz')), 403, -32600, /origin/],
    ['1, 3', wire(plus(call, ...EVIL), [foreign]), 403, -32600, /origin/],
    ['2, 3', head([foreign, empty, CLOSE], get('/healthz')), 200],
    ['3, 4', wire(call, [foreign], 'POST /other HTTP/1.1'), 403, -32600, /ALLOWED_HOSTS/],
    ['3, 5', wire(call, [foreign], get('/mcp')), 403, -32600, /ALLOWED_HOSTS/],
    ['4, 5', wire(call, [host], get('/other')), 404],
    ['4, 7', wire(typed(call), [host], 'POST /other HTTP/1.1'), 404],
    ['5, 7', wire(typed(call), [host], get('/mcp')), 405],
    ['5, 8', wire(long, [host], get('/mcp')), 405],
    ['7, 8', wire(typed(long), [host]), 415],
    ['7, 9', wire(typed({ ...call, body: {} }), [host]), 415],
    ['8, 9', head([host, ['Content-Length', '2001'], ...call.headers]) + '{'.repeat(2001), 413],
    ['8, 10', wire({ ...long, body: { more: 'x'.repeat(2000) } }, [host]), 413],
  ]
  for (const [rows, bytes, status, code, says] of cases) {
    const reply = await only(raw(url, bytes))
    assert.equal(reply.status, status, rows)
    if (code === undefined) assert.equal(reply.body, undefined, rows)
    else assert.match(assertRefused(reply, status, code, undefined, rows), says ?? /./)
  }
  await assertHeldBack(served, call)
})

test('a line that comes after a thousand others is seen like the first', async (t) => {
  const { url } = await serve(t)
  const junk = 'a:b\r\n'.repeat(1500)
  const { headers, body } = message('server/discover')
  const text = JSON.stringify(body)
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const cases: [string, number][] = [
    ['Origin: http://evil.example', 403],
    ['Mcp-Method: tools/call', 400],
    ['Content-Encoding: gzip', 415],
  ]
  for (const [line, status] of cases) {
    const request = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${text.length}\r\n${head}${junk}${line}\r\n\r\n${text}`
    assert.equal((await only(raw(url, request))).status, status, line)
  }
})
