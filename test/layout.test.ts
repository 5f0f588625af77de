import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import { ROOT } from './instance.ts'

/**
 * Every file of the server, leaves first: a file imports only from files above it. Adding a file
 * means choosing its place here.
 */
const ORDER = [
  'lib/protocol.ts',
  'lib/display.ts',
  'lib/money.ts',
  'lib/environment.ts',
  'lib/schema-keywords.ts',
  'lib/schema.ts',
  'lib/canonical.ts',
  'lib/refusal.ts',
  'lib/headers.ts',
  'lib/principal.ts',
  'lib/action.ts',
  'lib/command.ts',
  'lib/hmac.ts',
  'lib/seal.ts',
  'lib/encryption.ts',
  'lib/state-payload.ts',
  'lib/state.ts',
  'lib/result.ts',
  'lib/request.ts',
  'lib/tool.ts',
  'lib/outcome-store.ts',
  'lib/redis-store.ts',
  'lib/single-use.ts',
  'lib/capabilities.ts',
  'lib/form.ts',
  'lib/gate.ts',
  'lib/tools/visible-text.ts',
  'lib/tools/rollback-release.ts',
  'lib/tools/scale-service.ts',
  'lib/tool-definition.ts',
  'lib/retry.ts',
  'lib/boundary.ts',
  'lib/tools-call.ts',
  'lib/methods.ts',
  'lib/request-meta.ts',
  'lib/envelope.ts',
  'lib/admission.ts',
  'lib/log.ts',
  'lib/reply.ts',
  'lib/identity.ts',
  'lib/anonymous.ts',
  'lib/bearer.ts',
  'lib/auth-tokens.ts',
  'lib/jwt.ts',
  'lib/jwks.ts',
  'lib/protected-resource.ts',
  'lib/auth-jwt.ts',
  'lib/rate-limit.ts',
  'lib/trail.ts',
  'lib/body.ts',
  'lib/event-stream.ts',
  'lib/exchange.ts',
  'lib/departure.ts',
  'lib/parser-errors.ts',
  'lib/http-server.ts',
  'lib/http-rules.ts',
  'lib/edge.ts',
  'lib/config.ts',
  'lib/lifecycle.ts',
  'server.ts',
]

/** Static and dynamic imports, and re-exports. */
const IMPORT =
  /(?:^|\n)(?:import|export)\s[^'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g

function importsOf(file: string): string[] {
  const source = readFileSync(posix.join(ROOT, file), 'utf8')
  return [...source.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

test('every file of lib has a place in the order', () => {
  const files = readdirSync(posix.join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((file) => file.endsWith('.ts')).map((file) => `lib/${file}`)
  assert.deepEqual([...sources, 'server.ts'].sort(), [...ORDER].sort())
})

test('every import of the server is a node: module or a relative path to a file above it', () => {
  for (const [place, file] of ORDER.entries()) {
    for (const name of importsOf(file)) {
      if (name.startsWith('node:')) continue
      assert.match(name, /^\.{1,2}\/.*\.ts$/, `${file} imports ${name}`)
      const imported = posix.join(posix.dirname(file), name)
      const above = ORDER.indexOf(imported)
      assert.ok(above >= 0 && above < place, `${file} imports ${imported}, which is not above it`)
    }
  }
})

test('the client imports node: modules only, and the hostile cases when it is asked for them', () => {
  const names = importsOf('client.ts').filter((name) => !name.startsWith('node:'))
  assert.deepEqual(names, ['./test/hostile.ts'])
})

test('the package has no runtime dependency', () => {
  const manifest = JSON.parse(readFileSync(posix.join(ROOT, 'package.json'), 'utf8'))
  for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
    assert.equal(manifest[kind], undefined)
  }
})
