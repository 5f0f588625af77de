import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quote, visible, visibleDeep } from '../lib/display.ts'

test('what can be seen is shown as it is, in any script', () => {
  const texts = [
    '',
    ' ',
    'checkout',
    ' ~!"\\$`',
    'äöü é',
    'مرحبا',
    '世界',
    '😀',
    'नमस्ते',
    '\u00a0',
    'e\u0301',
  ]
  for (const text of texts) assert.equal(visible(text), text)
})

test('what can’t be seen is written out by its code point', () => {
  for (const [text, shown] of [
    ['a\0b', String.raw`a\u{0}b`],
    ['line\nline\r\ttab', String.raw`line\u{a}line\u{d}\u{9}tab`],
    ['\u001b[31mred\u009b0m', String.raw`\u{1b}[31mred\u{9b}0m`],
    ['\u202eevil\u2069', String.raw`\u{202e}evil\u{2069}`],
    ['a\u200b\u200c\u200d\u2060\ufeffb', String.raw`a\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}b`],
    ['a\u2028b\u2029c', String.raw`a\u{2028}b\u{2029}c`],
    ['a\u00ad\u034f\u115f\u3164\uffa0\ufe0fb', String.raw`a\u{ad}\u{34f}\u{115f}\u{3164}\u{ffa0}\u{fe0f}b`],
    ['tag \u{e0061}\u{e007f}', String.raw`tag \u{e0061}\u{e007f}`],
    ['\ud83d half \ude00', String.raw`\u{d83d} half \u{de00}`],
    ['\u{1d173}\u{1bca0}\u{e0100}', String.raw`\u{1d173}\u{1bca0}\u{e0100}`],
  ] as const) {
    assert.equal(visible(text), shown)
  }
})

test('no code point that is a control, a format, a line end or ignorable passes as it is', () => {
  const invisible = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]$/u
  let escaped = 0
  for (let point = 0; point <= 0x10ffff; point += 1) {
    const text = String.fromCodePoint(point)
    const shown = visible(text)
    if (invisible.test(text)) {
      assert.equal(shown, `\\u{${point.toString(16)}}`)
      escaped += 1
    } else if (shown !== text) assert.fail(`U+${point.toString(16)} is visible`)
  }
  assert.equal(escaped > 6000, true)
})

test('a text that was made visible stays as it is', () => {
  const once = visible('a\u202eb\nc')
  assert.equal(visible(once), once)
})

test('a quoted text is visible and no longer than a message needs', () => {
  assert.equal(quote('checkout'), 'checkout')
  assert.equal(quote('a\nb'), String.raw`a\u{a}b`)
  assert.equal(quote('x'.repeat(80)), 'x'.repeat(80))
  assert.equal(quote('x'.repeat(81)), `${'x'.repeat(80)}…`)
  assert.equal(quote('\0'.repeat(2 ** 20)).length < 1000, true)
})

test('a cut through a surrogate pair leaves no half of it', () => {
  const quoted = quote(`${'x'.repeat(79)}😀tail`)
  assert.match(quoted, /^x{79}.*…$/)
  assert.doesNotMatch(quoted, /\p{Cs}/u)
})

test('of a JSON value every string is made visible, names included, and nothing else changes', () => {
  const value = { 'na\u200bme': ['a\nb', { deep: '\u202e' }], n: 1.5, yes: true, none: null, empty: {} }
  assert.deepEqual(visibleDeep(value), {
    'na\\u{200b}me': ['a\\u{a}b', { deep: '\\u{202e}' }],
    n: 1.5,
    yes: true,
    none: null,
    empty: {},
  })
  for (const scalar of [null, true, 0, 'é']) assert.equal(visibleDeep(scalar), scalar)
  assert.equal(value['na\u200bme'][0], 'a\nb')
})

test('a member called __proto__ stays a member', () => {
  const shown: unknown = visibleDeep(JSON.parse('{"__proto__":{"a":"\\u0007"}}'))
  assert.equal(JSON.stringify(shown), '{"__proto__":{"a":"\\\\u{7}"}}')
  assert.equal(Object.getPrototypeOf(shown), Object.prototype)
})
