/**
 * The two configurations of `balancer/` on a real nginx, in front of real server processes: what
 * README and their comments promise of them.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { at, callTool, encodeHeader, type Header, message, type Reply, send } from '../../client.ts'
import type { Instance } from '../instance.ts'
import { head, raw } from '../raw.ts'
import { answer, codeOf, SECRET, stateOf, textOf } from '../serve.ts'
import { type Nginx, PUBLIC_NAME, startNginx } from './nginx.ts'
import { PATIENT, until } from './processes.ts'
import { linesOf, type Replica, startReplicas } from './replicas.ts'

/** The default of MAX_BODY_BYTES. */
const MAX_BODY_BYTES = 1_048_576
const YES = answer({ confirm: true })

const addressesOf = (replicas: readonly Replica[]) => replicas.map(({ address }) => address)

/** Instances in turn. */
async function roundRobin(t: TestContext, count: number): Promise<{ nginx: Nginx; replicas: Replica[] }> {
  const replicas = await startReplicas(t, count, { STATE_SECRET: SECRET })
  return { nginx: await startNginx(t, 'round-robin.conf', { instances: addressesOf(replicas) }), replicas }
}

/** Waits until a process has logged all that it was sent before. */
async function settled(t: TestContext, instance: Instance): Promise<void> {
  const seen = () => linesOf(instance).filter(({ method }) => method === 'server/discover').length
  const before = seen()
  const { headers, body } = message('server/discover')
  const lines: Header[] = [['Host', 'localhost'], ...headers]
  const text = JSON.stringify(body)
  const length: Header = ['Content-Length', `${text.length}`]
  await raw(instance.url, head([...lines, length, ['Connection', 'close']]), text)
  await until(t, () => seen() > before)
}

/** An HTTP server in the place of the instances, for what these don't show. @returns its address. */
async function standIn(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.1.1')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `127.0.1.1:${Object(server.address()).port}`
}

test('round robin: the two passes of every confirmation meet different instances', PATIENT, async (t) => {
  const { nginx, replicas } = await roundRobin(t, 3)
  for (let i = 0; i < 6; i++) {
    const args = { service: 'checkout', version: `v1.${i}` }
    const requestState = stateOf(await callTool(nginx.url, 'rollback_release', args))
    const done = await callTool(nginx.url, 'rollback_release', args, { requestState, inputResponses: YES })
    assert.equal(textOf(done), `Rolled checkout back to v1.${i}. Reason: (none given)`)
  }
  const decisions = () =>
    replicas.flatMap(({ address, instance }) => {
      const lines = linesOf(instance()).filter(({ flow }) => flow !== undefined)
      return lines.map(({ decision, flow }) => ({ address, decision, flow }))
    })
  const those = (what: string) => decisions().filter(({ decision }) => decision === what)
  await until(t, () => those('acted').length === 6)
  const by = new Set<string>()
  for (const { flow, address } of those('acted')) {
    const asked = those('asked').filter((line) => line.flow === flow)
    assert.equal(asked.length, 1)
    assert.notEqual(asked[0]?.address, address)
    by.add(address)
  }
  assert.deepEqual([...by].sort(), addressesOf(replicas).sort(), 'each of the three has acted')
})

test('the instances see the public name, and refuse any other', PATIENT, async (t) => {
  const { nginx } = await roundRobin(t, 1)
  const { headers, body } = message('server/discover')
  const text = JSON.stringify(body)
  const ask = (host: string) => {
    const lines: Header[] = [['Host', host], ...headers, ['Content-Length', `${text.length}`]]
    return raw(nginx.url, head([...lines, ['Connection', 'close']]), text)
  }
  for (const host of [PUBLIC_NAME, nginx.url.host]) {
    assert.deepEqual(
      (await ask(host)).map(({ status }) => status),
      [200],
      host,
    )
  }
  const [refused] = await ask('rebound.example')
  assert.equal(refused?.status, 403)
  assert.match(String(at(refused?.body, 'error', 'message')), /^Forbidden host/)
})

test(
  'a body of MAX_BODY_BYTES reaches an instance, and one byte more gets a readable 413',
  PATIENT,
  async (t) => {
    const { nginx } = await roundRobin(t, 1)
    const { headers } = message('server/discover')
    const largest = await send(nginx.url, { headers, body: Buffer.alloc(MAX_BODY_BYTES, '[') })
    assert.deepEqual([largest.status, codeOf(largest)], [400, -32700])
    const larger = await send(nginx.url, { headers, body: Buffer.alloc(MAX_BODY_BYTES + 1, '[') })
    assert.equal(larger.status, 413)
    assert.match(larger.text, /413/)
  },
)

