/**
 * The server that is fuzzed: the real one in a process of its own, whose heap nobody else uses. Its clock
 * stands still and its random bytes are numbered, so that a request can be sent again as it was.
 */
import crypto from 'node:crypto'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Action } from '../lib/action.ts'
import type { HttpServer } from '../lib/http-server.ts'
import { listen } from '../lib/lifecycle.ts'
import type { Log } from '../lib/log.ts'
import { compose } from '../server.ts'
import type { Deed } from './fuzz-oracle.ts'
import { TOKENS } from './fuzz-requests.ts'

const ENVIRONMENT = {
  STATE_SECRET: 'fuzz-secret-fuzz-secret-fuzz-secret',
  RATE_LIMIT_PER_MINUTE: '0',
  MAX_BODY_BYTES: '32768', // so that a body beyond it is nothing special
}
/** Longer than any outcome is kept. */
const BATCH_MS = 25 * 60 * 60 * 1000

export type Order = { readonly begin: number } | { readonly report: true }
export type Acted = Deed & { readonly reason: string }
export type Report = {
  readonly acted: readonly Acted[]
  readonly failures: readonly string[]
  readonly heap: number
}

export type Fuzzed = {
  readonly http: HttpServer
  readonly obey: (order: Order) => Report | undefined
}

/** Composes it, with a log and an action that are only counted. */
export async function composeFuzzed(): Promise<Fuzzed> {
  let batch = 0
  let drawn = 0
  let acted: Acted[] = []
  let failures: string[] = []

  const randomBytes = (size: number) => sha256(`batch ${batch}, bytes ${drawn++}`).subarray(0, size)
  const randomUUID = () => {
    const hex = randomBytes(16).toString('hex')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
      '-',
    )
  }
  Object.assign(crypto, { randomBytes, randomUUID })
  syncBuiltinESMExports()
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')

  const log: Log = {
    request: () => {},
    decision: () => {},
    failure: (thrown) => failures.push(thrown instanceof Error ? (thrown.stack ?? '') : String(thrown)),
    say: () => {},
  }
  const action: Action = {
    faultOf: () => undefined,
    run: async (values, reason, { subject }) => {
      acted.push({ user: subject, values, reason })
      await new Promise((resolve) => setImmediate(resolve)) // time for a client to hang up in
      return undefined
    },
  }
  const now = () => Date.UTC(2026, 11, 1) + batch * BATCH_MS
  const { http } = await withTokens((file) => {
    const env = { ...ENVIRONMENT, AUTH_TOKENS_FILE: file }
    return compose(env, { now, log, action })
  })

  const obey = (order: Order): Report | undefined => {
    if ('begin' in order) {
      batch = order.begin
      drawn = 0
      return undefined
    }
    collect()
    const report = { acted, failures, heap: process.memoryUsage().heapUsed }
    acted = []
    failures = []
    return report
  }
  return { http, obey }
}

async function withTokens<T>(use: (file: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'))
  const scopes = (user: string) => (user === 'carol' ? '' : 'releases:write')
  const lines = Object.entries(TOKENS).map(
    ([user, token]) => `${sha256(token).toString('hex')} ${user} ${scopes(user)}`,
  )
  try {
    const file = join(folder, 'tokens')
    writeFileSync(file, lines.join('\n'))
    return await use(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function sha256(text: string): Buffer {
  return crypto.createHash('sha256').update(text).digest()
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { http, obey } = await composeFuzzed()
  process.on('message', (order: Order) => process.send?.(obey(order) ?? 'done'))
  process.on('disconnect', () => process.exit(0))
  process.send?.(await listen(http.server, 0, '127.0.0.1'))
}
