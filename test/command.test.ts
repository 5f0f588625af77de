/** A real action: programs that a real server process starts, and what they get, say and leave. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { at, callTool, type Json, message, paramHeaders, type Reply, send } from '../client.ts'
import type { Action } from '../lib/action.ts'
import { commandFrom } from '../lib/command.ts'
import { Environment, type Variables } from '../lib/environment.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import type { Log, RequestLine } from '../lib/log.ts'
import { DEMO_USER } from '../lib/principal.ts'
import { compose } from '../server.ts'
import { type Instance, startServer } from './instance.ts'
import { answer, QUESTION, REFUSED, ROLLBACK, SECRET, stateOf, textOf } from './serve.ts'

const OTHER_SECRET = 'test-secret-1-test-secret-1-test-secret-1'
const SCALE = { service: 'checkout', replicas: 12, idempotency_key: 'key-1' }
const DONE = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
const NODE = process.execPath
/** Longest wait for something that a program does, in milliseconds; only a failure reaches it. */
const GIVE_UP_MS = 10_000
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Writes a program of this code. @returns its path. */
function program(t: TestContext, code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'command-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'program.mjs')
  writeFileSync(path, code)
  return path
}

type Run = { readonly args: string[]; readonly env: { readonly [name: string]: string } }

/** A program that leaves its arguments and its environment in a file. @returns what it left. */
function recorder(t: TestContext): { readonly path: string; readonly runs: () => Run[] } {
  const path = program(
    t,
    `import { appendFileSync } from 'node:fs'
    const run = { args: process.argv.slice(2), env: process.env }
    appendFileSync(process.argv[1] + '.runs', JSON.stringify(run) + '\\n')`,
  )
  const file = `${path}.runs`
  const runs = () => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return text.split('\n').flatMap((line): Run[] => (line === '' ? [] : [JSON.parse(line)]))
  }
  return { path, runs }
}

/** A real server: in this process, unless a test needs one of its own. */
type Running = { readonly url: URL }
type Served = Running & {
  readonly decisions: Json[]
  readonly failures: unknown[]
  /** Resolves when the log has a request with this outcome. */
  readonly finished: (outcome: string) => Promise<void>
}

/** A server whose environment is this. */
async function serve(t: TestContext, variables: Variables): Promise<Served> {
  const decisions: Json[] = []
  const requests: RequestLine[] = []
  const failures: unknown[] = []
  const news = new EventEmitter()
  const log: Log = {
    request: (line) => {
      requests.push(line)
      news.emit('request')
    },
    decision: (line) => decisions.push(line as Json),
    failure: (thrown) => failures.push(thrown),
    say: () => {},
  }
  const { http } = await compose({ STATE_SECRET: SECRET, ...variables }, { log })
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))
  const finished = async (outcome: string) => {
    const there = () => requests.some((line) => line.outcome === outcome)
    while (!there()) await soon(once(news, 'request'), `a request with the outcome ${outcome}`)
  }
  return { url, decisions, failures, finished }
}

async function instance(t: TestContext, env: Record<string, string>): Promise<Instance> {
  const server = await startServer({ STATE_SECRET: SECRET, ...env })
  t.after(() => server.process.kill('SIGKILL'))
  return server
}

type Words = { readonly rollback?: string[]; readonly scale?: string[] }

/** Variables that make both actions this program, with these arguments. */
function commands(path: string, { rollback = [], scale = [] }: Words = {}) {
  return {
    ROLLBACK_COMMAND: JSON.stringify([NODE, path, ...rollback]),
    SCALE_COMMAND: JSON.stringify([NODE, path, ...scale]),
  }
}

const ask = ({ url }: Running, args: Json = ROLLBACK, tool = 'rollback_release') =>
  callTool(url, tool, args)

/** A retry that says yes to the state of an earlier reply. */
const yes = (server: Running, asked: Reply, args: Json = ROLLBACK, tool = 'rollback_release') => {
  const content = tool === 'rollback_release' ? { reason: 'p99 regression' } : {}
  const inputResponses = answer({ confirm: true, ...content })
  return callTool(server.url, tool, args, { requestState: stateOf(asked), inputResponses })
}

/** Asks and says yes. */
const act = async (server: Running, args: Json = ROLLBACK, tool = 'rollback_release') =>
  yes(server, await ask(server, args, tool), args, tool)

