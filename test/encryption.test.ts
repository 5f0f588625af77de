import assert from 'node:assert/strict'
import { createCipheriv, hkdfSync } from 'node:crypto'
import { test } from 'node:test'
import { at } from '../client.ts'
import { encrypter } from '../lib/encryption.ts'
import { MAX_TOKEN, type Seal, signer } from '../lib/seal.ts'
import { digest } from '../lib/state.ts'
import { compose } from '../server.ts'
import { QUESTION, REFUSED, ROLLBACK, SECRET, type Served, serve, textOf } from './serve.ts'

const FIRST = Buffer.from('first-test-secret-of-36-bytes-000000')
const OTHER = Buffer.from('other-test-secret-of-36-bytes-111111')
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Characters that lenient decoders skip, read as their neighbours, or end at. */
const JUNK = ['', '+', '/', '=', '.', ' ', '\n', '\0', 'é', '😀']
/** Base64 works in groups of three bytes: these tokens end with 0, 4 and 2 spare bits. */
const TEXTS = ['', 'a', 'ab']
const ENCRYPTED = { STATE_PROTECTION: 'encrypted' }
const DONE = 'Rolled checkout back to v1.41.2. Reason: p99 regression'

const read = (seal: Seal, token: string) => Object.values(seal.open(token))[0]
const bytesOf = (token: string) => Buffer.from(token.slice('e1.'.length), 'base64url')
const tokenOf = (...parts: Buffer[]) => `e1.${Buffer.concat(parts).toString('base64url')}`
const replaced = (text: string, at: number, by: string) => text.slice(0, at) + by + text.slice(at + 1)

/** Every token is refused, and each for one of these reasons. */
function refuses(
  seal: Seal,
  tokens: readonly string[],
  reasons = ['malformed', 'unknown_key', 'bad_seal'],
): void {
  assert.ok(tokens.length > 0)
  for (const token of tokens) {
    const opened = seal.open(token)
    assert.ok('failure' in opened && reasons.includes(opened.failure), JSON.stringify([token, opened]))
  }
}

/** A token by the formula at the top of lib/encryption.ts, with any part of it replaced. */
function forged({
  text = '{"v":1}',
  purpose = 'release-ops encrypted state v1',
  version = 'e1.',
  named = true,
  tagBytes = 16,
} = {}): string {
  const derived = (use: string, size: number) => {
    return Buffer.from(hkdfSync('sha256', FIRST, '', `${purpose}: ${use}`, size))
  }
  const [id, nonce] = [derived('id', 8), Buffer.alloc(12, 7)]
  const cipher = createCipheriv('aes-256-gcm', derived('key', 32), nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.concat([Buffer.from(version), named ? id : Buffer.alloc(0)]))
  const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return tokenOf(id, nonce, hidden, cipher.getAuthTag())
}

/** The state is refused as every other one is, and nothing was done. */
async function assertRefusedState(served: Served, state: string, label?: string): Promise<void> {
  const refused = await served.yes(state)
  assert.deepEqual([at(refused.body, 'result', 'isError'), textOf(refused)], [true, REFUSED], label)
  assert.deepEqual(served.performed, [], label)
}

// A server that encrypts.

test('a server that encrypts asks, takes a yes and performs, like one that signs', async (t) => {
  const served = await serve(t, { env: ENCRYPTED })
  const asked = await served.call()
  assert.equal(at(asked.body, 'result', 'inputRequests', 'confirm', 'params', 'message'), QUESTION)
  assert.deepEqual(served.performed, [])
  const done = await served.yes(at(asked.body, 'result', 'requestState'))
  assert.equal(textOf(done), DONE)
  assert.deepEqual(served.performed, [{ ...ROLLBACK, reason: 'p99 regression' }])
})

