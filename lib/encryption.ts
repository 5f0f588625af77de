/**
 * A seal that also hides: neither the client nor a model can read what a state carries. It takes the
 * place of the signer in `server.ts`; neither opens what the other sealed.
 *
 *     token = "e1." + base64url( keyId[8] ‖ nonce[12] ‖ ciphertext ‖ tag[16] )
 *
 * AES-256-GCM with "e1." ‖ keyId as associated data (NIST SP 800-38D). Nonces are random, which is
 * good for 2^32 tokens of one key: rotate the secret before that.
 */
import { isUtf8 } from 'node:buffer'
import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto'
import { keyRing, MAX_TOKEN, type Seal, strictBase64url } from './seal.ts'

const PREFIX = 'e1.'
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Without `authTagLength` Node also takes tags of 4 bytes, which anybody can guess. */
const GCM = { authTagLength: TAG_BYTES }

/**
 * @param secrets the first encrypts; all of them open. Each at least 32 bytes.
 * @throws RangeError as `signer` does.
 */
export function encrypter(secrets: readonly Uint8Array[]): Seal {
  const keys = keyRing(secrets, 'release-ops encrypted state v1', createSecretKey)
  const [current] = keys.values()
  if (current === undefined) throw new RangeError('Encryption needs at least one secret.')

  return {
    keyIds: [...keys.values()].map(({ id }) => id.toString('hex')),
    seal(text) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce, GCM)
      cipher.setAAD(Buffer.concat([Buffer.from(PREFIX), current.id]))
      const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      const bytes = Buffer.concat([current.id, nonce, hidden, cipher.getAuthTag()])
      const token = PREFIX + bytes.toString('base64url')
      if (token.length > MAX_TOKEN) throw new RangeError('The text is too long to be sealed.')
      return token
    },
    open(token) {
      if (token.length > MAX_TOKEN) return { failure: 'too_long' }
      const body = token.startsWith(PREFIX) ? token.slice(PREFIX.length) : ''
      const bytes = strictBase64url(body)
      if (bytes === undefined || bytes.length < KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES) {
        return { failure: 'malformed' }
      }
      const id = bytes.subarray(0, KEY_ID_BYTES)
      const key = keys.get(id.toString('latin1'))
      if (key === undefined) return { failure: 'unknown_key' }
      const nonce = bytes.subarray(KEY_ID_BYTES, KEY_ID_BYTES + NONCE_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', key.key, nonce, GCM)
      decipher.setAAD(Buffer.concat([Buffer.from(PREFIX), id]))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      const hidden = bytes.subarray(KEY_ID_BYTES + NONCE_BYTES, -TAG_BYTES)
      try {
        const text = Buffer.concat([decipher.update(hidden), decipher.final()])
        return isUtf8(text) ? { text: text.toString('utf8') } : { failure: 'malformed' }
      } catch {
        return { failure: 'bad_seal' }
      }
    },
  }
}
