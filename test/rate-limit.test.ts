import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, message, type Reply, send } from '../client.ts'
import { Environment, type Variables } from '../lib/environment.ts'
import { headerLines } from '../lib/headers.ts'
import { DEMO_USER, type Principal } from '../lib/principal.ts'
import { rateLimitFrom } from '../lib/rate-limit.ts'
import { Refusal } from '../lib/refusal.ts'
import type { AdmittedRequest, Permit } from '../lib/request.ts'
import { compose } from '../server.ts'
import {
  approvedCall,
  assertRefused,
  EPOCH,
  ROLLBACK,
  type Served,
  REFUSED as STATE_REFUSED,
  serve,
  stateOf,
  textOf,
} from './serve.ts'

const PUBLIC = { HOST: '0.0.0.0', ALLOW_ANONYMOUS: '1' }
const limited = (perMinute: number): Variables => ({ RATE_LIMIT_PER_MINUTE: String(perMinute) })

/**
 * The call is refused for its rate, in a JSON-RPC error with the request's id that no other part of
 * the protocol can have meant. @returns the seconds after which it may be sent again.
 */
function assertLimited({ performed }: Served, reply: Reply, id?: unknown): number {
  const code = Number(at(reply.body, 'error', 'code'))
  assert.ok(Number.isSafeInteger(code) && (code < -32_768 || code > -32_000), String(code))
  assertRefused(reply, 429, code, id ?? at(reply.body, 'id'))
  assert.match(String(reply.headers['retry-after']), /^[1-9]\d*$/)
  assert.deepEqual(performed, [])
  return Number(reply.headers['retry-after'])
}

/** As many first calls as that pass. */
async function spend({ call }: Served, calls: number): Promise<void> {
  for (let i = 0; i < calls; i++) assert.equal((await call()).status, 200)
}

// Over HTTP.

test('as many calls as a minute may have pass at once, and the next one is refused', async (t) => {
  for (const perMinute of [1, 3, 10]) {
    const served = await serve(t, { env: limited(perMinute) })
    await spend(served, perMinute)
    assertLimited(served, await served.call())
    assertLimited(served, await served.call())
  }
})

test('the refusal has the id of its request, a string too, and nothing that could be taken for a result', async (t) => {
  const served = await serve(t, { env: limited(1) })
  await spend(served, 1)
  for (const id of ['a string', 0, -7, 2 ** 53 - 1]) {
    const withId = ({
      headers,
      body,
    }: {
      headers: readonly (readonly [string, string])[]
      body: unknown
    }) => ({
      headers,
      body: { ...Object(body), id },
    })
    const reply = await served.call(ROLLBACK, {}, { edit: withId })
    assertLimited(served, reply, id)
    assert.equal(at(reply.body, 'result'), undefined)
  }
})

test('a yes that comes too soon does nothing, and does it once it comes in time', async (t) => {
  const served = await serve(t, { env: limited(1) })
  const state = await served.ask()
  const seconds = assertLimited(served, await served.yes(state))
  served.clock.now += seconds * 1000
  assert.match(String(textOf(await served.yes(state))), /^Rolled checkout back/)
  assert.equal(served.performed.length, 1)
})

test('a call waits exactly as long as Retry-After says, and not a second less', async (t) => {
  for (const perMinute of [1, 2, 6, 60]) {
    const served = await serve(t, { env: limited(perMinute) })
    await spend(served, perMinute)
    const seconds = assertLimited(served, await served.call())
    assert.equal(seconds, 60 / perMinute)
    served.clock.now += seconds * 1000 - 1
    assertLimited(served, await served.call())
    served.clock.now += 1
    await spend(served, 1)
    assertLimited(served, await served.call())
  }
})

test('a whole minute of silence gives a whole minute of calls, and a longer one no more', async (t) => {
  const served = await serve(t, { env: limited(3) })
  for (const ms of [60_000, 3_600_000, 10 * 365 * 24 * 3_600_000]) {
    await spend(served, 3)
    assertLimited(served, await served.call())
    served.clock.now += ms
  }
  await spend(served, 3)
  assertLimited(served, await served.call())
})

test('a clock that goes back gives no calls', async (t) => {
  const served = await serve(t, { env: limited(2) })
  await spend(served, 2)
  served.clock.now = EPOCH - 3_600_000
  assertLimited(served, await served.call())
})

