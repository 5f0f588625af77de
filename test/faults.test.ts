/** What goes wrong around a server: slow clients by the hundred, full disks, closed pipes, no descriptors, a stop. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { at, callTool, message, send } from '../client.ts'
import type { Answer } from './fuzz-oracle.ts'
import { callDraft } from './fuzz-requests.ts'
import { Line } from './fuzz-socket.ts'
import { type Sent, unspoiled } from './fuzz-wire.ts'
import { type Instance, start, startServer } from './instance.ts'
import { answer, ROLLBACK, SECRET, stateOf, textOf } from './serve.ts'

const DONE = 'Rolled checkout back to v1.41.2. Reason: (none given)'
const TOOL = 'rollback_release'
/** Longest wait, in milliseconds; only a failure reaches it. */
const PATIENT = { timeout: 60_000 }
/** Limits and redirections as this shell knows them. */
const LINUX = {
  ...PATIENT,
  skip: process.platform !== 'linux' && 'it needs /dev/full and ulimit as on Linux',
}

/** @param limits what a shell does before it becomes the server, and to which streams. */
async function server(
  t: TestContext,
  env: Record<string, string> = {},
  limits = 'exec "$@"',
): Promise<Instance> {
  const shell = ['sh', '-c', limits, 'sh']
  const instance = await startServer({ STATE_SECRET: SECRET, ...env }, 'server.ts', shell)
  t.after(() => instance.process.kill('SIGKILL'))
  return instance
}

/** An honest confirmation, from the question to the outcome. */
async function confirm(url: URL): Promise<void> {
  const asked = await callTool(url, TOOL, ROLLBACK)
  const retry = { requestState: stateOf(asked), inputResponses: answer({ confirm: true }) }
  assert.equal(textOf(await callTool(url, TOOL, ROLLBACK, retry)), DONE)
}

/** Connections that a test opens, some at a time: a listen queue has an end. */
async function connections(t: TestContext, url: URL, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(100, count - sockets.length) }, () =>
      connect(Number(url.port), url.hostname).on('error', () => {}),
    )
    sockets.push(...some)
    await Promise.all(some.map((socket) => once(socket, 'connect')))
  }
  return sockets
}

test(
  'beside 500 senders of a byte a second and 500 idle connections each confirmation is answered',
  PATIENT,
  async (t) => {
    const { url, stop } = await server(t, { LOG: 'off' })
    const [slow, idle] = [await connections(t, url, 500), await connections(t, url, 500)]
    const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    for (const [index, socket] of slow.entries()) {
      // Half of them send their head slowly, the others their body.
      socket.write(index % 2 === 0 ? head : `${head}Content-Length: 1000\r\n\r\n`)
    }
    let seconds = 0
    const timer = setInterval(() => {
      seconds += 1
      for (const socket of slow) socket.write('x')
    }, 1000)
    t.after(() => clearInterval(timer))
    for (let confirmed = 0; confirmed < 50 || seconds < 4; confirmed++) await confirm(url)
    assert.deepEqual([...slow, ...idle].filter(({ readyState }) => readyState !== 'open').length, 0)
    assert.equal(await stop(), 0)
  },
)

test('a full disk under stderr costs the log and nothing else', LINUX, async (t) => {
  const { url, stop, stderr } = await server(t, {}, 'exec "$@" 2> /dev/full')
  for (let i = 0; i < 20; i++) await confirm(url)
  assert.equal((await send(url, { headers: [], body: '{' })).status, 415)
  assert.equal(await stop(), 0)
  assert.equal(stderr(), '')
})

test('so does a stderr that is closed from the start', LINUX, async (t) => {
  const { url, stop } = await server(t, {}, 'exec "$@" 2>&-')
  for (let i = 0; i < 20; i++) await confirm(url)
  assert.equal(await stop(), 0)
})

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('a first line that nobody can read does not keep it from serving', LINUX, async (t) => {
  for (const limits of ['exec "$@" > /dev/full', 'exec "$@" >&-', 'exec "$@"']) {
    const env = { PORT: String(await freePort()), STATE_SECRET: SECRET }
    const child = start('server.ts', [], env, ['sh', '-c', limits, 'sh'])
    t.after(() => child.kill('SIGKILL'))
    child.stdout?.destroy() // long before it writes
    let stderr = ''
    for await (const chunk of child.stderr ?? []) {
      stderr += chunk
      if (/^State keys.*\n/m.test(stderr)) break // and closes this one too
    }
    const url = new URL(`http://127.0.0.1:${env.PORT}/mcp`)
    for (let i = 0; i < 20; i++) await confirm(url)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null], limits)
  }
})

