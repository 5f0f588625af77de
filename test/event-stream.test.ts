/** The seam for answers in several messages, seen over real HTTP through a tool that notifies. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { at, message } from '../client.ts'
import { EVENT_STREAM, keepAlive } from '../lib/event-stream.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import { invalidParams } from '../lib/refusal.ts'
import { type Call, type Outcome, plainTool, type Tool, toolResult } from '../lib/tool.ts'
import { codeOf, plus, replacing, type Served, serve, without } from './serve.ts'
import { openStream } from './stream.ts'

const NOTE = 'notifications/message'
const note = (data: unknown) => ({ jsonrpc: '2.0', method: NOTE, params: { level: 'info', data } })
const notify = (call: Call, data: unknown) => call.client.notify(NOTE, { level: 'info', data })

/** A tool without arguments. */
function tool(handle: (call: Call) => Outcome | Promise<Outcome>): Tool {
  return plainTool({ name: 'talk', description: 'Talks.', inputSchema: { type: 'object' } }, handle)
}

const TALK = () => message('tools/call', { name: 'talk', arguments: {} })
const done = () => toolResult({ text: 'Done.' })

/** A promise and what resolves it. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

test('a tool that notifies is answered as a stream: notifications first, the response last, then the end', async (t) => {
  const talk = tool(async (call) => {
    await notify(call, 'one')
    await notify(call, 'two\nlines')
    return done()
  })
  const { url, lines } = await serve(t, { tools: [talk] })
  const call = TALK()
  const { status, headers, next, rest } = await openStream(url, call)
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/event-stream')
  assert.equal(headers['x-accel-buffering'], 'no', 'or nginx would hold events back')
  assert.equal(headers['cache-control'], 'no-cache')
  assert.equal(headers['content-length'], undefined)
  assert.deepEqual(await next(), note('one'))
  const [second, response, ...more] = await rest()
  assert.deepEqual(second, note('two\nlines'))
  assert.equal(at(response, 'id'), at(call.body, 'id'))
  assert.equal(at(response, 'result', 'content', '0', 'text'), 'Done.')
  assert.deepEqual(more, [])
  assert.deepEqual(
    lines.slice(1).map(({ tool, status, outcome }) => ({ tool, status, outcome })),
    [{ tool: 'talk', status: 200, outcome: 'ok' }],
  )
})

test('a notification arrives while the tool still works', async (t) => {
  const heard = gate()
  const talk = tool(async (call) => {
    await notify(call, 'working')
    await heard.opened
    return done()
  })
  const { url } = await serve(t, { tools: [talk] })
  const { next, rest } = await openStream(url, TALK())
  assert.deepEqual(await next(), note('working'))
  heard.open()
  assert.equal((await rest()).length, 1)
})

test('a tool that notifies nobody is answered in JSON, even if it could have notified', async (t) => {
  const { url } = await serve(t, { tools: [tool(done)] })
  const { headers, rest } = await openStream(url, TALK())
  assert.equal(headers['content-type'], 'application/json')
  assert.ok(headers['content-length'] !== undefined, 'it is whole before it leaves')
  assert.equal((await rest()).length, 1)
})

test('streams at the same time carry what is theirs, and no event an id to resume by', {
  timeout: 10_000,
}, async (t) => {
  const NAMES = ['one', 'two', 'three', 'four']
  let waiting = NAMES.length
  const all = gate()
  const talk = tool(async (call) => {
    const mine = call.meta['com.example/name']
    await notify(call, mine)
    waiting -= 1
    if (waiting === 0) all.open()
    await all.opened
    await notify(call, mine)
    return done()
  })
  const { url } = await serve(t, { tools: [talk] })
  const calls = NAMES.map((name) => {
    const { headers, body } = plus(TALK(), 'Last-Event-ID', '1')
    const params = Object(body.params)
    const _meta = { ...params._meta, 'com.example/name': name }
    return { headers, body: { ...body, params: { ...params, _meta } } }
  })
  const streams = await Promise.all(calls.map((call) => openStream(url, call)))
  for (const [i, { rest }] of streams.entries()) {
    const [first, second, response, ...more] = await rest()
    assert.deepEqual([first, second, more], [note(NAMES[i]), note(NAMES[i]), []])
    assert.equal(at(response, 'id'), at(calls[i], 'body', 'id'))
  }
})

test('what is refused is refused with its status, before any stream begins', async (t) => {
  let ran = 0
  const talk = tool(async (call) => {
    ran += 1
    await notify(call, 'one')
    return done()
  })
  const { url } = await serve(t, { tools: [talk] })
  for (const [call, status, code] of [
    [without(TALK(), 'Mcp-Name'), 400, -32020],
    [replacing(TALK(), 'Mcp-Method', 'tools/list'), 400, -32020],
    [{ ...TALK(), body: { ...TALK().body, params: { name: 'talk' } } }, 400, -32602],
    [message('no/such/method'), 404, -32601],
    [message('tools/call', { name: 'nobody' }), 200, -32602],
  ] as const) {
    const { headers, status: answered, rest } = await openStream(url, call)
    const [body] = await rest()
    assert.deepEqual(
      [answered, headers['content-type'], at(body, 'error', 'code')],
      [status, 'application/json', code],
    )
  }
  assert.equal(ran, 0)
  assert.equal((await openStream(url, TALK())).headers['content-type'], 'text/event-stream')
})

test('a stream to a page of an allowed origin has the headers that let it be read', async (t) => {
  const talk = tool(async (call) => {
    await notify(call, 'one')
    return done()
  })
  const { url } = await serve(t, { tools: [talk] })
  const { headers, rest } = await openStream(url, plus(TALK(), 'Origin', 'http://localhost:5173'))
  assert.equal(headers['access-control-allow-origin'], 'http://localhost:5173')
  assert.equal(headers['access-control-expose-headers'], 'WWW-Authenticate, Retry-After')
  assert.equal(headers.vary, 'Origin')
  await rest()
})

for (const [what, code, thrown] of [
  ['a failure that nobody foresaw', -32603, new Error('secret of the tool')],
  ['a refusal', -32602, invalidParams('too late')],
] as const) {
  test(`after a notification ${what} comes as the last event, with the id of its request`, async (t) => {
    const talk = tool(async (call) => {
      await notify(call, 'one')
      throw thrown
    })
    const { url, failures } = await serve(t, { tools: [talk] })
    const call = TALK()
    const { status, rest } = await openStream(url, call)
    assert.equal(status, 200, 'it was sent before')
    const [first, last, ...more] = await rest()
    assert.deepEqual(first, note('one'))
    assert.equal(at(last, 'id'), at(call.body, 'id'))
    assert.equal(codeOf({ status, headers: {}, text: '', body: last }), code)
    assert.doesNotMatch(JSON.stringify(last), /secret of the tool/)
    assert.deepEqual(more, [])
    assert.equal(failures.length, thrown instanceof Error ? 1 : 0)
  })
}

test('a client that hangs up is gone for the tool, and what is written to it then is nothing', async (t) => {
  const ended = gate()
  const seen: unknown[] = []
  const talk = tool(async (call) => {
    await notify(call, 'one')
    if (!call.client.signal.aborted) await once(call.client.signal, 'abort')
    seen.push(call.client.gone)
    await notify(call, 'two')
    ended.open()
    return done()
  })
  const served = await serve(t, { tools: [talk] })
  const { next, hangUp } = await openStream(served.url, TALK())
  assert.deepEqual(await next(), note('one'))
  hangUp()
  await ended.opened
  assert.deepEqual(seen, [true])
  assert.deepEqual(served.failures, [])
  await stillServes(served)
})

test('a signal that is asked for after the client has hung up is aborted already', async (t) => {
  const [called, left] = [gate(), gate()]
  let aborted: boolean | undefined
  const talk = tool(async (call) => {
    called.open()
    await left.opened
    while (!call.client.gone) await new Promise(setImmediate)
    aborted = call.client.signal.aborted
    return done()
  })
  const served = await serve(t, { tools: [talk] })
  const socket = connect(Number(served.url.port), served.url.hostname)
  socket.write(asText(served.url))
  await called.opened
  socket.destroy()
  left.open()
  while (aborted === undefined) await new Promise(setImmediate)
  assert.equal(aborted, true)
  await stillServes(served)
})

test('an answer that was read to its end leaves the signal alone', async (t) => {
  let signal: AbortSignal | undefined
  const talk = tool((call) => {
    signal = call.client.signal
    return done()
  })
  const served = await serve(t, { tools: [talk] })
  await (await openStream(served.url, TALK())).rest()
  await stillServes(served)
  assert.equal(signal?.aborted, false)
})

test('a client that reads slowly makes the tool wait: no more is kept than is on its way', async (t) => {
  const [MESSAGES, SIZE] = [1024, 65_536]
  let [read, readWhenSent] = [0, -1]
  const talk = tool(async (call) => {
    for (let i = 0; i < MESSAGES; i += 1) await notify(call, 'x'.repeat(SIZE))
    readWhenSent = read
    return done()
  })
  const { url } = await serve(t, { tools: [talk] })
  const socket = connect(Number(url.port), url.hostname)
  socket.write(asText(url))
  socket.on('data', (chunk) => {
    read += chunk.length
    if (chunk.includes('Done.')) socket.end()
  })
  await once(socket, 'close')
  // All but what the two ends of the connection hold, which is some MiB.
  assert.ok(readWhenSent > (MESSAGES * SIZE) / 2, `only ${readWhenSent} bytes were read when all was sent`)
})

test('a stop waits for a stream that works, which then ends with its response, and its connection', async (t) => {
  const [working, stopped] = [gate(), gate()]
  const talk = tool(async (call) => {
    await notify(call, 'one')
    working.open()
    await stopped.opened
    return done()
  })
  const { url, http } = await serve(t, { tools: [talk] })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const [slow, fast] = await Promise.all([openStream(url, TALK(), agent), openStream(url, TALK())])
  await Promise.all([slow.next(), fast.next(), working.opened])
  const stopping = stop(http, 5000)
  stopped.open()
  const [response] = await slow.rest()
  assert.equal(at(response, 'result', 'content', '0', 'text'), 'Done.')
  await stopping
  assert.equal(http.serving(), 0)
  assert.equal((await fast.rest()).length, 1)
})

test('a draining server closes a connection as soon as its stream has ended, while others still work', {
  timeout: 10_000, // well before an idle connection is closed anyway
}, async (t) => {
  const [first, second] = [gate(), gate()]
  const gates = [first, second]
  const talk = tool(async (call) => {
    const mine = gates.shift()
    await notify(call, 'one')
    await mine?.opened
    return done()
  })
  const { url, http } = await serve(t, { tools: [talk] })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const one = await openStream(url, TALK(), agent)
  await one.next()
  const two = await openStream(url, TALK())
  await two.next()
  http.drain()
  const [socket] = Object.values(agent.sockets).flat()
  assert.ok(socket !== undefined, 'the agent has the connection')
  const closed = once(socket, 'close')
  first.open()
  await one.rest()
  await closed
  assert.equal(http.serving(), 1, 'the other one still works')
  second.open()
  await two.rest()
})

test('the response that a stop has waited for arrives whole, also where it is read late', async (t) => {
  const stopped = gate()
  const text = 'x'.repeat(16 * 1024 * 1024)
  const talk = tool(async (call) => {
    await notify(call, 'one')
    await stopped.opened
    return toolResult({ text })
  })
  const { url, http } = await serve(t, { tools: [talk] })
  const { next } = await openStream(url, TALK())
  await next()
  const stopping = stop(http, 60_000)
  stopped.open()
  while (http.serving() > 0) await new Promise(setImmediate)
  assert.equal(at(await next(), 'result', 'content', '0', 'text'), text)
  await stopping
})

test('a stop does not cut off an answer that had ended before, and is still being read', async (t) => {
  const text = 'x'.repeat(16 * 1024 * 1024)
  const { url, http } = await serve(t, { tools: [tool(() => toolResult({ text }))] })
  const idle = connect(Number(url.port), url.hostname)
  const { next } = await openStream(url, TALK())
  while (http.serving() > 0) await new Promise(setImmediate)
  const stopping = stop(http, 60_000)
  assert.equal(at(await next(), 'result', 'content', '0', 'text'), text)
  await Promise.all([stopping, once(idle.resume(), 'close')])
})

test('a quiet stream says that it is there, in comments that are no messages', async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(200, EVENT_STREAM)
    keepAlive(response, 1)
  })
  t.after(() => stop({ server, serving: () => 0, leaving: () => false, drain: () => {} }, 0))
  const url = new URL(await listen(server, 0, '127.0.0.1'))
  const socket = connect(Number(url.port), url.hostname)
  socket.setEncoding('utf8').write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  let text = ''
  for await (const chunk of socket) {
    text += chunk
    if (text.split('\r\n:\n\n\r\n').length > 3) break
  }
  assert.match(text, /\r\n\r\n3\r\n:\n\n\r\n3\r\n:\n\n\r\n/)
})

for (const end of [true, false]) {
  const which = end ? 'has ended and is' : 'is'
  test(`no comment is added to a stream that ${which} still on its way to a client that doesn't read`, async (t) => {
    const responses: ServerResponse[] = []
    const server = createServer((_, response) => {
      response.writeHead(200, EVENT_STREAM)
      keepAlive(response, 1)
      if (responses.length === 0) response[end ? 'end' : 'write']('x'.repeat(32 * 1024 * 1024))
      responses.push(response)
    })
    t.after(() => stop({ server, serving: () => 0, leaving: () => false, drain: () => {} }, 0))
    const url = new URL(await listen(server, 0, '127.0.0.1'))
    const ask = async () => {
      const socket = connect(Number(url.port), url.hostname)
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
      await once(socket, 'readable')
      return socket
    }
    const deaf = await ask()
    const [stuck] = responses
    assert.ok(stuck !== undefined, 'the first one asked first')
    const failures: unknown[] = []
    stuck.on('error', (error) => failures.push(error))
    const listener = await ask()
    const hear = async (comments: number) => {
      for (let heard = 0; heard < comments; ) {
        heard += String(listener.read() ?? '').split(':\n\n').length - 1
        if (heard < comments) await once(listener, 'readable')
      }
    }
    await hear(20)
    const before = stuck.writableLength
    assert.ok(before > 0, 'some of it is still here')
    await hear(20)
    assert.equal(stuck.writableLength, before)
    assert.deepEqual(failures, [])
    deaf.destroy()
    listener.destroy()
  })
}

test('a notification that comes too late, after the response, is dropped', async (t) => {
  let talking: Call | undefined
  const talk = tool(async (call) => {
    talking = call
    await notify(call, 'one')
    return toolResult({ text: 'x'.repeat(16 * 1024 * 1024) })
  })
  const served = await serve(t, { tools: [talk] })
  const { next, rest } = await openStream(served.url, TALK())
  assert.deepEqual(await next(), note('one'))
  while (served.http.serving() > 0) await new Promise(setImmediate)
  assert.ok(talking !== undefined, 'the tool was called')
  await notify(talking, 'late')
  assert.equal((await rest()).length, 1)
  await stillServes(served)
})

/** The honest call still gets its answer. */
async function stillServes({ call }: Served): Promise<void> {
  assert.equal(at((await call()).body, 'result', 'resultType'), 'input_required')
}

/** The call as bytes, for a socket that is read by hand. */
function asText(url: URL): string {
  const { headers, body } = TALK()
  const text = JSON.stringify(body)
  const lines = [['Host', url.host], ['Content-Length', String(Buffer.byteLength(text))], ...headers]
  return `POST /mcp HTTP/1.1\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n${text}`
}
