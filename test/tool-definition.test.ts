// biome-ignore-all lint/suspicious/noThenProperty: a keyword has this name, and nothing awaits a schema.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { at, type Json, message, type Reply, send } from '../client.ts'
import { compileSchema } from '../lib/schema.ts'
import { plainTool, type Tool } from '../lib/tool.ts'
import {
  answer,
  assertRefused,
  CANCELLED,
  plus,
  REFUSED,
  ROLLBACK,
  resultOf,
  serve,
  textOf,
} from './serve.ts'

const MANIFEST = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const SERVER_INFO = { name: 'release-ops', version: MANIFEST.version }
const _meta = { 'io.modelcontextprotocol/serverInfo': SERVER_INFO }

/** A tool that is fine but for the members given, which may be what TypeScript would not take. */
function tool(members: { readonly [member: string]: unknown }): Tool {
  const fine = { name: 'spoiled', description: 'A tool.', inputSchema: { type: 'object' } }
  return plainTool({ ...fine, ...members }, () => ({ content: [] }))
}
const withProperties = (properties: Json, more: Json = {}) =>
  tool({ inputSchema: { type: 'object', properties, ...more } })
const mirrored = (annotation: unknown, type: unknown = 'string') => ({
  type,
  'x-mcp-header': annotation,
})

/** The server does not start with the tools; its sentence names the tool and says each of these. */
async function stops(t: TestContext, tools: Tool | Tool[], ...says: RegExp[]): Promise<void> {
  const all = [tools].flat()
  const label = JSON.stringify(all)
  await assert.rejects(
    serve(t, { tools: all }),
    (error: unknown) => {
      assert.ok(error instanceof Error)
      assert.match(error.message, /^[A-Z][^\n]+\.$/, label)
      const { name } = all.at(-1) ?? {}
      assert.ok(error.message.includes(JSON.stringify(name).slice(1, -1)), error.message)
      for (const part of says) assert.match(error.message, part, label)
      return true
    },
    label,
  )
}

/** The server starts, and lists the tools as they are defined. */
async function starts(t: TestContext, ...tools: Tool[]): Promise<void> {
  const { url } = await serve(t, { tools })
  const listed = (await list(url)).slice(-tools.length)
  assert.deepEqual(
    listed.map(({ name, inputSchema }) => ({ name, inputSchema })),
    tools.map(({ name, inputSchema }) => ({ name, inputSchema })),
  )
}

async function list(url: URL): Promise<Json[]> {
  return at((await send(url, message('tools/list'))).body, 'result', 'tools') as Json[]
}

test("a tool's name is 1 to 64 letters, digits, dots, dashes and underscores", async (t) => {
  for (const name of ['', ' ', 'two words', 'a,b', 'a/b', 'a:b', 'naïve', 'a\nb', 'a\u202eb']) {
    await stops(t, tool({ name }), /\bname\b/)
  }
  await stops(t, tool({ name: 'x'.repeat(65) }), /\b64\b/)
  await stops(t, tool({ name: 'x'.repeat(129) }), /\b64\b/)
  await starts(t, tool({ name: 'x'.repeat(64) }), tool({ name: 'aZ.0_-' }), tool({ name: '-' }))
  await starts(t, tool({ name: '__proto__' }), tool({ name: 'constructor' }))
})

test('no two tools have one name; names have case', async (t) => {
  await stops(t, [tool({}), tool({})], /two tools/i)
  await stops(t, tool({ name: 'rollback_release' }), /two tools/i)
  await starts(t, tool({}), tool({ name: 'Spoiled' }), tool({ name: 'Rollback_Release' }))
})

test('a tool has a description', async (t) => {
  await stops(t, tool({ description: '' }), /description/)
})

test('an inputSchema is an object of type object', async (t) => {
  for (const inputSchema of [
    null,
    [],
    true,
    'object',
    {},
    { type: 'string' },
    { type: ['object'] },
    { type: ['object', 'null'] },
    { properties: {} },
    { type: 'Object' },
  ]) {
    await stops(t, tool({ inputSchema }), /inputSchema/, /object/)
  }
})

