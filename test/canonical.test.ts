import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ambiguity, canonicalJson } from '../lib/canonical.ts'

const parse = (text: string): unknown => JSON.parse(text)
const double = (hex: string) => Buffer.from(hex, 'hex').readDoubleBE()

/** Arrays in one another: `nested(2)` is `[[]]`. */
function nested(levels: number): unknown {
  let value: unknown = []
  for (let level = 1; level < levels; level += 1) value = [value]
  return value
}

// RFC 8785's own examples.

test('the sample of RFC 8785, 3.2.2 and 3.2.3, has the canonical text printed there', () => {
  const sample = String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`
  const expected = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
  assert.equal(canonicalJson(parse(sample)), expected)
})

test('members are sorted by UTF-16 code units: an emoji before U+FB33 (RFC 8785, 3.2.3)', () => {
  const sample = parse(String.raw`{
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis"
  }`)
  const expected = [
    String.raw`"\r":"Carriage Return"`,
    '"1":"One"',
    '"\u0080":"Control"',
    '"ö":"Latin Small Letter O With Diaeresis"',
    '"€":"Euro Sign"',
    '"😀":"Emoji: Grinning Face"',
    '"\ufb33":"Hebrew Letter Dalet With Dagesh"',
  ]
  assert.equal(canonicalJson(sample), `{${expected.join()}}`)
})

/** RFC 8785, Appendix B: the bits of a double and its text. */
const NUMBERS: Record<string, string> = {
  '0000000000000000': '0',
  '8000000000000000': '0',
  '0000000000000001': '5e-324',
  '8000000000000001': '-5e-324',
  '7fefffffffffffff': '1.7976931348623157e+308',
  ffefffffffffffff: '-1.7976931348623157e+308',
  '4340000000000000': '9007199254740992',
  c340000000000000: '-9007199254740992',
  '4430000000000000': '295147905179352830000',
  '44b52d02c7e14af5': '9.999999999999997e+22',
  '44b52d02c7e14af6': '1e+23',
  '44b52d02c7e14af7': '1.0000000000000001e+23',
  '444b1ae4d6e2ef4e': '999999999999999700000',
  '444b1ae4d6e2ef4f': '999999999999999900000',
  '444b1ae4d6e2ef50': '1e+21',
  '3eb0c6f7a0b5ed8c': '9.999999999999997e-7',
  '3eb0c6f7a0b5ed8d': '0.000001',
  '41b3de4355555553': '333333333.3333332',
  '41b3de4355555554': '333333333.33333325',
  '41b3de4355555555': '333333333.3333333',
  '41b3de4355555556': '333333333.3333334',
  '41b3de4355555557': '333333333.33333343',
  becbf647612f3696: '-0.0000033333333333333333',
  '43143ff3c1cb0959': '1424953923781206.2',
}

test('numbers have the text that RFC 8785, Appendix B, gives them', () => {
  for (const [hex, text] of Object.entries(NUMBERS)) assert.equal(canonicalJson(double(hex)), text, hex)
})

test('NaN and the infinities have no text (RFC 8785, Appendix B)', () => {
  for (const hex of ['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000']) {
    assert.throws(() => canonicalJson([double(hex)]), TypeError, hex)
  }
})

// What RFC 8785 leaves to the implementation.

test('strings are escaped as JSON.stringify does, and only where they must be', () => {
  const texts = [
    '',
    'plain ~ text',
    '"',
    '\\',
    '/',
    '\u0000\u001f',
    '\u007f\u0080',
    '\u2028',
    'é€😀',
    'a\nb',
  ]
  for (const text of texts) assert.equal(canonicalJson(text), JSON.stringify(text))
})

test('the order of members never shows, at any depth', () => {
  const one = parse('{"b":[{"d":1,"c":2}],"a":{"z":{},"y":[]}}')
  const other = parse('{"a":{"y":[],"z":{}},"b":[{"c":2,"d":1}]}')
  assert.equal(canonicalJson(one), '{"a":{"y":[],"z":{}},"b":[{"c":2,"d":1}]}')
  assert.equal(canonicalJson(one), canonicalJson(other))
  assert.equal(canonicalJson(parse('{"10":1,"9":2}')), '{"10":1,"9":2}')
})

test('__proto__ is a member like any other', () => {
  assert.equal(canonicalJson(parse('{"__proto__":{"a":1},"A":0}')), '{"A":0,"__proto__":{"a":1}}')
  const bare: unknown = Object.assign(Object.create(null), { a: 1 })
  assert.equal(canonicalJson(bare), '{"a":1}')
})

test('half a surrogate pair has no text, in a string or in a name', () => {
  for (const value of ['\ud800', ['\udc00a'], { '\udbff': 1 }, '😀\ud83d', '\ude00\ud83d']) {
    assert.throws(() => canonicalJson(value), { name: 'TypeError', message: /surrogate/ })
  }
})

test('what JSON can not carry has no text, instead of another one or none', () => {
  const holes: unknown[] = []
  holes.length = 1
  const values = [undefined, { a: undefined }, holes, () => 1, Symbol('s'), 1n, new Date(0), new Map()]
  for (const value of values) assert.throws(() => canonicalJson(value), TypeError)
})

test('nesting ends at 64 levels, so that a cycle is an error and not a stack overflow', () => {
  assert.equal(canonicalJson(nested(64)), '['.repeat(64) + ']'.repeat(64))
  const cycle: Record<string, unknown> = {}
  cycle.a = [cycle]
  for (const value of [nested(65), nested(100_000), cycle]) {
    assert.throws(() => canonicalJson(value), {
      name: 'TypeError',
      message: /deeper than 64 levels/,
    })
  }
})

// ambiguity

test('a value that every reader sees the same is not ambiguous', () => {
  const text = '{"a":[9007199254740991,-9007199254740991,0.1,-0,1.5e-7,"😀é",null,true,{}],"__proto__":""}'
  assert.equal(ambiguity(parse(text)), undefined)
  assert.equal(ambiguity(nested(64)), undefined)
})

test('a number beyond what a double holds exactly is ambiguous, wherever it stands', () => {
  const message = (path: string) =>
    `${path} is a number that not every JSON parser reads the same; stay within ±9007199254740991`
  assert.deepEqual(ambiguity(parse('{"a":1,"replicas":9007199254740993}')), {
    path: 'replicas',
    rule: 'number',
    message: message('replicas'),
  })
  for (const number of ['9007199254740992', '-9007199254740992', '1e300', '1e400', '-1e400']) {
    assert.equal(ambiguity(parse(`{"a":[0,{"b":${number}}]}`))?.message, message('a[1].b'), number)
  }
  assert.equal(ambiguity(Number.NaN)?.message, message('the value'))
})

test('half a surrogate pair is ambiguous in a string and in a name', () => {
  const half = 'holds half a surrogate pair, which not every JSON parser reads the same'
  assert.deepEqual(ambiguity(['a', '\ud800']), {
    path: '[1]',
    rule: 'string',
    message: `[1] ${half}`,
  })
  const violation = ambiguity({ a: { '\udc00': 1 } })
  assert.deepEqual([violation?.path, violation?.rule], [String.raw`a["\udc00"]`, 'string'])
  assert.equal(violation?.message, String.raw`a["\udc00"] has a name that ${half}`)
})

test('nesting beyond 64 levels is ambiguous, and looking for it overflows no stack', () => {
  assert.equal(ambiguity(nested(65))?.rule, 'depth')
  assert.equal(ambiguity({ a: nested(100_000) })?.rule, 'depth')
  assert.match(ambiguity({ a: nested(64) })?.message ?? '', /^a\[0\].* is nested deeper than 64 levels$/)
})

test('the first ambiguous place is the one that is told', () => {
  assert.equal(ambiguity({ a: Infinity, b: '\ud800' })?.path, 'a')
  assert.equal(ambiguity([{ ok: 1 }, Infinity, -Infinity])?.path, '[1]')
})
