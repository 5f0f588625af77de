import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import { type Header, type Message, message, type Reply, send } from '../client.ts'
import { plainTool } from '../lib/tool.ts'
import { compose } from '../server.ts'
import { ROOT } from './instance.ts'
import { head, raw } from './raw.ts'
import { codeOf, REFUSED, ROLLBACK, SECRET, type Served, serve, textOf } from './serve.ts'

const ALICE = 'token-of-alice'
const BOB = 'token-of-bob'
const READER = 'token-of-reader'
const sha = (token: string) => hash('sha256', token, 'hex')

const LINES = `# who may call
${sha(ALICE)} alice releases:write other:scope
${sha(BOB).toUpperCase()}\tbob\treleases:write

${sha(READER)} reader
`

function tokensFile(t: TestContext, text: string, encoding: BufferEncoding = 'utf8'): string {
  const folder = mkdtempSync(join(tmpdir(), 'tokens-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tokens')
  writeFileSync(file, text, encoding)
  return file
}

const served = (t: TestContext): Promise<Served> =>
  serve(t, { env: { AUTH_TOKENS_FILE: tokensFile(t, LINES) }, token: ALICE })

/** The same message with these Authorization lines instead of its own. */
const as =
  (...values: string[]) =>
  ({ headers, body }: Message): Message => {
    const others = headers.filter(([name]) => name !== 'Authorization')
    return { headers: [...others, ...values.map((v): Header => ['Authorization', v])], body }
  }

const by = (token: string) => ({ edit: as(`Bearer ${token}`) })
const challengeOf = (reply: Reply) => reply.headers['www-authenticate']

test('a token from the file is let in, whatever the case of the scheme', async (t) => {
  const { ask, yes, performed } = await served(t)
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const how = { edit: as(`${scheme} ${ALICE}`) }
    await yes(await ask(ROLLBACK, how), ROLLBACK, how)
  }
  assert.equal(performed.length, 3)
})

test('without a good token every request is 401 with a bare Bearer, before it is read', async (t) => {
  const { url, call, performed } = await served(t)
  for (const values of [
    [],
    [''],
    ['Basic YTpi'],
    ['Bearer wrong'],
    [`Bearer ${ALICE}x`],
    [`Bearers ${ALICE}`],
    [`Bearer ${sha(ALICE)}`],
  ]) {
    const reply = await call(ROLLBACK, {}, { edit: as(...values) })
    assert.deepEqual([reply.status, challengeOf(reply), codeOf(reply)], [401, 'Bearer', undefined])
    const broken = await send(url, as(...values)({ headers: [], body: '{' }))
    assert.equal(broken.status, 401)
    const found = await send(url, as(...values)(message('server/discover')))
    assert.equal(found.status, 401)
    const notification = { jsonrpc: '2.0', method: 'notifications/cancelled' }
    const told = await send(url, as(...values)({ ...message('server/discover'), body: notification }))
    assert.equal(told.status, 401)
  }
  assert.deepEqual(performed, [])
})

test('an Authorization header that is malformed or repeated is 400', async (t) => {
  const { call, performed } = await served(t)
  const good = `Bearer ${ALICE}`
  for (const values of [
    [good, good],
    ['Bearer'],
    ['Bearer '],
    [`${good} more`],
    [`Bearer ${ALICE},`],
    ['Bearer ='],
    [`Bearer\t${ALICE}`],
    [`Bearer,${ALICE}`],
    [`Bearer ${ALICE}\u00e9`],
    [good, 'Basic YTpi'],
  ]) {
    const reply = await call(ROLLBACK, {}, { edit: as(...values) })
    assert.deepEqual([reply.status, challengeOf(reply)], [400, 'Bearer'], values.join())
  }
  assert.deepEqual(performed, [])
})

test('a token of more than 8 KiB is not looked at', async (t) => {
  const { call, lines, performed } = await served(t)
  for (const [length, outcome] of [
    [8192, 'token unknown'],
    [8193, 'token too long'],
  ] as const) {
    const reply = await call(ROLLBACK, {}, { edit: as(`Bearer ${'a'.repeat(length)}`) })
    assert.deepEqual([reply.status, lines.at(-1)?.outcome], [401, outcome])
  }
  assert.deepEqual(performed, [])
})

