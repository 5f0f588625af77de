import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at } from '../client.ts'
import { answer, CANCELLED, QUESTION, serve, stateOf, textOf } from './serve.ts'

test('the first call asks and does nothing', async (t) => {
  const { call, performed } = await serve(t)
  const reply = await call()
  assert.equal(at(reply.body, 'result', 'resultType'), 'input_required')
  assert.equal(at(reply.body, 'result', 'inputRequests', 'confirm', 'params', 'message'), QUESTION)
  assert.deepEqual(performed, [])
})

test('a yes performs what was asked, once', async (t) => {
  const { ask, yes, performed } = await serve(t)
  const reply = await yes(await ask())
  assert.equal(textOf(reply), 'Rolled checkout back to v1.41.2. Reason: p99 regression')
  assert.deepEqual(performed, [{ service: 'checkout', version: 'v1.41.2', reason: 'p99 regression' }])
})

test('a no is final and is no error', async (t) => {
  const { ask, call, performed } = await serve(t)
  for (const action of ['decline', 'cancel']) {
    const reply = await call(undefined, { requestState: await ask(), inputResponses: answer({}, action) })
    assert.equal(textOf(reply), CANCELLED)
    assert.equal(at(reply.body, 'result', 'isError'), undefined)
  }
  assert.deepEqual(performed, [])
})
