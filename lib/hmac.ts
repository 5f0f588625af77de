/**
 * HMAC-SHA256 (RFC 2104) over the one-shot hash of `node:crypto`. `createHmac` gives the same bytes,
 * but makes a native object for each call, and takes twice as long for a state.
 * `test/hmac.test.ts` compares the two.
 */
import { hash } from 'node:crypto'

/** What SHA-256 takes in at a time, in bytes: a key is padded to it (RFC 2104, section 2). */
const BLOCK_BYTES = 64

/** @returns the 32 bytes of the MAC of the parts, one after the other. */
export type Mac = (...parts: readonly Uint8Array[]) => Buffer

/**
 * @param key copied; at most 64 bytes, since longer ones would have to be hashed first.
 * @throws RangeError for a longer key.
 */
export function hmacSha256(key: Uint8Array): Mac {
  if (key.length > BLOCK_BYTES) throw new RangeError(`A key may have ${BLOCK_BYTES} bytes at most.`)
  const block = Buffer.alloc(BLOCK_BYTES)
  block.set(key)
  const inner = block.map((byte) => byte ^ 0x36)
  const outer = block.map((byte) => byte ^ 0x5c)
  return (...parts) => sha256(outer, sha256(inner, ...parts))
}

/** By way of a string: as a `Buffer` of its own, which is freed by itself, a digest takes twice as long. */
function sha256(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.from(hash('sha256', Buffer.concat(parts), 'binary'), 'latin1')
}
