/**
 * Single use on two real server processes that share a real redis-server, through the npm package
 * `redis`, as an operator runs them. What was done is what the action's command left in a file.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createClient } from 'redis'
import { at, callTool, type Json, message, paramHeaders, type Reply } from '../../client.ts'
import { redisStore } from '../../lib/redis-store.ts'
import { type Instance, startServer } from '../instance.ts'
import { end, PATIENT, until } from './processes.ts'
import { type Redis, redisIn, WITH_REDIS_PACKAGE } from './redis-server.ts'

const SCALE = { service: 'checkout', replicas: 12, idempotency_key: 'deploy-17' }
const DONE = 'Scaled checkout to 12 replicas. Estimated cost: $388.80 a month.'
const YES = { confirm: { action: 'accept', content: { confirm: true } } }
const NO = { confirm: { action: 'decline' } }
/** The action: writes a line, and ends when there is a second file. A command may have no braces. */
const COMMAND =
  "const f = require('fs'), [, done, go] = process.argv; f.appendFileSync(done, 'scaled\\n');" +
  'const look = setInterval(() => f.existsSync(go) && clearInterval(look), 5)'

const textOf = (reply: Reply) => at(reply.body, 'result', 'content', '0', 'text')
const stateOf = (reply: Reply) => at(reply.body, 'result', 'requestState')
const scale = (instance: Instance, retry: Json = {}, args: Json = {}) =>
  callTool(instance.url, 'scale_service', { ...SCALE, ...args }, retry)

type Scene = {
  readonly instances: readonly [Instance, Instance]
  readonly redis: Redis
  /** How often the action was started. */
  readonly scaled: () => number
  /** Lets actions end. */
  readonly go: () => void
}

/** Two processes with one secret and one Redis, both connected; actions do not end until `go`. */
async function scene(t: TestContext): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [done, go] = [join(folder, 'done'), join(folder, 'go')]
  const redis = redisIn(t, folder)
  await redis.start()
  const env = {
    STATE_SECRET: 'no secret, but of 32 bytes at least',
    LOG: 'off',
    REDIS_URL: redis.url,
    SCALE_COMMAND: JSON.stringify([process.execPath, '-e', COMMAND, done, go]),
    NODE_OPTIONS: WITH_REDIS_PACKAGE,
  }
  const instances = [await startServer(env), await startServer(env)] as const
  for (const instance of instances) {
    t.after(() => end(instance.process))
    await until(t, async () => (await scale(instance)).status === 200)
  }
  return {
    instances,
    redis,
    scaled: () => (existsSync(done) ? readFileSync(done, 'utf8').split('\n').length - 1 : 0),
    go: () => writeFileSync(go, ''),
  }
}

/** A question of one instance. @returns the state, and the two answers to it at any instance. */
async function asked(instance: Instance, args: Json = {}) {
  const requestState = stateOf(await scale(instance, {}, args))
  assert.equal(typeof requestState, 'string')
  const say = (inputResponses: Json) => (to: Instance) => scale(to, { requestState, inputResponses }, args)
  return { requestState, yes: say(YES), no: say(NO) }
}

/** 503 with the JSON-RPC error of a store that is not there. */
function assertUnserved(reply: Reply): void {
  assert.deepEqual([reply.status, at(reply.body, 'error', 'code')], [503, -32603])
  assert.match(String(at(reply.body, 'error', 'message')), /^The store of outcomes is unavailable\. /)
  assert.notEqual(at(reply.body, 'id'), undefined)
}

test('a real Redis does in one step what each step of the store needs', PATIENT, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const redis = redisIn(t, folder)
  await redis.start()
  const connect = async () => {
    const client = createClient({ url: redis.url, disableOfflineQueue: true, RESP: 2 })
    client.on('error', () => {})
    t.after(() => client.destroy())
    await client.connect()
    return client
  }
  const [one, other] = [await connect(), await connect()]
  const stores = [redisStore(one, 'ops:'), redisStore(other, 'ops:')] as const

  const claims = Array.from({ length: 50 }, (_, i) =>
    stores[i % 2 === 0 ? 0 : 1].claim('k', `${i}`, 60_000),
  )
  const there = await Promise.all(claims)
  const winners = [...there.keys()].filter((i) => there[i] === undefined)
  assert.equal(winners.length, 1)
  const value = String(winners[0])
  assert.deepEqual(new Set(there.filter((text) => text !== undefined)), new Set([value]))
  for (const { read } of stores) assert.deepEqual([await read('k'), await read('none')], [value, undefined])

  const life = async (key: string) => Number(await one.sendCommand(['PTTL', key]))
  const claimed = await life('ops:k')
  assert.ok(claimed > 0 && claimed <= 60_000, String(claimed))
  await stores[1].settle('k', 'done', 1_000_000)
  const settled = await life('ops:k')
  assert.ok(settled > 60_000 && settled <= 1_000_000, String(settled))
  assert.equal(await stores[0].claim('k', 'mine', 60_000), 'done')
  assert.equal(await redisStore(one, 'other-ops:').read('k'), undefined)

  await stores[1].settle('k', 'failed', 0)
  await until(t, async () => (await stores[0].read('k')) === undefined)
  assert.equal(await stores[0].claim('k', 'again', 60_000), undefined)
})