test('only tools/call is limited: the server can still be discovered and its tools listed', async (t) => {
  const served = await serve(t, { env: limited(1) })
  for (let i = 0; i < 5; i++) {
    for (const method of ['server/discover', 'tools/list']) {
      assert.equal((await send(served.url, message(method))).status, 200)
    }
  }
  await spend(served, 1)
  assertLimited(served, await served.call())
  for (const method of ['server/discover', 'tools/list']) {
    assert.equal((await send(served.url, message(method))).status, 200)
  }
})

test('calls whose arguments, headers or state are refused count as well', async (t) => {
  const wrong: ((served: Served) => Promise<Reply>)[] = [
    ({ call }) => call({}),
    ({ call }) => call({ ...ROLLBACK, service: 7 }),
    ({ call }) => call(ROLLBACK, { requestState: 's1.forged' }),
    ({ call }) => call(ROLLBACK, {}, { capabilities: {} }),
    ({ url }) => send(url, message('tools/call', { name: 'rollback_release', arguments: ROLLBACK })),
  ]
  for (const attempt of wrong) {
    const served = await serve(t, { env: limited(1) })
    const first = await attempt(served)
    assert.ok(first.status < 429 && first.text !== '', first.text)
    assertLimited(served, await served.call())
  }
})

test('a call that is too many is not judged any further: not its header, its arguments or its state', async (t) => {
  const served = await serve(t, { env: limited(1) })
  await spend(served, 1)
  assertLimited(served, await served.call({}))
  assertLimited(served, await served.call(ROLLBACK, { requestState: 's1.forged' }))
  const bare = message('tools/call', { name: 'rollback_release', arguments: ROLLBACK })
  assertLimited(served, await send(served.url, bare))
})

test('a tool that does not exist is told so before it counts', async (t) => {
  const served = await serve(t, { env: limited(1) })
  for (let i = 0; i < 3; i++) {
    const unknown = await served.call({}, {}, { tool: 'no_such_tool' })
    assertRefused(unknown, 200, -32_602, at(unknown.body, 'id'))
  }
  await spend(served, 1)
  assertLimited(served, await served.call())
})

test('all tools of a caller share one limit', async (t) => {
  const served = await serve(t, { env: limited(2) })
  const scaling = { service: 'checkout', replicas: 2, idempotency_key: 'k' }
  const scale = () => served.call(scaling, {}, { tool: 'scale_service' })
  await spend(served, 1)
  assert.equal((await scale()).status, 200)
  assertLimited(served, await scale())
  assertLimited(served, await served.call())
})

test('0 switches the limit off, on loopback and elsewhere', async (t) => {
  for (const env of [{}, PUBLIC]) {
    const served = await serve(t, { env: { ...env, ...limited(0) } })
    await spend(served, 130)
  }
})

test('without the setting there is no limit on loopback and 120 calls a minute elsewhere', async (t) => {
  await spend(await serve(t), 130)
  const served = await serve(t, { env: PUBLIC })
  await spend(served, 120)
  assertLimited(served, await served.call())
})

test('a page may read when to come again', async (t) => {
  const served = await serve(t, { env: { ...limited(1), ALLOWED_ORIGINS: 'https://app.example.com' } })
  const call = async () => {
    const good = await served.call(
      ROLLBACK,
      {},
      {
        edit: ({ headers, body }) => ({
          headers: [...headers, ['Origin', 'https://app.example.com']],
          body,
        }),
      },
    )
    return good
  }
  assert.equal((await call()).status, 200)
  const refused = await call()
  assertLimited(served, refused)
  assert.equal(refused.headers['access-control-allow-origin'], 'https://app.example.com')
  const exposed = String(refused.headers['access-control-expose-headers']).toLowerCase().split(/,\s*/)
  assert.ok(exposed.includes('retry-after'), exposed.join())
})

test('a refused call leaves a line in the log, and no decision', async (t) => {
  const served = await serve(t, { env: limited(1) })
  await spend(served, 1)
  const before = served.decisions.length
  assertLimited(served, await served.call())
  const { status, tool, outcome } = served.lines.at(-1) ?? {}
  assert.deepEqual([status, tool, outcome], [429, 'rollback_release', 'rate limit'])
  assert.equal(served.decisions.length, before)
})

