import assert from 'node:assert/strict'
import {
  constants,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  type SignKeyObjectInput,
  sign,
} from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Header, type Json, type Message, message, type Reply, send } from '../client.ts'
import { insufficientScope } from '../lib/bearer.ts'
import { keySet, keysAt } from '../lib/jwks.ts'
import { isSignedBy, parseJwt } from '../lib/jwt.ts'
import { compose } from '../server.ts'
import { ROOT } from './instance.ts'
import { EPOCH, REFUSED, ROLLBACK, SECRET, type Served, serve, textOf } from './serve.ts'

const ISSUER = 'https://id.example.com'
const AUDIENCE = 'https://mcp.example.com/mcp'
const METADATA = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp'
const NOW = EPOCH / 1000

const PAIRS = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
}
const OTHER = generateKeyPairSync('ed25519')
type Named = keyof typeof PAIRS

const jwk = (key: KeyObject, more: Json = {}) => ({ ...key.export({ format: 'jwk' }), ...more })
const KEYS = Object.entries(PAIRS).map(([name, { publicKey }]) => jwk(publicKey, { kid: name, use: 'sig' }))

const CLAIMS: Json = {
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'alice',
  client_id: 'host-1',
  scope: 'openid releases:write',
  exp: NOW + 300,
}

const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function signature(
  alg: string,
  key: KeyObject,
  text: string,
  form: Partial<SignKeyObjectInput> = {},
): Buffer {
  const input: SignKeyObjectInput = { key }
  if (alg === 'PS256') {
    Object.assign(input, { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 })
  }
  if (alg === 'ES256') input.dsaEncoding = 'ieee-p1363'
  return sign(alg === 'EdDSA' ? null : 'sha256', Buffer.from(text), { ...input, ...form })
}

type Minting = {
  header?: Json | string
  claims?: Json | string
  alg?: string
  key?: KeyObject
  kid?: string
  /** Another form of signature than the algorithm's. */
  form?: Partial<SignKeyObjectInput>
}

/** A token, signed with the key of its algorithm unless another is given. */
function mint({ header, claims = {}, alg = 'EdDSA', key, kid, form }: Minting = {}): string {
  const name = (alg === 'PS256' ? 'RS256' : alg) as Named
  const head = typeof header === 'string' ? header : { alg, kid: kid ?? name, typ: 'at+jwt', ...header }
  const body = typeof claims === 'string' ? claims : { ...CLAIMS, ...claims }
  const text = `${b64(head)}.${b64(body)}`
  return `${text}.${signature(alg, key ?? PAIRS[name].privateKey, text, form).toString('base64url')}`
}

function keyFile(t: TestContext, keys: readonly unknown[] = KEYS): string {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'jwks.json')
  writeFileSync(file, JSON.stringify({ keys }))
  return file
}

const OAUTH = { AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE }

const served = (t: TestContext, jwks = keyFile(t)): Promise<Served> =>
  serve(t, { env: { ...OAUTH, AUTH_JWKS: jwks }, token: mint() })

const by = (token: string) => ({
  edit: ({ headers, body }: Message): Message => {
    const others = headers.filter(([name]) => name !== 'Authorization')
    return { headers: [...others, ['Authorization', `Bearer ${token}`] as Header], body }
  },
})

const challengeOf = (reply: Reply) => reply.headers['www-authenticate']
const INVALID = `Bearer error="invalid_token", resource_metadata="${METADATA}", scope="releases:write"`

/** The same for every cause: which of them it was is for the log. */
const SENTENCE = 'Send a valid access token as a bearer token.\n'

async function refusesAll(served: Served, tokens: Record<string, string>, reason?: string): Promise<void> {
  for (const [what, token] of Object.entries(tokens)) {
    const reply = await served.call(ROLLBACK, {}, by(token))
    assert.deepEqual([reply.status, challengeOf(reply), reply.text], [401, INVALID, SENTENCE], what)
    if (reason !== undefined) assert.equal(served.lines.at(-1)?.outcome, reason, what)
  }
  assert.deepEqual(served.performed, [])
}

