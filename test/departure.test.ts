import assert from 'node:assert/strict'
import { test } from 'node:test'
import { departures } from '../lib/departure.ts'

test('four answers leave in a row, and those behind them at the end of the turn', async () => {
  const left: number[] = []
  const depart = departures()
  for (const number of [1, 2, 3]) depart(() => left.push(number))
  assert.deepEqual([...left], [])
  depart(() => left.push(4))
  assert.deepEqual([...left], [1, 2, 3, 4])
  depart(() => left.push(5))
  assert.deepEqual([...left], [1, 2, 3, 4])
  await new Promise(setImmediate)
  assert.deepEqual([...left], [1, 2, 3, 4, 5])
})

test('what an answer that leaves brings on leaves after it', async () => {
  const left: number[] = []
  const depart = departures()
  depart(() => {
    left.push(1)
    depart(() => left.push(2))
  })
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.deepEqual(left, [1, 2])
})