test('a call that would perform is held back by nothing but its rate', async (t) => {
  const served = await serve(t, { env: limited(1) })
  const call = await approvedCall(served)
  assertLimited(served, await send(served.url, call))
  served.clock.now += 60_000
  assert.equal((await send(served.url, call)).status, 200)
  assert.equal(served.performed.length, 1)
})

test('a state that outlives the wait is still good, and one that does not is still refused', async (t) => {
  const served = await serve(t, { env: { ...limited(1), STATE_TTL_SECONDS: '60' } })
  const state = stateOf(await served.call())
  assertLimited(served, await served.yes(state))
  served.clock.now += 60_000
  assert.equal(textOf(await served.yes(state)), STATE_REFUSED)
  assert.deepEqual(served.performed, [])
})

test('a bad value stops the start with a line that names the setting', async () => {
  for (const value of [
    '',
    ' ',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    '1000001',
    '120/min',
    'off',
    'Infinity',
    'NaN',
  ]) {
    await assert.rejects(compose({ RATE_LIMIT_PER_MINUTE: value }), {
      message:
        /^RATE_LIMIT_PER_MINUTE must be a number of calls; 0 switches the limit off, from 0 to 1000000;/,
    })
  }
  await compose({ RATE_LIMIT_PER_MINUTE: '1000000' })
})

// Callers, one by one.

const principal = (subject: string, client = '', issuer = 'https://issuer.example'): Principal => {
  return { issuer, subject, client, scopes: new Set() }
}

/** A limit, and a clock for it. */
function limiter(perMinute: number, fallback = 0, variables: Variables = limited(perMinute)) {
  const clock = { now: EPOCH }
  const env = new Environment(variables)
  const permit: Permit = rateLimitFrom(env, fallback, () => clock.now)
  env.finish()
  /** @returns 0 when the call passes, else the seconds it has to wait. */
  const take = (who: Principal, address = '192.0.2.1'): number => {
    const request: AdmittedRequest = {
      arrival: {
        headers: headerLines([]),
        note: {},
        address,
        peer: { gone: false, signal: new AbortController().signal, notify: async () => {} },
      },
      principal: who,
      id: 1,
      method: 'tools/call',
      params: {},
      meta: {},
      capabilities: {},
    }
    try {
      permit(request, undefined)
      return 0
    } catch (refusal) {
      assert.ok(refusal instanceof Refusal, String(refusal))
      assert.equal(refusal.status, 429)
      const seconds = refusal.headers['Retry-After'] ?? ''
      assert.match(seconds, /^[1-9]\d*$/)
      return Number(seconds)
    }
  }
  return { clock, take }
}

test('one caller who calls too often keeps nobody else from calling', () => {
  const { take } = limiter(1)
  const callers = [
    principal('alice'),
    principal('bob'),
    principal('alice', 'another-client'),
    principal('alice', '', 'https://other.example'),
    principal('alicea'),
    principal('alice', 'a'),
    principal('', 'alice'),
  ]
  for (const caller of callers) assert.equal(take(caller), 0)
  for (const caller of callers) assert.equal(take(caller), 60)
})

test('a caller with a name is the same at every address', () => {
  const { take } = limiter(2)
  assert.equal(take(principal('alice'), '192.0.2.1'), 0)
  assert.equal(take(principal('alice'), '192.0.2.2'), 0)
  assert.equal(take(principal('alice'), '192.0.2.3'), 30)
  assert.equal(take(principal('bob'), '192.0.2.1'), 0)
})

test('a token that is refreshed, or has other scopes, gives no new calls', () => {
  const { take } = limiter(1)
  assert.equal(take(principal('alice')), 0)
  assert.equal(take({ ...principal('alice'), scopes: new Set(['releases:write']) }), 60)
})

test('where nobody has a name, each address is a caller', () => {
  const { take } = limiter(1)
  for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1']) assert.equal(take(DEMO_USER, address), 0)
  for (const address of ['192.0.2.1', '192.0.2.2', '2001:db8::1'])
    assert.equal(take(DEMO_USER, address), 60)
})