const isError = (reply: Reply) => at(reply.body, 'result', 'isError') === true
/** The text of a tool error, which is one harmless line. */
function failureOf(reply: Reply): string {
  assert.deepEqual([reply.status, isError(reply)], [200, true], reply.text)
  assert.doesNotMatch(String(textOf(reply)), INVISIBLE)
  return String(textOf(reply))
}

/** Fails when this takes for ever. */
async function soon<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited in vain for ${what}`)), GIVE_UP_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** What a program starts with to ring here: `ring(name)` returns once its line is open. */
const RING = `
  import { spawn } from 'node:child_process'
  import { once } from 'node:events'
  import { connect } from 'node:net'
  async function ring(name) {
    const line = connect(Number(process.env.TEST_PORT), '127.0.0.1')
    line.resume().on('close', () => process.exit()) // the test is over
    await once(line, 'connect')
    line.write(name)
    return line
  }
`

/**
 * A port that programs ring at, so that a test sees them run and end, and can let them go on.
 * @returns a function that gives the next line under a name; it closes when the program is gone.
 */
async function switchboard(t: TestContext): Promise<(name: string) => Promise<Socket>> {
  const lines: Socket[] = []
  const calls = new EventEmitter()
  const server = createServer((line) => {
    lines.push(line.on('error', () => {}))
    line.once('data', (name) => calls.emit(String(name), line))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.env.TEST_PORT = String((server.address() as AddressInfo).port)
  t.after(() => {
    delete process.env.TEST_PORT
    for (const line of lines) line.destroy()
    server.close()
  })
  return async (name) => {
    const [line] = await soon(once(calls, name), `a call from ${name}`)
    return line
  }
}

/** Resolves when the program at the other end is gone. */
const hungUp = async (line: Socket, whose: string): Promise<void> => {
  if (!line.destroyed) await soon(once(line.resume(), 'close'), `the end of ${whose}`)
}

/** A program that rings as `program` and acts only when it is told to. */
const TOLD = `${RING}
  const line = await ring('program')
  await once(line, 'data')
  line.unref()
`

/** The problems that stop a start with these variables. */
async function problems(variables: Variables): Promise<string[]> {
  try {
    await compose({ STATE_SECRET: SECRET, ...variables })
  } catch (problem) {
    assert.ok(problem instanceof Error, String(problem))
    return problem.message.split('\n')
  }
  return []
}

// What the program gets.

test('a yes runs the program with the values where the operator put them, and once', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(
    t,
    commands(path, {
      rollback: ['undo', 'deployment/{service}', '--to={version}', '{service}{version}{service}', ''],
      scale: ['scale', '{service}', '--replicas={replicas}'],
    }),
  )
  const asked = await ask(server)
  assert.equal(at(asked.body, 'result', 'inputRequests', 'confirm', 'params', 'message'), QUESTION)
  assert.deepEqual(runs(), [])
  const done = await yes(server, asked)
  assert.deepEqual([isError(done), textOf(done)], [false, DONE])
  const rollback = ['undo', 'deployment/checkout', '--to=v1.41.2', 'checkoutv1.41.2checkout', '']
  assert.deepEqual(
    runs().map(({ args }) => args),
    [rollback],
  )
  const scaled = await act(server, SCALE, 'scale_service')
  assert.equal(textOf(scaled), 'Scaled checkout to 12 replicas. Estimated cost: $388.80 a month.')
  assert.deepEqual(
    runs().map(({ args }) => args),
    [rollback, ['scale', 'checkout', '--replicas=12']],
  )
})

test('a no, a forged state and a state for other arguments run nothing', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(t, commands(path))
  const requestState = stateOf(await ask(server))
  const retry = (state: string, inputResponses: Json, args: Json = ROLLBACK) =>
    callTool(server.url, 'rollback_release', args, { requestState: state, inputResponses })
  for (const no of [answer({ confirm: false }), answer({}, 'decline'), answer({}, 'cancel')]) {
    assert.equal(textOf(await retry(requestState, no)), 'Rollback cancelled. Nothing changed.')
  }
  const good = answer({ confirm: true })
  assert.equal(textOf(await retry(`${requestState}A`, good)), REFUSED)
  assert.equal(textOf(await retry(requestState, good, { ...ROLLBACK, version: 'v1.0.0' })), REFUSED)
  assert.deepEqual(runs(), [])
  await retry(requestState, good)
  assert.equal(runs().length, 1)
})

test('a value arrives as one argument as it is, whatever it would mean to a shell', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(
    t,
    commands(path, { rollback: ['{service}', 'x{version}x', '$(id)', '%s', '*'] }),
  )
  const values = [
    'two words',
    ' space around ',
    `'single' "double" \`back\``,
    '$(touch pwned) `touch pwned` $HOME',
    'a;b && c || d | e > f < g & h # i',
    'line one\nline two\r\n\ttabbed',
    'back\\slash \\n \\',
    '* ? [a-z] ~ ! {a,b}',
    '{version} {service} {replicas} {}',
    '$& $1 $$ $`',
    'запуск 发布 🚀 \u202e\u200b',
    '=?base64?eA==?=',
    'x --to=y',
    '@file',
  ]
  for (const [index, service] of values.entries()) {
    const version = values.at(-1 - index) ?? ''
    const done = await act(server, { service, version })
    assert.equal(isError(done), false, done.text)
    const { args, env } = runs().at(-1) ?? { args: [], env: {} }
    assert.deepEqual(args, [service, `x${version}x`, '$(id)', '%s', '*'])
    assert.deepEqual([env.RELEASE_SERVICE, env.RELEASE_VERSION], [service, version])
  }
  assert.equal(runs().length, values.length)
})