test('an x-mcp-header is a token as RFC 9110 has it', async (t) => {
  for (const annotation of [
    '',
    ' ',
    'My Region',
    'a:b',
    'Région',
    'a\tb',
    'a\r\nX: y',
    'Region\n',
    '(a)',
    'a,b',
    'a/b',
    'a=b',
    '"a"',
    '{a}',
    'a@b',
    5,
    true,
    null,
    ['Region'],
    {},
  ]) {
    await stops(t, withProperties({ region: mirrored(annotation) }), /x-mcp-header/, /region/)
  }
  await starts(t, withProperties({ region: mirrored("!#$%&'*+-.^_`|~0aZ") }))
})

test('an x-mcp-header is unique within its tool, whatever the case and the depth', async (t) => {
  const opts = (annotation: string) => ({
    type: 'object',
    properties: { zone: mirrored(annotation) },
  })
  for (const other of ['Region', 'REGION', 'region']) {
    await stops(t, withProperties({ a: mirrored('Region'), b: mirrored(other) }), /x-mcp-header of b\b/)
    await stops(
      t,
      withProperties({ a: mirrored('Region'), opts: opts(other) }),
      /x-mcp-header of opts\.zone\b/,
    )
  }
  await starts(
    t,
    withProperties({ a: mirrored('Region'), opts: opts('Zone') }),
    tool({ name: 'other', inputSchema: { type: 'object', properties: { b: mirrored('REGION') } } }),
  )
})

test('only a string, an integer or a boolean is mirrored', async (t) => {
  for (const type of ['number', 'object', 'array', 'null', ['string'], ['string', 'null'], undefined]) {
    const region = type === undefined ? { 'x-mcp-header': 'Region' } : mirrored('Region', type)
    await stops(t, withProperties({ region }), /x-mcp-header of region\b/, /integer/)
  }
  await stops(t, withProperties({ region: { enum: ['us'], 'x-mcp-header': 'Region' } }), /type/)
  await starts(
    t,
    withProperties({
      a: mirrored('A', 'string'),
      b: mirrored('B', 'integer'),
      c: mirrored('C', 'boolean'),
      d: { ...mirrored('D'), enum: ['us', 'eu'] },
      default: mirrored('E'),
    }),
  )
})

test('an x-mcp-header stands where properties alone lead from the root', async (t) => {
  const stray = mirrored('Stray')
  const region = { type: 'string' }
  const nested = { type: 'object', properties: { stray } }
  const places: Json[] = [
    { 'x-mcp-header': 'Stray' },
    { additionalProperties: stray },
    { patternProperties: { '^x': stray } },
    { propertyNames: stray },
    { allOf: [nested] },
    { anyOf: [nested] },
    { oneOf: [nested] },
    { not: nested },
    { if: nested },
    { if: true, then: nested },
    { if: true, else: nested },
    { dependentSchemas: { region: nested } },
    { $defs: { stray } },
    { $defs: { examples: stray } }, // a name here, a keyword elsewhere
    { patternProperties: { const: stray } },
    { dependentSchemas: { default: nested } },
    { $defs: { nested }, $ref: '#/$defs/nested' },
    { properties: { region, hosts: { type: 'array', items: stray } } },
    { properties: { region, hosts: { type: 'array', items: nested } } },
    { properties: { region, hosts: { type: 'array', prefixItems: [stray] } } },
    { properties: { region, hosts: { type: 'array', contains: stray } } },
    { properties: { region, opts: { type: 'object', additionalProperties: stray } } },
    { properties: { region, opts: { anyOf: [stray] } } },
  ]
  for (const place of places) {
    await stops(t, withProperties({ region }, place), /x-mcp-header "Stray"/)
  }
  const { url } = await serve(t, {
    tools: [withProperties({ a: { type: 'object', properties: { b: nested } } })],
  })
  const params = { name: 'spoiled', arguments: { a: { b: { stray: 'x' } } } }
  const call = message('tools/call', params)
  assertRefused(await send(url, call), 400, -32020, call.body.id)
  assert.equal((await send(url, plus(call, 'Mcp-Param-Stray', 'x'))).status, 200)
})

