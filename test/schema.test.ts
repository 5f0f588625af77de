// biome-ignore-all lint/suspicious/noThenProperty: a keyword has this name, and nothing awaits a schema.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileSchema, type Infer, type Violation } from '../lib/schema.ts'

const NAME = 'Tool t: inputSchema'
const parse = (text: string): unknown => JSON.parse(text)
const check = (schema: unknown, value: unknown) => compileSchema(schema, NAME).check(value)
const project = (schema: unknown, value: unknown) => compileSchema(schema, NAME).project(value)

/** A schema, values that conform and, by what is told of them, values that don't. */
function verdicts(schema: unknown, good: readonly unknown[], bad: Record<string, unknown> = {}) {
  const validator = compileSchema(schema, NAME)
  for (const value of good) assert.equal(validator.check(value), undefined, JSON.stringify(value))
  for (const [message, value] of Object.entries(bad)) assert.equal(validator.check(value)?.message, message)
}

/** `wraps` levels of `{ [name]: ... }` around something. */
function nest(levels: number, name: string, inner: unknown): unknown {
  let value = inner
  for (let level = 0; level < levels; level += 1) value = { [name]: value }
  return value
}

// What a violation says.

test('a violation names the place as a person reads it, the keyword and the rule in one sentence', () => {
  const schema = {
    properties: { hosts: { items: { properties: { name: { type: 'string', minLength: 1 } } } } },
  }
  const expected: Violation = {
    path: 'hosts[2].name',
    rule: 'minLength',
    message: 'hosts[2].name must have at least 1 character',
  }
  assert.deepEqual(check(schema, { hosts: [{}, { name: 'a' }, { name: '' }] }), expected)
  assert.deepEqual(check({ type: 'object' }, []), {
    path: '',
    rule: 'type',
    message: 'the value must be an object',
  })
})

test('a message never holds the value', () => {
  const secret = 'hunter2'
  const schemas = [
    { type: 'integer' },
    { enum: ['a'] },
    { const: 1 },
    { minLength: 99 },
    { maxLength: 1 },
    { pattern: '^x' },
    { not: {} },
    { anyOf: [false] },
    { oneOf: [false] },
    false,
  ]
  for (const schema of schemas) {
    const violation = check({ properties: { password: schema } }, { password: secret })
    assert.equal(violation?.path, 'password')
    assert.ok(!JSON.stringify(violation).includes(secret), JSON.stringify(violation))
  }
})

test("a member's odd name is quoted and escaped, and a long one is cut, since it is the client's text", () => {
  const path = (name: string) => check({ additionalProperties: false }, { [name]: 1 })?.path
  assert.equal(path('größe_2'), 'größe_2')
  assert.equal(path('a.b c'), '["a.b c"]')
  assert.equal(path('\u001b[31m\u202e"'), '["\\u001b[31m\\u202e\\""]')
  assert.equal(path('\ud800'), '["\\ud800"]')
  assert.equal(path(''), '[""]')
  assert.equal(path('x'.repeat(1000)), `["${'x'.repeat(64)}..."]`)
  const inner = { additionalProperties: { additionalProperties: false } }
  assert.equal(check(inner, { a: { 'b c': 1 } })?.path, 'a["b c"]')
})

// Keywords, one by one.

test('type: 1.0 is an integer, an array is no object, and null is neither', () => {
  verdicts({ type: 'integer' }, [1, 1.0, -5], { 'the value must be an integer': 1.5 })
  verdicts({ type: 'object' }, [{}], { 'the value must be an object': null })
  verdicts({ type: 'number' }, [1.5], { 'the value must be a number': Number.POSITIVE_INFINITY })
  verdicts({ type: ['string', 'null'] }, ['', null], { 'the value must be a string or null': 0 })
  verdicts({ type: 'boolean' }, [false], { 'the value must be a boolean': 0 })
  verdicts({ type: 'array' }, [[]], { 'the value must be an array': {} })
})

