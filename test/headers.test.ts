import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { at, type Header, type Json, message, type Reply, send } from '../client.ts'
import { plainTool } from '../lib/tool.ts'
import {
  approvedCall,
  assertHeldBack,
  assertRefused,
  plus,
  replacing,
  resultOf,
  sendBytes,
  serve,
} from './serve.ts'

const REGION = 'Mcp-Param-Region'
const COUNT = 'Mcp-Param-Count'
const FLAG = 'Mcp-Param-Flag'
const ZONE = 'Mcp-Param-Zone'
const LENGTH = 'Mcp-Param-Length'

/** A server with a tool that mirrors every kind of argument, and the calls that reached it. */
async function router(t: TestContext) {
  const ran: Json[] = []
  const route = plainTool(
    {
      name: 'route',
      description: 'Takes an argument of every kind that can be mirrored.',
      inputSchema: {
        type: 'object',
        properties: {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          count: { type: 'integer', 'x-mcp-header': 'Count' },
          flag: { type: 'boolean', 'x-mcp-header': 'Flag' },
          method: { type: 'string', 'x-mcp-header': 'Method' },
          opts: {
            type: 'object',
            properties: {
              zone: { type: 'string', 'x-mcp-header': 'Zone' },
              length: { type: 'integer', 'x-mcp-header': 'Length' },
            },
          },
        },
      },
    },
    ({ arguments: args }) => {
      ran.push(args)
      return { content: [] }
    },
  )
  const { url } = await serve(t, { tools: [route] })

  /** @param args an object, or the JSON text of one where JavaScript would change it. */
  async function call(args: Json | string, ...headers: Header[]): Promise<Reply> {
    const { headers: lines, body } = message('tools/call', { name: 'route', arguments: 'ARGS' })
    const text = typeof args === 'string' ? args : JSON.stringify(args)
    const sent = JSON.stringify(body).replace('"ARGS"', () => text)
    return send(url, { headers: [...lines, ...headers], body: Buffer.from(sent) })
  }
  /** It runs, with what the tool gets. */
  async function accepts(args: Json | string, ...headers: Header[]): Promise<void> {
    const label = JSON.stringify([args, ...headers])
    const before = ran.length
    const reply = await call(args, ...headers)
    assert.deepEqual([reply.status, at(resultOf(reply), 'isError')], [200, undefined], label)
    assert.equal(ran.length, before + 1, label)
  }
  /** It is a header mismatch, and the tool never knows. @returns the message. */
  async function refuses(args: Json | string, ...headers: Header[]): Promise<string> {
    const label = JSON.stringify([args, ...headers])
    const before = ran.length
    const reply = await call(args, ...headers)
    const text = assertRefused(reply, 400, -32020, at(reply.body, 'id'), label)
    assert.equal(typeof at(reply.body, 'id'), 'number', label)
    assert.equal(ran.length, before, label)
    return text
  }
  /** The headers are right and the arguments are not: a tool error. */
  async function reachesSchema(args: Json | string, ...headers: Header[]): Promise<void> {
    const label = JSON.stringify([args, ...headers])
    const before = ran.length
    const reply = await call(args, ...headers)
    assert.deepEqual([reply.status, at(resultOf(reply), 'isError')], [200, true], label)
    assert.equal(ran.length, before, label)
  }
  return { ran, accepts, refuses, reachesSchema }
}

const base64 = (value: string | Uint8Array) => `=?base64?${Buffer.from(value).toString('base64')}?=`

