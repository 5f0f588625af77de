/** The servers that are measured, each in a process of its own on a free port. */
import { send } from '../../../client.ts'
import { type Instance, startServer } from '../../instance.ts'
import type { Shot } from './load.ts'
import { discoverShot, OPERATIONS, type Refused, type Shots, shotsFor } from './operations.ts'

export const KINDS = ['bare', 'release-ops', 'sdk'] as const
export type Kind = (typeof KINDS)[number]
export type Server = {
  readonly pid: number
  readonly discover: Shot
  /** Requests with a state that was sealed just now. */
  readonly shots: () => Promise<Shots>
  readonly stop: Instance['stop']
}
/** How to start one of each. */
export type Starters = Readonly<Record<Kind, () => Promise<Server>>>

/** A state lives as long as it may, so that no round meets an expired one. */
const ENVIRONMENT = {
  STATE_SECRET: 'no secret, but of 32 bytes at least',
  STATE_TTL_SECONDS: '900',
  LOG: 'off',
}
/** The SDK answers a JSON-RPC error, -32602. */
const SDK_REFUSED: Refused = { status: 200, marker: 'Invalid or expired requestState' }
/** What Node writes by itself. */
const OWN_HEADERS = new Set(['date', 'connection', 'keep-alive'])

/** Asks release-ops for the replies that the bare servers give. */
export async function starters(): Promise<Starters> {
  const ours = await startOurs()
  const shots = await ours.shots()
  const replies = await Promise.all(OPERATIONS.map((operation) => replyTo(shots[operation])))
  await ours.stop()
  const env = { BENCH_REPLIES: JSON.stringify(replies) }

  async function startBare(): Promise<Server> {
    const { url, process, stop } = await startServer(env, 'test/peers/bench/servers/bare.ts')
    // By its path it knows which reply to give.
    const entries = OPERATIONS.map((operation, index) => [
      operation,
      { ...shots[operation], url: new URL(`/${index}`, url) },
    ])
    const own: Shots = Object.fromEntries(entries)
    return { pid: Number(process.pid), discover: own.discover, shots: async () => own, stop }
  }

  return { bare: startBare, 'release-ops': startOurs, sdk: startSdk }
}

const startOurs = async () => served(await startServer(ENVIRONMENT))
const startSdk = async () =>
  served(await startServer(ENVIRONMENT, 'test/peers/bench/servers/sdk.ts'), SDK_REFUSED)

/** A fork of release-ops with this many tools more. */
export async function startFork(tools: number): Promise<Server & { readonly url: URL }> {
  const env = { ...ENVIRONMENT, BENCH_TOOLS: String(tools) }
  const instance = await startServer(env, 'test/peers/bench/servers/fork.ts')
  return { ...served(instance), url: instance.url }
}

function served({ url, process, stop }: Instance, refused?: Refused): Server {
  return {
    pid: Number(process.pid),
    discover: discoverShot(url),
    shots: () => shotsFor(url, refused),
    stop,
  }
}

/** A reply as a bare server can give it. */
async function replyTo({ url, message }: Shot): Promise<object> {
  const { status, headers, text: body } = await send(url, message)
  const kept = Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name))
  return { status, headers: Object.fromEntries(kept), body }
}
