import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { at, callTool, message, send } from '../client.ts'
import { stop } from '../lib/lifecycle.ts'
import { type Instance, ROOT, start, startServer } from './instance.ts'
import { ROLLBACK, SECRET, serve, stateOf, textOf } from './serve.ts'

type Ended = { code: number | null; stdout: string; stderr: string }

/** Waits for the end of a process. */
async function ended(child: ChildProcess, input = ''): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  child.stdin?.end(input)
  const [code] = await once(child, 'close')
  return { code, stdout, stderr }
}

async function server(t: TestContext, env: Record<string, string> = {}): Promise<Instance> {
  const instance = await startServer(env)
  t.after(() => instance.process.kill('SIGKILL'))
  return instance
}

const client = (args: string[], input?: string) => ended(start('client.ts', args, {}), input)

test('the first line on stdout is the address that was really bound, and nothing follows it', async (t) => {
  const { process: child, url, stop } = await server(t, { STATE_SECRET: SECRET })
  let more = ''
  child.stdout?.on('data', (chunk) => {
    more += chunk
  })
  assert.match(url.href, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
  assert.equal((await send(url, message('server/discover'))).status, 200)
  assert.equal(await stop(), 0)
  assert.equal(more, '')
})

test('a taken port ends the start with one line that says what to do', async (t) => {
  const { url } = await server(t)
  const { code, stdout, stderr } = await ended(
    start('server.ts', [], { PORT: url.port, STATE_SECRET: SECRET }),
  )
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /^Can't listen on port \d+ of 127\.0\.0\.1: it is taken\..*set PORT.*\n$/)
})

test('an address that the machine lacks ends the start with one line', async () => {
  const env = { PORT: '0', HOST: '203.0.113.7', STATE_SECRET: SECRET }
  const { code, stderr } = await ended(start('server.ts', [], { ...env, ALLOW_ANONYMOUS: '1' }))
  assert.equal(code, 1)
  assert.match(stderr, /no such address\. Set HOST/)
})

test('an empty secret ends the start and prints a command that makes one', async () => {
  const { code, stdout, stderr } = await ended(start('server.ts', [], { STATE_SECRET: '' }))
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /STATE_SECRET has 0 bytes .*Make one: node -p "/)
  assert.doesNotMatch(stderr, /\n\s+at /)
})

test('a missing secret is warned about also when the log is off', async (t) => {
  const { url, stderr, stop } = await server(t, { LOG: 'off' })
  await send(url, message('server/discover'))
  await stop()
  assert.match(stderr(), /^STATE_SECRET is not set/)
  assert.doesNotMatch(stderr(), /"method"/)
})

test('each request leaves one JSON line on stderr, without state, arguments or answers', async (t) => {
  const { url, stderr, stop } = await server(t, { STATE_SECRET: SECRET })
  const asked = await callTool(url, 'rollback_release', ROLLBACK)
  const requestState = stateOf(asked)
  const content = { confirm: true, reason: 'p99 regression' }
  const inputResponses = { confirm: { action: 'accept', content } }
  await callTool(url, 'rollback_release', ROLLBACK, { requestState, inputResponses })
  await callTool(url, 'rollback_release', ROLLBACK, {
    requestState: `${requestState}x`,
    inputResponses,
  })
  await stop()
  const json = stderr()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  const lines = json.map((line) => JSON.parse(line))
  const calls = lines.filter(({ method }) => method === 'tools/call')
  assert.deepEqual(
    calls.map(({ ms, ...line }) => ({ ...line, ms: typeof ms })),
    ['asked', 'acted', 'state refused: malformed'].map((outcome) => ({
      method: 'tools/call',
      tool: 'rollback_release',
      status: 200,
      outcome,
      ms: 'number',
    })),
  )
  for (const secret of [requestState, requestState.slice(10, 60), 'checkout', 'v1.41.2', 'p99', SECRET]) {
    assert.ok(!stderr().includes(secret))
  }
})

test('SIGTERM and SIGINT end it with exit code 0', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { process: child } = await server(t)
    child.kill(signal)
    assert.deepEqual(await once(child, 'exit'), [0, null])
  }
})