test('a token in the query or in the body lets nobody in', async (t) => {
  const { url, call, performed } = await served(t)
  const inQuery = new URL(`${url.href}?access_token=${ALICE}`)
  assert.equal((await send(inQuery, as()(message('tools/list')))).status, 401)
  const reply = await call({ ...ROLLBACK, access_token: ALICE }, {}, { edit: as() })
  assert.equal(reply.status, 401)
  assert.deepEqual(performed, [])
})

test('a token is judged on each request, not on each connection or first call', async (t) => {
  const { ask, call, performed } = await served(t)
  const requestState = await ask()
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
  const reply = await call(ROLLBACK, { requestState, inputResponses }, { edit: as() })
  assert.equal(reply.status, 401)
  assert.deepEqual(performed, [])
})

test('a token lets in the request that brings it, and no other on its connection', async (t) => {
  const { url, performed } = await served(t)
  const params = { name: 'rollback_release', arguments: ROLLBACK }
  const { headers, body } = message('tools/call', params)
  const text = JSON.stringify(body)
  const lines: Header[] = [
    ['Host', url.host],
    ['Content-Length', String(text.length)],
    ['Mcp-Param-Service', ROLLBACK.service],
    ...headers,
  ]
  const signed: Header = ['Authorization', `Bearer ${ALICE}`]
  const replies = await raw(
    url,
    head([...lines, signed]) + text,
    /^HTTP\/1\.1 200 .*input_required.*\}$/s,
    head([...lines, ['Connection', 'close']]) + text,
  )
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 401],
  )
  assert.deepEqual(performed, [])
})

test('a caller without the scope gets 403, on the first call and on the retry', async (t) => {
  const { ask, call, yes, performed } = await served(t)
  const first = await call(ROLLBACK, {}, by(READER))
  const retry = await yes(await ask(), ROLLBACK, by(READER))
  for (const reply of [first, retry]) {
    assert.equal(reply.status, 403)
    assert.equal(challengeOf(reply), 'Bearer error="insufficient_scope", scope="releases:write"')
  }
  assert.deepEqual(performed, [])
})

test('a caller without the scope may list and discover', async (t) => {
  const { url } = await served(t)
  for (const method of ['tools/list', 'server/discover']) {
    assert.equal((await send(url, as(`Bearer ${READER}`)(message(method)))).status, 200)
  }
})

test("somebody else's state is refused, and so is one from before signing in", async (t) => {
  const { ask, yes, performed } = await served(t)
  const anonymous = await serve(t)
  const bobs = await yes(await ask(), ROLLBACK, by(BOB))
  const demos = await yes(await anonymous.ask())
  const back = await anonymous.yes(await ask())
  assert.deepEqual([bobs, demos, back].map(textOf), [REFUSED, REFUSED, REFUSED])
  assert.deepEqual([...performed, ...anonymous.performed], [])
})

test('no token is ever in a state, an answer or the log', async (t) => {
  const { ask, yes, call, lines, decisions, failures } = await served(t)
  const state = await ask()
  const replies = [
    await yes(state),
    await call(),
    await call(ROLLBACK, {}, by(BOB)),
    await call(ROLLBACK, {}, by('x')),
  ]
  const [, sealed = ''] = state.split('.')
  const seen = [state, Buffer.from(sealed, 'base64url').toString(), ...replies.map(({ text }) => text)]
  const all = [...seen, JSON.stringify([lines, decisions, failures])].join('\n')
  for (const token of [ALICE, BOB, sha(ALICE)]) assert.ok(!all.includes(token))
})

test('no action learns the token of its caller', async (t) => {
  let told = ''
  const run = async (...all: unknown[]) => {
    told += inspect(all, { depth: null, showHidden: true })
    return undefined
  }
  const env = { AUTH_TOKENS_FILE: tokensFile(t, LINES) }
  const { ask, yes, performed } = await serve(t, { env, token: ALICE, action: { run } })
  await yes(await ask())
  assert.equal(performed.length, 1)
  assert.match(told, /alice/)
  for (const secret of [ALICE, sha(ALICE), 'Bearer']) assert.ok(!told.includes(secret), secret)
})

test('without an issuer there is no metadata', async (t) => {
  const { url } = await served(t)
  for (const path of [
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource',
  ]) {
    const reply = await send(new URL(path, url), { headers: [], body: '' }, 'GET')
    assert.equal(reply.status, 404)
  }
})

test('the health document needs no token', async (t) => {
  const { url } = await served(t)
  assert.equal((await send(new URL('/healthz', url), { headers: [], body: '' }, 'GET')).text, 'ok')
})