test('a token of each algorithm, with and without a key id, is let in', async (t) => {
  const { ask, yes, performed } = await served(t)
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    for (const header of [
      {},
      { kid: undefined },
      { typ: 'JWT' },
      { typ: undefined },
      { typ: 'application/at+jwt' },
      { typ: 'Application/JWT' },
    ]) {
      const how = by(mint({ alg, header }))
      await yes(await ask(ROLLBACK, how), ROLLBACK, how)
    }
  }
  assert.equal(performed.length, 24)
})

test('an audience may be one of several, and its scheme and host in any case', async (t) => {
  const { call } = await served(t)
  for (const aud of [[AUDIENCE], ['https://other.example', AUDIENCE], 'HTTPS://MCP.EXAMPLE.COM/mcp']) {
    assert.equal((await call(ROLLBACK, {}, by(mint({ claims: { aud } })))).status, 200)
  }
})

test('a token for somebody else, or for nobody, is refused', async (t) => {
  const audiences = [
    'https://other.example',
    'https://mcp.example.com',
    `${AUDIENCE}/`,
    'https://mcp.example.com/MCP',
    [],
    {},
    7,
  ]
  const tokens = Object.fromEntries(
    audiences.map((aud) => [JSON.stringify(aud), mint({ claims: { aud } })]),
  )
  await refusesAll(
    await served(t),
    { ...tokens, none: mint({ claims: { aud: undefined } }) },
    'token audience',
  )
})

test('a token of another issuer is refused', async (t) => {
  const issuers = ['https://evil.example', `${ISSUER}/`, ISSUER.toUpperCase(), undefined]
  const tokens = Object.fromEntries(issuers.map((iss) => [String(iss), mint({ claims: { iss } })]))
  await refusesAll(await served(t), tokens, 'token issuer')
})

test('a token that has expired, or says no time, is refused', async (t) => {
  const times = [NOW, NOW - 1, NOW - 60, NOW - 3600, undefined, null, String(NOW + 300), 0]
  const tokens = Object.fromEntries(times.map((exp) => [String(exp), mint({ claims: { exp } })]))
  await refusesAll(await served(t), tokens, 'token expired')
})

test('a minute between two clocks is forgiven, in both directions', async (t) => {
  const { call } = await served(t)
  for (const claims of [{ nbf: NOW + 60 }, { iat: NOW + 60 }]) {
    assert.equal((await call(ROLLBACK, {}, by(mint({ claims })))).status, 200)
  }
})

test('a token from the future is refused', async (t) => {
  const claims = [{ nbf: NOW + 61 }, { nbf: 'soon' }, { iat: NOW + 61 }, { iat: true }]
  const tokens = Object.fromEntries(claims.map((one) => [JSON.stringify(one), mint({ claims: one })]))
  await refusesAll(await served(t), tokens, 'token early')
})

test('a token without a proper subject is refused', async (t) => {
  const subjects = [undefined, '', 7, ['alice'], 'a'.repeat(256)]
  const tokens = Object.fromEntries(subjects.map((sub) => [String(sub), mint({ claims: { sub } })]))
  await refusesAll(await served(t), {
    ...tokens,
    half: mint({ claims: `{"iss":"${ISSUER}","sub":"\\ud800"}` }),
  })
})

test('none, HMAC and any other algorithm are refused before a key is looked for', async (t) => {
  const tokens = ['none', 'None', 'HS256', 'RS512', 'ES384', 'PS384', 'Ed25519', '', undefined, 7, null]
  const minted = tokens.map((alg) => [String(alg), mint({ header: { alg } })])
  await refusesAll(await served(t), Object.fromEntries(minted), 'token algorithm')
})

test('a key is used with its own algorithms only, whatever the token says', () => {
  const said = parseJwt(mint({ alg: 'RS256', header: { alg: 'ES256' } }))
  assert.ok(typeof said !== 'string')
  assert.equal(isSignedBy(said, PAIRS.RS256.publicKey), false)
  assert.equal(isSignedBy({ ...said, algorithm: 'RS256' }, PAIRS.RS256.publicKey), true)
})