test('the values, the reason and who said yes are in the environment of the program', async (t) => {
  const { path, runs } = recorder(t)
  const server = await instance(t, { ...commands(path), TEST_INHERITED: 'from the server' })
  await act(server)
  await act(server, SCALE, 'scale_service')
  const [rollback, scale] = runs().map(({ env }) => env)
  const releaseOf = (env: Run['env'] = {}) =>
    Object.fromEntries(Object.entries(env).filter(([name]) => /^RELEASE_(?!REASON)/.test(name)))
  assert.deepEqual(releaseOf(rollback), {
    RELEASE_SERVICE: 'checkout',
    RELEASE_VERSION: 'v1.41.2',
    RELEASE_PRINCIPAL: 'demo-user',
  })
  assert.equal(rollback?.RELEASE_REASON, 'p99 regression')
  assert.deepEqual(releaseOf(scale), {
    RELEASE_SERVICE: 'checkout',
    RELEASE_REPLICAS: '12',
    RELEASE_PRINCIPAL: 'demo-user',
  })
  assert.equal(rollback?.TEST_INHERITED, 'from the server')
})

test('a reason may hold anything, and what no environment can carry is left out of it', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(t, commands(path))
  for (const [reason, told] of [
    ['$(touch pwned); "x" \\ \n 🚀', '$(touch pwned); "x" \\ \n 🚀'],
    ['RELEASE_SERVICE=other\nRELEASE_VERSION=other', 'RELEASE_SERVICE=other\nRELEASE_VERSION=other'],
    ['before\0after', 'beforeafter'],
  ]) {
    const requestState = stateOf(await ask(server))
    const retry = { requestState, inputResponses: answer({ confirm: true, reason }) }
    const done = await callTool(server.url, 'rollback_release', ROLLBACK, retry)
    assert.equal(isError(done), false, done.text)
    const env = runs().at(-1)?.env
    assert.deepEqual([env?.RELEASE_REASON, env?.RELEASE_SERVICE], [told, 'checkout'])
  }
})

test("the server's own secrets are not in the environment of the program", async (t) => {
  const { path, runs } = recorder(t)
  const secrets = { STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: OTHER_SECRET }
  const server = await instance(t, { ...commands(path), ...secrets })
  await act(server)
  const { env } = runs()[0] ?? { env: { STATE_SECRET: 'never ran' } }
  assert.deepEqual(
    Object.keys(env).filter((name) => /^(STATE_SECRET|AUTH_|REDIS_URL)/.test(name)),
    [],
  )
  const all = JSON.stringify(env)
  assert.deepEqual([all.includes(SECRET), all.includes(OTHER_SECRET)], [false, false])
})