test('a mirrored argument has its header, with the same value', async (t) => {
  const { ran, accepts, refuses } = await router(t)
  const args = { region: 'us', count: 42, flag: true, opts: { zone: 'a', length: 1 } }
  const headers: Header[] = [
    [REGION, 'us'],
    [COUNT, '42'],
    [FLAG, 'true'],
    [ZONE, 'a'],
    [LENGTH, '1'],
  ]
  await accepts(args, ...headers)
  assert.deepEqual(ran, [args])
  for (const [name, value] of headers) {
    const others = headers.filter(([other]) => other !== name)
    assert.match(await refuses(args, ...others), /\(missing\)/)
    await refuses(args, ...others, [name, value === 'true' ? 'false' : `${value}0`])
    await refuses(args, ...headers, [name, value])
    await refuses(args, ...headers, [name.toUpperCase(), value])
    await refuses(args, ...others, [name, `${value}, ${value}`])
    await accepts(args, ...others, [name.toLowerCase(), value])
    await accepts(args, ...others, [name.toUpperCase(), value])
    await accepts(args, ...others, [name, base64(value)])
    await accepts(args, ...others, [name, `  ${value}\t`])
  }
})

test('no header is asked for an argument that is absent or null', async (t) => {
  const { accepts, reachesSchema } = await router(t)
  await accepts({})
  await accepts({ opts: {} })
  await accepts({ other: 'us', zone: 'a' })
  await accepts('{"__proto__":{"region":"us"},"opts":{"__proto__":{"zone":"a"}}}')
  for (const args of [
    { region: null },
    { count: null, flag: null },
    { opts: null },
    { opts: { zone: null } },
  ]) {
    await reachesSchema(args)
  }
})

test('a nested argument is found on its exact path, through plain objects only', async (t) => {
  const { accepts, refuses, reachesSchema } = await router(t)
  await accepts({ opts: { zone: 'a' } }, [ZONE, 'a'])
  await refuses({ opts: { zone: 'a' } })
  await refuses({ zone: 'a' }, [ZONE, 'a'])
  await refuses({ opts: { opts: { zone: 'a' } } }, [ZONE, 'a'])
  await refuses({ 'opts.zone': 'a' }, [ZONE, 'a'])
  await refuses({ opts: [{ zone: 'a' }] }, [ZONE, 'a'])
  await refuses('{"opts":{"__proto__":{"zone":"a"}}}', [ZONE, 'a'])
  for (const opts of ['text', [1, 2], 5, true]) await reachesSchema({ opts }) // some have a length
  await refuses({ opts: 'text' }, [LENGTH, '4'])
  await refuses({ opts: [1, 2] }, [LENGTH, '2'])
})

test('a header for an argument that is absent or null is refused, whatever it says', async (t) => {
  const { refuses } = await router(t)
  for (const args of [{}, { region: null }, { REGION: 'us' }]) {
    for (const value of ['us', '', 'null', 'undefined', base64(''), '\xe9', '=?base64?!!?=']) {
      assert.match(await refuses(args, [REGION, value]), /\(missing\)/)
    }
  }
  await refuses({ opts: null }, [ZONE, 'a'])
  await refuses({ opts: {} }, [ZONE, ''])
})

test('0, false and the empty string are values: they have their header', async (t) => {
  const { accepts, refuses } = await router(t)
  await accepts({ count: 0 }, [COUNT, '0'])
  await accepts({ flag: false }, [FLAG, 'false'])
  await accepts({ region: '' }, [REGION, ''])
  await accepts({ region: '' }, [REGION, base64('')])
  for (const args of [{ count: 0 }, { flag: false }, { region: '' }]) await refuses(args)
  await refuses({ region: '' }, [REGION, 'us'])
  await refuses({ region: 'us' }, [REGION, ''])
  await refuses({ region: 'us' }, [REGION, base64('')])
})