test('what is only named like x-mcp-header, or is data, is no annotation', async (t) => {
  const text = { 'x-mcp-header': 'Stray' }
  const spoiled = withProperties({
    'x-mcp-header': { type: 'string' },
    a: { default: text },
    b: { enum: [text] },
    c: { const: text },
    d: { examples: [text] },
    properties: { type: 'object', properties: { 'x-mcp-header': { type: 'integer' } } },
  })
  await starts(t, spoiled)
  const { url } = await serve(t, { tools: [spoiled] })
  const args = { 'x-mcp-header': 'x', a: 1, properties: { 'x-mcp-header': 1 } }
  const reply = await send(url, message('tools/call', { name: 'spoiled', arguments: args }))
  assert.deepEqual([reply.status, at(resultOf(reply), 'isError')], [200, undefined])
})

test('a schema that the validator would misread stops the server, in input and output', async (t) => {
  for (const [schema, says] of [
    [{ type: 'object', requried: ['a'] }, /requried/],
    [{ type: 'object', properties: { a: { type: 'string', maxLenght: 1 } } }, /maxLenght/],
    [{ type: 'object', unevaluatedProperties: false }, /unevaluatedProperties/],
    [{ type: 'object', properties: [] }, /properties/],
    [{ type: 'object', properties: { a: { type: 'strin' } } }, /type/],
    [{ type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } }, /\$ref/],
    [{ type: 'object', properties: { a: { $ref: '#/$defs/a' } } }, /\$ref/],
    [{ type: 'object', $schema: 'http://json-schema.org/draft-07/schema#' }, /\$schema/],
    [{ type: 'object', $schema: 'http://json-schema.org/draft-04/schema#' }, /2020-12/],
    [{ type: 'object', $schema: 'https://json-schema.org/draft/2019-09/schema' }, /2020-12/],
  ] as const) {
    await stops(t, tool({ inputSchema: schema }), /inputSchema/, says)
    await stops(t, tool({ outputSchema: schema }), /outputSchema/, says)
  }
  const $schema = 'https://json-schema.org/draft/2020-12/schema'
  const $defs = { a: { $anchor: 'a', type: 'string' } }
  await starts(t, withProperties({ a: { $ref: '#a' } }, { $schema, $defs, allOf: [true] }))
})

test('a schema on the network is refused at start and never fetched', async (t) => {
  let fetched = 0
  const network = createServer((_, response) => response.end('{}'))
  network.on('connection', () => {
    fetched += 1
  })
  await once(network.listen(0, '127.0.0.1'), 'listening')
  t.after(() => network.close())
  const { port } = Object(network.address())
  const $ref = `http://127.0.0.1:${port}/schema.json`
  await stops(t, withProperties({ a: { $ref } }), /inputSchema/, /\$ref/)
  await stops(t, tool({ outputSchema: { type: 'object', $ref } }), /outputSchema/, /\$ref/)
  await starts(t, withProperties({ a: { type: 'string', default: { $ref } } }))
  assert.equal(fetched, 0)
  assert.equal((await send(new URL($ref), { headers: [], body: '' }, 'GET')).text, '{}')
  assert.equal(fetched, 1, 'whoever fetches it is counted')
})

test('server/discover says exactly what the contract says', async (t) => {
  const { url } = await serve(t)
  const { headers, status, body } = await send(url, message('server/discover', { more: 5 }))
  assert.deepEqual([status, headers['content-type']], [200, 'application/json'])
  assert.deepEqual(at(body, 'result'), {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    instructions: 'Release operations. rollback_release asks for confirmation.',
    ttlMs: 3_600_000,
    cacheScope: 'public',
    _meta,
  })
})

