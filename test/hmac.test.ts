import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { hmacSha256 } from '../lib/hmac.ts'

test('the MACs of RFC 4231 come out, for keys of up to 64 bytes', () => {
  const cases: [key: Buffer, data: Buffer, mac: string][] = [
    [
      Buffer.alloc(20, 0x0b),
      Buffer.from('Hi There'),
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      Buffer.from('Jefe'),
      Buffer.from('what do ya want for nothing?'),
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      Buffer.alloc(20, 0xaa),
      Buffer.alloc(50, 0xdd),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
  ]
  for (const [key, data, mac] of cases) assert.equal(hmacSha256(key)(data).toString('hex'), mac)
})

test('every MAC is the one that createHmac makes, whatever the lengths and the parts', () => {
  const bytes = Buffer.from(Array.from({ length: 600 }, (_, i) => (i * 89 + 7) % 256))
  for (let length = 0; length <= 64; length++) {
    const key = bytes.subarray(length, 2 * length)
    const mac = hmacSha256(key)
    for (const size of [0, 1, 2, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 600]) {
      const data = bytes.subarray(0, size)
      const expected = createHmac('sha256', key).update(data).digest()
      assert.deepEqual(mac(data), expected, `key of ${length} bytes, data of ${size}`)
      assert.deepEqual(mac(data.subarray(0, 3), data.subarray(3)), expected, 'in two parts')
    }
  }
})

test('a key is copied, and one that would have to be hashed first is refused', () => {
  const key = Buffer.alloc(32, 1)
  const mac = hmacSha256(key)
  const before = mac(key)
  key.fill(2)
  assert.deepEqual(mac(Buffer.alloc(32, 1)), before)
  assert.throws(() => hmacSha256(Buffer.alloc(65)), /64 bytes at most/)
})