test('enum and const compare by value: 1 is 1.0, members in any order, and only own ones', () => {
  const bad = { 'the value must be one of 1, {"a":1,"b":[0]}, "x"': '1' }
  verdicts({ enum: [1, { a: 1, b: [0] }, 'x'] }, [1.0, { b: [-0], a: 1 }, 'x'], bad)
  verdicts({ const: { a: 1 } }, [{ a: 1 }], { 'the value must be {"a":1}': { a: 1, b: 2 } })
  verdicts({ const: {} }, [{}], { 'the value must be {}': parse('{"__proto__":{}}') })
  verdicts({ const: null }, [null], { 'the value must be null': 0 })
  verdicts({ const: ['1', true] }, [['1', true]], { 'the value must be ["1",true]': [1, 'true'] })
  assert.equal(check({ enum: [{}] }, { toString: 'x' })?.rule, 'enum')
  const long = Array.from({ length: 100 }, (_, index) => `choice ${index}`)
  verdicts({ enum: long }, ['choice 7'], {
    'the value must be a value that its schema lists': 'choice',
  })
})

test('minLength and maxLength count characters, not UTF-16 units', () => {
  verdicts({ minLength: 2 }, ['ab', '💩💩', 5], {
    'the value must have at least 2 characters': '💩',
  })
  verdicts({ maxLength: 1 }, ['💩', '\ud800'], {
    'the value must have at most 1 character': '\udca9\ud83d',
  })
})

test('pattern is not anchored and reads Unicode', () => {
  verdicts({ pattern: 'b' }, ['abc', 1], { 'the value must match the pattern b': 'ac' })
  verdicts({ pattern: '^.$' }, ['💩'], { 'the value must match the pattern ^.$': 'ab' })
})

test('the four bounds of numbers hold at the bound', () => {
  verdicts({ minimum: 1 }, [1, '0'], { 'the value must be at least 1': 0.9 })
  verdicts({ maximum: 1 }, [1], { 'the value must be at most 1': 1.1 })
  verdicts({ exclusiveMinimum: 1 }, [1.1], { 'the value must be more than 1': 1 })
  verdicts({ exclusiveMaximum: 1 }, [0.9], { 'the value must be less than 1': 1 })
})

test('multipleOf is exact in decimal, where doubles are not', () => {
  verdicts({ multipleOf: 0.1 }, [0.3, 1.1, 0, -0.7, 1e300], {
    'the value must be a multiple of 0.1': 0.35,
  })
  verdicts({ multipleOf: 0.01 }, [4.02, 19.99], { 'the value must be a multiple of 0.01': 0.075 })
  verdicts({ multipleOf: 3 }, [9, -9], { 'the value must be a multiple of 3': 10 })
  verdicts({ multipleOf: 2 }, [1e308], { 'the value must be a multiple of 2': 0.5 })
  verdicts({ multipleOf: 0.123456789 }, [], {
    'the value must be a multiple of 0.123456789': 1e308,
  })
  verdicts({ multipleOf: 5e-324 }, [1e308])
})

test('items judges what prefixItems leaves over', () => {
  const schema = {
    prefixItems: [{ type: 'string' }, { type: 'null' }],
    items: { type: 'integer' },
    minItems: 1,
    maxItems: 4,
  }
  verdicts(schema, [['a'], ['a', null, 1], {}], {
    'the value must have at least 1 item': [],
    'the value must have at most 4 items': ['a', 0, 1, 2, 3],
    '[0] must be a string': [1],
    '[2] must be an integer': ['a', null, 'x'],
  })
})

test('uniqueItems compares by value, at any depth', () => {
  const told = 'the value must not have the same item twice'
  verdicts({ uniqueItems: true }, [[1, '1', true, 'true', null, 'null', [1], '[1]'], 'aa'], {
    [told]: [0, -0],
  })
  assert.equal(
    check({ uniqueItems: true }, [
      { a: [1], b: 2 },
      { b: 2, a: [1] },
    ])?.rule,
    'uniqueItems',
  )
  verdicts({ uniqueItems: false }, [[1, 1]])
})