test(
  'out of descriptors it refuses what it can not take, says why an action fails, and recovers',
  LINUX,
  async (t) => {
    const env = { ROLLBACK_COMMAND: '["true"]', LOG: 'off' }
    const { url, stop, process: child } = await server(t, env, 'ulimit -n 100 && exec "$@"')
    const line = new Line(url)
    t.after(() => line.close())
    const ask = callDraft(1, TOOL, ROLLBACK, 'alice')
    const requestState = at(resultIn(await line.exchange(unspoiled(1, ask))), 'requestState')
    const retry = { requestState, inputResponses: answer({ confirm: true }) }

    const crowd = await connections(t, url, 200)
    await Promise.race(crowd.map((socket) => once(socket.resume(), 'close')))
    const [failed] = await line.exchange(unspoiled(2, callDraft(2, TOOL, ROLLBACK, 'alice', retry)))
    assert.equal(textIn(failed), 'Rolling checkout back to v1.41.2 failed: true could not be started.')
    for (const socket of crowd) socket.destroy()

    while ((await send(url, message('server/discover')).catch(() => undefined)) === undefined) {
      assert.equal(child.exitCode, null) // it has not yet noticed that they are gone
    }
    const [done] = await line.exchange(unspoiled(3, callDraft(3, TOOL, ROLLBACK, 'alice', retry)))
    assert.equal(textIn(done), DONE)
    assert.equal(await stop(), 0)
  },
)

const resultIn = ([reply]: readonly Answer[]) => at(JSON.parse(String(reply?.body)), 'result')
const textIn = (reply: Answer | undefined) => {
  return reply === undefined ? undefined : at(resultIn([reply]), 'content', '0', 'text')
}

/** Several requests in one write. */
function atOnce(first: Sent, ...rest: readonly Sent[]): Sent {
  const all = [first, ...rest]
  const [head] = first.requests
  return {
    ...first,
    requests: [head, ...rest.flatMap(({ requests }) => requests)],
    writes: [Buffer.concat(all.flatMap(({ writes }) => writes))],
  }
}

test(
  'a stop under load: whoever was not answered had nothing done, and exit code 0',
  PATIENT,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'faults-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'acted')
    const command = JSON.stringify(['sh', '-c', `echo {version} >> '${file}'; sleep 0.1`])
    const { url, process: child } = await server(t, { ROLLBACK_COMMAND: command, LOG: 'off' })
    const exited = once(child, 'exit')
    const answered: string[] = []
    let unanswered = 0
    let toldToClose = 0

    /** Confirms, two at a time on one connection, until that is closed. */
    const client = async (name: number) => {
      const line = new Line(url)
      t.after(() => line.close())
      for (let turn = 0; ; turn++) {
        const approvals: Sent[] = []
        const versions = ['a', 'b'].map((half) => `v${name}.${turn}.${half}`)
        for (const version of versions) {
          const args = { ...ROLLBACK, version }
          const asked = await line.exchange(unspoiled(0, callDraft(version, TOOL, args, 'alice')))
          if (asked[0] === undefined) return
          const retry = {
            requestState: at(resultIn(asked), 'requestState'),
            inputResponses: answer({ confirm: true }),
          }
          approvals.push(unspoiled(0, callDraft(version, TOOL, args, 'alice', retry)))
        }
        const [one, ...others] = approvals
        if (one === undefined) return
        const replies = await line.exchange(atOnce(one, ...others))
        for (const [index, reply] of replies.entries()) {
          assert.match(String(textIn(reply)), new RegExp(`^Rolled checkout back to ${versions[index]}\\.`))
          answered.push(versions[index] ?? '')
        }
        unanswered += versions.length - replies.length
        if (replies.at(-1)?.headers.get('connection') === 'close') toldToClose += 1
        if (answered.length >= 60 && !child.killed) child.kill('SIGTERM')
        if (replies.length < versions.length || child.killed) return
      }
    }
    await Promise.all(Array.from({ length: 10 }, (_, name) => client(name)))
    assert.deepEqual(await exited, [0, null])
    const acted = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    assert.deepEqual(acted.sort(), answered.sort(), `${unanswered} were not answered`)
    assert.ok(toldToClose > 0, 'no request was being served when it stopped')
  },
)
