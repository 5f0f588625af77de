/** Access tokens minted by another library, the npm package `jose`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import type { Header, Message } from '../../client.ts'
import { ROLLBACK, type Served, serve } from '../serve.ts'

const ISSUER = 'https://id.example.com'
const AUDIENCE = 'https://mcp.example.com/mcp'
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const

type Signer = { readonly alg: string; readonly kid: string; readonly key: CryptoKey }

/** A server of this project whose issuer's keys were made by jose, and the keys. */
async function withIssuer(t: TestContext): Promise<[Served, Signer[]]> {
  const signers: Signer[] = []
  const keys: object[] = []
  for (const alg of ALGORITHMS) {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    signers.push({ alg, kid: `key-${alg}`, key: privateKey })
    keys.push({ ...(await exportJWK(publicKey)), kid: `key-${alg}`, alg, use: 'sig' })
  }
  const server = createServer((_, response) => response.end(JSON.stringify({ keys })))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const jwks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const env = { AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS: jwks }
  const now = Date.now()
  return [await serve(t, { env, clock: { now }, token: 'none-yet' }), signers]
}

const by = (token: string) => ({
  edit: ({ headers, body }: Message): Message => {
    const others = headers.filter(([name]) => name !== 'Authorization')
    return { headers: [...others, ['Authorization', `Bearer ${token}`] as Header], body }
  },
})

function unsigned(more: JWTPayload = {}): SignJWT {
  return new SignJWT({ scope: 'releases:write', client_id: 'host-1', ...more })
    .setIssuer(ISSUER)
    .setAudience([AUDIENCE, 'https://other.example'])
    .setSubject('alice')
    .setIssuedAt()
    .setExpirationTime('5m')
}

test('a token of each algorithm that jose signs approves a rollback, with and without key id', async (t) => {
  const [served, signers] = await withIssuer(t)
  for (const { alg, kid, key } of signers) {
    for (const header of [
      { alg, kid, typ: 'at+jwt' },
      { alg, typ: 'JWT' },
      { alg, kid },
    ]) {
      const token = await unsigned().setProtectedHeader(header).sign(key)
      const before = served.performed.length
      // The list was refused to this test's server at start, so the mirrored header is added here.
      const how = mirrored(by(token))
      await served.yes(await served.ask(ROLLBACK, how), ROLLBACK, how)
      assert.equal(served.performed.length, before + 1, JSON.stringify(header))
    }
  }
})

test('every malformed variant that jose can make is refused, and nothing is performed', async (t) => {
  const [served, signers] = await withIssuer(t)
  const [rsa, , ec, ed] = signers
  assert.ok(rsa && ec && ed)
  const stranger = await generateKeyPair('ES256')
  const secret = new TextEncoder().encode('a secret that is as long as it has to be')
  const head = { alg: 'ES256', kid: ec.kid }
  const tokens: Record<string, string> = {
    expired: await unsigned().setExpirationTime('-2m').setProtectedHeader(head).sign(ec.key),
    'not yet': await unsigned().setNotBefore('5m').setProtectedHeader(head).sign(ec.key),
    'another issuer': await unsigned()
      .setIssuer('https://evil.example')
      .setProtectedHeader(head)
      .sign(ec.key),
    'another audience': await unsigned()
      .setAudience('https://evil.example')
      .setProtectedHeader(head)
      .sign(ec.key),
    'no subject': await unsigned().setSubject('').setProtectedHeader(head).sign(ec.key),
    "a stranger's key": await unsigned().setProtectedHeader(head).sign(stranger.privateKey),
    'the id of another key': await unsigned()
      .setProtectedHeader({ ...head, kid: rsa.kid })
      .sign(ec.key),
    HMAC: await unsigned().setProtectedHeader({ alg: 'HS256' }).sign(secret),
    RS512: await rs512(),
    unsigned: new UnsecuredJWT({ scope: 'releases:write' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject('alice')
      .setExpirationTime('5m')
      .encode(),
  }
  for (const [what, token] of Object.entries(tokens)) {
    assert.equal((await served.call(ROLLBACK, {}, mirrored(by(token)))).status, 401, what)
  }
  assert.deepEqual(served.performed, [])

  async function rs512(): Promise<string> {
    const { privateKey } = await generateKeyPair('RS512')
    return unsigned().setProtectedHeader({ alg: 'RS512' }).sign(privateKey)
  }
})

function mirrored({ edit }: ReturnType<typeof by>): ReturnType<typeof by> {
  return {
    edit: (message) => {
      const edited = edit(message)
      return { headers: [...edited.headers, ['Mcp-Param-Service', ROLLBACK.service]], body: edited.body }
    },
  }
}
