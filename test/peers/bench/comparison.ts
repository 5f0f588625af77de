/**
 * The comparison: in each round, for each operation and number of connections, the same load on a
 * bare server, release-ops, the official SDK and a second bare server, in short turns. What
 * a round says is a ratio of its own figures: a machine that is slower for a while slows both sides.
 */
import { send } from '../../../client.ts'
import { type Instance, startServer } from '../../instance.ts'
import { type Load, type Measured, openLoad } from './load.ts'
import { OPERATIONS, type Operation, type Refused, type Shots, shotsFor } from './operations.ts'

export const SERVERS = ['bare', 'release-ops', 'sdk', 'bare again'] as const
export type ServerName = (typeof SERVERS)[number]
export type Servers = Readonly<Record<ServerName, Instance>>

export type Row = Readonly<Record<ServerName, Measured>>
export type Cell = {
  readonly operation: Operation
  readonly connections: number
  /** One for each round that counts. */
  readonly rows: readonly Row[]
}
export type Plan = {
  readonly rounds: number
  /** How long each server is under load in a round of one operation. */
  readonly seconds: number
  readonly connections: readonly number[]
}

/** How much more than the other either bare server may take. */
const AGREEMENT = 0.1
/** How often a round is measured before it is given up. */
const TRIES = 4
/** How long a server has the machine to itself. */
const TURN_MS = 50
/** By then the compiler is done with what an operation runs. */
const WARM_UP_SECONDS = 2

/** States live as long as they may, so that no round meets an expired one. */
export const ENVIRONMENT = {
  STATE_SECRET: 'no secret, but of 32 bytes at least',
  STATE_TTL_SECONDS: '900',
  LOG: 'off',
}
/** The SDK answers a JSON-RPC error, -32602. */
const SDK_REFUSED: Refused = { status: 200, marker: 'Invalid or expired requestState' }

const SDK = 'test/peers/bench/servers/sdk.ts'
const BARE = 'test/peers/bench/servers/bare.ts'
/** What Node writes by itself. */
const OWN_HEADERS = new Set(['date', 'connection', 'keep-alive'])

/** Starts all four, the bare ones with the replies of release-ops. */
export async function startServers(): Promise<Servers> {
  const [ours, sdk] = [await startServer(ENVIRONMENT), await startServer(ENVIRONMENT, SDK)]
  const replies = await Promise.all(
    Object.entries(await shotsFor(ours.url)).map(async ([operation, shot]) => {
      const { status, headers, text: body } = await send(ours.url, shot.message)
      const kept = Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name))
      return [pathOf(operation), { status, headers: Object.fromEntries(kept), body }]
    }),
  )
  const given = { BENCH_REPLIES: JSON.stringify(Object.fromEntries(replies)) }
  const bare = [await startServer(given, BARE), await startServer(given, BARE)] as const
  return { bare: bare[0], 'release-ops': ours, sdk, 'bare again': bare[1] }
}

/** By its path a bare server knows which reply to give. */
const pathOf = (operation: string) => `/${encodeURIComponent(operation)}`

/** @returns the whole table. Progress goes to stderr. */
export async function compare(
  servers: Servers,
  { rounds, seconds, connections: numbers }: Plan,
): Promise<Cell[]> {
  const pairs = OPERATIONS.flatMap((operation) =>
    numbers.map((connections) => ({ operation, connections, rows: [] as Row[] })),
  )
  const shots = await aim(servers)
  console.error('warming up')
  for (const operation of OPERATIONS) await row(servers, shots, operation, 10, WARM_UP_SECONDS)
  for (let round = 1; round <= rounds; round += 1) {
    const shots = await aim(servers)
    for (const { operation, connections, rows } of pairs) {
      console.error(`round ${round} of ${rounds}: ${operation}, connections: ${connections}`)
      for (let tries = 1; tries <= TRIES; tries += 1) {
        const measured = await row(servers, shots, operation, connections, seconds)
        if (agree(measured)) {
          rows.push(measured)
          break
        }
        console.error('The two bare servers disagree.')
      }
    }
  }
  return pairs
}

async function aim({ 'release-ops': ours, sdk }: Servers): Promise<Record<ServerName, Shots>> {
  const shots = await shotsFor(ours.url)
  return {
    bare: shots,
    'release-ops': shots,
    sdk: await shotsFor(sdk.url, SDK_REFUSED),
    'bare again': shots,
  }
}

/** The servers take short turns, so that a machine that is slower for a while slows all of them. */
async function row(
  servers: Servers,
  shots: Record<ServerName, Shots>,
  operation: Operation,
  connections: number,
  seconds: number,
): Promise<Row> {
  const loadOn = (name: ServerName): Promise<Load> => {
    const { url, process } = servers[name]
    const isBare = name === 'bare' || name === 'bare again'
    const target = { url: isBare ? new URL(pathOf(operation), url) : url, pid: Number(process.pid) }
    return openLoad(target, shots[name][operation], connections)
  }
  const loads = {
    bare: await loadOn('bare'),
    'release-ops': await loadOn('release-ops'),
    sdk: await loadOn('sdk'),
    'bare again': await loadOn('bare again'),
  }
  for (let ran = 0; ran < seconds * 1000; ran += TURN_MS)
    for (const name of SERVERS) await loads[name].run(TURN_MS)
  return {
    bare: loads.bare.end(),
    'release-ops': loads['release-ops'].end(),
    sdk: loads.sdk.end(),
    'bare again': loads['bare again'].end(),
  }
}

function agree({ bare, 'bare again': again }: Row): boolean {
  return Math.max(bare.cpu, again.cpu) <= Math.min(bare.cpu, again.cpu) * (1 + AGREEMENT)
}
