/** Instances of one server behind a balancer. Each keeps its address when it is started again. */
import type { TestContext } from 'node:test'
import { type Instance, startServer } from '../instance.ts'
import { PUBLIC_NAME } from './nginx.ts'
import { end } from './processes.ts'

export type Replica = {
  /** `host:port` */
  readonly address: string
  /** The process that runs now. */
  readonly instance: () => Instance
  readonly start: (env: Record<string, string>) => Promise<void>
}

/** What is the same on all of them; STATE_SECRET is the caller's. */
const SHARED = { STATE_AUDIENCE: 'mcp.example.com', ALLOWED_HOSTS: PUBLIC_NAME }

/** Started at the same time, each on a loopback address of its own, so that nobody takes its port. */
export function startReplicas(
  t: TestContext,
  count: number,
  env: Record<string, string>,
): Promise<Replica[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => startReplica(t, `127.0.1.${i + 1}`, env)))
}

async function startReplica(t: TestContext, host: string, first: Record<string, string>): Promise<Replica> {
  let instance = await startServer({ ...SHARED, ...first, HOST: host })
  const { port, host: address } = instance.url
  t.after(() => end(instance.process))
  const start = async (env: Record<string, string>) => {
    instance = await startServer({ ...SHARED, ...env, HOST: host, PORT: port })
    if (t.signal.aborted) await end(instance.process) // nobody else would
  }
  return { address, instance: () => instance, start }
}

/** The JSON lines that a process has written so far. */
export function linesOf({ stderr }: Instance): { readonly [member: string]: unknown }[] {
  const lines = stderr().split('\n').slice(0, -1)
  return lines.flatMap((line) => (line.startsWith('{') ? JSON.parse(line) : []))
}