test('an encrypted state shows no field, name, argument or digest; a signed one shows them', async (t) => {
  const written = ['"v":1', 'flow', 'expiresAt', 'release-ops', 'tools/call', 'rollback_release']
  const words = [...written, digest(ROLLBACK)]
  const shows = (state: string) => {
    const bytes = Buffer.from(state.slice(3), 'base64url').toString('latin1')
    return words.filter((word) => bytes.includes(word) || state.includes(word))
  }
  const signing = await serve(t)
  assert.deepEqual(shows(await signing.ask()), words)
  const encrypting = await serve(t, { env: ENCRYPTED })
  const state = await encrypting.ask()
  assert.match(state, /^e1\.[\w-]+$/)
  assert.deepEqual(shows(state), [])
  assert.deepEqual([...signing.performed, ...encrypting.performed], [])
})

test('an encrypted state that was changed in any place is refused, and nothing is done', async (t) => {
  const served = await serve(t, { env: ENCRYPTED })
  const state = await served.ask()
  for (let place = 0; place < state.length; place += 29) {
    await assertRefusedState(
      served,
      replaced(state, place, state[place] === 'A' ? 'B' : 'A'),
      `at ${place}`,
    )
  }
  for (const other of [state.slice(0, -1), `${state}A`, `${state}=`, ` ${state}`, state.slice(3)]) {
    await assertRefusedState(served, other)
  }
  assert.equal(textOf(await served.yes(state)), DONE)
})

test('a server that signs and one that encrypts refuse each other’s states, whatever prefix they bear', async (t) => {
  const signing = await serve(t)
  const encrypting = await serve(t, { env: ENCRYPTED })
  const [signed, encrypted] = [await signing.ask(), await encrypting.ask()]
  for (const state of [signed, `e1.${signed.slice(3)}`]) await assertRefusedState(encrypting, state)
  for (const state of [encrypted, `s1.${encrypted.slice(3)}`]) await assertRefusedState(signing, state)
  assert.equal(textOf(await signing.yes(signed)), DONE)
  assert.equal(textOf(await encrypting.yes(encrypted)), DONE)
})

test('an encrypting server opens what its accepted secret sealed, and nothing of a third one', async (t) => {
  const env = (STATE_SECRET: string, more = {}) => ({ env: { ...ENCRYPTED, STATE_SECRET, ...more } })
  const former = await serve(t, env('the former secret, which has 35 bytes'))
  const stranger = await serve(t, env('the secret of somebody else, 38 bytes.'))
  const served = await serve(
    t,
    env(SECRET, { STATE_SECRET_ACCEPTED: 'the former secret, which has 35 bytes' }),
  )
  await assertRefusedState(served, await stranger.ask())
  await assertRefusedState(former, await served.ask())
  assert.equal(textOf(await served.yes(await former.ask())), DONE)
  assert.deepEqual([served.performed.length, former.performed, stranger.performed], [1, [], []])
})

test('a protection that does not exist stops the start with the two that do', async () => {
  for (const STATE_PROTECTION of ['', 'none', 'Encrypted', 'aes', 'toString', 'signed,encrypted']) {
    await assert.rejects(compose({ STATE_SECRET: SECRET, STATE_PROTECTION }), {
      message: 'STATE_PROTECTION must be signed or encrypted.',
    })
  }
})

// The format, frozen: tokens of an older program must mean the same to a newer one.

test('these tokens of two fixed secrets mean these texts, for ever', () => {
  const tokens: [Buffer, string, string][] = [
    [FIRST, '', 'e1.ZWVbTJrhUJk4Gr2xMtu47VTZZXg6C1O4p0DZvgH_OUnnroxk'],
    [FIRST, '{"v":1}', 'e1.ZWVbTJrhUJl1xl0h2IViIaG3tXF0f8aEEHHW2TrNckNPXvQNc8Ys81FVQw'],
    [
      OTHER,
      'Grüße, 世界 😀',
      'e1.JXs6Rkcvxft9W1AlAcIfIlhCpEKulhkvilyJ0FdayDEuWPPadKRde0mlPPaUrcxD0IKdRs0rNEU',
    ],
  ]
  for (const [secret, text, token] of tokens) assert.equal(read(encrypter([secret]), token), text)
})

