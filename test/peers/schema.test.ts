/**
 * Agreement with ajv, the validator that most of npm uses: schemas for every keyword, alone and in
 * pairs, against values made to fall on both sides of each. Deterministic; needs
 * `npm install --prefix test/peers`.
 */
// biome-ignore-all lint/suspicious/noThenProperty: a keyword has this name, and nothing awaits a schema.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { compileSchema, type JsonSchema } from '../../lib/schema.ts'
import { KEYWORDS } from '../../lib/schema-keywords.ts'

const string = { type: 'string' }
const integer = { type: 'integer' }
const parse = (text: string): unknown => JSON.parse(text)

const SCHEMAS: readonly JsonSchema[] = [
  ...['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'].map((type) => ({
    type,
  })),
  { type: ['string', 'null'] },
  { type: ['integer', 'array', 'object'] },
  { enum: [1, 'a', null, [1, 2], { a: 1, b: [true] }] },
  { enum: [{ b: [true], a: 1 }, '', 0] },
  { const: 1 },
  { const: { a: 1, b: [true] } },
  { const: [] },
  { minLength: 1 },
  { minLength: 2 },
  { maxLength: 1 },
  { maxLength: 0 },
  { pattern: '^a' },
  { pattern: '\\p{L}+$' },
  { pattern: '^.$' },
  { minimum: 1 },
  { maximum: 1 },
  { exclusiveMinimum: 1 },
  { exclusiveMaximum: 1.5 },
  { multipleOf: 2 },
  { multipleOf: 0.5 },
  { multipleOf: 0.0001 },
  { minItems: 1 },
  { maxItems: 1 },
  { uniqueItems: true },
  { uniqueItems: false },
  { items: integer },
  { items: { type: ['string', 'integer'] } },
  { items: false },
  { prefixItems: [integer, string] },
  { prefixItems: [integer, string], items: false },
  { prefixItems: [true], items: { const: 2 } },
  { contains: integer },
  { contains: integer, minContains: 2 },
  { contains: integer, minContains: 0 },
  { contains: { const: 1 }, maxContains: 1 },
  { contains: integer, minContains: 1, maxContains: 2 },
  { properties: { a: integer, b: { type: 'array' } } },
  { properties: { a: false } },
  { properties: { constructor: integer, hasOwnProperty: string } },
  { patternProperties: { '^a': integer, b$: { type: 'array' } } },
  { additionalProperties: false },
  { additionalProperties: integer },
  { properties: { a: true }, additionalProperties: false },
  { properties: { a: true }, patternProperties: { '^b': true }, additionalProperties: string },
  { propertyNames: { maxLength: 1 } },
  { propertyNames: { enum: ['a', 'b'] } },
  { required: ['a'] },
  { required: ['a', 'b'] },
  { required: ['toString'] },
  { minProperties: 1 },
  { maxProperties: 1 },
  { dependentRequired: { a: ['b'], c: [] } },
  { dependentSchemas: { a: { required: ['b'] }, b: { maxProperties: 1 } } },
  { allOf: [integer, { minimum: 1 }] },
  { anyOf: [string, { minimum: 1, type: 'number' }] },
  { oneOf: [integer, { type: 'number', minimum: 1 }] },
  { not: integer },
  { not: { required: ['a'] } },
  { if: string, then: { minLength: 2 }, else: { type: 'integer' } },
  { if: { required: ['a'] }, then: { required: ['b'] } },
  { if: integer, else: { type: 'string' } },
  { then: false, else: false },
  { $ref: '#/$defs/positive', $defs: { positive: { type: 'number', minimum: 1 } } },
  { $ref: '#/$defs/a~1b%25', $defs: { 'a/b%': integer } },
  { $ref: '#whole', minimum: 1, $defs: { x: { $anchor: 'whole', type: 'integer' } } },
  { type: ['array', 'integer'], items: { $ref: '#' } },
  { properties: { a: { $ref: '#' }, b: { type: 'array' } }, additionalProperties: false },
  {
    $defs: { list: { type: ['array', 'string'], items: { $ref: '#/$defs/list' } } },
    $ref: '#/$defs/list',
  },
  // Annotations: nothing of these is asserted.
  { title: 't', description: 'd', $comment: 'c', default: 1, examples: [2], deprecated: true },
  { readOnly: true, writeOnly: false, format: 'email' },
  { contentEncoding: 'base64', contentMediaType: 'application/json', contentSchema: integer },
]

