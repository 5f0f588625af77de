import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { at } from '../client.ts'
import { Environment, type Variables } from '../lib/environment.ts'
import { redisStore, redisStoreFrom } from '../lib/redis-store.ts'
import { compose } from '../server.ts'
import { answer, assertRefused, EPOCH, SECRET, serve, textOf } from './serve.ts'

const MINUTE = 60_000
const INSTALL = 'REDIS_URL needs the npm package redis: run npm install redis, or unset REDIS_URL.'
/** What Redis may say that is neither a text nor nothing. */
const NONSENSE = [undefined, 7, true, ['OK'], {}, Buffer.from('OK'), new Error('MOVED')]

/** One turn of the event loop: whatever can go on without it has gone on. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A store over a Redis that says what the test says, and the commands that it got. */
function scripted(reply: (args: string[]) => unknown) {
  const sent: string[][] = []
  const sendCommand = async (args: string[]) => {
    sent.push(args)
    return reply(args)
  }
  return { sent, store: redisStore({ sendCommand }, 'release-ops:') }
}

// What is said to Redis, and what its answers mean.

test('each step is one command', async () => {
  const { sent, store } = scripted(([, , , ...rest]) => (rest[0] === 'PX' ? 'OK' : null))
  await store.claim('scale_service/abc', '{"state":"running"}', 1_800_000)
  await store.read('scale_service/abc')
  await store.settle('scale_service/abc', '{"state":"done"}', 1_740_000)
  const key = 'release-ops:scale_service/abc'
  assert.deepEqual(sent, [
    ['SET', key, '{"state":"running"}', 'NX', 'GET', 'PX', '1800000'],
    ['GET', key],
    ['SET', key, '{"state":"done"}', 'PX', '1740000'],
  ])
})

test('nothing there means that the claim was written; a text is what is there', async () => {
  const nothing = scripted(() => null).store
  assert.equal(await nothing.claim('key', 'mine', MINUTE), undefined)
  assert.equal(await nothing.read('key'), undefined)
  for (const there of ['theirs', 'OK', '']) {
    const { store } = scripted(() => there)
    assert.equal(await store.claim('key', 'mine', MINUTE), there)
    assert.equal(await store.read('key'), there)
  }
})

test('any other answer is a failure, of each step', async () => {
  for (const reply of NONSENSE) {
    const { store } = scripted(() => reply)
    await assert.rejects(store.claim('key', 'mine', MINUTE), /Redis answered SET with no text/)
    await assert.rejects(store.read('key'), /Redis answered GET with no text/)
    await assert.rejects(store.settle('key', 'mine', MINUTE))
  }
})

test('an outcome is kept only when Redis says OK', async () => {
  for (const reply of [null, '', 'ok', 'QUEUED', 'theirs']) {
    await assert.rejects(scripted(() => reply).store.settle('key', 'mine', MINUTE), /did not keep/)
  }
  await scripted(() => 'OK').store.settle('key', 'mine', MINUTE)
})

test('a life that is over gives the key up at once: Redis knows no shorter one than 1 ms', async () => {
  const { sent, store } = scripted(() => 'OK')
  for (const life of [0, -5]) await store.settle('key', 'failed', life)
  assert.deepEqual(sent, [
    ['SET', 'release-ops:key', 'failed', 'PX', '1'],
    ['SET', 'release-ops:key', 'failed', 'PX', '1'],
  ])
})

test('an error of Redis or of its client is a failure, thrown or rejected', async () => {
  const refusals = [
    async () => {
      throw new Error('ERR syntax error') // before Redis 7.0, which knew no NX with GET
    },
    () => {
      throw new Error('The client is closed')
    },
  ]
  for (const sendCommand of refusals) {
    const store = redisStore({ sendCommand }, '')
    await assert.rejects(store.claim('key', 'mine', MINUTE), /ERR|closed/)
    await assert.rejects(store.read('key'), /ERR|closed/)
    await assert.rejects(store.settle('key', 'mine', MINUTE), /ERR|closed/)
  }
})

test('a Redis that says nothing for 2 s has failed; what it says later changes nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const late: ((reply: unknown) => void)[] = []
  const { store } = scripted(() => new Promise((resolve) => late.push(resolve)))
  const outcomes: string[] = []
  const steps = [store.claim('key', 'mine', MINUTE), store.read('key'), store.settle('key', 'mine', MINUTE)]
  for (const step of steps) {
    step.then(
      () => outcomes.push('done'),
      (error) => outcomes.push(error.message),
    )
  }
  await turn()
  t.mock.timers.tick(1999)
  await turn()
  assert.deepEqual(outcomes, [])
  t.mock.timers.tick(1)
  await turn()
  const silent = 'Redis gave no answer in time.'
  assert.deepEqual(outcomes, [silent, silent, silent])
  for (const reply of late) reply(null)
  await turn()
  assert.equal(outcomes.length, 3)
})

test('an answer within 2 s counts, and leaves no timer behind', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const cleared = t.mock.method(globalThis, 'clearTimeout')
  const { store } = scripted(() => null)
  assert.equal(await store.claim('key', 'mine', MINUTE), undefined)
  assert.equal(cleared.mock.callCount(), 1)
})

// A server whose Redis does not do what it should.

test('a Redis that answers nonsense or nothing usable is 503 to a yes, and nothing is done', async (t) => {
  const scale = { service: 'checkout', replicas: 12, idempotency_key: 'k' }
  const how = { tool: 'scale_service' }
  for (const spoilt of ['SET', 'GET']) {
    for (const reply of NONSENSE) {
      let healthy = true
      const { store } = scripted(([name]) => (name === spoilt && !healthy ? reply : null))
      const served = await serve(t, { store })
      const state = await served.ask(scale, how)
      healthy = false
      const refused = await served.yes(state, scale, how)
      assertRefused(refused, 503, -32603, at(refused.body, 'id'), `${reply} to ${spoilt}`)
      assert.deepEqual(served.performed, [])
    }
  }
})