test('uniqueItems of many items takes no time squared', () => {
  const items = Array.from({ length: 90_000 }, (_, index) => `item ${index}`)
  const started = performance.now()
  assert.equal(check({ uniqueItems: true }, items), undefined)
  assert.ok(performance.now() - started < 2000)
})

test('contains counts the items of a form, from minContains to maxContains', () => {
  const contains = { type: 'integer' }
  const told = (n: number) => `the value has ${n} items of the form that its schema counts`
  verdicts({ contains }, [[1], ['a', 1], 'x'], { [told(0)]: ['a'] })
  verdicts({ contains, minContains: 0 }, [[], ['a']])
  verdicts(
    { contains, minContains: 2, maxContains: 3 },
    [
      [1, 2],
      [1, 2, 'a', 3],
    ],
    { [told(1)]: [1, 'a'] },
  )
  assert.equal(check({ contains, maxContains: 1 }, [1, 2])?.rule, 'maxContains')
})

test('required and dependentRequired name the member that is missing', () => {
  verdicts({ required: ['a', 'toString'] }, [parse('{"a":0,"toString":1}'), 'x'], {
    'a is required': { toString: 1 },
    'toString is required': { a: 1 },
  })
  verdicts({ dependentRequired: { a: ['b'] } }, [{}, { b: 1 }, { a: 1, b: 1 }, []], {
    'b is required when a is present': { a: 1 },
  })
})

test('properties, patternProperties and additionalProperties share the members between them', () => {
  const schema = {
    properties: { a: { type: 'integer' } },
    patternProperties: { '^x': { type: 'string' } },
    additionalProperties: { type: 'boolean' },
  }
  verdicts(schema, [{ a: 1, x1: 's', other: true }, {}, []], {
    'a must be an integer': { a: 's' },
    'x1 must be a string': { x1: 1 },
    'other must be a boolean': { other: 1 },
  })
  verdicts({ properties: { a: true }, additionalProperties: false }, [{ a: 1 }], {
    'b is not allowed here': { b: 1 },
  })
  verdicts({ properties: { a: false } }, [{}], { 'a is not allowed': { a: 1 } })
})

test('the number and the names of members have rules of their own', () => {
  verdicts({ minProperties: 1 }, [{ a: 1 }, []], { 'the value must have at least 1 member': {} })
  verdicts({ maxProperties: 1 }, [{ a: 1 }], {
    'the value must have at most 1 member': { a: 1, b: 1 },
  })
  verdicts({ propertyNames: { pattern: '^a' } }, [{ a: 1 }, 5], {
    'b is not an allowed name: it must match the pattern ^a': { b: 1 },
  })
})

test('allOf, anyOf, oneOf and not combine what is said of one value', () => {
  verdicts({ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], {
    'the value must be at most 2': 3,
  })
  verdicts({ anyOf: [{ const: 1 }, { type: 'string' }] }, [1, 'a'], {
    'the value must be of one of the 2 forms in its schema': 2,
  })
  verdicts({ oneOf: [{ multipleOf: 2 }, { multipleOf: 3 }] }, [2, 3], {
    'the value must be of exactly one of the 2 forms in its schema': 6,
  })
  verdicts({ not: { type: 'string' } }, [1], { 'the value is of a form that is not allowed': 'a' })
})

test('if chooses between then and else, and both mean nothing without it', () => {
  const schema = { if: { required: ['a'] }, then: { required: ['b'] }, else: { required: ['c'] } }
  verdicts(schema, [{ a: 1, b: 1 }, { c: 1 }], { 'b is required': { a: 1 }, 'c is required': {} })
  verdicts({ then: false, else: false }, [1])
  verdicts({ if: false, then: false }, [1])
})