test('tools/list has the tools in their order, caching hints, and no second page', async (t) => {
  const names = ['zeta', 'alpha', '10', '9', 'constructor']
  const { url } = await serve(t, { tools: names.map((name) => tool({ name })) })
  const reply = await send(url, message('tools/list'))
  const { tools, ...rest } = Object(resultOf(reply))
  assert.deepEqual(rest, { resultType: 'complete', ttlMs: 300_000, cacheScope: 'public', _meta })
  const listed: string[] = tools.map(({ name }: Json) => name)
  assert.equal(listed[0], 'rollback_release')
  assert.deepEqual(listed.slice(-names.length), names)
})

test('tools/list shows rollback_release as the contract describes it', async (t) => {
  const { url } = await serve(t)
  const [first] = await list(url)
  const { name, description, inputSchema, outputSchema, annotations, title, ...rest } = Object(first)
  assert.deepEqual(rest, {})
  assert.equal(name, 'rollback_release')
  assert.equal(description, 'Roll a service back to a previous release. Asks the user to confirm first.')
  assert.equal(typeof title, 'string')
  assert.equal(annotations.destructiveHint, true)
  assert.notEqual(annotations.readOnlyHint, true)
  assert.equal(outputSchema.type, 'object')
  assert.equal(inputSchema.type, 'object')
  assert.deepEqual(inputSchema.required, ['service', 'version'])
  const { service, version } = inputSchema.properties
  assert.equal(service['x-mcp-header'], 'Service')
  assert.equal(version['x-mcp-header'], undefined)
  for (const property of [service, version]) {
    assert.equal(property.type, 'string')
    assert.equal(property.minLength, 1)
    assert.equal(property.maxLength, 200)
    for (const text of ['title', 'description']) assert.ok(property[text].length > 0)
  }
})

test('tools/list shows all that an author may declare, and nothing of the code', async (t) => {
  const declared = {
    name: 'declared',
    title: 'Declared',
    description: 'A tool.',
    inputSchema: { type: 'object', additionalProperties: false },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }
  const full = { ...tool(declared), refusedState: 'Again.', secret: 'x' }
  const { url } = await serve(t, { tools: [full, tool({ name: 'bare' })] })
  const [first, second] = (await list(url)).slice(-2)
  assert.deepEqual(first, declared)
  const { name, description, inputSchema } = tool({ name: 'bare' })
  assert.deepEqual(second, { name, description, inputSchema })
})

test('tools/list is the same for everybody, before and after a call', async (t) => {
  const { url, ask, yes } = await serve(t)
  const first = await list(url)
  await yes(await ask())
  for (const capabilities of [{}, { elicitation: {} }, { sampling: {}, future: 1 }]) {
    const reply = await send(url, message('tools/list', {}, capabilities))
    assert.deepEqual(at(resultOf(reply), 'tools'), first)
  }
})

test('every result says which server it is from, in the version of package.json', async (t) => {
  const plain = tool({ name: 'plain' })
  const { url, call, ask, yes } = await serve(t, { tools: [plain] })
  const requestState = await ask()
  const replies: [what: string, reply: Reply, resultType: string][] = [
    ['discover', await send(url, message('server/discover')), 'complete'],
    ['list', await send(url, message('tools/list')), 'complete'],
    ['question', await call(), 'input_required'],
    ['performed', await yes(requestState), 'complete'],
    ['cancelled', await call(ROLLBACK, { requestState, inputResponses: answer({}, 'cancel') }), 'complete'],
    ['refused state', await yes('forged'), 'complete'],
    ['argument error', await call({}), 'complete'],
    ['plain', await call({}, {}, { tool: 'plain' }), 'complete'],
  ]
  for (const [what, { body }, resultType] of replies) {
    assert.deepEqual(at(body, 'result', '_meta'), _meta, what)
    assert.equal(at(body, 'result', 'resultType'), resultType, what)
    assert.equal(at(body, 'result', 'serverInfo'), undefined, what)
  }
})

test('a question has no caching hint and no content', async (t) => {
  const { call, performed } = await serve(t)
  assert.deepEqual(Object.keys(Object(resultOf(await call()))).sort(), [
    '_meta',
    'inputRequests',
    'requestState',
    'resultType',
  ])
  assert.deepEqual(performed, [])
})