test('a signature by another algorithm, or in another form, is refused', async (t) => {
  const text = `${b64({ alg: 'HS256', kid: 'RS256' })}.${b64(CLAIMS)}`
  const pem = PAIRS.RS256.publicKey.export({ type: 'spki', format: 'pem' })
  const hmac = createHmac('sha256', pem).update(text).digest('base64url')
  const unsigned = (alg: string) => `${b64({ alg })}.${b64(CLAIMS)}.`
  await refusesAll(await served(t), {
    none: unsigned('none'),
    'a public key as an HMAC secret': `${text}.${hmac}`,
    'RS256 signed as PS256': mint({ alg: 'PS256', header: { alg: 'RS256' } }),
    'EdDSA under the id of an EC key': mint({ kid: 'ES256' }),
    'ES256 said, EdDSA signed': mint({ header: { alg: 'ES256', kid: 'ES256' } }),
    'ES256 in the form of a certificate': mint({ alg: 'ES256', form: { dsaEncoding: 'der' } }),
    'PS256 with a longer salt': mint({ alg: 'PS256', form: { saltLength: 64 } }),
    'PS256 without a salt': mint({ alg: 'PS256', form: { saltLength: 0 } }),
    'ES256 and one byte more': `${mint({ alg: 'ES256' })}AA`.slice(0, -1),
    'EdDSA and one byte less': mint().slice(0, -2),
  })
})

test('a token that nobody here trusts signed is refused, also when it brings its own key', async (t) => {
  const { privateKey: key, publicKey } = OTHER
  await refusesAll(
    await served(t),
    {
      'another key': mint({ key }),
      'another key without id': mint({ key, header: { kid: undefined } }),
      'its own key': mint({ key, header: { jwk: jwk(publicKey) } }),
      'its own key server': mint({ key, header: { jku: 'https://evil.example/keys' } }),
    },
    'token signature',
  )
})

test('a token changed in any place is refused', async (t) => {
  const token = mint()
  const changed = [...token].map((c, i) => token.slice(0, i) + (c === 'A' ? 'B' : 'A') + token.slice(i + 1))
  const some = changed.filter((_, i) => i % 7 === 0 || i > token.length - 90)
  await refusesAll(await served(t), Object.fromEntries(some.map((one) => [one, one])))
})

test('a token that is not three parts, each in the one spelling of what it says, is refused', async (t) => {
  const [head = '', body = '', tail = ''] = mint().split('.')
  const last = tail.at(-1) ?? ''
  const spare = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const tokens = {
    'two parts': `${head}.${body}`,
    'four parts': `${head}.${body}.${tail}.`,
    'five parts': `${head}.${body}.${tail}..`,
    'standard alphabet': `${head}.${body}.${tail}+/`,
    padding: `${head}.${body}.${tail}==`,
    'spare bits that are not zero': `${head}.${body}.${tail.slice(0, -1)}${spare[spare.indexOf(last) + 1]}`,
    words: 'not-a-token',
    'a key id that is a number': mint({ header: { kid: 7 } }),
    'a payload that is no object': mint({ claims: '"alice"' }),
    'bytes that are no UTF-8': mint().replace(
      /\..*\./,
      `.${Buffer.from('{"sub":"\xff"}', 'latin1').toString('base64url')}.`,
    ),
  }
  await refusesAll(await served(t), tokens, 'token malformed')
})

