/**
 * A real nginx for one test: it runs as this user, in a folder of its own, and serves a configuration
 * of `balancer/` as that is. What an operator would add is in the files which that includes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { end, until } from './processes.ts'

/** The public name. It is no loopback name to the server, so it counts only by ALLOWED_HOSTS. */
export const PUBLIC_NAME = '127.0.2.1'

export type Nginx = {
  readonly url: URL
  /** Everything written to its log so far. */
  readonly log: () => string
}

/**
 * @param configuration a file of `balancer/`.
 * @param pools the instances, as `host:port`, by the name of the file that lists them.
 */
export async function startNginx(
  t: TestContext,
  configuration: string,
  pools: Readonly<Record<string, readonly string[]>>,
): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  const address = `${PUBLIC_NAME}:${await freePort()}`
  const included = join(folder, 'release-ops')
  mkdirSync(included)
  writeFileSync(join(included, 'public.conf'), `listen ${address};\n`)
  for (const [name, instances] of Object.entries(pools)) {
    const lines = instances.map((instance) => `server ${instance} fail_timeout=1s;\n`)
    writeFileSync(join(included, `${name}.conf`), lines.join(''))
  }
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off;
user ${userInfo().username};
pid nginx.pid;
error_log stderr info;
worker_processes 2;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${kind};`).join(' ')}
  include ${join(import.meta.dirname, 'balancer', configuration)};
}
`,
  )
  const child = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'])
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  t.after(async () => {
    await end(child, 'SIGTERM') // by SIGKILL its workers would stay
    rmSync(folder, { recursive: true, force: true })
  })
  await until(t, () => {
    if (child.exitCode !== null) throw new Error(`nginx did not start:\n${log}`)
    return log.includes('start worker process ')
  })
  return { url: new URL(`http://${address}/mcp`), log: () => log }
}

/** nginx takes no port 0. Nothing else listens on this address. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, PUBLIC_NAME)
  await once(server, 'listening')
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('There is no free port.')
  return address.port
}
