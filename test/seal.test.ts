import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { test } from 'node:test'
import { type Principal, principalDigest } from '../lib/principal.ts'
import { MAX_TOKEN, MIN_SECRET, type Seal, signer } from '../lib/seal.ts'
import { digest } from '../lib/state.ts'

const FIRST = Buffer.from('first-test-secret-of-36-bytes-000000')
const OTHER = Buffer.from('other-test-secret-of-36-bytes-111111')
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Characters that lenient decoders skip, read as their neighbours, or end at. */
const JUNK = [
  '',
  '+',
  '/',
  '=',
  '.',
  '%',
  ' ',
  '\t',
  '\r',
  '\n',
  '\0',
  '\u007f',
  'é',
  'Ａ',
  '１',
  '\ufeff',
  '😀',
]
/** Base64 works in groups of three bytes: these tokens end with 0, 4 and 2 spare bits. */
const TEXTS = ['ab', 'abc', 'abcd']

/** The text under a seal, or the reason why there is none. */
const read = (seal: Seal, token: string) => Object.values(seal.open(token))[0]
const bytesOf = (token: string) => Buffer.from(token.slice('s1.'.length), 'base64url')
const tokenOf = (...parts: Buffer[]) => `s1.${Buffer.concat(parts).toString('base64url')}`
const replaced = (text: string, at: number, by: string) => text.slice(0, at) + by + text.slice(at + 1)

/** Every token is refused, and each for one of these reasons. */
function refuses(seal: Seal, tokens: Iterable<string>, reasons = ['malformed']): void {
  let tried = 0
  for (const token of tokens) {
    const opened = seal.open(token)
    assert.ok('failure' in opened && reasons.includes(opened.failure), JSON.stringify([token, opened]))
    tried += 1
  }
  assert.notEqual(tried, 0)
}

// The format, frozen: tokens of an older program must mean the same to a newer one.

test('two fixed secrets have these key ids and make these tokens, for ever', () => {
  const tokens: [Buffer, string, string][] = [
    [FIRST, '', 's1.Fw7w6deNJDqpbEWKRMvNYr76u7_B5m9gu0RaeOT-5rfUf9R3iV6Gcw'],
    [FIRST, 'a', 's1.Fw7w6deNJDphY5YPqddUBWz1JpVZu3GlbL6Pda2TyFAC_bS1ZUPhY6g'],
    [FIRST, '{"v":1}', 's1.Fw7w6deNJDp7InYiOjF9jCKRGP7Mzgv3oxEh_r1qegbC7BqckYcqA2tFrkg8LAY'],
    [OTHER, '', 's1.KIh7coBoFAVEo7HULpRGSbkt-kvX8fOCp4jUprJ8wjAkpCZamzXrYA'],
    [OTHER, '{"v":1}', 's1.KIh7coBoFAV7InYiOjF94FNkmvWw-eFgIv4-fnLO-Snmetj0I9Fanl5wQrkfv_s'],
    [
      OTHER,
      'Grüße, 世界 😀',
      's1.KIh7coBoFAVHcsO8w59lLCDkuJbnlYwg8J-YgOtYwtqd3LLZPf1dG0GzU2wY-5HLsIod26QK62T4ZaHf',
    ],
  ]
  for (const [secret, text, token] of tokens) {
    assert.equal(signer([secret]).seal(text), token)
    assert.equal(read(signer([secret]), token), text)
  }
  const keyId = (secret: Buffer) => bytesOf(signer([secret]).seal('')).toString('hex', 0, 8)
  assert.equal(keyId(FIRST), '170ef0e9d78d243a')
  assert.equal(keyId(OTHER), '28887b7280681405')
})

test('the digests of a caller and of arguments are these, for ever', () => {
  const caller = (issuer: string, subject: string, client: string): Principal => {
    return { issuer, subject, client, scopes: new Set(['any']) }
  }
  const user = caller('https://issuer.example', 'user-1', 'client-1')
  assert.equal(principalDigest(user, 'flow-1'), 'otnVv81ApaW_8fjwI_Q6Ehm9bzFt8n8RKv_6v1JnxUo')
  const demo = caller('anonymous', 'demo-user', '')
  assert.equal(principalDigest(demo, ''), 'W6IRTQUKY9_t-QETlTiL2dzyMftia0tBaRKo8RB1Cro')

  const rollback = { version: 'v1.41.2', service: 'checkout' }
  assert.equal(digest(rollback), 'gDbVKWauZ3kIxl1nHsPx6aZbVSvJd6V6SlGqlCEwygE')
  assert.equal(digest({}), 'RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o')
  assert.equal(digest([1, 'é', null]), '9KDoy6Fxy3umJO3VAjPM4MCJ2Lxfw9S8PDnRDI6nxq8')
})

/** A token by the formula at the top of lib/seal.ts, with any part of it replaced. */
function forged({ purpose = 'release-ops signed state v1', under = 's1.', key = Buffer.of() }) {
  const derived = (use: string, size: number) => {
    return Buffer.from(hkdfSync('sha256', FIRST, '', `${purpose}: ${use}`, size))
  }
  const signed = Buffer.concat([derived('id', 8), Buffer.from('{"v":1}')])
  const mac = createHmac('sha256', key.length > 0 ? key : derived('key', 32))
  return tokenOf(signed, mac.update(under).update(signed).digest())
}