test('a request that has not arrived in full does not hold up the stop', async (t) => {
  const { url, process: child } = await server(t)
  const socket = connect(Number(url.port), url.hostname)
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  await send(url, message('server/discover'))
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('a second signal ends it at once', async (t) => {
  const { url, process: child } = await server(t)
  const socket = connect(Number(url.port), url.hostname)
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(
    'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  await send(url, message('server/discover'))
  child.kill('SIGTERM')
  await assert.rejects(async () => {
    for (;;) await send(url, message('server/discover')) // until it no longer accepts
  })
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [1, null])
})

test('nobody reading stdout or stderr any more does not stop it', async (t) => {
  const { url, process: child, stop } = await server(t)
  child.stdout?.destroy()
  child.stderr?.destroy()
  for (let i = 0; i < 3; i++) {
    assert.equal((await send(url, message('server/discover'))).status, 200)
  }
  assert.equal(await stop(), 0)
})

test('what one instance asked, another with the same secret and audience accepts', async (t) => {
  const a = await server(t, { STATE_SECRET: SECRET })
  const b = await server(t, { STATE_SECRET: SECRET })
  const other = await server(t, { STATE_SECRET: SECRET, STATE_AUDIENCE: 'another-server' })
  const stranger = await server(t)
  const asked = await callTool(a.url, 'rollback_release', ROLLBACK)
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
  const retry = { requestState: stateOf(asked), inputResponses }
  for (const { url } of [other, stranger]) {
    const refused = await callTool(url, 'rollback_release', ROLLBACK, retry)
    assert.equal(at(refused.body, 'result', 'isError'), true)
  }
  const done = await callTool(b.url, 'rollback_release', ROLLBACK, retry)
  assert.equal(textOf(done), 'Rolled checkout back to v1.41.2. Reason: (none given)')
})

test('it starts through a symbolic link, from a folder with a space in its name', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'a folder '))
  t.after(() => rmSync(folder, { recursive: true }))
  symlinkSync(ROOT, join(folder, 'linked project'))
  const child = start(join(folder, 'linked project', 'server.ts'), [], { PORT: '0' })
  t.after(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout ?? child, 'data')
  assert.match(String(line), /^MCP on http:/)
})

test('importing the server or the client does nothing', async () => {
  const files = ['server.ts', 'client.ts'].map((file) => `import './${file}';`)
  const { code, stdout, stderr } = await ended(start('--input-type=module', ['--eval', files.join('')], {}))
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' })
})

test('the client plays the six sections, twice in a row', async (t) => {
  const { url } = await server(t)
  const first = await client([url.href])
  assert.equal(first.code, 0)
  assert.equal(first.stdout.split('\n--- ').length, 6)
  assert.deepEqual(await client([url.href]), first)
})

test('the client fails when a section is not as promised, and says what was expected', async (t) => {
  const impostor = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { supportedVersions: ['2024-11-05'] } }))
  }).listen(0, '127.0.0.1')
  t.after(() => impostor.close())
  await once(impostor, 'listening')
  const { port } = impostor.address() as AddressInfo
  const { code, stderr } = await client([`http://127.0.0.1:${port}/mcp`])
  assert.equal(code, 1)
  assert.match(stderr, /^expected: \[ '2026-07-28' \]\n/)
})

test('without a server the client says how to start one', async () => {
  const { code, stderr } = await client(['http://127.0.0.1:1/mcp'])
  assert.equal(code, 1)
  assert.match(stderr, /^No answer from http:\/\/127\.0\.0\.1:1\/mcp .*npm start\n$/)
})

test('a person at the terminal sees the question, answers it, and sees the outcome', async (t) => {
  const { url } = await server(t)
  const ask = ['--ask', 'checkout', 'v1.41.2', url.href]
  const yes = await client(ask, 'y\nlatency\n')
  assert.match(yes.stdout, /Roll checkout back to v1\.41\.2\? This restarts every instance\./)
  assert.match(yes.stdout, /Rolled checkout back to v1\.41\.2\. Reason: latency\n$/)
  assert.equal(yes.code, 0)
  for (const input of ['n\n', '', 'maybe\n']) {
    const no = await client(ask, input)
    assert.match(no.stdout, /Rollback cancelled\. Nothing changed\.\n$/)
    assert.equal(no.code, 0)
  }
})

test('what a server sends can not drive the terminal', async (t) => {
  const { url } = await server(t)
  const { stdout } = await client(['--ask', 'check\u001b[31mout', 'v\u202e1', url.href], 'y\n\n')
  assert.ok(!stdout.includes('\u001b') && !stdout.includes('\u202e'))
  assert.match(stdout, /Roll check\\u\{1b\}\[31mout back to v\\u\{202e\}1\?/)
})

test('the client explains itself when it is called wrongly', async () => {
  for (const args of [['not a url'], ['--ask', 'checkout'], ['--ask']]) {
    const { code, stderr } = await client(args)
    assert.equal(code, 1)
    assert.match(stderr, /client --ask SERVICE VERSION \[URL\]/)
  }
})

test('a stop waits for an action whose client has hung up', async (t) => {
  let start = () => {}
  let go = () => {}
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const released = new Promise<void>((resolve) => {
    go = resolve
  })
  const during = () => {
    start()
    return released
  }
  const { url, http, ask, performed } = await serve(t, { during })
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
  const params = {
    name: 'rollback_release',
    arguments: ROLLBACK,
    requestState: await ask(),
    inputResponses,
  }
  const { headers, body } = message('tools/call', params)
  const lines = [['Host', url.host], ...headers, ['Mcp-Param-Service', 'checkout']]
  const leaving = request(url, { method: 'POST', headers: lines.flat(), agent: false })
  leaving.on('error', () => {}).end(JSON.stringify(body))
  await started
  const gone = once(http.server, 'close')
  leaving.destroy()
  const stopping = stop(http, 60_000)
  await gone // every socket is closed, and the action still runs
  assert.deepEqual([http.serving(), performed.length], [1, 0])
  let stopped = false
  void stopping.then(() => {
    stopped = true
  })
  // As many turns as a stop that doesn't wait needs to end.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(stopped, false)
  go()
  await stopping
  assert.equal(performed.length, 1)
})