test('nor is any other variable that names a secret, a token file, a key or a store', async (t) => {
  const { path, runs } = recorder(t)
  const names = [
    'STATE_SECRET',
    'STATE_SECRET_FILE',
    'STATE_SECRET_ACCEPTED',
    'STATE_SECRET_ACCEPTED_FILE',
    'AUTH_TOKENS_FILE',
    'AUTH_ISSUER',
    'AUTH_AUDIENCE',
    'AUTH_JWKS',
    'REDIS_URL',
  ]
  const before = { ...process.env }
  t.after(() => {
    process.env = before
  })
  for (const name of names) process.env[name] = 'hidden-value'
  process.env.TEST_INHERITED = 'shown-value'
  const action = actionOf({ ROLLBACK_COMMAND: JSON.stringify([NODE, path]) })
  assert.equal(await action?.run(ROLLBACK, 'why', DEMO_USER), undefined)
  const env = runs()[0]?.env
  assert.equal(env?.TEST_INHERITED, 'shown-value')
  assert.ok(!JSON.stringify(env).includes('hidden-value'), JSON.stringify(env))
})

/** The rollback of these variables, without a server around it. */
function actionOf(variables: Variables): Action | undefined {
  return commandFrom(new Environment(variables), 'ROLLBACK_COMMAND', ['service', 'version'], 60_000)
}

test('the program reads an empty input, so that a question of its own can not hang it', async (t) => {
  const path = program(
    t,
    `let text = ''
    for await (const chunk of process.stdin) text += chunk
    console.log('It read', text.length, 'characters')
    process.exitCode = text === '' ? 7 : 1`,
  )
  const failed = failureOf(await act(await serve(t, commands(path))))
  assert.match(failed, /status 7\..*It read 0 characters/)
})

test('what a program says on success is not told to the client', async (t) => {
  const path = program(t, `console.log('internal detail'); console.error('another detail')`)
  const done = await act(await serve(t, commands(path)))
  assert.equal(textOf(done), DONE)
  assert.doesNotMatch(done.text, /detail/)
})

// Values that are refused.

/** Every one of these values breaks an argument that begins with it, or can't be passed at all. */
const BAD_VALUES = ['-', '-x', '--to-revision=1', '-\u0000', 'a\u0000b', '\u0000a', 'a\u0000']

test('a value that begins with a dash or holds NUL is an argument error before anything is asked', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(
    t,
    commands(path, { rollback: ['{service}', '{version}'], scale: ['{service}'] }),
  )
  const calls: [string, string, Json][] = BAD_VALUES.flatMap((bad): [string, string, Json][] => [
    ['rollback_release', 'service', { ...ROLLBACK, service: bad }],
    ['rollback_release', 'version', { ...ROLLBACK, version: bad }],
    ['scale_service', 'service', { ...SCALE, service: bad }],
    ['scale_service', 'service', { ...SCALE, service: bad, dry_run: true }],
  ])
  for (const [tool, name, args] of calls) {
    const refused = await ask(server, args, tool)
    const rule = JSON.stringify(args).includes(':"-') ? 'must not begin with -' : 'must not hold a NUL'
    assert.ok(failureOf(refused).startsWith(`Invalid arguments: ${name} ${rule}`), refused.text)
    assert.equal(at(refused.body, 'result', 'resultType'), 'complete')
    assert.doesNotMatch(refused.text, /requestState/)
  }
  assert.deepEqual(runs(), [])
  assert.equal(isError(await act(server)), false)
  assert.equal(runs().length, 1)
})

test('a yes that another instance got without a command does not carry such a value past this one', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(
    t,
    commands(path, { rollback: ['{service}', '{version}'], scale: ['{service}'] }),
  )
  const simulating = await serve(t, {})
  for (const bad of BAD_VALUES) {
    for (const [tool, args] of [
      ['rollback_release', { ...ROLLBACK, version: bad }],
      ['scale_service', { ...SCALE, service: bad }],
    ] as const) {
      const asked = await ask(simulating, args, tool)
      assert.equal(at(asked.body, 'result', 'resultType'), 'input_required')
      assert.match(failureOf(await yes(server, asked, args, tool)), /^Invalid arguments: /)
    }
  }
  assert.deepEqual(runs(), [])
  assert.equal(isError(await yes(server, await ask(simulating))), false)
  assert.equal(runs().length, 1)
})