test('an entry that another program wrote is an unknown outcome, and nothing is done', async (t) => {
  const scale = { service: 'checkout', replicas: 12, idempotency_key: 'k' }
  for (const entry of ['OK', '', '{"state":"done"}']) {
    let flows = 0
    const { store } = scripted(([name, key = '']) => {
      const ofFlow = !key.includes('idempotency')
      if (ofFlow) flows += 1
      return name === 'GET' && ofFlow ? entry : null
    })
    const served = await serve(t, { store })
    const state = await served.ask(scale, { tool: 'scale_service' })
    const requestState = { requestState: state, inputResponses: answer({ confirm: true }) }
    const reply = await served.call(scale, requestState, { tool: 'scale_service' })
    assert.equal(textOf(reply), 'The outcome is unknown.')
    assert.deepEqual([flows, served.performed], [1, []])
  }
})

// REDIS_URL.

/** The npm package as far as it is used, and what was done with it. */
function fakePackage(connect: () => Promise<unknown> = async () => {}) {
  const created: unknown[] = []
  const sent: string[][] = []
  const client = Object.assign(new EventEmitter(), {
    connect,
    sendCommand: async (args: string[]) => {
      sent.push(args)
      return null
    },
  })
  const createClient = (options: unknown) => {
    created.push(options)
    return client
  }
  return { created, sent, client, module: { createClient } }
}

async function storeFrom(variables: Variables, load: () => Promise<unknown>) {
  const env = new Environment(variables)
  const said: string[] = []
  const store = await redisStoreFrom(env, load, 'release-ops', (sentence) => said.push(sentence))
  let problems = ''
  try {
    env.finish()
  } catch (error) {
    problems = String(at(error, 'message'))
  }
  return { store, said, problems }
}

test('without REDIS_URL nothing is loaded', async () => {
  const load = async () => assert.fail('loaded')
  assert.deepEqual(await storeFrom({}, load), { store: undefined, said: [], problems: '' })
})

test('with REDIS_URL commands are refused, not kept for later, while there is no connection', async () => {
  const { created, sent, module } = fakePackage()
  const url = 'redis://:password@127.0.0.1:6379/3'
  const { store, said, problems } = await storeFrom({ REDIS_URL: url }, async () => module)
  assert.deepEqual(created, [{ url, disableOfflineQueue: true, RESP: 2 }])
  await store?.read('scale_service/abc')
  assert.deepEqual(sent, [['GET', 'release-ops:scale_service/abc']])
  assert.deepEqual([said, problems], [[], ''])
})

test('a connection that fails, then or later, is said and ends nothing', async () => {
  const lost = new Error('connect ECONNREFUSED 127.0.0.1:6379')
  const { client, module } = fakePackage(() => Promise.reject(lost))
  const { store, said, problems } = await storeFrom({ REDIS_URL: 'redis://127.0.0.1' }, async () => module)
  await turn() // a rejection that nobody handles would fail this test here
  client.emit('error', lost)
  client.emit('error', 'gone')
  assert.deepEqual(said, ['Redis: connect ECONNREFUSED 127.0.0.1:6379', 'Redis: gone'])
  assert.deepEqual([typeof store, problems], ['object', ''])
})

test('REDIS_URL without the npm package stops the start with the command that installs it', async () => {
  const REDIS_URL = 'redis://127.0.0.1:6379'
  const missing = () => Promise.reject(new Error("Cannot find package 'redis'"))
  assert.equal((await storeFrom({ REDIS_URL }, missing)).problems, INSTALL)
  await assert.rejects(compose({ STATE_SECRET: SECRET, REDIS_URL, PORT: 'x' }), (error) => {
    const lines = String(at(error, 'message')).split('\n')
    assert.deepEqual([lines.length, lines[1]], [2, INSTALL])
    return true
  })
})

test('another package by that name stops the start: outcomes kept elsewhere would let approvals count twice', async () => {
  for (const module of [{}, { createClient: 'no' }, { default: {} }, null, 7]) {
    const { problems } = await storeFrom({ REDIS_URL: 'redis://127.0.0.1' }, async () => module)
    assert.match(problems, /^REDIS_URL needs the npm package redis/, JSON.stringify(module))
  }
})

test('an address that the package does not take stops the start with a line that names REDIS_URL', async () => {
  const createClient = () => {
    throw new TypeError('Protocol - https: - is not a valid Redis protocol.')
  }
  const REDIS_URL = 'https://:password@cache.example.com'
  const { problems } = await storeFrom({ REDIS_URL }, async () => ({ createClient }))
  assert.match(problems, /^REDIS_URL .*redis:\/\//)
  assert.doesNotMatch(problems, /password/)
})

test('an empty REDIS_URL stops the start', async () => {
  const { module } = fakePackage()
  const { problems } = await storeFrom({ REDIS_URL: '' }, async () => module)
  assert.equal(problems, 'REDIS_URL is empty: unset it or give it a value.')
})

test('what is kept is kept under the server’s name, so that two may share a Redis', async () => {
  const { sent, module } = fakePackage()
  const env = new Environment({ REDIS_URL: 'redis://127.0.0.1' })
  const store = await redisStoreFrom(
    env,
    async () => module,
    'other-ops',
    () => {},
  )
  await store?.claim('key', 'value', EPOCH)
  assert.equal(sent[0]?.[1], 'other-ops:key')
})