test('integers are compared as numbers, in plain decimal spelling', async (t) => {
  const { accepts, refuses } = await router(t)
  for (const value of ['42', '42.0', '42.000', base64('42'), base64('42.0')]) {
    await accepts({ count: 42 }, [COUNT, value])
    await accepts('{"count":42.0}', [COUNT, value])
  }
  for (const value of ['-42', '-42.0', base64('-42')]) await accepts({ count: -42 }, [COUNT, value])
  for (const value of [
    '43',
    '-42',
    '',
    '4 2',
    '42 0',
    '42.5',
    '42.0.0',
    '42.',
    '.42',
    '+42',
    '4.2e1',
    '42e0',
    '0x2A',
    '0b101010',
    '42n',
    '42,0',
    '4_2',
    'forty-two',
    'NaN',
    'true',
    base64('43'),
    base64('４２'),
    base64(' 42'),
    base64('42\n'),
  ]) {
    await refuses({ count: 42 }, [COUNT, value])
  }
  for (const value of ['', 'false', 'null', '-']) await refuses({ count: 0 }, [COUNT, value])
})

test('integers are compared exactly, however many digits the header has', async (t) => {
  const { refuses } = await router(t)
  await refuses({ count: 42 }, [COUNT, '42.00000000000000000001'])
  await refuses({ count: 0 }, [COUNT, `0.${'0'.repeat(400)}1`])
})

test('integers beyond what a double holds exactly are refused on either side', async (t) => {
  const { accepts, refuses } = await router(t)
  for (const edge of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    await accepts({ count: edge }, [COUNT, String(edge)])
    await refuses({ count: edge }, [COUNT, `${edge}`.replace(/1$/, '2')])
  }
  for (const count of ['9007199254740992', '9007199254740993', '-9007199254740993', '1e400']) {
    for (const value of [count, '9007199254740992', '7', 'Infinity']) {
      await refuses(`{"count":${count}}`, [COUNT, value])
    }
    await refuses(`{"count":${count}}`)
  }
  for (const value of ['9007199254740993', '1'.repeat(400)]) await refuses({ count: 42 }, [COUNT, value])
})

test('booleans are true and false, exactly', async (t) => {
  const { accepts, refuses } = await router(t)
  for (const flag of [true, false]) {
    await accepts({ flag }, [FLAG, String(flag)])
    await accepts({ flag }, [FLAG, base64(String(flag))])
    for (const value of [String(!flag), 'True', 'FALSE', '1', '0', 'yes', '', 'null']) {
      await refuses({ flag }, [FLAG, value])
    }
  }
})

test('strings are compared code unit by code unit', async (t) => {
  const { accepts, refuses } = await router(t)
  await accepts({ region: 'us west\t1' }, [REGION, 'us west\t1'])
  for (const value of ['US', 'us ', 'u', 'uss', "'us'", '"us"', 'us%20']) {
    await refuses({ region: 'us' }, [REGION, value === 'us ' ? base64(value) : value])
  }
  await refuses({ region: 'é' }, [REGION, base64('e\u0301')])
  await refuses({ region: ' us' }, [REGION, ' us'])
})

test('an argument of the wrong JSON type is a mismatch, with its header or without', async (t) => {
  const { refuses } = await router(t)
  for (const [args, header] of [
    [{ region: 42 }, [REGION, '42']],
    [{ region: true }, [REGION, 'true']],
    [{ region: ['us'] }, [REGION, 'us']],
    [{ region: ['us'] }, [REGION, '["us"]']],
    [{ region: {} }, [REGION, '{}']],
    [{ count: '42' }, [COUNT, '42']],
    [{ count: 42.5 }, [COUNT, '42.5']],
    [{ count: true }, [COUNT, '1']],
    [{ count: [42] }, [COUNT, '42']],
    [{ flag: 'true' }, [FLAG, 'true']],
    [{ flag: 1 }, [FLAG, 'true']],
    [{ opts: { zone: 5 } }, [ZONE, '5']],
  ] as [Json, Header][]) {
    await refuses(args, header)
    await refuses(args)
  }
})

