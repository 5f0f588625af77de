import assert from 'node:assert/strict'
import { test } from 'node:test'
import { centsOf, costInCents, dollars, unitPrice } from '../lib/money.ts'

test('an amount of at most two decimals is so many whole cents', () => {
  const amounts: [number, number][] = [
    [0, 0],
    [1, 100],
    [0.01, 1],
    [0.1, 10],
    [0.29, 29], // times 100 it is 28.999999999999996
    [1.1, 110],
    [388.8, 38_880],
    [999_999_999.99, 99_999_999_999],
  ]
  for (const [amount, cents] of amounts) assert.equal(centsOf(amount), cents, String(amount))
})

test('every amount up to a thousand dollars is read to the cent', () => {
  for (let cents = 0; cents <= 100_000; cents += 1) assert.equal(centsOf(cents / 100), cents)
})

test('a number with more than two decimals, or that is no amount, is none', () => {
  const others = [
    0.001,
    388.805,
    0.1 + 0.2,
    1e-7,
    -1,
    -0.01,
    1e9,
    1e21,
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ]
  for (const other of others) assert.equal(centsOf(other), undefined, String(other))
})

test('a unit price may be finer than a cent', () => {
  const prices: [string, number][] = [
    ['0', 0],
    ['32', 32_000_000],
    ['32.4', 32_400_000],
    ['32.40', 32_400_000],
    ['0.000001', 1],
    ['0032.400000', 32_400_000],
    ['999999.999999', 999_999_999_999],
  ]
  for (const [text, micros] of prices) assert.equal(unitPrice(text), micros, text)
})

test('what is no price is none', () => {
  const others = [
    '',
    ' ',
    '.5',
    '5.',
    '-1',
    '+1',
    '1e3',
    '0x10',
    '1,5',
    '$1',
    ' 1',
    '1 ',
    '1\n',
    '1.0000001',
  ]
  for (const other of [...others, '1000000', 'NaN', 'Infinity', '١']) {
    assert.equal(unitPrice(other), undefined, JSON.stringify(other))
  }
})

test('a cost is rounded once, to the nearest cent, a half up', () => {
  const costs: [number, string, number][] = [
    [12, '32.40', 38_880],
    [1, '32.40', 3240],
    [1, '0.004', 0],
    [1, '0.005', 1],
    [3, '0.005', 2], // each by itself would make 3
    [1000, '0.004', 400], // each by itself would make 0
    [3, '0.3333', 100],
    [1000, '999999.999999', 100_000_000_000],
  ]
  for (const [units, price, cents] of costs) {
    assert.equal(costInCents(units, unitPrice(price) ?? Number.NaN), cents, `${units} times ${price}`)
  }
})

test('cents are written as dollars with two decimals', () => {
  const texts: [number, string][] = [
    [0, '$0.00'],
    [1, '$0.01'],
    [10, '$0.10'],
    [3240, '$32.40'],
    [38_880, '$388.80'],
    [100_000_000_000, '$1000000000.00'],
  ]
  for (const [cents, text] of texts) assert.equal(dollars(cents), text)
})
