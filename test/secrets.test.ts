import assert from 'node:assert/strict'
import { hkdfSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { at, callTool, message, send } from '../client.ts'
import type { Variables } from '../lib/environment.ts'
import { stop } from '../lib/lifecycle.ts'
import { compose } from '../server.ts'
import { startServer } from './instance.ts'
import { EPOCH, REFUSED, ROLLBACK, SECRET, type Served, serve, stateOf, textOf } from './serve.ts'

const OLD = 'the old secret, which has 32 bytes'
const NEW = 'the new secret, which has 32 bytes'
const DONE = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
/** How long after its first question the last answer to it counts. */
const FLOW_MS = 15 * 60_000

/** A folder for one test. @returns what puts a file there and gives its path. */
function files(t: TestContext): (content: string | Uint8Array) => string {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
  t.after(() => rmSync(folder, { recursive: true }))
  let written = 0
  return (content) => {
    written += 1
    const path = join(folder, `secret-${written}`)
    writeFileSync(path, content)
    return path
  }
}

/** The lines of what stops the start; none when it starts. */
async function problems(variables: Variables): Promise<string[]> {
  return compose(variables).then(
    () => [],
    (error) => String(error.message).split('\n'),
  )
}

/** What a start says of its keys. */
async function fingerprint(variables: Variables): Promise<string> {
  const { notices } = await compose(variables)
  const lines = notices.filter((notice) => notice.startsWith('State keys'))
  assert.equal(lines.length, 1)
  return String(lines[0])
}

// Secrets in files.

test('a secret in a file is the same secret: its last line end is not part of it', async (t) => {
  const file = files(t)
  const inVariable = await serve(t)
  for (const end of ['', '\n', '\r\n']) {
    const env = { STATE_SECRET: undefined, STATE_SECRET_FILE: file(SECRET + end) }
    const inFile = await serve(t, { env })
    assert.equal(textOf(await inFile.yes(await inVariable.ask())), DONE)
    assert.equal(textOf(await inVariable.yes(await inFile.ask())), DONE)
  }
})

test('whatever else a file holds is part of its secret', async (t) => {
  const file = files(t)
  const served = await serve(t)
  for (const content of [` ${SECRET}`, `${SECRET} `, `\n${SECRET}`, `\ufeff${SECRET}`, `${SECRET}\nx`]) {
    const env = { STATE_SECRET: undefined, STATE_SECRET_FILE: file(content) }
    const other = await serve(t, { env })
    assert.equal(textOf(await served.yes(await other.ask())), REFUSED, JSON.stringify(content))
    assert.equal(textOf(await other.yes(await served.ask())), REFUSED, JSON.stringify(content))
    assert.deepEqual([...served.performed, ...other.performed], [])
  }
})

test('an accepted secret may be in a file too: its states are opened, never made', async (t) => {
  const file = files(t)
  const former = await serve(t, { env: { STATE_SECRET: OLD } })
  const env = { STATE_SECRET: undefined, STATE_SECRET_FILE: file(`${NEW}\n`) }
  const served = await serve(t, { env: { ...env, STATE_SECRET_ACCEPTED_FILE: file(`${OLD}\n`) } })
  assert.equal(textOf(await former.yes(await served.ask())), REFUSED)
  assert.deepEqual(former.performed, [])
  assert.equal(textOf(await served.yes(await former.ask())), DONE)
})

test('a secret that is given twice, in a variable and in a file, stops the start', async (t) => {
  const file = files(t)
  for (const name of ['STATE_SECRET', 'STATE_SECRET_ACCEPTED']) {
    for (const inFile of [NEW, OLD]) {
      const env = { STATE_SECRET: SECRET, [name]: OLD, [`${name}_FILE`]: file(inFile) }
      assert.deepEqual(await problems(env), [`Set either ${name} or ${name}_FILE, not both.`])
    }
  }
})

test('a file that can not be read stops the start, and what is said does not repeat its path', async (t) => {
  const here = files(t)(OLD)
  for (const name of ['STATE_SECRET_FILE', 'STATE_SECRET_ACCEPTED_FILE']) {
    for (const path of [`${here}-not`, join(here, '..'), `${here}\0`]) {
      const env = name === 'STATE_SECRET_FILE' ? {} : { STATE_SECRET: SECRET }
      const found = await problems({ ...env, [name]: path })
      const remedy = 'check the path and who may read it.'
      assert.deepEqual(found, [`${name} names a file that can't be read: ${remedy}`])
    }
  }
})

test('a short secret stops the start, in a file or not, with a command that makes one', async (t) => {
  const file = files(t)
  for (const name of ['STATE_SECRET', 'STATE_SECRET_ACCEPTED']) {
    for (const secret of ['', 'x'.repeat(31), 'é'.repeat(15)]) {
      const bytes = Buffer.byteLength(secret)
      for (const given of [{ [name]: secret }, { [`${name}_FILE`]: file(`${secret}\n`) }]) {
        const rest = name === 'STATE_SECRET' ? {} : { STATE_SECRET: SECRET }
        const [line = '', ...more] = await problems({ ...rest, ...given })
        assert.ok(line.startsWith(`${name} has ${bytes} bytes and needs at least 32. Make one: node -p "`))
        assert.deepEqual(more, [])
      }
    }
  }
})

test('a secret is as long as its file has bytes: 31 that are no text are too few', async (t) => {
  const file = files(t)
  const [short, enough] = [31, 32].map((length) => file(Buffer.alloc(length, 0xe9)))
  assert.match(String(await problems({ STATE_SECRET_FILE: short })), /^STATE_SECRET has 31 bytes/)
  assert.deepEqual(await problems({ STATE_SECRET_FILE: enough }), [])
})

test('two files with other bytes are two secrets, text or not', async (t) => {
  const file = files(t)
  const [one, other] = [0xe9, 0xea].map((byte) => file(Buffer.alloc(32, byte)))
  const fingerprints = [one, other].map((path) => fingerprint({ STATE_SECRET_FILE: path }))
  assert.equal(new Set(await Promise.all(fingerprints)).size, 2)
})

test('equal secrets stop the start with what to do, wherever each comes from', async (t) => {
  const file = files(t)
  const sealing = [{ STATE_SECRET: SECRET }, { STATE_SECRET_FILE: file(`${SECRET}\n`) }]
  const accepted = [{ STATE_SECRET_ACCEPTED: SECRET }, { STATE_SECRET_ACCEPTED_FILE: file(SECRET) }]
  for (const one of sealing) {
    for (const other of accepted) {
      assert.deepEqual(await problems({ ...one, ...other }), [
        'STATE_SECRET_ACCEPTED equals STATE_SECRET: unset it, or give the other secret of the rotation.',
      ])
    }
  }
})

// The fingerprint of the key ring.

test('a start prints the fingerprint of its keys on stderr, log or no log, and nowhere else', async (t) => {
  const ring = { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD }
  const expected = await fingerprint(ring)
  for (const LOG of ['on', 'off']) {
    const instance = await startServer({ ...ring, LOG })
    t.after(() => instance.process.kill('SIGKILL'))
    let stdout = ''
    instance.process.stdout?.on('data', (chunk) => {
      stdout += chunk
    })
    await send(instance.url, message('server/discover'))
    assert.equal(await instance.stop(), 0)
    const lines = instance.stderr().split('\n')
    assert.equal(lines.filter((line) => line === expected).length, 1)
    assert.equal(stdout, '')
  }
})

test('replicas with the same keys print the same fingerprint, and no others do', async (t) => {
  const file = files(t)
  const ring = { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD }
  const same: Variables[] = [
    ring,
    { ...ring, STATE_AUDIENCE: 'other', STATE_TTL_SECONDS: '60', PORT: '0' },
    { STATE_SECRET_FILE: file(`${NEW}\n`), STATE_SECRET_ACCEPTED_FILE: file(`${OLD}\n`) },
  ]
  const others: Variables[] = [
    { STATE_SECRET: NEW },
    { STATE_SECRET: OLD },
    { STATE_SECRET: OLD, STATE_SECRET_ACCEPTED: NEW },
    { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: SECRET },
    { ...ring, STATE_PROTECTION: 'encrypted' },
    {},
    {},
  ]
  const printed = (rings: Variables[]) => Promise.all(rings.map(fingerprint))
  assert.equal(new Set(await printed(same)).size, 1)
  const all = [...(await printed(same.slice(0, 1))), ...(await printed(others))]
  assert.equal(new Set(all).size, all.length)
})

test('a fingerprint holds nothing of a secret or of a key', async () => {
  for (const protection of ['signed', 'encrypted']) {
    const ring = { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD, STATE_PROTECTION: protection }
    const line = await fingerprint(ring)
    const material = [NEW, OLD].flatMap((secret) => {
      const key = hkdfSync('sha256', secret, '', `release-ops ${protection} state v1: key`, 32)
      return [Buffer.from(secret), Buffer.from(key)]
    })
    for (const bytes of material) {
      for (const encoding of ['utf8', 'hex', 'base64', 'base64url'] as const) {
        const text = bytes.toString(encoding)
        for (let from = 0; from + 6 <= text.length; from += 1) {
          assert.ok(!line.includes(text.slice(from, from + 6)), `${encoding} at ${from}`)
        }
      }
    }
  }
})

test('the fingerprint names the key that every state of this server bears', async (t) => {
  for (const STATE_PROTECTION of ['signed', 'encrypted']) {
    const ring = { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD, STATE_PROTECTION }
    const { ask } = await serve(t, { env: ring })
    const keyId = Buffer.from((await ask()).slice(3), 'base64url').toString('hex', 0, 8)
    const line = await fingerprint(ring)
    assert.match(line, new RegExp(`^State keys, the sealing one first: ${keyId} [0-9a-f]{16}$`))
  }
})

// Rotation.

/** The three restarts, after the first of which every instance knows both secrets. */
const RESTARTS: readonly Variables[] = [
  { STATE_SECRET: OLD, STATE_SECRET_ACCEPTED: NEW },
  { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD },
  { STATE_SECRET: NEW },
]

for (const STATE_PROTECTION of ['signed', 'encrypted']) {
  test(`three rolling restarts replace the secret of two instances that keep their states ${STATE_PROTECTION}, and no honest confirmation is lost`, async (t) => {
    const clock = { now: EPOCH }
    const start = (env: Variables) => serve(t, { clock, env: { ...env, STATE_PROTECTION } })
    const instances = [await start({ STATE_SECRET: OLD }), await start({ STATE_SECRET: OLD })]
    const stopped: Served[] = []
    let pending: string[] = []
    let confirmed = 0

    for (const [restart, env] of RESTARTS.entries()) {
      // "For one flow lifetime": what the old key signed before the second restart has ended.
      if (restart === 2) {
        clock.now += FLOW_MS
        pending = []
      }
      for (const place of [0, 1]) {
        for (const { ask } of instances) pending.push(await ask())
        const [former] = instances.splice(place, 1, await start(env))
        if (former !== undefined) stopped.push(former)
        await stop(stopped.at(-1)?.http ?? assert.fail(), 0)
        // Whoever was asked before this restart, or an earlier one, answers now, at any instance.
        for (const state of pending) {
          for (const { yes } of instances) {
            assert.equal(textOf(await yes(state)), DONE, `restart ${restart + 1} of instance ${place}`)
            confirmed += 1
          }
        }
      }
    }
    const performed = [...instances, ...stopped].flatMap((served) => served.performed)
    assert.equal(performed.length, confirmed)
    assert.ok(confirmed >= 24)

    const left = await start({ STATE_SECRET: OLD })
    const old = await left.ask()
    for (const { yes, ask } of instances) {
      assert.equal(textOf(await yes(old)), REFUSED)
      assert.equal(textOf(await left.yes(await ask())), REFUSED)
    }
    const now = [...instances, ...stopped, left].flatMap((served) => served.performed)
    assert.equal(now.length, confirmed)
    assert.equal(textOf(await left.yes(old)), DONE)
  })
}

test('without the first restart a confirmation would be lost, which is why there are three', async (t) => {
  const old = await serve(t, { env: { STATE_SECRET: OLD } })
  const hasty = await serve(t, { env: { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD } })
  assert.equal(textOf(await old.yes(await hasty.ask())), REFUSED)
  assert.deepEqual(old.performed, [])
})

test('two processes in the middle of a rotation take each other’s confirmations', async (t) => {
  const rings = [RESTARTS[0], RESTARTS[1]] as Record<string, string>[]
  const instances = await Promise.all(rings.map((ring) => startServer({ ...ring, LOG: 'off' })))
  for (const { process } of instances) t.after(() => process.kill('SIGKILL'))
  for (const [from, to] of [instances, instances.toReversed()]) {
    const asked = await callTool(from?.url ?? assert.fail(), 'rollback_release', ROLLBACK)
    const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
    const retry = { requestState: stateOf(asked), inputResponses }
    const done = await callTool(to?.url ?? assert.fail(), 'rollback_release', ROLLBACK, retry)
    assert.equal(at(done.body, 'result', 'structuredContent', 'status'), 'performed')
  }
})