test('without a command such a value is a name like any other', async (t) => {
  const server = await serve(t, {})
  for (const bad of BAD_VALUES) {
    const done = await act(server, { service: bad, version: bad })
    assert.match(String(textOf(done)), /^Rolled /)
    assert.doesNotMatch(String(textOf(done)), INVISIBLE)
  }
})

test('a dash elsewhere in a value is no option', async (t) => {
  const { path, runs } = recorder(t)
  const server = await serve(t, commands(path, { rollback: ['{service}', '{version}'] }))
  for (const value of ['a-b', ' -x', '\u2212x', '\u2013x', 'a -x']) {
    assert.equal(isError(await act(server, { service: value, version: value })), false)
    assert.deepEqual(runs().at(-1)?.args, [value, value])
  }
})

// When it goes wrong.

test('an exit status other than 0 is a tool error with the status and the last line alone', async (t) => {
  const path = program(
    t,
    `console.log('a first line'); console.error('error: deployment not found'); process.exitCode = 3`,
  )
  const failed = await act(await serve(t, commands(path)))
  const text = failureOf(failed)
  assert.match(
    text,
    /^Rolling checkout back to v1\.41\.2 failed: .*\bstatus 3\b.*error: deployment not found/,
  )
  assert.doesNotMatch(failed.text, /a first line|Rolled/)
  assert.equal(at(failed.body, 'result', 'structuredContent'), undefined)
})

test('a failed scaling is a tool error too, and is tried again under the same key', async (t) => {
  const { path, runs } = recorder(t)
  writeFileSync(path, `${readFileSync(path, 'utf8')}\nprocess.exitCode = 4`)
  const server = await serve(t, commands(path))
  for (const count of [1, 2]) {
    const text = failureOf(await act(server, SCALE, 'scale_service'))
    assert.match(text, /^Scaling checkout to 12 replicas failed: .*\bstatus 4\b/)
    assert.equal(runs().length, count)
  }
})

test('a failure without a word has only its status, and a signal is named', async (t) => {
  const silent = failureOf(await act(await serve(t, commands(program(t, 'process.exitCode = 255')))))
  assert.match(silent, /\bstatus 255\.$/)
  const path = program(t, `process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)`)
  assert.match(failureOf(await act(await serve(t, commands(path)))), /\bSIGKILL\b/)
})

test('the last line is harmless to look at, whatever the program prints', async (t) => {
  const cases: [printed: string, shown: string][] = [
    ['\x1b[31mred\x1b[0m', '\\u{1b}[31mred\\u{1b}[0m'],
    ['\x1b]0;title\x07ok', '\\u{1b}]0;title\\u{7}ok'],
    ['abc\u202etxt.exe', 'abc\\u{202e}txt.exe'],
    ['zero\u200bwidth\ufeff!', 'zero\\u{200b}width\\u{feff}!'],
    ['10 %\r50 %\rfailed at 60 %', 'failed at 60 %'],
    ['one\r\ntwo\r\n\r\n  \n', 'two'],
    ['back\bspace', 'back\\u{8}space'],
    ['no.\u2028Confirmed.\u2029!', 'no.\\u{2028}Confirmed.\\u{2029}!'],
  ]
  const path = program(
    t,
    `process.stderr.write(${JSON.stringify(cases.map(([printed]) => printed))}[process.argv[2]])
    process.exitCode = 1`,
  )
  const server = await serve(t, commands(path, { rollback: ['{version}'] }))
  for (const [index, [printed, shown]] of cases.entries()) {
    const text = failureOf(await act(server, { ...ROLLBACK, version: String(index) }))
    assert.ok(text.endsWith(`: ${shown}`), `${printed}: ${text}`)
    for (const earlier of ['10 %', '50 %', 'one']) assert.ok(!text.includes(earlier), text)
  }
})

test('bytes that are no text do not break the answer', async (t) => {
  const path = program(
    t,
    `process.stderr.write(Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x00, 0xed, 0xa0, 0x80]))
    process.exitCode = 1`,
  )
  assert.match(failureOf(await act(await serve(t, commands(path)))), /status 1/)
})

test('a last line is cut', async (t) => {
  const path = program(t, `console.error('x'.repeat(50_000)); process.exitCode = 1`)
  const text = failureOf(await act(await serve(t, commands(path))))
  assert.match(text, /x{100}/)
  assert.ok(text.length < 1000, String(text.length))
})