test('dependentSchemas judges the whole object when a member is there', () => {
  verdicts({ dependentSchemas: { a: { maxProperties: 1 } } }, [{ b: 1, c: 1 }, { a: 1 }, []], {
    'the value must have at most 1 member': { a: 1, b: 1 },
  })
})

test('annotations are accepted and assert nothing, format among them', () => {
  const annotated = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $comment: '',
    title: 't',
    description: 'd',
    default: 1,
    examples: [],
    deprecated: false,
    readOnly: true,
    writeOnly: true,
    format: 'email',
    contentEncoding: 'base64',
    contentMediaType: 'text/plain',
    contentSchema: { type: 'integer' },
    'x-mcp-header': 'Service',
  }
  verdicts(annotated, ['no address', 1, null])
})

// References.

test('a $ref goes to the root, to a pointer or to an anchor, and its siblings count too', () => {
  const $defs = { 'a/b~ %': { type: 'integer' }, named: { $anchor: 'here', type: 'string' } }
  verdicts({ $defs, $ref: '#/$defs/a~1b~0%20%25', minimum: 1 }, [1], {
    'the value must be an integer': 'x',
    'the value must be at least 1': 0,
  })
  verdicts({ $defs, properties: { a: { $ref: '#here' } } }, [{ a: '' }], {
    'a must be a string': { a: 1 },
  })
  const tree = {
    properties: { value: { type: 'integer' }, next: { $ref: '#' } },
    required: ['value'],
  }
  verdicts(tree, [{ value: 1, next: { value: 2 } }], {
    'next.value is required': { value: 1, next: {} },
  })
})

test('a $ref to no schema, to another document or back to itself stops the server', () => {
  const refused: [unknown, RegExp][] = [
    [{ $ref: '#/$defs/x' }, /^Error: Tool t: inputSchema: \/\$ref leads to no schema: correct it/],
    [{ $ref: '#/enum/0', enum: [{}] }, /leads to no schema/],
    [{ $ref: '#toString' }, /leads to no schema/],
    [{ $ref: '#/%zz' }, /leads to no schema/],
    [{ $ref: 'https://example.com/schema' }, /\/\$ref must start with "#"/],
    [{ $ref: 1 }, /\/\$ref must start with "#"/],
    [{ $ref: '#' }, /the schema leads back to itself/],
    [
      {
        $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } },
        type: 'string',
      },
      /\/\$defs\/a leads back to itself/,
    ],
  ]
  for (const [schema, message] of refused) assert.throws(() => compileSchema(schema, NAME), message)
})

// What does not compile.

