/**
 * The comparison: in each round, for each operation and number of connections, the same load on a
 * bare server, release-ops, the official SDK and a second bare server. What a round says is a ratio
 * of its own figures.
 */
import { residentMemory } from './cpu-time.ts'
import { inTurns, type Measured, openLoad, warmUp } from './load.ts'
import { OPERATIONS, type Operation, type Shots } from './operations.ts'
import type { Kind, Server, Starters } from './servers.ts'

/** One round of one operation. */
export type Row = Readonly<Record<Kind | 'control', Measured>>
export type Cell = {
  readonly operation: Operation
  readonly connections: number
  /** One for each round that counts. */
  readonly rows: readonly Row[]
}
export type Memory = Readonly<Record<Kind, { readonly idle: number; readonly loaded: number }>>

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

type Servers = Readonly<Record<keyof Row, Server>>
type AllShots = Readonly<Record<keyof Row, Shots>>

/** Progress goes to stderr. */
export async function compare(start: Starters, plan: Plan): Promise<{ cells: Cell[]; memory: Memory }> {
  const servers: Servers = {
    bare: await start.bare(),
    'release-ops': await start['release-ops'](),
    sdk: await start.sdk(),
    control: await start.bare(),
  }
  const memory = () => eachOf(servers, ({ pid }) => residentMemory(pid))
  try {
    const idle = await memory()
    console.error('Warming up')
    await eachOf(servers, async ({ pid, shots }) => warmUp(pid, Object.values(await shots())))
    const cells = await playRounds(servers, plan)
    const loaded = await memory()
    return {
      cells,
      memory: await eachOf(servers, (_, name) => ({ idle: idle[name], loaded: loaded[name] })),
    }
  } finally {
    await eachOf(servers, ({ stop }) => stop())
  }
}

async function playRounds(servers: Servers, { rounds, seconds, connections }: Plan): Promise<Cell[]> {
  const cells = OPERATIONS.flatMap((operation) =>
    connections.map((connections) => ({ operation, connections, rows: [] as Row[] })),
  )
  for (let round = 1; round <= rounds; round += 1) {
    console.error(`Round ${round} of ${rounds}`)
    const shots = await eachOf(servers, ({ shots }) => shots())
    for (const { operation, connections, rows } of cells) {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const row = await playRow(servers, shots, operation, connections, seconds)
        if (!agree(row)) continue
        rows.push(row)
        break
      }
    }
  }
  return cells
}

async function playRow(
  servers: Servers,
  shots: AllShots,
  operation: Operation,
  connections: number,
  seconds: number,
): Promise<Row> {
  const loads = await eachOf(servers, ({ pid }, name) => openLoad(pid, shots[name][operation], connections))
  return inTurns(loads, seconds)
}

function agree({ bare, control }: Row): boolean {
  return Math.max(bare.cpu, control.cpu) <= Math.min(bare.cpu, control.cpu) * (1 + AGREEMENT)
}

/** One server after another, in the order of a row. */
async function eachOf<T>(
  servers: Servers,
  of: (server: Server, name: keyof Row) => T | Promise<T>,
): Promise<Record<keyof Row, T>> {
  return {
    bare: await of(servers.bare, 'bare'),
    'release-ops': await of(servers['release-ops'], 'release-ops'),
    sdk: await of(servers.sdk, 'sdk'),
    control: await of(servers.control, 'control'),
  }
}
