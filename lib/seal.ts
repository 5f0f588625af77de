/**
 * A seal makes a text that only a holder of the secret can have written, and reads it back. It
 * knows nothing of MCP, of time or of what the text says.
 *
 *     token = "s1." + base64url( keyId[8] ‖ text ‖ HMAC-SHA256(key, "s1." ‖ keyId ‖ text)[32] )
 *
 * Everything that selects how a token is read (version, protection, key) is under the MAC, and a
 * token names no algorithm, so there is nothing to downgrade (RFC 8725, section 3.1).
 */
import { isUtf8 } from 'node:buffer'
import { hkdfSync, timingSafeEqual } from 'node:crypto'
import { hmacSha256 } from './hmac.ts'

export type SealFailure = 'too_long' | 'malformed' | 'unknown_key' | 'bad_seal'

export type Seal = {
  /** The names of its keys in hexadecimal, the sealing one first: for comparing two servers. */
  readonly keyIds: readonly string[]
  /** @returns the token for a text. Throws when the token would be longer than {@link MAX_TOKEN}. */
  readonly seal: (text: string) => string
  /** @returns the text, or why there is none. Never throws, whatever the token. */
  readonly open: (token: string) => { readonly text: string } | { readonly failure: SealFailure }
}

/** A key, in the form in which it is used, and the name under which tokens refer to it. */
type Key<Form> = { readonly id: Buffer; readonly key: Form }

/** Longest token, in characters: checked before anything is decoded, so that junk costs nothing. */
export const MAX_TOKEN = 8192
/** Shortest secret, in bytes: as long as the key that is derived from it (RFC 2104, section 3). */
export const MIN_SECRET = 32

const PREFIX = 's1.'
const PREFIX_BYTES = Buffer.from(PREFIX)
const KEY_ID_BYTES = 8
const KEY_BYTES = 32
const MAC_BYTES = 32

/**
 * A seal that signs: the text can be read by anybody and changed by nobody.
 *
 * @param secrets the first signs; all of them open, so that a secret can be replaced without
 *   refusing what the other one signed. Each at least {@link MIN_SECRET} bytes; copied.
 * @throws RangeError for a short secret, for none, and for the same secret twice.
 */
export function signer(secrets: readonly Uint8Array[]): Seal {
  const keys = keyRing(secrets, 'release-ops signed state v1', hmacSha256)
  const [signing] = keys.values()
  if (signing === undefined) throw new RangeError('A signer needs at least one secret.')

  return {
    keyIds: [...keys.values()].map(({ id }) => id.toString('hex')),
    seal(text) {
      const signed = Buffer.concat([signing.id, Buffer.from(text, 'utf8')])
      const token =
        PREFIX + Buffer.concat([signed, signing.key(PREFIX_BYTES, signed)]).toString('base64url')
      if (token.length > MAX_TOKEN) throw new RangeError('The text is too long to be sealed.')
      return token
    },
    open(token) {
      if (token.length > MAX_TOKEN) return { failure: 'too_long' }
      const bytes = token.startsWith(PREFIX) ? strictBase64url(token.slice(PREFIX.length)) : undefined
      if (bytes === undefined || bytes.length < KEY_ID_BYTES + MAC_BYTES) return { failure: 'malformed' }
      const mac = keys.get(bytes.toString('latin1', 0, KEY_ID_BYTES))?.key
      if (mac === undefined) return { failure: 'unknown_key' }
      const signed = bytes.subarray(0, -MAC_BYTES)
      const good = timingSafeEqual(bytes.subarray(-MAC_BYTES), mac(PREFIX_BYTES, signed))
      if (!good) return { failure: 'bad_seal' }
      const text = signed.subarray(KEY_ID_BYTES)
      return isUtf8(text) ? { text: text.toString('utf8') } : { failure: 'malformed' }
    },
  }
}

/**
 * Keys for one purpose from the operator's secrets (HKDF, RFC 5869), by their id. The purpose keeps
 * them apart from every other use of the same secret; the id is derived too, so it can't be wrong.
 * @param form makes what is used of the 32 bytes of a key.
 */
export function keyRing<Form>(
  secrets: readonly Uint8Array[],
  purpose: string,
  form: (key: Buffer) => Form,
): Map<string, Key<Form>> {
  const ring = new Map<string, Key<Form>>()
  for (const secret of secrets) {
    if (secret.length < MIN_SECRET) {
      throw new RangeError(`A secret needs at least ${MIN_SECRET} bytes; this one has ${secret.length}.`)
    }
    const id = Buffer.from(hkdfSync('sha256', secret, '', `${purpose}: id`, KEY_ID_BYTES))
    const key = form(Buffer.from(hkdfSync('sha256', secret, '', `${purpose}: key`, KEY_BYTES)))
    if (ring.has(id.toString('latin1'))) throw new RangeError('The same secret is given twice.')
    ring.set(id.toString('latin1'), { id, key })
  }
  return ring
}

/**
 * RFC 4648, section 5, in its one canonical spelling. `Buffer.from` alone also takes padding, the
 * other alphabet, junk and non-zero spare bits, so that one token would have many spellings.
 */
export function strictBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}
