/**
 * The server as its users start it: a process of its own. It runs under the flags of this process,
 * so that it also starts where nothing is installed and node reads TypeScript by itself.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

export type Instance = {
  readonly url: URL
  readonly process: ChildProcess
  /** Everything written to stderr so far. */
  readonly stderr: () => string
  /** Asks it to stop. @returns the exit code. */
  readonly stop: () => Promise<number | null>
}

/** Variables that the server reads: a test's own shell must not change what it starts. */
const READ =
  /^(PORT|HOST|LOG|MAX_BODY_BYTES|STATE_|ALLOW|AUTH_|RATE_|REDIS_|ACTION_|ROLLBACK_|SCALE_|REPLICA_)/

/**
 * Runs a file of this project with node's arguments, and in an environment with only what is given.
 * @param under the program, with its own arguments, that starts it, e.g. a shell that limits it.
 */
export function start(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
  under: readonly string[] = [],
): ChildProcess {
  const rest = Object.entries(process.env).filter(([name]) => !READ.test(name))
  const [program = '', ...words] = [...under, process.execPath, ...process.execArgv, file, ...args]
  return spawn(program, words, {
    cwd: ROOT,
    env: { ...Object.fromEntries(rest), ...env },
  })
}

/** Starts the server, or another that says the same, on a free port and waits for its first line. */
export async function startServer(
  env: Record<string, string> = {},
  file = 'server.ts',
  under: readonly string[] = [],
): Promise<Instance> {
  const child = start(file, [], { PORT: '0', ...env }, under)
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk
  })
  const line = await Promise.race([
    once(child.stdout ?? child, 'data').then(([chunk]) => String(chunk)),
    once(child, 'exit').then(() => ''),
  ])
  const url = /^MCP on (http:\S+)\n/.exec(line)?.[1]
  if (url === undefined) throw new Error(`The server did not start:\n${stderr}`)
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGTERM')
    const [code] = await exited
    return code as number | null
  }
  return { url: new URL(url), process: child, stderr: () => stderr, stop }
}