test('a request that never arrives in full never reaches an instance', PATIENT, async (t) => {
  const { nginx, replicas } = await roundRobin(t, 1)
  const socket = connect(Number(nginx.url.port), PUBLIC_NAME)
  const lines: Header[] = [
    ['Host', nginx.url.host],
    ['Content-Type', 'application/json'],
    ['Content-Length', '9'],
  ]
  socket.write(`${head(lines)}{"json`)
  await once(socket, 'connect')
  await send(nginx.url, message('server/discover'))
  socket.destroy()
  await until(t, () => nginx.log().includes('client prematurely closed connection'))
  for (const { instance } of replicas) {
    await settled(t, instance())
    for (const { status } of linesOf(instance())) assert.equal(status, 200)
  }
})

test(
  'the headers that a request came with reach the instance, whatever token names them',
  PATIENT,
  async (t) => {
    const seen: string[] = []
    const address = await standIn(t, (request, response) => {
      seen.push(...request.rawHeaders)
      response.end()
    })
    const nginx = await startNginx(t, 'round-robin.conf', { instances: [address] })
    const given: Header[] = [
      ['Mcp-Param-Service', '=?base64?WsO8cmljaA==?='],
      ['Mcp-Param-Cost_Center', '42'],
      ['Mcp-Param-a.b', 'true'],
      ['Origin', 'http://localhost:5173'],
      ['Authorization', 'Bearer none'],
    ]
    const { headers, body } = message('tools/call', { name: 'rollback_release' })
    await send(nginx.url, { headers: [...headers, ...given], body })
    const lines = Array.from({ length: seen.length / 2 }, (_, i) => `${seen[2 * i]}: ${seen[2 * i + 1]}`)
    const expected: Header[] = [['Host', nginx.url.host], ...headers, ...given]
    for (const [name, value] of expected)
      assert.ok(lines.includes(`${name}: ${value}`), `${name}: ${lines}`)
  },
)

test('each event of a stream is passed on while the next is not yet there', PATIENT, async (t) => {
  let next = (_: string) => {}
  const address = await standIn(t, (_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    next = (event) => response.write(event)
  })
  const nginx = await startNginx(t, 'round-robin.conf', { instances: [address] })
  const reply = await fetch(nginx.url, { method: 'POST', body: '{}', signal: t.signal })
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    next(event)
    assert.equal((await reader?.read())?.value, event)
  }
  await reader?.cancel()
})

/** A first call of the tool for a service, with these header lines for it. */
type Spelled = {
  readonly how: string
  readonly lines: readonly Header[]
  readonly service?: string
  readonly target?: string
  readonly version?: string
}

const NAME = 'Mcp-Param-Service'
const inBase64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`
/** By `by-service.conf`: so many at once, and then so many a second. */
const LIMIT = { burst: 30, perSecond: 0.5 }

/** Every way to say `checkout` that the server takes, and one that only looks like it. */
const SAME: readonly Spelled[] = [
  { how: 'plain', lines: [[NAME, 'checkout']] },
  { how: 'in base64', lines: [[NAME, inBase64('checkout')]] },
  { how: 'blanks around it', lines: [[NAME, '   checkout  ']] },
  { how: 'a tab before it', lines: [[NAME, '\tcheckout']] },
  { how: 'a tab after it', lines: [[NAME, 'checkout\t']] },
  { how: 'tabs and blanks', lines: [[NAME, ' \t checkout \t\t']] },
  { how: 'a tab before base64', lines: [[NAME, `\t${inBase64('checkout')}`]] },
  { how: 'the header in lower case', lines: [['mcp-param-service', 'checkout']] },
  { how: 'the header in upper case', lines: [['MCP-PARAM-SERVICE', inBase64('checkout')]] },
  {
    how: 'another header before it that nginx could take for it',
    lines: [
      ['Mcp_Param_Service', 'search'],
      [NAME, 'checkout'],
    ],
  },
  {
    how: 'another header after it that nginx could take for it',
    lines: [
      [NAME, 'checkout'],
      ['Mcp_Param-Service', 'search'],
    ],
  },
  { how: 'a slash at the end of the path', lines: [[NAME, 'checkout']], target: '/mcp/' },
  { how: 'a query', lines: [[NAME, 'checkout']], target: '/mcp?service=search' },
  { how: 'a whole URL', lines: [[NAME, 'checkout']], target: `http://${PUBLIC_NAME}/mcp` },
  { how: 'a tab after the version', lines: [[NAME, 'checkout']], version: '2026-07-28\t' },
  { how: 'a service of almost that name', lines: [[NAME, 'CHECKOUT']], service: 'CHECKOUT' },
]