test('a token that is malformed is refused', async (t) => {
  const [head = '', body = ''] = mint().split('.')
  await refusesAll(await served(t), {
    'no signature': `${head}.${body}.`,
    'a header that is no object': mint({ header: '[]' }),
    'not JSON': mint({ claims: '{' }),
    crit: mint({ header: { crit: ['b64'], b64: true } }),
    'an id token': mint({ header: { typ: 'id_token' } }),
    'a claim twice': mint({ claims: `{"sub":"eve",${JSON.stringify(CLAIMS).slice(1)}` }),
    'a header twice': mint({ header: '{"alg":"none","alg":"EdDSA","kid":"EdDSA"}' }),
    'a client that is no name': mint({ claims: { client_id: 7 } }),
    'no client beside an authorized party': mint({ claims: { client_id: null, azp: 'host-1' } }),
    'a time beyond all numbers': mint({
      claims: JSON.stringify(CLAIMS).replace(/"exp":\d+/, '"exp":1e999'),
    }),
    'a claim twice, once escaped': mint({
      claims: `{"s\\u0075b":"eve",${JSON.stringify(CLAIMS).slice(1)}`,
    }),
    'a claim twice deep inside': mint({
      claims: `{"act":[{"sub":"a","sub":"b"}],${JSON.stringify(CLAIMS).slice(1)}`,
    }),
  })
})

test('a key that is too short, of another curve, or not for signatures opens nothing', async (t) => {
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const { publicKey, privateKey: key } = OTHER
  const keys = [
    jwk(short.publicKey, { kid: 'short' }),
    jwk(curve.publicKey, { kid: 'curve' }),
    jwk(publicKey, { kid: 'enc', use: 'enc' }),
    jwk(publicKey, { kid: 'ops', key_ops: ['encrypt'] }),
    jwk(publicKey, { kid: 'words', key_ops: 'verify' }),
    jwk(publicKey, { kid: 'alg', alg: 'ES256' }),
    { kty: 'oct', kid: 'oct', k: b64('secret') },
    'no key',
    ...KEYS,
  ]
  await refusesAll(
    await served(t, keyFile(t, keys)),
    {
      short: mint({ alg: 'RS256', key: short.privateKey, kid: 'short' }),
      enc: mint({ key, kid: 'enc' }),
      ops: mint({ key, kid: 'ops' }),
      words: mint({ key, kid: 'words' }),
      curve: mint({ alg: 'ES256', key: curve.privateKey, kid: 'curve' }),
      alg: mint({ key, kid: 'alg' }),
    },
    'token signature',
  )
})

test('without a token the challenge says where to ask and for what, and names no error', async (t) => {
  const { url, performed } = await served(t)
  const reply = await send(url, message('tools/list'))
  assert.equal(reply.status, 401)
  assert.equal(challengeOf(reply), `Bearer resource_metadata="${METADATA}", scope="releases:write"`)
  assert.deepEqual(performed, [])
})

test('a token without the scope is 403, and the challenge names the scope', async (t) => {
  const { ask, call, yes, performed } = await served(t)
  for (const claims of [
    { scope: 'openid' },
    { scope: undefined },
    { scope: 'releases:write2' },
    { scope: ['releases:write'] },
  ]) {
    const how = by(mint({ claims }))
    for (const reply of [await call(ROLLBACK, {}, how), await yes(await ask(), ROLLBACK, how)]) {
      const challenge = `Bearer error="insufficient_scope", scope="releases:write", resource_metadata="${METADATA}"`
      assert.deepEqual([reply.status, challengeOf(reply)], [403, challenge])
    }
  }
  assert.deepEqual(performed, [])
})

test('scopes may also come under scp, as a list or in one text', async (t) => {
  const { call } = await served(t)
  for (const scp of [['openid', 'releases:write'], 'openid releases:write']) {
    const claims = { scope: undefined, scp }
    assert.equal((await call(ROLLBACK, {}, by(mint({ claims })))).status, 200)
  }
})

test('the client may also come under azp, and is the same client', async (t) => {
  const { ask, yes, performed } = await served(t)
  const claims = { client_id: undefined, azp: 'host-1' }
  await yes(await ask(), ROLLBACK, by(mint({ claims })))
  assert.equal(performed.length, 1)
})

test('without a key id the only key for the algorithm is taken; of two, none', async (t) => {
  const keys = keyFile(t, [...KEYS, jwk(OTHER.publicKey, { kid: 'second' })])
  const here = await served(t, keys)
  assert.equal((await here.call(ROLLBACK, {}, by(mint()))).status, 200)
  const anyES256 = mint({ alg: 'ES256', header: { kid: undefined } })
  assert.equal((await here.call(ROLLBACK, {}, by(anyES256))).status, 200)
  await refusesAll(here, { 'one of two': mint({ header: { kid: undefined } }) }, 'token signature')
})