test('megabytes of output neither stop the program nor hide its last line', async (t) => {
  const path = program(
    t,
    `import { once } from 'node:events'
    for (const stream of [process.stdout, process.stderr]) {
      for (let i = 0; i < 400; i++) {
        if (!stream.write('a line of the output that nobody reads\\n'.repeat(1000))) await once(stream, 'drain')
      }
    }
    process.stderr.write('the very last line\\n', () => process.exit(5))`,
  )
  const text = failureOf(await act(await serve(t, commands(path))))
  assert.match(text, /status 5\..*: the very last line$/)
  assert.doesNotMatch(text, /nobody reads/)
})

test('a program that can not be started is a tool error, whatever keeps it from that', async (t) => {
  const file = program(t, 'not executable')
  for (const name of ['/no/such/program', 'no-such-program-anywhere', file, tmpdir(), `${file}/below`]) {
    const server = await serve(t, { ROLLBACK_COMMAND: JSON.stringify([name, '{service}']) })
    const text = failureOf(await act(server))
    assert.match(text, /^Rolling checkout back to v1\.41\.2 failed: .*could not be started/, name)
    assert.deepEqual(server.failures, [])
  }
})

test('a failure does not tell the client in which folder the program lies', async (t) => {
  const missing = await serve(t, { ROLLBACK_COMMAND: '["/opt/no-such-folder/roll-back"]' })
  assert.doesNotMatch(failureOf(await act(missing)), /no-such-folder/)
  const failing = await serve(t, commands(program(t, 'process.exitCode = 1')))
  const text = failureOf(await act(failing))
  assert.ok(!text.includes(NODE), text)
})

// When it takes too long.

const HANG = `await ring('program')
  setInterval(() => {}, 1000)`
const LIMIT = { ACTION_TIMEOUT_SECONDS: '2' }

test('a program that hangs is ended after the time limit, and the tool error says so', async (t) => {
  const called = await switchboard(t)
  const path = program(t, `${RING} console.log('waiting for pods'); ${HANG}`)
  const server = await serve(t, { ...commands(path), ...LIMIT })
  const failed = act(server)
  const line = await called('program')
  assert.match(failureOf(await failed), /^Rolling .* failed: .*\b2 s\b.*: waiting for pods$/)
  await hungUp(line, 'the program')
})

test('a program that will not end when asked to is ended all the same', async (t) => {
  const called = await switchboard(t)
  const path = program(t, `${RING} process.on('SIGTERM', () => {}); ${HANG}`)
  const server = await serve(t, { ...commands(path), ...LIMIT })
  const failed = act(server)
  const line = await called('program')
  assert.match(failureOf(await failed), /\b2 s\b/)
  await hungUp(line, 'the program')
})

test('a program that ends well only because its time was up has not succeeded', async (t) => {
  await switchboard(t)
  const path = program(t, `${RING} process.on('SIGTERM', () => process.exit(0)); ${HANG}`)
  const server = await serve(t, { ...commands(path), ...LIMIT })
  assert.match(failureOf(await act(server)), /\b2 s\b/)
})

/** A program whose descendant holds its output; the descendant runs this code. */
const parentOf = (t: TestContext, code: string, parent = HANG) =>
  program(
    t,
    `${RING}
    if (process.argv[2] === 'below') {
      ${code}
      await ring('descendant')
      setInterval(() => {}, 1000)
    } else {
      const child = spawn(process.execPath, [process.argv[1], 'below'], { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] })
      ${parent}
    }`,
  )

test('what a program that hangs has started ends with it', async (t) => {
  const called = await switchboard(t)
  const server = await serve(t, { ...commands(parentOf(t, '')), ...LIMIT })
  const failed = act(server)
  const line = await called('descendant')
  assert.match(failureOf(await failed), /\b2 s\b/)
  await hungUp(line, 'the descendant')
})

test('that is so also when what it has started ignores the request to end', async (t) => {
  const called = await switchboard(t)
  const path = parentOf(t, `process.on('SIGTERM', () => {})`)
  const server = await serve(t, { ...commands(path), ...LIMIT })
  const failed = act(server)
  const line = await called('descendant')
  assert.match(failureOf(await failed), /\b2 s\b/)
  await hungUp(line, 'the descendant')
})