test('a file that is wrong stops the start, naming the line and not what is in it', async (t) => {
  const cases: [string, RegExp][] = [
    ['', /AUTH_TOKENS_FILE has no token/],
    ['# nobody\n', /AUTH_TOKENS_FILE has no token/],
    [`\n${ALICE} alice\n`, /AUTH_TOKENS_FILE, line 2: write/],
    [`${sha(ALICE)}\n`, /AUTH_TOKENS_FILE, line 1: write/],
    [`${LINES}${sha(ALICE)} eve\n`, /AUTH_TOKENS_FILE, line 6: this token is there twice/],
    [`${LINES}${sha(ALICE).toUpperCase()} eve\n`, /AUTH_TOKENS_FILE, line 6: this token is there twice/],
    [`bad\n${LINES}bad\n`, /^AUTH_TOKENS_FILE, line 1: write.*\nAUTH_TOKENS_FILE, line 7: write.*$/],
    [`${sha(ALICE).slice(1)} alice\n`, /^AUTH_TOKENS_FILE, line 1: write[^\n]*$/],
    [`${sha(ALICE)} al\u00efce\n`, /^AUTH_TOKENS_FILE must be UTF-8 text\.$/],
  ]
  for (const [text, problem] of cases) {
    const env = { STATE_SECRET: SECRET, AUTH_TOKENS_FILE: tokensFile(t, text, 'latin1') }
    await assert.rejects(compose(env), (error: Error) => {
      assert.match(error.message, problem)
      assert.ok(!error.message.includes(ALICE) && !error.message.includes(sha(ALICE)))
      return true
    })
  }
})

test('a file with a byte order mark and the line ends of Windows is the same file', async (t) => {
  const file = tokensFile(t, `\ufeff${LINES.replaceAll('\n', '\r\n')}`)
  const { ask, yes, performed } = await serve(t, { env: { AUTH_TOKENS_FILE: file }, token: BOB })
  await yes(await ask())
  assert.equal(performed.length, 1)
})

test('a file that can not be read never makes everybody the demo user', async () => {
  for (const file of ['/no/such/file', '', ' ']) {
    await assert.rejects(
      compose({ STATE_SECRET: SECRET, AUTH_TOKENS_FILE: file }),
      /^Error: AUTH_TOKENS_FILE/,
    )
  }
})

test('a tool that prints all of its call prints no token', async (t) => {
  const printed: string[] = []
  const definition = { name: 'prints', description: 'Prints its call.', inputSchema: { type: 'object' } }
  const prints = plainTool(definition, (call) => {
    printed.push(inspect(call, { depth: null, showHidden: true, getters: true }))
    return { content: [] }
  })
  const env = { AUTH_TOKENS_FILE: tokensFile(t, LINES) }
  const { call } = await serve(t, { env, token: ALICE, tools: [prints] })
  await call({}, {}, { tool: 'prints' })
  assert.equal(printed.length, 1)
  assert.match(String(printed), /alice/)
  assert.doesNotMatch(String(printed), new RegExp(ALICE))
})

test('beyond loopback a server that authenticates nobody starts only when told to', async (t) => {
  const env = { STATE_SECRET: SECRET, HOST: '0.0.0.0' }
  await assert.rejects(
    compose(env),
    /HOST isn't loopback and nobody is authenticated: set AUTH_TOKENS_FILE/,
  )
  await assert.rejects(compose({ ...env, ALLOW_ANONYMOUS: 'yes' }), /ALLOW_ANONYMOUS must be 0 or 1/)
  await compose({ ...env, ALLOW_ANONYMOUS: '1' })
  await compose({ ...env, AUTH_TOKENS_FILE: tokensFile(t, LINES) })
})

test('a file that is wrong is all that is said beyond loopback: its callers are not nobody', async (t) => {
  for (const file of ['/no/such/file', '', tokensFile(t, 'no token')]) {
    await assert.rejects(
      compose({ STATE_SECRET: SECRET, HOST: '0.0.0.0', AUTH_TOKENS_FILE: file }),
      /^Error: AUTH_TOKENS_FILE[^\n]*$/,
    )
  }
})

test('the command of the README makes a token and its line', async (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, code = ''] = /^node -e "(const c=.*)"$/m.exec(readme) ?? []
  const [token = '', line = ''] = execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }).split(
    '\n',
  )
  const { ask, yes, performed } = await serve(t, {
    env: { AUTH_TOKENS_FILE: tokensFile(t, line) },
    token,
  })
  await yes(await ask())
  assert.equal(performed.length, 1)
})