test('of 50 retries at once to two instances one acts, and all get its outcome', PATIENT, async (t) => {
  const { instances, scaled, go } = await scene(t)
  const { yes } = await asked(instances[0])
  const replies = Array.from({ length: 50 }, (_, i) => yes(instances[i % 2 === 0 ? 0 : 1]))
  await until(t, () => scaled() > 0)
  go()
  assert.deepEqual(new Set((await Promise.all(replies)).map(textOf)), new Set([DONE]))
  assert.equal(scaled(), 1)
  for (const instance of instances) {
    assert.equal(textOf(await yes(instance)), DONE)
    assert.equal(textOf(await scale(instance)), DONE, 'the idempotency key is known to both')
  }
  assert.equal(scaled(), 1)
})

test(
  'an answer that was lost is to be had from the other instance, also when the first is gone',
  PATIENT,
  async (t) => {
    const { instances, scaled, go } = await scene(t)
    const [first, other] = instances
    const { requestState, yes } = await asked(first)
    const params = { name: 'scale_service', arguments: SCALE, requestState, inputResponses: YES }
    const { headers, body } = message('tools/call', params)
    const properties = {
      service: { 'x-mcp-header': 'Service' },
      replicas: { 'x-mcp-header': 'Replicas' },
    }
    const text = JSON.stringify(body)
    const lines = [['Host', first.url.host], ['Content-Length', `${text.length}`], ...headers]
    const lost = request(first.url, {
      method: 'POST',
      headers: [...lines, ...paramHeaders({ properties }, SCALE)].flat(),
      agent: false,
    })
    lost.on('error', () => {}).end(text)
    await until(t, () => scaled() > 0)
    lost.destroy()
    const again = yes(other)
    go()
    assert.equal(textOf(await again), DONE)
    assert.equal(await first.stop(), 0)
    assert.equal(textOf(await yes(other)), DONE)
    assert.equal(scaled(), 1)
  },
)

test('a no to one instance consumes the approval at the other', PATIENT, async (t) => {
  const { instances, scaled, go } = await scene(t)
  go()
  const { yes, no } = await asked(instances[0])
  assert.equal(textOf(await no(instances[0])), 'Scaling cancelled. Nothing changed.')
  for (const instance of instances) {
    assert.equal(textOf(await yes(instance)), 'Scaling cancelled. Nothing changed.')
  }
  assert.equal(scaled(), 0)
})

test(
  'while Redis is stopped a yes is 503 and nothing is done; when it is back the yes counts, once',
  PATIENT,
  async (t) => {
    const { instances, redis, scaled, go } = await scene(t)
    go()
    const { yes, no } = await asked(instances[0])
    await end(redis.process())
    for (const instance of instances) {
      for (const say of [yes, no]) assertUnserved(await say(instance))
      assertUnserved(await scale(instance))
      assert.match(instance.stderr(), /^Redis: /m)
    }
    assert.equal(scaled(), 0)

    await redis.start()
    for (const instance of instances) {
      await until(t, async () => {
        const reply = await yes(instance)
        if (reply.status === 503) return false
        assert.equal(textOf(reply), DONE)
        return true
      })
    }
    assert.equal(scaled(), 1)
  },
)

test(
  'a Redis that hangs is 503 too, and what it does when it wakes up starts nothing',
  PATIENT,
  async (t) => {
    const { instances, redis, scaled, go } = await scene(t)
    go()
    const { yes } = await asked(instances[0])
    const fresh = await asked(instances[1], { idempotency_key: 'deploy-18' })
    redis.process().kill('SIGSTOP')
    const replies = await Promise.all(instances.map((instance) => yes(instance)))
    for (const reply of replies) assertUnserved(reply)
    assert.equal(scaled(), 0)
    redis.process().kill('SIGCONT')
    assert.equal(textOf(await fresh.yes(instances[0])), DONE)
    assert.equal(scaled(), 1, 'the fresh one alone')
  },
)