/** What doesn't say `checkout` to the server. */
const OTHER: readonly Spelled[] = [
  { how: 'missing', lines: [] },
  { how: 'empty', lines: [[NAME, '']] },
  { how: 'blank', lines: [[NAME, ' \t ']] },
  { how: 'another service', lines: [[NAME, 'search']] },
  { how: 'another case', lines: [[NAME, 'Checkout']] },
  { how: 'another header', lines: [['Mcp_Param_Service', 'checkout']] },
  { how: 'upper case base64', lines: [[NAME, inBase64('checkout').toUpperCase()]] },
  { how: 'base64 of base64', lines: [[NAME, inBase64(inBase64('checkout'))]] },
  { how: 'base64 with other bits at its end', lines: [[NAME, '=?base64?Y2hlY2tvdXR=?=']] },
  { how: 'base64 without padding', lines: [[NAME, '=?base64?Y2hlY2tvdXQ?=']] },
  { how: 'base64 and a byte that is no ASCII', lines: [[NAME, `${inBase64('checkout')}\xe9`]] },
  { how: 'a continued line', lines: [[NAME, '\r\n checkout']] },
  ...[
    ['checkout', 'checkout'],
    ['checkout', 'search'],
    ['search', 'checkout'],
    ['', 'checkout'],
    [inBase64('checkout'), 'checkout'],
    [inBase64('Zürich'), 'checkout'],
  ].map((values) => ({
    how: `twice: ${values.join(' and ')}`,
    lines: values.map((value): Header => [NAME, value]),
  })),
]

/** Sends a call byte for byte. */
async function call(url: URL, spelled: Spelled): Promise<Reply> {
  const { lines, service = 'checkout', target = '/mcp', version } = spelled
  const params = { name: 'rollback_release', arguments: { service, version: 'v1' } }
  const { headers, body } = message('tools/call', params)
  const text = Buffer.from(JSON.stringify(body))
  const known = headers.map(([name, value]): Header => {
    return name === 'MCP-Protocol-Version' && version !== undefined ? [name, version] : [name, value]
  })
  const length: Header = ['Content-Length', `${text.length}`]
  const all: Header[] = [['Host', PUBLIC_NAME], ...known, ...lines, length, ['Connection', 'close']]
  const [reply] = await raw(url, Buffer.from(head(all, `POST ${target} HTTP/1.1`), 'latin1'), text)
  return reply ?? assert.fail(`no answer: ${spelled.how}`)
}

/** Whether the call was let through: the question is what there is to gain. */
const asked = (reply: Reply) => at(reply.body, 'result', 'resultType') === 'input_required'

/** One instance for each pool, and how many questions each has asked so far. */
async function byService(t: TestContext) {
  const [payments, general] = await startReplicas(t, 2, { STATE_SECRET: SECRET })
  if (payments === undefined || general === undefined) throw new TypeError('There are two.')
  const pools = { payments: [payments.address], general: [general.address] }
  const questions = async ({ instance }: Replica) => {
    await settled(t, instance())
    return linesOf(instance()).filter(({ outcome }) => outcome === 'asked').length
  }
  return {
    direct: payments.instance().url,
    start: () => startNginx(t, 'by-service.conf', pools),
    asked: async () => ({ payments: await questions(payments), general: await questions(general) }),
  }
}

test('however a service is spelled, it has one bucket and one route', PATIENT, async (t) => {
  const scene = await byService(t)
  for (const spelled of SAME) {
    assert.equal(asked(await call(scene.direct, spelled)), true, `the server takes it: ${spelled.how}`)
  }
  const before = await scene.asked()
  const { url } = await scene.start()
  const began = performance.now()
  let through = 0
  for (let round = 0; round < 8; round++) {
    for (const spelled of SAME) through += asked(await call(url, spelled)) ? 1 : 0
  }
  const seconds = (performance.now() - began) / 1000
  const most = LIMIT.burst + Math.ceil(seconds * LIMIT.perSecond)
  assert.ok(through >= LIMIT.burst && through <= most, `${through}, at most ${most}`)
  const after = await scene.asked()
  assert.deepEqual(after, { payments: before.payments + through, general: 0 })
})