test('an Authorization header that is malformed or repeated is 400, and the challenge says so', async (t) => {
  const { url, performed } = await served(t)
  const token = mint()
  const challenge = `Bearer error="invalid_request", resource_metadata="${METADATA}", scope="releases:write"`
  const good = `Bearer ${token}`
  for (const values of [
    [good, good],
    [`${good} more`],
    [`Bearer\t${token}`],
    ['Bearer'],
    [`Bearer "${token}"`],
  ]) {
    const lines = values.map((value): Header => ['Authorization', value])
    const { headers, body } = message('tools/list')
    const reply = await send(url, { headers: [...headers, ...lines], body })
    assert.deepEqual(
      [reply.status, challengeOf(reply), reply.body],
      [400, challenge, undefined],
      values.join(),
    )
  }
  assert.deepEqual(performed, [])
})

test('a challenge can not be broken out of, whatever it names', () => {
  const { headers } = insufficientScope('a"b\\c\r\nSet-Cookie: d\u2028')
  const [value] = Object.values(headers)
  assert.equal(value, 'Bearer error="insufficient_scope", scope="a\\"b\\\\cSet-Cookie: d"')
})

test('a state belongs to issuer, subject and client, and to no token', async (t) => {
  const { ask, yes, performed } = await served(t)
  const state = await ask()
  for (const claims of [
    { sub: 'bob' },
    { client_id: 'host-2' },
    { client_id: undefined },
    { sub: 'ali', client_id: 'cehost-1' },
  ]) {
    assert.equal(textOf(await yes(state, ROLLBACK, by(mint({ claims })))), REFUSED)
  }
  assert.deepEqual(performed, [])
  await yes(state, ROLLBACK, by(mint({ alg: 'ES256', claims: { exp: NOW + 900, jti: 'refreshed' } })))
  assert.equal(performed.length, 1)
})

test('a user of another issuer with the same name is another user', async (t) => {
  const jwks = keyFile(t)
  const here = await served(t, jwks)
  const iss = 'https://other-id.example.com'
  const env = { ...OAUTH, AUTH_ISSUER: iss, AUTH_JWKS: jwks }
  const there = await serve(t, { env, token: mint({ claims: { iss } }) })
  assert.equal(textOf(await there.yes(await here.ask())), REFUSED)
  assert.deepEqual(there.performed, [])
})

test('the audience names the states too, unless STATE_AUDIENCE does', async (t) => {
  const jwks = keyFile(t)
  const here = await served(t, jwks)
  const [, sealed = ''] = (await here.ask()).split('.')
  assert.ok(Buffer.from(sealed, 'base64url').toString().includes(`"audience":"${AUDIENCE}"`))
})

test('the metadata is public and comes from the configuration, whatever Host says', async (t) => {
  const { url } = await served(t)
  for (const path of [
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource',
  ]) {
    const reply = await send(new URL(path, url), { headers: [], body: '' }, 'GET')
    assert.equal(reply.headers['content-type'], 'application/json')
    assert.deepEqual(reply.body, {
      resource: AUDIENCE,
      authorization_servers: [ISSUER],
      scopes_supported: ['releases:write'],
      bearer_methods_supported: ['header'],
    })
  }
})