/** JSON texts, white space between them. */
const VALUES: readonly unknown[] = String.raw`
  null true false 0 -0 1 -1 1.0 1.5 2 0.5 4.5 0.0075 1e15 9007199254740992 -1e-7
  "" "a" "ab" "b" "1" "💩" "💩💩" "\ud800" "é" "a\nb" "null" "[]"
  [] [1] [2] [1,1] [1,1.0,true] [1,2] [1,"a"] ["a",1] ["a","b"] [1,"a",null] [1,true] [[]] [[1],[1]]
  [[[1]],["a"]] [{"a":1,"b":2},{"b":2,"a":1}] [{},[]] [0,false] ["1",1] [null,"null"] [[1],"[1]"]
  {} {"a":1} {"a":"x"} {"b":[]} {"a":1,"b":[true]} {"b":[true],"a":1} {"a":1,"c":1} {"c":1} {"ab":1}
  {"ab":"x"} {"bb":[]} {"a":{"a":1}} {"a":{"b":[]}} {"a":{},"b":[]} {"":0}
  {"__proto__":1} {"__proto__":"x"} {"constructor":1} {"constructor":"x","a":1}
`
  .trim()
  .split(/\s+/)
  .map(parse)

/*
 * Left out, because ajv is the one that is wrong: 0.3 as a multiple of 0.1, 1e308 as one of 2,
 * `properties` with a `__proto__`, which it skips, and a value with a member `toString`, on which its
 * comparison for `enum` throws. test/schema.test.ts has them.
 */

/** Each schema alone; each pair of neighbours, at a distance, under one `allOf`, `anyOf` and `not`. */
function* variants(): Generator<JsonSchema> {
  yield* SCHEMAS
  const joinable = SCHEMAS.filter((schema) => !/\$(ref|anchor)/.test(JSON.stringify(schema)))
  for (const [index, one] of joinable.entries()) {
    for (const distance of [1, 7, 19]) {
      const other = joinable[(index + distance) % joinable.length]
      yield { allOf: [one, other] }
      yield { anyOf: [one, { not: other }] }
      yield { properties: { a: one }, additionalProperties: other, items: one, contains: other }
    }
  }
}

test('ajv gives the same verdict on every pair of schema and value', (t) => {
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    ownProperties: true,
    logger: false,
  })
  let pairs = 0
  let valid = 0
  for (const schema of variants()) {
    const theirs = ajv.compile(schema)
    const ours = compileSchema(schema, 'peer')
    for (const value of VALUES) {
      const expected = theirs(value)
      const violation = ours.check(value)
      const told = `${JSON.stringify(schema)} on ${JSON.stringify(value)}: ${violation?.message}`
      assert.equal(violation === undefined, expected, told)
      pairs += 1
      if (expected) valid += 1
    }
  }
  t.diagnostic(`${pairs} pairs agree: ${valid} valid, ${pairs - valid} not`)
  assert.ok(valid > pairs / 10 && valid < (pairs * 9) / 10, 'both verdicts are common')
})

test('no keyword is left out of the comparison', () => {
  const used = new Set(SCHEMAS.flatMap((schema) => Object.keys(schema)))
  const missing = [...KEYWORDS.keys()].filter((keyword) => !used.has(keyword) && keyword !== 'x-mcp-header')
  assert.deepEqual(missing, [])
})