test('the answer does not wait for what a finished program has left behind', async (t) => {
  const called = await switchboard(t)
  const path = parentOf(
    t,
    `process.on('SIGHUP', () => {})`,
    `await ring('program').then((line) => once(line, 'data'))
      console.log('left one behind')
      process.exit(6)`,
  )
  const server = await serve(t, commands(path))
  const failed = act(server)
  const [parent, descendant] = await Promise.all([called('program'), called('descendant')])
  parent.write('go')
  assert.match(failureOf(await failed), /status 6\..*: left one behind$/)
  assert.equal(descendant.destroyed, false)
})

// Wrong commands.

test('a command that is not a JSON array of strings stops the start and is named', async () => {
  const bad = [
    '',
    ' ',
    'kubectl rollout undo',
    '"kubectl"',
    '{}',
    '{"0":"kubectl","length":1}',
    'null',
    '["kubectl",]',
    "['kubectl']",
    '[]',
    '[""]',
    '["",""]',
    '[1]',
    '["kubectl",1]',
    '["kubectl",null]',
    '["kubectl",["undo"]]',
    '["kubectl","a\\u0000b"]',
    '["\\u0000"]',
  ]
  for (const variable of ['ROLLBACK_COMMAND', 'SCALE_COMMAND']) {
    for (const value of bad) {
      const lines = await problems({ [variable]: value })
      assert.ok(lines.length > 0, `${variable}=${value}`)
      for (const line of lines) assert.match(line, new RegExp(`^${variable} .+\\.$`))
    }
  }
})

test('a placeholder that the tool does not have, or in place of the program, stops the start', async () => {
  const words: [string, string[][]][] = [
    ['ROLLBACK_COMMAND', [['a', '{replicas}'], ['{version}']]],
    ['SCALE_COMMAND', [['a', '{version}'], ['{replicas}']]],
  ]
  const both = [
    ['a', '{name}'],
    ['a', 'x{name}y'],
    ['a', '{}'],
    ['a', '{ service }'],
    ['a', '{Service}'],
    ['a', '{reason}'],
    ['a', '{principal}'],
    ['a', '{constructor}'],
    ['a', '{__proto__}'],
    ['a', '{{name}}'],
    ['a', '{service}', '{servicee}'],
    ['{service}'],
    ['/opt/{service}/roll-back', 'x'],
  ]
  for (const [variable, own] of words) {
    for (const command of [...own, ...both]) {
      const lines = await problems({ [variable]: JSON.stringify(command) })
      assert.equal(lines.length, 1, `${variable}=${JSON.stringify(command)}`)
      assert.match(lines[0] ?? '', new RegExp(`^${variable} may have \\{service\\}, \\{`))
    }
  }
})

test('a brace that JSON escapes is a brace', async () => {
  assert.equal((await problems({ ROLLBACK_COMMAND: '["a","\\u007bname\\u007d"]' })).length, 1)
  assert.equal((await problems({ ROLLBACK_COMMAND: '["a","\\u007bservice}"]' })).length, 0)
})

test('everything wrong with both commands is reported together', async () => {
  for (const command of ['["{service}"]', '["a","{name}"]', 'nonsense', '["/opt/{service}/x"]']) {
    const lines = await problems({ ROLLBACK_COMMAND: command, SCALE_COMMAND: command, PORT: 'x' })
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      ['PORT', 'ROLLBACK_COMMAND', 'SCALE_COMMAND'],
      command,
    )
  }
})

test('a wrong time limit stops the start', async () => {
  for (const value of ['0', '-1', '1.5', '3601', 'soon', '']) {
    const lines = await problems({ ACTION_TIMEOUT_SECONDS: value })
    assert.equal(lines.length, 1, value)
    assert.match(lines[0] ?? '', /^ACTION_TIMEOUT_SECONDS must be a number of seconds/)
  }
})

test('the start says on stderr which action is simulated', async (t) => {
  const command = '["true"]'
  const cases: [Record<string, string>, string[]][] = [
    [{}, ['ROLLBACK_COMMAND', 'SCALE_COMMAND']],
    [{ ROLLBACK_COMMAND: command, LOG: 'off' }, ['SCALE_COMMAND']],
    [{ ROLLBACK_COMMAND: command, SCALE_COMMAND: command }, []],
  ]
  for (const [env, simulated] of cases) {
    const server = await instance(t, env)
    await server.stop()
    const lines = server
      .stderr()
      .split('\n')
      .filter((line) => line.includes('simulated'))
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      simulated,
    )
  }
})