test('a keyword that is not implemented stops the server: nothing is silently skipped', () => {
  const message = (schema: unknown) => {
    try {
      compileSchema(schema, NAME)
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
    return undefined
  }
  for (const keyword of [
    'minLenght',
    'definitions',
    'dependencies',
    'x-other',
    'constructor',
    '__proto__',
  ]) {
    const schema = parse(`{"properties":{"a":{"${keyword}":1}}}`)
    const told = `Tool t: inputSchema: /properties/a/${keyword} is no keyword: correct or remove it.`
    assert.equal(message(schema), told)
  }
  for (const keyword of words(
    '$id $vocabulary $dynamicRef $dynamicAnchor unevaluatedProperties unevaluatedItems',
  )) {
    const told = `Tool t: inputSchema: /items/${keyword} is not implemented: do without it.`
    assert.equal(message({ items: { [keyword]: {} } }), told)
  }
})

function words(text: string): string[] {
  return text.split(' ')
}

test('a keyword whose own value has the wrong shape stops the server', () => {
  const wrong: Record<string, readonly unknown[]> = {
    type: ['text', [], ['string', 'string'], ['string', 'x'], 1],
    enum: [{}, 'a', [nest(70, 'a', 1)]],
    const: [nest(70, 'a', 1)],
    ...shared(
      words('minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'),
      [-1, 1.5, '1'],
    ),
    ...shared(words('minimum maximum exclusiveMinimum exclusiveMaximum'), ['1', null, Number.NaN]),
    ...shared(words('allOf anyOf oneOf prefixItems'), [[], {}, true, [1]]),
    ...shared(words('items contains additionalProperties propertyNames not if then else contentSchema'), [
      1,
      [],
      null,
    ]),
    ...shared(words('properties patternProperties dependentSchemas $defs'), [[], { a: 1 }, true]),
    ...shared(words('title description $comment format contentEncoding contentMediaType x-mcp-header'), [
      1,
      null,
    ]),
    ...shared(words('deprecated readOnly writeOnly uniqueItems'), ['true', 0]),
    multipleOf: [0, -1, '1'],
    pattern: ['(', 1, '\\-'],
    patternProperties: [{ '(': true }],
    required: ['x', [1], ['a', 'a']],
    dependentRequired: [[], { a: 'b' }, { a: [1] }],
    examples: [{}],
    $anchor: ['', '1a', 'a b', 1],
    $schema: ['http://json-schema.org/draft-07/schema#', 1],
  }
  for (const [keyword, values] of Object.entries(wrong)) {
    for (const value of values) {
      const place = new RegExp(`^Error: ${NAME}: /${keyword.replace('$', '\\$')}`)
      assert.throws(
        () => compileSchema({ [keyword]: value }, NAME),
        place,
        `${keyword}: ${JSON.stringify(value)}`,
      )
    }
  }
})

function shared(keywords: readonly string[], values: readonly unknown[]) {
  return Object.fromEntries(keywords.map((keyword) => [keyword, values]))
}

test('$schema stands at the root only, and an anchor names one schema only', () => {
  const $schema = 'https://json-schema.org/draft/2020-12/schema'
  assert.throws(
    () => compileSchema({ items: { $schema } }, NAME),
    /\/items\/\$schema must be .* only at the root/,
  )
  const twice = { $anchor: 'a', items: { $anchor: 'a' } }
  assert.throws(() => compileSchema(twice, NAME), /\/items\/\$anchor is taken by another schema/)
})

test('what is no schema at all does not compile', () => {
  for (const schema of [undefined, null, 1, 'x', []]) {
    assert.throws(
      () => compileSchema(schema, NAME),
      /^Error: Tool t: inputSchema: the schema must be a schema/,
    )
  }
})

// Limits.

test('a schema that is too deep, too large or contains itself is refused without a stack overflow', () => {
  let deep: unknown = {}
  for (let level = 0; level < 10_000; level += 1) deep = { items: deep }
  assert.throws(() => compileSchema(deep, NAME), /is nested too deep: keep to 64 levels/)
  const many = { anyOf: Array.from({ length: 10_000 }, () => ({})) }
  assert.throws(() => compileSchema(many, NAME), /\/anyOf\/9999 is over the limit of 10000/)
  const circle: Record<string, unknown> = {}
  circle.anyOf = [circle, circle]
  assert.throws(() => compileSchema(circle, NAME), /is nested too deep/)
})

test('a value nested deeper than 64 levels is a violation, whether or not a schema looks at it', () => {
  const tree = { type: 'object', properties: { a: { $ref: '#' } } }
  assert.equal(check(tree, nest(63, 'a', {})), undefined)
  const expected = { path: '', rule: 'limit', message: 'the value is nested deeper than 64 levels' }
  for (const schema of [tree, true, { not: tree }, { properties: { b: {} } }]) {
    assert.deepEqual(check(schema, nest(64, 'a', {})), expected)
    assert.deepEqual(check(schema, nest(100_000, 'a', {})), expected)
  }
})

test('a check gives up after a number of steps, and `not` does not turn that into a yes', () => {
  // Each definition looks twice at what the next one looks twice at: 2^levels ways to the last.
  const doubling = (levels: number) => {
    const $defs: Record<string, unknown> = { [`d${levels}`]: { type: 'string' } }
    for (let level = 0; level < levels; level += 1) {
      const next = { $ref: `#/$defs/d${level + 1}` }
      $defs[`d${level}`] = { allOf: [next, next] }
    }
    return { $defs, not: { $ref: '#/$defs/d0' } }
  }
  assert.equal(check(doubling(10), 'x')?.rule, 'not')
  assert.equal(check(doubling(25), 'x')?.rule, 'limit')
  assert.throws(() => compileSchema(doubling(40), NAME), /through 64 schemas/)
  const large = Array.from({ length: 200_000 }, () => 1)
  assert.equal(check({ items: { type: 'integer' } }, large)?.rule, 'limit')
  assert.equal(check({ uniqueItems: true }, large)?.rule, 'limit')
  const members = Object.fromEntries(large.entries())
  assert.equal(check({ patternProperties: { '^x': true } }, members)?.rule, 'limit')
})

test('schemas that stand in one another beyond what the stack can hold are a violation', () => {
  let chain: unknown = { properties: { a: { $ref: '#' } } }
  for (let level = 0; level < 30; level += 1) chain = { allOf: [chain] }
  assert.equal(check(chain, nest(5, 'a', {})), undefined)
  assert.equal(check(chain, nest(60, 'a', {}))?.rule, 'limit')
})

test('schemas that follow one another do not count as standing in one another', () => {
  const many = Array.from({ length: 1000 }, () => false)
  assert.equal(check({ anyOf: [...many, true] }, 1), undefined)
  assert.equal(check({ allOf: many.map(() => true) }, 1), undefined)
})

test('an error that is not about limits is not taken for a violation', () => {
  const value = Object.defineProperty({}, 'a', {
    enumerable: true,
    get: () => assert.fail('thrown by a getter'),
  })
  assert.throws(() => check({ properties: { a: true } }, value), /thrown by a getter/)
})

// Members with the names of things that every JavaScript object has.

test('__proto__, constructor and toString are members like any other, in values and in schemas', () => {
  const schema = parse(`{
    "properties": { "__proto__": { "type": "integer" }, "constructor": { "type": "integer" } },
    "additionalProperties": false
  }`)
  verdicts(schema, [{}, parse('{"__proto__":1,"constructor":2}')], {
    '__proto__ must be an integer': parse('{"__proto__":{}}'),
    'constructor must be an integer': parse('{"constructor":"x"}'),
    'toString is not allowed here': parse('{"toString":1}'),
  })
  verdicts({ required: ['constructor'] }, [parse('{"constructor":0}')], {
    'constructor is required': {},
  })
  verdicts({ dependentRequired: { toString: ['a'] } }, [{}])
  verdicts({ dependentSchemas: { valueOf: false } }, [{}])
})

// project

test('project drops what an object schema with properties does not declare, at every level', () => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: 'object', properties: { b: true } },
      list: {
        type: 'array',
        prefixItems: [{ properties: { p: {} } }],
        items: { properties: { q: {} } },
      },
    },
    required: ['z'],
  }
  const value = {
    a: { b: { free: 1 }, c: 2 },
    list: [
      { p: 1, q: 2 },
      { p: 1, q: 2 },
    ],
    z: { needed: 1 },
    extra: 1,
  }
  const expected = { a: { b: { free: 1 } }, list: [{ p: 1 }, { q: 2 }], z: { needed: 1 } }
  assert.deepEqual(project(schema, value), expected)
})