test('a token is made as the format says, with keys that are derived for this one use', () => {
  const seal = encrypter([FIRST])
  assert.equal(read(seal, forged()), '{"v":1}')
  assert.equal(bytesOf(seal.seal('{"v":1}')).length, 8 + 12 + '{"v":1}'.length + 16)
  const id = bytesOf(forged()).toString('hex', 0, 8)
  assert.equal(bytesOf(seal.seal('')).toString('hex', 0, 8), id)
  assert.deepEqual(seal.keyIds, [id])
  const purposes = ['', 'release-ops encrypted state v2', 'release-ops signed state v1']
  refuses(
    seal,
    purposes.map((purpose) => forged({ purpose })),
    ['unknown_key'],
  )
})

test('version and key id are under the tag', () => {
  const others = [{ version: 'e2.' }, { version: 's1.' }, { version: '' }, { named: false }]
  refuses(
    encrypter([FIRST]),
    others.map((other) => forged(other)),
    ['bad_seal'],
  )
})

test('a tag of fewer than 16 bytes is refused, however right it is', () => {
  const seal = encrypter([FIRST])
  for (const text of ['', '{"v":1}', 'x'.repeat(100)]) {
    assert.equal(read(seal, forged({ text })), text)
    const short = [4, 8, 12, 13, 14, 15].map((tagBytes) => forged({ text, tagBytes }))
    refuses(seal, short, ['malformed', 'bad_seal'])
  }
})

test('a text comes back as it was, whatever it says', () => {
  const seal = encrypter([FIRST])
  for (const text of ['', 'a', '\0', 'e1.', '\ufeffBOM', '"\\\n', '世界 😀', 'x'.repeat(6000)]) {
    assert.equal(read(seal, seal.seal(text)), text)
  }
})

test('no two tokens share a nonce, although they hide the same text', () => {
  const seal = encrypter([FIRST])
  const tokens = Array.from({ length: 1000 }, () => bytesOf(seal.seal('same')))
  const distinct = (from: number, to?: number) =>
    new Set(tokens.map((bytes) => bytes.subarray(from, to).toString('hex'))).size
  assert.equal(distinct(0, 8), 1)
  assert.equal(distinct(8, 20), 1000)
  assert.equal(distinct(-16), 1000)
})

// One token has one spelling, and nobody without the secret can write another.

test('a token with any other character at any position is refused', () => {
  const seal = encrypter([FIRST])
  for (const text of TEXTS) {
    const token = seal.seal(text)
    for (let at = 0; at < token.length; at += 1) {
      const others = [...ALPHABET, ...JUNK].filter((other) => other !== token[at])
      refuses(
        seal,
        others.map((other) => replaced(token, at, other)),
      )
    }
  }
})

test('a token with any one bit changed is refused', () => {
  const seal = encrypter([FIRST])
  const bytes = bytesOf(seal.seal('{"v":1}'))
  assert.equal(read(seal, tokenOf(bytes)), '{"v":1}')
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    refuses(seal, [tokenOf(changed)], [bit < 64 ? 'unknown_key' : 'bad_seal'])
  }
})

test('the spare bits of the last character are no second spelling', () => {
  const seal = encrypter([FIRST])
  const aliases = TEXTS.map((text) => {
    const token = seal.seal(text)
    const spellings = [...ALPHABET].map((last) => token.slice(0, -1) + last)
    return spellings.filter((other) => other !== token && bytesOf(other).equals(bytesOf(token)))
  })
  assert.deepEqual(
    aliases.map((spellings) => spellings.length),
    [0, 15, 3],
  )
  refuses(seal, aliases.flat(), ['malformed'])
})

test('a token that was cut anywhere, or that has anything more, is refused', () => {
  const seal = encrypter([FIRST])
  for (const text of TEXTS) {
    const token = seal.seal(text)
    refuses(
      seal,
      [...token].flatMap((_, at) => [token.slice(0, at), token.slice(at + 1)]),
    )
    const more = [...JUNK.filter(Boolean), '==', 'A', 'AAAA', 'AAAAAAAAAAAAAAAAAAAAAAAA', token]
    refuses(
      seal,
      more.flatMap((extra) => [token + extra, extra + token, replaced(token, 3, extra + token[3])]),
    )
  }
})