test('nobody can take the calls of an address by calling themselves that', () => {
  const { take } = limiter(1)
  for (const subject of ['192.0.2.1', 'demo-user']) {
    assert.equal(take(principal(subject, '', 'anonymous'), '192.0.2.9'), 0)
  }
  assert.equal(take(DEMO_USER, '192.0.2.1'), 0)
})

test('waiting as long as Retry-After says is always enough, whatever the rate and however often one asks', () => {
  for (const perMinute of [1, 2, 3, 7, 11, 13, 59, 60, 61, 90, 119, 120, 121, 600, 997]) {
    for (const step of [0, 1, 7, 100, 333, 571, 999, 1000, 1001]) {
      const { clock, take } = limiter(perMinute)
      const alice = principal('alice')
      for (let i = 0; i < perMinute; i++) assert.equal(take(alice), 0)
      assert.notEqual(take(alice), 0)
      for (let i = 0; i < 20; i++) {
        clock.now += step
        const seconds = take(alice)
        clock.now += seconds * 1000
        if (seconds > 0) assert.equal(take(alice), 0, `${perMinute} a minute, asked after ${step} ms`)
      }
    }
  }
})

test('in any minute no caller gets more than two minutes of calls', () => {
  const { clock, take } = limiter(30)
  let passed = 0
  for (; clock.now < EPOCH + 60_000; clock.now += 100) if (take(principal('alice')) === 0) passed += 1
  assert.ok(passed >= 59 && passed <= 60, String(passed))
})

test('asking while one has to wait does not make the wait longer', () => {
  const { clock, take } = limiter(1)
  assert.equal(take(principal('alice')), 0)
  for (let second = 0; second < 60; second++) {
    assert.equal(take(principal('alice')), 60 - second)
    clock.now += 1000
  }
  assert.equal(take(principal('alice')), 0)
})

test('a limit is held for ten thousand callers at once, and memory for no more', () => {
  const { take } = limiter(1)
  const callers = Array.from({ length: 10_000 }, (_, i) => principal(`caller ${i}`))
  for (const caller of callers) assert.equal(take(caller), 0)
  for (const caller of callers) assert.equal(take(caller), 60)
  assert.equal(take(principal('one more')), 0)
  assert.equal(take(principal('caller 0')), 0, 'the one that called longest ago is forgotten')
  assert.equal(take(principal('caller 9999')), 60)
  assert.equal(take(principal('one more')), 60)
})

test('whoever called again lately is not the one that is forgotten', () => {
  const { take } = limiter(2)
  const callers = Array.from({ length: 9_999 }, (_, i) => principal(`caller ${i}`))
  for (const caller of callers) assert.equal(take(caller), 0)
  assert.equal(take(principal('caller 0')), 0)
  for (const more of ['one more', 'two more']) assert.equal(take(principal(more)), 0)
  assert.equal(take(principal('caller 0')), 30)
})

test('whoever could call a full minute again anyway is forgotten before whoever has to wait', () => {
  const { clock, take } = limiter(2)
  const waiting = principal('waiting')
  assert.equal(take(waiting), 0)
  assert.equal(take(waiting), 0)
  const others = Array.from({ length: 9_999 }, (_, i) => principal(`caller ${i}`))
  for (const caller of others) assert.equal(take(caller), 0)
  clock.now += 30_000 // the others are full again, and whoever has to wait has one call
  assert.equal(take(principal('one more')), 0)
  assert.equal(take(waiting), 0)
  assert.equal(take(waiting), 30)
})

test('the setting is one for all callers, and its absence the fallback', () => {
  const { take } = limiter(0, 2, {})
  for (const caller of [principal('alice'), principal('bob')]) {
    assert.deepEqual([take(caller), take(caller), take(caller)], [0, 0, 30])
  }
  const off = limiter(0, 2)
  for (let i = 0; i < 100; i++) assert.equal(off.take(principal('alice')), 0)
})

test('a clock that was set back makes nobody wait longer than said', () => {
  const { clock, take } = limiter(2)
  for (let i = 0; i < 2; i++) assert.equal(take(principal('alice')), 0)
  clock.now -= 24 * 60 * 60_000
  assert.equal(take(principal('alice')), 30)
  clock.now += 30_000
  assert.equal(take(principal('alice')), 0)
})