test('project keeps members that a pattern or additionalProperties declares', () => {
  const inner = { properties: { p: true } }
  const both = { p: 1, q: 2 }
  const schema = (more: object) => ({ properties: { a: inner, ab: inner }, ...more })
  const value = { a: both, ab: both, b: both }
  assert.deepEqual(project(schema({}), value), { a: { p: 1 }, ab: { p: 1 } })
  assert.deepEqual(project(schema({ additionalProperties: true }), value), {
    a: { p: 1 },
    ab: { p: 1 },
    b: both,
  })
  assert.deepEqual(project(schema({ additionalProperties: inner }), value), {
    a: { p: 1 },
    ab: { p: 1 },
    b: { p: 1 },
  })
  // Both the property and the pattern speak of `ab`: neither alone says what is declared in it.
  assert.deepEqual(project(schema({ patternProperties: { b$: inner } }), value), {
    a: { p: 1 },
    ab: both,
    b: { p: 1 },
  })
  assert.deepEqual(project({ patternProperties: { '^a': inner } }, value), {
    a: { p: 1 },
    ab: { p: 1 },
    b: both,
  })
})

test('project keeps everything where no schema says what is declared', () => {
  const value = { a: 1, b: { c: [2, { d: 3 }] } }
  for (const schema of [true, {}, { type: 'object' }, { items: { properties: {} } }]) {
    assert.deepEqual(project(schema, value), value)
  }
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    assert.deepEqual(project({ properties: { a: true }, [keyword]: [{ required: ['b'] }] }, value), value)
  }
  for (const more of [{ $ref: '#/$defs/x', $defs: { x: true } }, { if: true }, { dependentSchemas: {} }]) {
    assert.deepEqual(project({ properties: { a: true }, ...more }, value), value)
  }
})

