/** A real redis-server for one test, and how `server.ts` gets at the npm package of this folder. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { until } from './processes.ts'

/** Lets `import('redis')` in `server.ts` find the package of this folder, as if it were installed. */
const RESOLVE = `export const resolve = (name, context, next) =>
  next(name, name === 'redis' ? { ...context, parentURL: '${pathToFileURL(import.meta.filename)}' } : context)`
const INSTALL = `import { register } from 'node:module'; register(${JSON.stringify(asModule(RESOLVE))})`
/** NODE_OPTIONS of a server process that is to have REDIS_URL. */
export const WITH_REDIS_PACKAGE = `--import=${asModule(INSTALL)}`

function asModule(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`
}

export type Redis = {
  readonly url: string
  readonly start: () => Promise<void>
  readonly process: () => ChildProcess
}

/** A redis-server of this test, on a socket in its folder; it keeps nothing on disk. */
export function redisIn(t: TestContext, folder: string): Redis {
  const socket = join(folder, 'redis.sock')
  const flags = ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', folder]
  let child: ChildProcess | undefined
  t.after(() => child?.kill('SIGKILL'))
  const start = async () => {
    const started = spawn('redis-server', flags)
    child = started
    let said = ''
    started.stdout.on('data', (chunk) => {
      said += chunk
    })
    await until(t, () => {
      if (started.exitCode !== null) throw new Error(`redis-server did not start:\n${said}`)
      return /ready to accept connections/i.test(said)
    })
  }
  return {
    url: `unix://${socket}`,
    start,
    process: () => child ?? assert.fail('redis-server is not started'),
  }
}