test('a value in Base64 is decoded, whatever JSON strings may hold', async (t) => {
  const { ran, accepts, refuses } = await router(t)
  for (const region of [
    'Hello',
    '世界',
    '𝄞',
    ' padded ',
    'two\nlines',
    'tab\t',
    '\u0000\u007f',
    '\ufeffmarked',
    '=?base64?literal?=',
    '=?base64?SGVsbG8=?=',
    '=?base64??=',
    'quote\'s "quote"',
  ]) {
    await accepts({ region }, [REGION, base64(region)])
    assert.deepEqual(ran.at(-1), { region })
  }
  await refuses({ region: 'two lines' }, [REGION, base64('two\nlines')])
  await refuses({ region: 'twolines' }, [REGION, base64('two\nlines')])
  await refuses({ region: 'Hello' }, [REGION, base64('\ufeffHello')])
  await refuses({ region: '\ufeffHello' }, [REGION, base64('Hello')])
  await refuses({ region: 'Hello' }, [REGION, base64(base64('Hello'))])
})

test('what is shaped like an encoded value is one: it is never taken as literal', async (t) => {
  const { refuses } = await router(t)
  for (const region of ['=?base64?literal?=', '=?base64?SGVsbG8=?=', '=?base64??=']) {
    await refuses({ region }, [REGION, region])
  }
})

test('what only looks like an encoded value is literal', async (t) => {
  const { accepts, refuses } = await router(t)
  for (const region of [
    'SGVsbG8=',
    '=?base64?SGVsbG8=',
    'SGVsbG8=?=',
    '=?base64?=',
    '=?base64?',
    '?=',
    '=?BASE64?SGVsbG8=?=',
    '=?Base64?SGVsbG8=?=',
    '=?base64?SGVsbG8=?= ?',
    'x=?base64?SGVsbG8=?=',
    '=?utf-8?B?SGVsbG8=?=',
    '=?base32?JBSWY3DP?=',
  ]) {
    await accepts({ region }, [REGION, region])
    await refuses({ region: 'Hello' }, [REGION, region])
  }
})

test('Base64 has one spelling: any other is refused, though it could be read', async (t) => {
  const { accepts, refuses } = await router(t)
  await accepts({ region: 'Hello' }, [REGION, '=?base64?SGVsbG8=?='])
  for (const spelling of [
    'SGVsbG8', // no padding
    'SGVsbG8==',
    'SGVsbG8=====',
    'SGVsbG9=', // spare bits
    'SGVs!!!bG8=', // alphabet
    'SGVs bG8=',
    ' SGVsbG8=',
    'SGVsbG8=\tx',
    'SGVsbG8=SGVsbG8=',
    '=SGVsbG8=',
    'SGVsbG8%3D',
    '?SGVsbG8=',
  ]) {
    await refuses({ region: 'Hello' }, [REGION, `=?base64?${spelling}?=`])
  }
  await accepts({ region: '>>>?' }, [REGION, '=?base64?Pj4+Pw==?='])
  await refuses({ region: '>>>?' }, [REGION, '=?base64?Pj4-Pw==?=']) // the URL's alphabet
  await accepts({ region: '???' }, [REGION, '=?base64?Pz8/?='])
  await refuses({ region: '???' }, [REGION, '=?base64?Pz8_?='])
})

test('Base64 of what is not UTF-8 is refused, though it could be mended', async (t) => {
  const { refuses } = await router(t)
  for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
    const mended = Buffer.from(bytes).toString()
    await refuses({ region: mended }, [REGION, base64(Uint8Array.from(bytes))])
  }
  await refuses({ region: '\ud800' }, [REGION, base64('\ufffd')])
})

test('a byte beyond ASCII in a mirrored header is refused, however it is read', async (t) => {
  const { accepts, refuses } = await router(t)
  await accepts({ region: 'café' }, [REGION, base64('café')])
  await refuses({ region: 'café' }, [REGION, 'caf\xe9'])
  await refuses({ region: 'café' }, [REGION, 'caf\xc3\xa9'])
  await refuses({ region: 'caf\xc3\xa9' }, [REGION, 'caf\xc3\xa9'])
  await refuses({ region: 'us\x80' }, [REGION, 'us\x80'])
  await refuses({ count: 42 }, [COUNT, '42\xa0'])
})