test('the metadata stands where the resource says, and under the two usual paths', async (t) => {
  const cases = [
    ['https://mcp.example.com', '', 'https://mcp.example.com/.well-known/oauth-protected-resource'],
    [
      'https://mcp.example.com:8443/mcp',
      '/mcp',
      'https://mcp.example.com:8443/.well-known/oauth-protected-resource/mcp',
    ],
    [
      'https://gate.example/ops/mcp',
      '/ops/mcp',
      'https://gate.example/.well-known/oauth-protected-resource/ops/mcp',
    ],
    ['http://localhost:3000/mcp', '/mcp', 'http://localhost:3000/.well-known/oauth-protected-resource/mcp'],
  ] as const
  for (const [audience, suffix, metadata] of cases) {
    const env = { ...OAUTH, AUTH_AUDIENCE: audience, AUTH_JWKS: keyFile(t) }
    const { url } = await serve(t, { env, token: mint({ claims: { aud: audience } }) })
    const refused = await send(url, message('tools/list'))
    assert.equal(challengeOf(refused), `Bearer resource_metadata="${metadata}", scope="releases:write"`)
    for (const path of [suffix, '/mcp', '', `${suffix}?x=1`]) {
      const at = new URL(`/.well-known/oauth-protected-resource${path}`, url)
      const headers: Header[] = [['X-Forwarded-Host', 'evil.example']]
      const reply = await send(at, { headers, body: '' }, 'GET')
      assert.deepEqual([reply.status, Object(reply.body).resource], [200, audience])
    }
  }
})

/** A key server that the test can watch and break. */
async function keyServer(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
}

test('keys are fetched once, and again for an unknown key id at most every 30 seconds', async (t) => {
  let fetched = 0
  let keys = KEYS
  const url = await keyServer(t, (_, response) => {
    fetched += 1
    response.end(JSON.stringify({ keys }))
  })
  const { call, clock } = await served(t, url)
  await Promise.all(Array.from({ length: 20 }, () => call()))
  assert.equal(fetched, 1)
  const rotated = by(mint({ key: OTHER.privateKey, kid: 'new', claims: { exp: NOW + 7200 } }))
  keys = [...KEYS, jwk(OTHER.publicKey, { kid: 'new' }) as (typeof KEYS)[number]]
  for (let i = 0; i < 5; i++) assert.equal((await call(ROLLBACK, {}, rotated)).status, 401)
  assert.equal(fetched, 1)
  clock.now += 30_000
  const replies = await Promise.all(Array.from({ length: 20 }, () => call(ROLLBACK, {}, rotated)))
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
  assert.equal(fetched, 2)
})

test('while the keys are being fetched nobody else fetches them, however long it takes', async () => {
  let now = EPOCH
  let loads = 0
  let release = (_: string) => {}
  const text = new Promise<string>((resolve) => {
    release = resolve
  })
  const load = () => {
    loads += 1
    return text
  }
  const keysFor = keySet(load, () => now)
  const jwt = parseJwt(mint())
  assert.ok(typeof jwt !== 'string')
  const first = keysFor(jwt)
  now += 60_000
  const second = keysFor(jwt)
  assert.equal(loads, 1)
  release(JSON.stringify({ keys: KEYS }))
  assert.deepEqual([(await first).length, (await second).length], [1, 1])
})

test('a key that was withdrawn is gone after ten minutes', async (t) => {
  let keys = KEYS
  const url = await keyServer(t, (_, response) => response.end(JSON.stringify({ keys })))
  const { call, clock, performed } = await served(t, url)
  const how = by(mint({ claims: { exp: NOW + 7200 } }))
  assert.equal((await call(ROLLBACK, {}, how)).status, 200)
  keys = KEYS.filter(({ kid }) => kid !== 'EdDSA')
  clock.now += 10 * 60_000
  assert.equal((await call(ROLLBACK, {}, how)).status, 401)
  assert.deepEqual(performed, [])
})

test('a key server that can not be had is 503 and never 401, and nothing is done', async (t) => {
  const long = JSON.stringify({ keys: KEYS, filler: 'x'.repeat(300_000) })
  const broken: Record<string, RequestListener> = {
    status: (_, response) => response.writeHead(500).end(JSON.stringify({ keys: KEYS })),
    redirect: (_, response) => response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end(),
    garbage: (_, response) => response.end('<html>'),
    'no keys': (_, response) => response.end('{}'),
    long: (_, response) => response.end(long),
    reset: (request) => request.socket.destroy(),
  }
  for (const [what, answer] of Object.entries(broken)) {
    const { call, performed } = await served(t, await keyServer(t, answer))
    const reply = await call()
    assert.deepEqual([reply.status, reply.headers['retry-after']], [503, '30'], what)
    assert.deepEqual(performed, [])
  }
})