test('what says something else than the body reaches no tool on either route', PATIENT, async (t) => {
  const scene = await byService(t)
  const { url } = await scene.start()
  for (const spelled of OTHER) {
    const reply = await call(url, spelled)
    assert.equal(reply.status, 400, spelled.how)
  }
  assert.deepEqual(await scene.asked(), { payments: 0, general: 0 })
  for (const spelled of OTHER) {
    assert.equal((await call(scene.direct, spelled)).status, 400, `the server refuses it: ${spelled.how}`)
  }
})

test(
  'a name that needs base64 is served, and names that nobody listed share one bucket',
  PATIENT,
  async (t) => {
    const scene = await byService(t)
    const { url } = await scene.start()
    const callFor = (service: string) =>
      call(url, { how: service, service, lines: [[NAME, encodeHeader(service)]] })
    assert.equal(asked(await callFor('checkout')), true)
    assert.equal(asked(await callFor('Zürich')), true)
    assert.deepEqual(await scene.asked(), { payments: 2, general: 0 })
    const names = ['search', 'a b', '結帳', 'é', '=?base64?abc', '=?BASE64?YWJj?=', 'checkout2', 'Zurich']
    for (const name of names) assert.equal(asked(await callFor(name)), true, name)
    assert.deepEqual(await scene.asked(), { payments: 2, general: names.length })

    const invented = Array.from({ length: 2 * LIMIT.burst }, (_, i) => callFor(i % 2 ? `s${i}` : `é${i}`))
    const busy = (await Promise.all(invented)).filter(({ status }) => status === 429)
    assert.ok(busy.length >= LIMIT.burst / 2, `${busy.length} of them are too many`)
    for (const { headers, body } of busy) {
      assert.deepEqual([headers['retry-after'], at(body, 'error', 'code')], ['2', 1429])
    }
    for (const name of ['checkout', 'Zürich']) assert.equal(asked(await callFor(name)), true, name)
    const listing = await send(url, message('tools/list'))
    assert.equal(listing.status, 200, 'what names no service is not counted')
  },
)

test('no name has two spellings that the proxy lets through', PATIENT, async (t) => {
  const address = await standIn(t, (_, response) => response.end())
  const { url } = await startNginx(t, 'by-service.conf', { payments: [address], general: [address] })
  const passes = async (value: string) => {
    const reply = await call(url, { how: value, lines: [[NAME, value]] })
    return reply.status !== 400
  }
  const signs = ['d', 'p', '~', 'é', '結', '\u{1f680}']
  const longer = (names: string[]) => names.flatMap((name) => signs.map((sign) => name + sign))
  const short = [signs, longer(signs), longer(longer(signs))].flat()
  const names = [...short, ...short.map((name) => `dpd${name}`)]
  for (const name of names) {
    const isAscii = /^[ -~]*$/.test(name)
    const spelled = await Promise.all([name, inBase64(name)].map((value) => passes(latin1Of(value))))
    assert.deepEqual(spelled, [isAscii, !isAscii], name)
  }
})

/** The bytes of a text, one character each, as `call` writes them. */
const latin1Of = (text: string) => Buffer.from(text).toString('latin1')

test(
  'a revision that compares no headers is not let through, and is told which does',
  PATIENT,
  async (t) => {
    const scene = await byService(t)
    const { url } = await scene.start()
    const plain: Header[] = [[NAME, 'checkout']]
    for (const version of ['2025-11-25', '', '2026-07-28\t', '2026-07-28", "x', '2026-07-28, 2026-07-28']) {
      const reply = await call(url, { how: version, lines: plain, version })
      assert.deepEqual([reply.status, codeOf(reply)], [400, -32022], version)
      assert.deepEqual(at(reply.body, 'error', 'data', 'supported'), ['2026-07-28'])
      assert.equal(typeof at(reply.body, 'error', 'data', 'requested'), 'string')
    }
    assert.deepEqual(await scene.asked(), { payments: 0, general: 0 })
    const [health] = await raw(
      url,
      head(
        [
          ['Host', url.host],
          ['Connection', 'close'],
        ],
        'GET /healthz HTTP/1.1',
      ),
    )
    assert.deepEqual([health?.status, health?.text], [200, 'ok'])
  },
)
