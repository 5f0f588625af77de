import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig as read } from '../lib/config.ts'
import { Environment, type Variables } from '../lib/environment.ts'
import { SECRET } from './serve.ts'

const OTHER_SECRET = 'test-secret-1-test-secret-1-test-secret-1'

function readConfig(variables: Variables) {
  const env = new Environment(variables)
  const config = read(env)
  env.finish()
  return { ...config, warnings: env.warnings }
}

/** The lines of what stops the start. */
function problems(env: Variables): string[] {
  try {
    readConfig(env)
  } catch (error) {
    assert.ok(error instanceof Error)
    return error.message.split('\n')
  }
  return []
}

test('without any variable it listens on port 3000 of loopback, with a secret of its own', () => {
  const config = readConfig({})
  assert.deepEqual(
    { ...config, secrets: config.secrets.map((s) => s.length), warnings: config.warnings.length },
    {
      host: '127.0.0.1',
      port: 3000,
      rules: { loopback: true, allowedOrigins: undefined, allowedHosts: undefined },
      maxBodyBytes: 1_048_576,
      secrets: [32],
      audience: undefined,
      ttlMs: 300_000,
      actionMs: 60_000,
      logging: true,
      warnings: 1,
    },
  )
  assert.notDeepEqual(readConfig({}).secrets, config.secrets)
})