test('a key server that is away for a while costs nobody anything', async (t) => {
  let away = false
  const url = await keyServer(t, (request, response) => {
    if (away) request.socket.destroy()
    else response.end(JSON.stringify({ keys: KEYS }))
  })
  const { call, clock } = await served(t, url)
  const how = by(mint({ claims: { exp: NOW + 7200 } }))
  await call(ROLLBACK, {}, how)
  away = true
  clock.now += 19 * 60_000
  assert.equal((await call(ROLLBACK, {}, how)).status, 200)
  clock.now += 60_000
  assert.equal((await call(ROLLBACK, {}, how)).status, 503)
  away = false
  clock.now += 30_000
  assert.equal((await call(ROLLBACK, {}, how)).status, 200)
})

test('while the key server is away an unknown key id is 503: it may be its newest', async (t) => {
  let away = false
  let keys = KEYS
  const url = await keyServer(t, (request, response) => {
    if (away) request.socket.destroy()
    else response.end(JSON.stringify({ keys }))
  })
  const { call, clock, performed } = await served(t, url)
  const known = by(mint({ claims: { exp: NOW + 7200 } }))
  const rotated = by(mint({ key: OTHER.privateKey, kid: 'new', claims: { exp: NOW + 7200 } }))
  const statuses = async () => [
    (await call(ROLLBACK, {}, rotated)).status,
    (await call(ROLLBACK, {}, known)).status,
  ]
  assert.deepEqual(await statuses(), [401, 200])
  away = true
  clock.now += 30_000
  assert.deepEqual(await statuses(), [503, 200])
  clock.now += 29_999
  assert.deepEqual(await statuses(), [503, 200])
  away = false
  clock.now += 1
  assert.deepEqual(await statuses(), [401, 200])
  keys = [...KEYS, jwk(OTHER.publicKey, { kid: 'new' }) as (typeof KEYS)[number]]
  clock.now += 30_000
  assert.deepEqual(await statuses(), [200, 200])
  assert.deepEqual(performed, [])
})

test('an issuer that withdraws every key is believed', async (t) => {
  let keys = KEYS
  const url = await keyServer(t, (_, response) => response.end(JSON.stringify({ keys })))
  const { call, clock } = await served(t, url)
  const how = by(mint({ claims: { exp: NOW + 7200 } }))
  assert.equal((await call(ROLLBACK, {}, how)).status, 200)
  keys = []
  clock.now += 10 * 60_000
  assert.equal((await call(ROLLBACK, {}, how)).status, 401)
})

test('a clock that is set back does not keep old keys alive', async (t) => {
  let keys = KEYS
  const url = await keyServer(t, (_, response) => response.end(JSON.stringify({ keys })))
  const { call, clock } = await served(t, url)
  assert.equal((await call()).status, 200)
  keys = []
  clock.now -= 60_000
  assert.equal((await call()).status, 401)
})

test('a key server that hangs is given up on, before and within its answer', async (t) => {
  const silent = await keyServer(t, () => {})
  const stuck = await keyServer(t, (_, response) => response.write('{"keys":'))
  for (const url of [silent, stuck]) await assert.rejects(keysAt(url, 50), { name: 'TimeoutError' })
})

test('a redirect to a good key server is not followed', async (t) => {
  const good = await keyServer(t, (_, response) => response.end(JSON.stringify({ keys: KEYS })))
  const url = await keyServer(t, (_, response) => response.writeHead(307, { Location: good }).end())
  const { call, performed } = await served(t, url)
  assert.equal((await call()).status, 503)
  assert.deepEqual(performed, [])
})

test('a key file is read again like a key server', async (t) => {
  const file = keyFile(t)
  const { call, clock } = await served(t, file)
  const rotated = by(mint({ key: OTHER.privateKey, kid: 'new' }))
  assert.equal((await call(ROLLBACK, {}, rotated)).status, 401)
  writeFileSync(file, JSON.stringify({ keys: [jwk(OTHER.publicKey, { kid: 'new' })] }))
  clock.now += 30_000
  assert.equal((await call(ROLLBACK, {}, rotated)).status, 200)
})