test('a header that mirrors nothing of this tool is ignored', async (t) => {
  const { accepts } = await router(t)
  await accepts({}, ['Mcp-Param-Foo', 'x'], ['Mcp-Param-Foo', '\xe9'])
  await accepts({}, ['Mcp-Param-Service', 'checkout'], ['Mcp-Param', 'x'], ['Mcp-Param-', 'x'])
  await accepts({ region: 'us' }, [REGION, 'us'], ['X-Mcp-Param-Region', 'eu'], ['Region', 'eu'])
})

test('an argument may mirror to Mcp-Param-Method, which is another header than Mcp-Method', async (t) => {
  const { accepts, refuses } = await router(t)
  await accepts({ method: 'GET' }, ['Mcp-Param-Method', 'GET'])
  await refuses({ method: 'tools/call' })
})

test('the message names the header and both values, escaped and cut', async (t) => {
  const { refuses } = await router(t)
  const long = 'x'.repeat(5000)
  for (const [args, headers, ...parts] of [
    [{ region: 'us' }, [[REGION, 'eu']], 'us', 'eu'],
    [{ region: 'us' }, [], 'us', '(missing)'],
    [{}, [[REGION, 'eu']], 'eu', '(missing)'],
    [{ count: 42 }, [[COUNT, '43']], '42', '43'],
    [{ flag: true }, [[FLAG, 'no']], 'true', 'no'],
    [{ region: 'us' }, [[REGION, base64('eu')]], 'us', 'eu'],
    [
      { region: 'us' },
      [
        [REGION, 'us'],
        [REGION, 'eu'],
      ],
      'us',
      'eu',
    ],
    [{ region: 'a\u202eb\n' }, [[REGION, base64('c\u200b\n')]], '202e', '200b'],
    [{ region: long }, [[REGION, `y${long}`]], 'xxxx', 'yxxx'],
    [{ region: '𝄞'.repeat(100) }, [[REGION, 'eu']], '𝄞', 'eu'],
  ] as [Json, Header[], ...string[]][]) {
    const text = await refuses(args, ...headers)
    const [[name] = [REGION]] = headers
    for (const part of [name, ...parts]) assert.ok(text.includes(part), `${text} lacks ${part}`)
    assert.ok(text.length < 500, `${text.length} characters`)
  }
})

test('rollback_release mirrors its service, in any script', async (t) => {
  const { url, call, ask, yes, performed } = await serve(t)
  const service = '世界'
  const asked = await call({ service, version: 'v1' })
  const form = at(resultOf(asked), 'inputRequests', 'confirm', 'params', 'message')
  assert.equal(form, 'Roll 世界 back to v1? This restarts every instance.')
  for (const value of [Buffer.from(service).toString('latin1'), base64('世'), '??']) {
    const params = { name: 'rollback_release', arguments: { service, version: 'v1' } }
    const spoiled = plus(message('tools/call', params), 'Mcp-Param-Service', value)
    assertRefused(await sendBytes(url, spoiled), 400, -32020, spoiled.body.id)
  }
  assert.deepEqual(performed, [])
  await yes(await ask({ service, version: 'v1' }), { service, version: 'v1' })
  assert.deepEqual(
    performed.map(({ service }) => service),
    [service],
  )
})

test('an approval is worth nothing while the header of the service is wrong', async (t) => {
  const served = await serve(t)
  const call = await approvedCall(served)
  const header = 'Mcp-Param-Service'
  for (const value of ['payments', 'Checkout', '', base64('payments'), '=?base64?Y2hlY2tvdXR=?=']) {
    const reply = await send(served.url, replacing(call, header, value))
    assertRefused(reply, 400, -32020, call.body.id, value)
  }
  const twice = await send(served.url, plus(call, header, 'checkout'))
  assertRefused(twice, 400, -32020, call.body.id)
  await assertHeldBack(served, call)
})