test('a random secret is warned about, with a command that makes a lasting one', () => {
  assert.match(readConfig({}).warnings.join('\n'), /STATE_SECRET is not set.*node -p "require/)
  assert.deepEqual(readConfig({ STATE_SECRET: SECRET }).warnings, [])
})

test('every bad value stops the start with a line that names the variable and what to set', () => {
  const cases: [Variables, RegExp][] = [
    [{ PORT: '' }, /^PORT must be a port number.*from 0 to 65535/],
    [{ PORT: 'http' }, /^PORT must/],
    [{ PORT: '65536' }, /^PORT must/],
    [{ PORT: '-1' }, /^PORT must/],
    [{ PORT: '30.5' }, /^PORT must/],
    [{ PORT: '0x10' }, /^PORT must/],
    [{ HOST: '' }, /^HOST is empty/],
    [{ STATE_SECRET: '' }, /^STATE_SECRET has 0 bytes and needs at least 32\. Make one: node -p/],
    [{ STATE_SECRET: 'x'.repeat(31) }, /^STATE_SECRET has 31 bytes/],
    [{ STATE_SECRET: ' '.repeat(32) }, /^STATE_SECRET is nothing but white space\. Make one: node -p/],
    [{ STATE_SECRET: '\t\r\n '.repeat(10) }, /^STATE_SECRET is nothing but white space/],
    [{ STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: ' '.repeat(32) }, /^STATE_SECRET_ACCEPTED is nothing/],
    [{ STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: 'short' }, /^STATE_SECRET_ACCEPTED has 5 bytes/],
    [{ STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: SECRET }, /^STATE_SECRET_ACCEPTED equals/],
    [{ ACTION_TIMEOUT_SECONDS: '0' }, /^ACTION_TIMEOUT_SECONDS must/],
    [{ STATE_SECRET_FILE: '/no/such/file' }, /^STATE_SECRET_FILE names a file that can't be read/],
    [{ STATE_SECRET_ACCEPTED: SECRET }, /^STATE_SECRET_ACCEPTED needs STATE_SECRET/],
    [{ STATE_TTL_SECONDS: '0' }, /^STATE_TTL_SECONDS must be a number of seconds, from 1 to 900/],
    [{ STATE_TTL_SECONDS: '901' }, /^STATE_TTL_SECONDS must/],
    [{ STATE_TTL_SECONDS: '1.5' }, /^STATE_TTL_SECONDS must/],
    [{ STATE_TTL_SECONDS: 'Infinity' }, /^STATE_TTL_SECONDS must/],
    [{ STATE_AUDIENCE: ' ' }, /^STATE_AUDIENCE is empty/],
    [{ MAX_BODY_BYTES: '0' }, /^MAX_BODY_BYTES must/],
    [{ MAX_BODY_BYTES: '99999999999' }, /^MAX_BODY_BYTES must/],
    [{ LOG: 'verbose' }, /^LOG must be on or off/],
    [{ ALLOWED_ORIGINS: 'app.example.com' }, /^ALLOWED_ORIGINS has "app.example.com"/],
    [{ ALLOWED_ORIGINS: 'https://app.example.com/' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_ORIGINS: '*' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_ORIGINS: 'https://app.example.com:443' }, /^ALLOWED_ORIGINS has .*no default port/],
    [{ ALLOWED_ORIGINS: 'http://app.example.com:80' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_ORIGINS: 'https://app.example.com:08443' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_ORIGINS: 'https://app.example.com:99999' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_ORIGINS: 'https://bücher.example' }, /^ALLOWED_ORIGINS has .*ASCII/],
    [{ ALLOWED_ORIGINS: 'http://[2001:0db8::1]' }, /^ALLOWED_ORIGINS has/],
    [{ ALLOWED_HOSTS: 'https://mcp.example.com' }, /^ALLOWED_HOSTS has/],
  ]
  for (const [env, line] of cases) {
    const found = problems({ STATE_SECRET: SECRET, ...env })
    if (Object.hasOwn(env, 'STATE_SECRET_ACCEPTED') && !Object.hasOwn(env, 'STATE_SECRET')) {
      assert.match(problems(env).join('\n'), line)
    } else {
      assert.equal(found.length, 1, JSON.stringify(env))
      assert.match(found[0] ?? '', line)
    }
  }
})

test('all problems are reported together', () => {
  const found = problems({ PORT: 'x', STATE_SECRET: '', STATE_TTL_SECONDS: '0', LOG: 'maybe' })
  const names = found.map((line) => line.split(' ')[0])
  assert.deepEqual(names, ['PORT', 'STATE_SECRET', 'STATE_TTL_SECONDS', 'LOG'])
})

test('the edges of every range are accepted', () => {
  const secret = { STATE_SECRET: SECRET }
  assert.equal(readConfig({ ...secret, PORT: '0' }).port, 0)
  assert.equal(readConfig({ ...secret, PORT: '65535' }).port, 65_535)
  assert.equal(readConfig({ ...secret, STATE_TTL_SECONDS: '1' }).ttlMs, 1000)
  assert.equal(readConfig({ ...secret, STATE_TTL_SECONDS: '900' }).ttlMs, 900_000)
  assert.equal(readConfig({ STATE_SECRET: 'x'.repeat(32) }).secrets[0]?.length, 32)
})

test('a secret is counted in bytes, not in characters', () => {
  assert.equal(readConfig({ STATE_SECRET: 'é'.repeat(16) }).secrets[0]?.length, 32)
})

test('a host that is not loopback needs a secret', () => {
  for (const HOST of ['0.0.0.0', '::', '[::]', '192.0.2.1', 'mcp.example.com', '128.0.0.1']) {
    assert.match(problems({ HOST }).join('\n'), /STATE_SECRET is required when HOST isn't loopback/)
  }
  for (const HOST of ['127.0.0.1', '127.8.8.8', 'localhost', '::1', '[::1]', 'LOCALHOST']) {
    assert.equal(readConfig({ HOST }).rules.loopback, true)
  }
})

test('a secret file that can not be read is one problem: the secret was given, so it is not missing', () => {
  for (const env of [{ HOST: '0.0.0.0' }, { STATE_SECRET_ACCEPTED: SECRET }]) {
    const found = problems({ STATE_SECRET_FILE: '/no/such/file', ...env })
    assert.deepEqual(
      found.map((line) => line.split(' ')[0]),
      ['STATE_SECRET_FILE'],
    )
  }
})

test('lists are split at commas, without case and without empty entries', () => {
  const { rules } = readConfig({
    ALLOWED_ORIGINS: 'https://App.example.com, http://[2001:db8::1]:8080, https://app.example.com:80,',
    ALLOWED_HOSTS: 'MCP.example.com,mcp.example.com:8443',
  })
  assert.deepEqual(
    [...(rules.allowedOrigins ?? [])],
    ['https://app.example.com', 'http://[2001:db8::1]:8080', 'https://app.example.com:80'],
  )
  assert.deepEqual([...(rules.allowedHosts ?? [])], ['mcp.example.com', 'mcp.example.com:8443'])
})

test('the signing secret comes first and the accepted one second', () => {
  const { secrets } = readConfig({ STATE_SECRET: SECRET, STATE_SECRET_ACCEPTED: OTHER_SECRET })
  assert.deepEqual(secrets.map(String), [SECRET, OTHER_SECRET])
})