// When the server or the client leaves meanwhile.

/** Resolves when the server takes no more connections. */
async function closed({ url }: Instance): Promise<void> {
  const refused = async () => {
    for (;;) await send(url, message('server/discover'))
  }
  await soon(assert.rejects(refused), 'the server to stop accepting')
}

test('a stop waits for the program that runs: its outcome arrives and the exit code is 0', async (t) => {
  const called = await switchboard(t)
  for (const [code, text] of [
    ['', DONE],
    ['process.exitCode = 9', /status 9/],
  ] as const) {
    const server = await instance(t, commands(program(t, `${TOLD} ${code}`)))
    const exited = once(server.process, 'exit')
    const done = act(server)
    const line = await called('program')
    server.process.kill('SIGTERM')
    await closed(server)
    assert.equal(server.process.exitCode, null)
    line.write('go')
    if (typeof text === 'string') assert.equal(textOf(await done), text)
    else assert.match(failureOf(await done), text)
    assert.deepEqual(await soon(exited, 'the server to exit'), [0, null])
    await hungUp(line, 'the program')
  }
})

test('a stop waits for a program that hangs as long as it may run, and leaves nothing running', async (t) => {
  const called = await switchboard(t)
  const path = program(t, `${RING} ${HANG}`)
  const server = await instance(t, { ...commands(path), ...LIMIT })
  const exited = once(server.process, 'exit')
  const outcome = act(server)
  const line = await called('program')
  server.process.kill('SIGTERM')
  assert.match(failureOf(await outcome), /\b2 s\b/)
  assert.deepEqual(await soon(exited, 'the server to exit'), [0, null])
  await hungUp(line, 'the program')
})

test('nor does a stop leave a program running that will not end when asked to', async (t) => {
  const called = await switchboard(t)
  const path = program(t, `${RING} process.on('SIGTERM', () => {}); ${HANG}`)
  const server = await instance(t, { ...commands(path), ...LIMIT })
  const exited = once(server.process, 'exit')
  const outcome = act(server).catch(() => {})
  const line = await called('program')
  server.process.kill('SIGTERM')
  assert.deepEqual(await soon(exited, 'the server to exit'), [0, null])
  await outcome
  await hungUp(line, 'the program')
})

test('a second signal ends the program that runs too, and what it has started, at once', async (t) => {
  const called = await switchboard(t)
  const ignoring = `process.on('SIGTERM', () => {})`
  const path = parentOf(t, ignoring, `${ignoring}; await ring('program')`)
  const server = await instance(t, commands(path))
  const exited = once(server.process, 'exit')
  const outcome = act(server).catch(() => {})
  const lines = await Promise.all([called('program'), called('descendant')])
  server.process.kill('SIGTERM')
  await closed(server)
  server.process.kill('SIGTERM')
  assert.deepEqual(await soon(exited, 'the server to exit'), [1, null])
  await outcome
  for (const line of lines) await hungUp(line, 'what the server started')
})

test('a client that leaves while the program runs changes nothing: it finishes and is logged', async (t) => {
  const called = await switchboard(t)
  const { path, runs } = recorder(t)
  writeFileSync(path, `${TOLD} ${readFileSync(path, 'utf8')}`)
  const server = await serve(t, commands(path))
  const retry = { requestState: stateOf(await ask(server)), inputResponses: answer({ confirm: true }) }
  const call = message('tools/call', { name: 'rollback_release', arguments: ROLLBACK, ...retry })
  const schema = { properties: { service: { 'x-mcp-header': 'Service' } } }
  const lines = [['Host', server.url.host], ...call.headers, ...paramHeaders(schema, ROLLBACK)]
  const leaving = request(server.url, { method: 'POST', headers: lines.flat(), agent: false })
  const left = once(leaving, 'error')
  leaving.end(JSON.stringify(call.body))

  const line = await called('program')
  leaving.destroy(new Error('the client leaves'))
  await left
  await send(server.url, message('server/discover')) // by then the server knows
  assert.deepEqual(runs(), [])
  line.write('go')
  await server.finished('acted')
  assert.equal(runs().length, 1)
  assert.deepEqual(
    server.decisions.map(({ decision }) => decision),
    ['asked', 'accepted', 'acted'],
  )
})