test('structuredContent agrees with outputSchema after a yes and after a no', async (t) => {
  const { url, ask, yes, call } = await serve(t)
  const [definition] = await list(url)
  const schema = compileSchema(definition?.outputSchema, 'outputSchema')
  const requestState = await ask()
  const no = (action: string) =>
    call(ROLLBACK, { requestState, inputResponses: answer({ confirm: false }, action) })
  const performed = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
  for (const [reply, text] of [
    [await yes(requestState), performed],
    [await no('accept'), CANCELLED],
    [await no('decline'), CANCELLED],
    [await no('cancel'), CANCELLED],
  ] as const) {
    const { content, structuredContent, ...rest } = Object(resultOf(reply))
    assert.deepEqual(rest, { resultType: 'complete', _meta })
    assert.equal(schema.check(structuredContent), undefined)
    assert.notEqual(schema.check({}), undefined)
    const json = JSON.stringify(structuredContent)
    assert.deepEqual(content, [
      { type: 'text', text },
      { type: 'text', text: json },
    ])
  }
})

test('structured content may be any JSON value, and null is one', async (t) => {
  const values = [null, 0, false, '', [], [null], {}]
  const tools = values.map((structuredContent, i) => {
    const definition = {
      name: `gives_${i}`,
      description: 'A tool.',
      inputSchema: { type: 'object' },
    } as const
    return plainTool({ ...definition, outputSchema: {} }, () => ({ content: [], structuredContent }))
  })
  const { url } = await serve(t, { tools })
  for (const [i, value] of values.entries()) {
    const reply = await send(url, message('tools/call', { name: `gives_${i}` }))
    assert.deepEqual(at(resultOf(reply), 'structuredContent'), value, JSON.stringify(value))
  }
})

test('a tool error has its text and no structuredContent', async (t) => {
  const { call, yes, performed } = await serve(t)
  for (const reply of [await yes('forged'), await call({}), await call({ ...ROLLBACK, version: '' })]) {
    const { content, ...rest } = Object(resultOf(reply))
    assert.deepEqual(rest, { resultType: 'complete', isError: true, _meta })
    assert.equal(content.length, 1)
  }
  assert.equal(textOf(await yes('forged')), REFUSED)
  assert.deepEqual(performed, [])
})

test('a tool that breaks its outputSchema is an internal error, logged with its name', async (t) => {
  const outputSchema = {
    type: 'object',
    properties: { sum: { type: 'integer' } },
    required: ['sum'],
  } as const
  const promises = { description: 'A tool.', inputSchema: { type: 'object' }, outputSchema } as const
  const content = [{ type: 'text', text: 'secret' }] as const
  const results = [
    { content },
    { content, structuredContent: null },
    { content, structuredContent: {} },
    { content, structuredContent: { sum: 'secret' } },
    { content, structuredContent: { sum: 1.5 } },
  ]
  const breaking = results.map((result, i) => plainTool({ ...promises, name: `breaks_${i}` }, () => result))
  const keeps = plainTool({ ...promises, name: 'keeps' }, () => ({
    content,
    structuredContent: { sum: 3 },
  }))
  const fails = plainTool({ ...promises, name: 'fails' }, () => ({ content, isError: true }))
  const { url, failures } = await serve(t, { tools: [...breaking, keeps, fails] })
  for (const [i, { name }] of breaking.entries()) {
    const call = message('tools/call', { name })
    const reply = await send(url, call)
    assert.equal(assertRefused(reply, 500, -32603, call.body.id, name), 'Internal error')
    assert.doesNotMatch(reply.text, /secret|breaks/)
    const failure = failures[i]
    assert.ok(failure instanceof Error)
    assert.match(failure.message, new RegExp(`\\b${name}\\b.*outputSchema`))
  }
  const kept = await send(url, message('tools/call', { name: 'keeps' }))
  assert.deepEqual(at(resultOf(kept), 'structuredContent'), { sum: 3 })
  const failed = await send(url, message('tools/call', { name: 'fails' }))
  assert.equal(at(resultOf(failed), 'isError'), true)
  assert.equal(failures.length, breaking.length)
})