test('a token is made as the format says, with keys that are derived for this one use', () => {
  const seal = signer([FIRST])
  assert.equal(forged({}), seal.seal('{"v":1}'))
  refuses(seal, [forged({ key: FIRST }), forged({ under: '' }), forged({ under: 's2.' })], ['bad_seal'])
  const purposes = ['', 'release-ops signed state v2', 'release-ops encrypted state v1']
  refuses(
    seal,
    purposes.map((purpose) => forged({ purpose })),
    ['unknown_key'],
  )
})

test('a text comes back as it was, whatever it says', () => {
  const seal = signer([FIRST])
  for (const text of ['', 'a', '\0', 's1.', '\ufeffBOM', '"\\\n', '世界 😀', 'x'.repeat(6000)]) {
    assert.equal(read(seal, seal.seal(text)), text)
  }
  assert.equal(seal.seal('same'), seal.seal('same'))
})

// One token has one spelling, and nobody without the secret can write another.

test('a token with any other character at any position is refused', () => {
  const seal = signer([FIRST])
  const reasons = ['malformed', 'unknown_key', 'bad_seal']
  for (const text of TEXTS) {
    const token = seal.seal(text)
    for (let at = 0; at < token.length; at += 1) {
      const others = [...ALPHABET, ...JUNK].filter((other) => other !== token[at])
      assert.equal(others.length >= 63 + JUNK.length - 1, true)
      refuses(
        seal,
        others.map((other) => replaced(token, at, other)),
        reasons,
      )
    }
  }
})

test('a token with any one bit changed is refused', () => {
  const seal = signer([FIRST])
  const bytes = bytesOf(seal.seal('{"v":1}'))
  assert.equal(read(seal, tokenOf(bytes)), '{"v":1}')
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    refuses(seal, [tokenOf(changed)], [bit < 64 ? 'unknown_key' : 'bad_seal'])
  }
})

test('the spare bits of the last character are no second spelling', () => {
  const seal = signer([FIRST])
  const aliases = TEXTS.map((text) => {
    const token = seal.seal(text)
    const spellings = [...ALPHABET].map((last) => token.slice(0, -1) + last)
    return spellings.filter((other) => other !== token && bytesOf(other).equals(bytesOf(token)))
  })
  assert.deepEqual(
    aliases.map((spellings) => spellings.length),
    [0, 15, 3],
  )
  refuses(seal, aliases.flat())
})

test('a token that was cut anywhere is refused', () => {
  const seal = signer([FIRST])
  for (const text of TEXTS) {
    const token = seal.seal(text)
    const cuts = [...token].flatMap((_, at) => [token.slice(0, at), token.slice(at + 1)])
    refuses(seal, cuts, ['malformed', 'unknown_key', 'bad_seal'])
  }
})

test('a token with anything before, after or inside it is refused', () => {
  const seal = signer([FIRST])
  const junk = [...JUNK, '==', '\r\n', '-TAMPERED', 'A', 'AAAA', '.s1.', '.e30', ',', ';', '"', '%00']
  for (const text of TEXTS) {
    const token = seal.seal(text)
    for (const more of junk.filter(Boolean)) {
      const spoilt = [token + more, more + token, replaced(token, 3, more + token[3]), `s1.${more}`]
      refuses(seal, spoilt, ['malformed', 'unknown_key', 'bad_seal'])
    }
  }
})

test('other alphabets and encodings of the same bytes are refused', () => {
  const seal = signer([FIRST])
  const token = seal.seal('?>?>~~')
  const bytes = bytesOf(token)
  assert.match(token, /-.*_|_.*-/)
  const standard = bytes.toString('base64')
  const once = (from: string, to: string) => `s1.${token.slice(3).replace(from, to)}`
  refuses(seal, [
    `s1.${standard}`,
    `s1.${standard.replace(/=+$/, '')}`,
    once('-', '+'),
    once('_', '/'),
    once('-', '%2D'),
    once('_', '%5F'),
    encodeURIComponent(`s1.${standard}`),
    token.replace(/\d/g, (digit) => String.fromCharCode(digit.charCodeAt(0) + 0xfee0)),
  ])
  refuses(seal, [`s1.${bytes.toString('hex')}`], ['unknown_key'])
})

test('joined and repeated tokens are refused', () => {
  const seal = signer([FIRST])
  const [one, two] = [seal.seal('one'), seal.seal('two')]
  const body = one.slice(3)
  refuses(
    seal,
    [one + two, `${one}.${two}`, `${one},${two}`, `s1.${one}`, `s1.s1.${body}`, `s1.${body}${body}`].concat(
      tokenOf(bytesOf(one), bytesOf(two)),
      `s1..${body}`,
      `s1.${body}.`,
    ),
    ['malformed', 'bad_seal', 'unknown_key'],
  )
})