test('parts of two tokens make no third one', () => {
  const seal = encrypter([FIRST])
  const [one, two] = [bytesOf(seal.seal('one')), bytesOf(seal.seal('two'))]
  const mixed = [8, 20, one.length - 16].map((cut) => tokenOf(one.subarray(0, cut), two.subarray(cut)))
  assert.equal(read(seal, mixed[0] ?? ''), 'two')
  refuses(seal, mixed.slice(1), ['bad_seal'])
})

test('a text that makes a token of the greatest length is sealed, and one byte more throws', () => {
  const seal = encrypter([FIRST])
  const most = Math.floor(((MAX_TOKEN - 'e1.'.length) * 3) / 4) - 8 - 12 - 16
  const longest = seal.seal('x'.repeat(most))
  assert.ok(longest.length <= MAX_TOKEN && longest.length > MAX_TOKEN - 3)
  assert.equal(read(seal, longest), 'x'.repeat(most))
  assert.throws(() => seal.seal('x'.repeat(most + 1)), RangeError)
  assert.throws(() => seal.seal('é'.repeat(most)), RangeError)
})

test('a token beyond the greatest length is refused before anything of it is decoded', (t) => {
  const seal = encrypter([FIRST])
  const token = seal.seal('text')
  const tooLong = [token.padEnd(MAX_TOKEN + 1, 'A'), token + 'A'.repeat(2 ** 20), '\0'.repeat(2 ** 20)]
  const decode = t.mock.method(Buffer, 'from')
  refuses(seal, tooLong, ['too_long'])
  assert.equal(decode.mock.callCount(), 0)
  assert.equal(read(seal, token), 'text')
  assert.notEqual(decode.mock.callCount(), 0)
})

// Keys.

test('what signs and what encrypts have other key ids, and open nothing of each other', () => {
  const [signs, encrypts] = [signer([FIRST, OTHER]), encrypter([FIRST, OTHER])]
  assert.equal(new Set([...signs.keyIds, ...encrypts.keyIds]).size, 4)
  const [signed, encrypted] = [signs.seal('text'), encrypts.seal('text')]
  refuses(encrypts, [signed, `e1.${signed.slice(3)}`], ['malformed', 'unknown_key'])
  refuses(signs, [encrypted, `s1.${encrypted.slice(3)}`], ['malformed', 'unknown_key'])
  const renamed = Buffer.concat([bytesOf(encrypted).subarray(0, 8), bytesOf(signed).subarray(8)])
  refuses(encrypts, [tokenOf(renamed)], ['bad_seal'])
})

test('the first secret encrypts, the others only open', () => {
  const both = encrypter([FIRST, OTHER])
  assert.equal(read(encrypter([FIRST]), both.seal('text')), 'text')
  assert.equal(read(encrypter([OTHER]), both.seal('text')), 'unknown_key')
  assert.equal(read(both, encrypter([OTHER]).seal('text')), 'text')
  assert.equal(read(encrypter([OTHER, FIRST]), both.seal('text')), 'text')
  const [first, other] = [encrypter([FIRST]), encrypter([OTHER])].map((seal) => bytesOf(seal.seal('text')))
  assert.ok(first !== undefined && other !== undefined)
  refuses(both, [tokenOf(first.subarray(0, 8), other.subarray(8))], ['bad_seal'])
})

test('short, missing and repeated secrets encrypt nothing', () => {
  const short = FIRST.subarray(0, 31)
  for (const secrets of [
    [],
    [Buffer.of()],
    [short],
    [FIRST, short],
    [FIRST, FIRST],
    [FIRST, OTHER, FIRST],
  ]) {
    assert.throws(() => encrypter(secrets), RangeError)
  }
  const shortest = encrypter([FIRST.subarray(0, 32)])
  assert.equal(read(shortest, shortest.seal('text')), 'text')
})