test('project follows a $ref that stands alone', () => {
  const tree = { properties: { next: { $ref: '#' }, value: true } }
  const value = { value: 1, other: 1, next: { value: 2, other: 2 } }
  assert.deepEqual(project(tree, value), { value: 1, next: { value: 2 } })
})

test('project copies: no object of the value is shared with the copy', () => {
  const value = { a: [{ b: 1 }] }
  const copy = project({ properties: { a: { type: 'array' } } }, value)
  value.a.push({ b: 2 })
  assert.deepEqual(copy, { a: [{ b: 1 }] })
})

test('project keeps __proto__ as data and never makes it a prototype', () => {
  const value = parse('{"__proto__":{"admin":true},"b":{"__proto__":{"admin":true}}}')
  for (const schema of [parse('{"properties":{"__proto__":{},"b":{}}}'), true]) {
    const copy = project(schema, value)
    assert.equal(JSON.stringify(copy), JSON.stringify(value))
    assert.equal(Object.getPrototypeOf(copy), Object.prototype)
  }
  assert.equal(
    JSON.stringify(project({ properties: { b: {} } }, value)),
    '{"b":{"__proto__":{"admin":true}}}',
  )
})

test('project writes -0 as 0', () => {
  assert.ok(Object.is(project({ type: 'number' }, -0), 0))
  assert.ok(Object.is(project({ items: { type: 'number' } }, -0), 0))
  assert.deepEqual(project({ properties: { a: true } }, { a: [-0] }), { a: [0] })
})

// Infer: these lines fail in tsc, not when they run.

test('Infer gives the type of a value that passed', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      count: { type: 'integer' },
      ratio: { type: 'number' },
      on: { type: 'boolean' },
      nothing: { type: 'null' },
      either: { type: ['string', 'null'] },
      stage: { enum: ['canary', 'stable'] },
      one: { const: 1 },
      tags: { type: 'array', items: { type: 'string' } },
      pair: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
      inner: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      free: { type: 'object' },
      any: {},
    },
    required: ['name', 'inner'],
  } as const
  type Expected = {
    name: string
    inner: { a: string }
    count?: number
    ratio?: number
    on?: boolean
    nothing?: null
    either?: string | null
    stage?: 'canary' | 'stable'
    one?: 1
    tags?: string[]
    pair?: unknown[]
    free?: { [name: string]: unknown }
    any?: unknown
  }
  const same: Same<Infer<typeof schema>, Expected> = true
  const unknown: Same<Infer<{ readonly anyOf: readonly [] }>, unknown> = true
  const vague: Same<Infer<{ readonly type: string }>, unknown> = true
  assert.ok(same && unknown && vague)
})

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