test('only the exact prefix is a version: no other case, look-alike, byte order mark or number', () => {
  const seal = signer([FIRST])
  const body = seal.seal('text').slice(3)
  const prefixes = [
    '',
    's1',
    'S1.',
    'ѕ1.',
    's１.',
    's1．',
    's1․',
    '\ufeffs1.',
    ' s1.',
    's0.',
    's2.',
    's10.',
    's01.',
  ]
  refuses(
    seal,
    [...prefixes, 's1:', 'e1.', 'v1.', 'none.', 's1%2E'].map((prefix) => prefix + body),
  )
})

test('an empty text, junk and the tokens of other products are refused', () => {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
  refuses(signer([FIRST]), [
    '',
    's',
    's1',
    's1.',
    's1.A',
    's1.AA',
    's1.AAAA',
    jwt,
    `s1.${jwt}`,
    '{}',
    'null',
  ])
  refuses(signer([FIRST]), [tokenOf(Buffer.alloc(39))])
  refuses(signer([FIRST]), [tokenOf(Buffer.alloc(40)), tokenOf(Buffer.alloc(4000, 0xa5))], ['unknown_key'])
})

// Length.

test('a text that makes a token of the greatest length is sealed, and one byte more throws', () => {
  const seal = signer([FIRST])
  const most = Math.floor(((MAX_TOKEN - 's1.'.length) * 3) / 4) - 8 - 32
  const longest = seal.seal('x'.repeat(most))
  assert.equal(longest.length <= MAX_TOKEN && longest.length > MAX_TOKEN - 3, true)
  assert.equal(read(seal, longest), 'x'.repeat(most))
  assert.throws(() => seal.seal('x'.repeat(most + 1)), RangeError)
  assert.throws(() => seal.seal('é'.repeat(most)), RangeError)
})

test('a token beyond the greatest length is refused before anything of it is decoded', (t) => {
  const seal = signer([FIRST])
  const token = seal.seal('text')
  const tooLong = [
    token.padEnd(MAX_TOKEN + 1, 'A'),
    token + 'A'.repeat(2 ** 20),
    '\0'.repeat(2 ** 20),
    's1.'.repeat(2 ** 20),
  ]
  const decode = t.mock.method(Buffer, 'from')
  refuses(seal, tooLong, ['too_long'])
  assert.equal(decode.mock.callCount(), 0)
  assert.equal(read(seal, token), 'text')
  assert.notEqual(decode.mock.callCount(), 0)
  assert.notEqual(read(seal, token.padEnd(MAX_TOKEN, 'A')), 'too_long')
})

// Keys.

test('a token under an unknown key is refused, and so is a known key id on a body of another', () => {
  const seal = signer([FIRST, OTHER])
  const [first, other] = [bytesOf(signer([FIRST]).seal('text')), bytesOf(signer([OTHER]).seal('text'))]
  assert.equal(read(signer([FIRST]), tokenOf(other)), 'unknown_key')
  const swapped = [
    [first.subarray(0, 8), other.subarray(8)],
    [other.subarray(0, 8), first.subarray(8)],
  ]
  refuses(
    seal,
    swapped.map((parts) => tokenOf(...parts)),
    ['bad_seal'],
  )
})

test('a key id that names a member of every object finds no key', () => {
  const rest = bytesOf(signer([FIRST]).seal('text')).subarray(8)
  const names = ['toString', '__proto_', 'valueOf\0', '\0\0\0\0\0\0\0\0']
  refuses(
    signer([FIRST]),
    names.map((name) => tokenOf(Buffer.from(name, 'latin1'), rest)),
    ['unknown_key'],
  )
})

test('the first secret signs, the others only open', () => {
  const both = signer([FIRST, OTHER])
  const token = both.seal('text')
  assert.equal(token, signer([FIRST]).seal('text'))
  assert.equal(read(signer([OTHER]), token), 'unknown_key')
  assert.equal(read(both, signer([OTHER]).seal('text')), 'text')
  assert.equal(signer([OTHER, FIRST]).seal('text'), signer([OTHER]).seal('text'))
  assert.equal(read(signer([OTHER, FIRST]), token), 'text')
})

test('short, missing and repeated secrets make no signer', () => {
  assert.equal(MIN_SECRET, 32)
  const short = FIRST.subarray(0, 31)
  for (const secrets of [
    [],
    [Buffer.of()],
    [short],
    [FIRST, short],
    [FIRST, FIRST],
    [FIRST, OTHER, FIRST],
  ]) {
    assert.throws(() => signer(secrets), RangeError)
  }
  assert.throws(() => signer([FIRST, new Uint8Array(FIRST)]), RangeError)
  const shortest = signer([FIRST.subarray(0, 32)])
  assert.equal(read(shortest, shortest.seal('text')), 'text')
})

test('a secret is copied: wiping or changing the caller’s bytes changes no seal', () => {
  const secret = Buffer.from(FIRST)
  const seal = signer([secret])
  const token = seal.seal('text')
  secret.fill(0)
  assert.equal(read(seal, token), 'text')
  assert.equal(seal.seal('text'), token)
  assert.equal(read(signer([FIRST]), token), 'text')
  assert.equal(read(signer([secret]), token), 'unknown_key')
})