test('the URL of a key server may have a query, which is sent', async (t) => {
  const url = await keyServer(t, (request, response) => {
    const right = request.url === '/keys?p=policy&v=2'
    response.writeHead(right ? 200 : 404).end(JSON.stringify({ keys: KEYS }))
  })
  const { call } = await served(t, `${url}?p=policy&v=2`)
  assert.equal((await call()).status, 200)
})

test('half a configuration, or an insecure one, stops the start', async (t) => {
  const all = { ...OAUTH, AUTH_JWKS: keyFile(t) }
  const cases: [Record<string, string | undefined>, RegExp][] = [
    [{ AUTH_ISSUER: undefined }, /belong together/],
    [{ AUTH_AUDIENCE: undefined }, /belong together/],
    [{ AUTH_JWKS: undefined }, /belong together/],
    [{ AUTH_ISSUER: 'http://id.example.com' }, /AUTH_ISSUER must be an https URL/],
    [{ AUTH_ISSUER: 'id.example.com' }, /AUTH_ISSUER must/],
    [{ AUTH_AUDIENCE: 'https://mcp.example.com/mcp#x' }, /AUTH_AUDIENCE must/],
    [{ AUTH_JWKS: 'http://id.example.com/keys' }, /AUTH_JWKS must/],
    [{ AUTH_JWKS: 'https://user:pw@id.example.com/keys' }, /AUTH_JWKS must/],
    [{ AUTH_JWKS: 'file:///keys' }, /AUTH_JWKS must/],
    [{ AUTH_JWKS: 'https://id.example.com/keys?a=b#c' }, /AUTH_JWKS must/],
    [{ AUTH_JWKS: '/no/such/file' }, /AUTH_JWKS names a file that can't be read/],
    [{ AUTH_JWKS: join(ROOT, 'README.md') }, /AUTH_JWKS must name a JSON Web Key Set/],
    [
      { AUTH_JWKS: keyFile(t, [{ kty: 'oct', k: b64('secret') }]) },
      /AUTH_JWKS must name a JSON Web Key Set/,
    ],
    [{ AUTH_JWKS: ' ' }, /AUTH_JWKS is empty/],
    [{ AUTH_ISSUER: 'https:id.example.com' }, /AUTH_ISSUER must/],
    [{ AUTH_ISSUER: 'https://id.example.com/?tenant=1' }, /AUTH_ISSUER must/],
    [{ AUTH_ISSUER: 'http://localhost.evil.example' }, /AUTH_ISSUER must/],
    [{ AUTH_AUDIENCE: 'https://user@mcp.example.com/mcp' }, /AUTH_AUDIENCE must/],
    [{ AUTH_AUDIENCE: 'https://mcp.example.com/"mcp' }, /AUTH_AUDIENCE must/],
    [{ AUTH_AUDIENCE: 'https://mcp.example.com/mcp\n' }, /AUTH_AUDIENCE must/],
    [{ AUTH_AUDIENCE: '' }, /AUTH_AUDIENCE is empty/],
  ]
  for (const [change, problem] of cases) {
    const start = compose({ STATE_SECRET: SECRET, HOST: '0.0.0.0', ...all, ...change })
    const { message } = await start.then(
      () => assert.fail('it started'),
      (error: Error) => error,
    )
    assert.match(message, problem)
    assert.doesNotMatch(message, /nobody is authenticated/) // whoever sets these means callers to be
  }
})

test('no token is ever in a state, an answer or the log', async (t) => {
  const { ask, yes, call, lines, decisions, failures } = await served(t)
  const token = mint({ claims: { jti: 'marked' } })
  const state = await ask(ROLLBACK, by(token))
  const replies = [await yes(state, ROLLBACK, by(token)), await call(ROLLBACK, {}, by(`${token}x`))]
  const all = [
    state,
    ...replies.map(({ text }) => text),
    JSON.stringify([lines, decisions, failures]),
  ].join('\n')
  for (const part of token.split('.')) assert.ok(!all.includes(part))
})
