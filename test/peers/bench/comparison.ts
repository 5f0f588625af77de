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
/** How many rounds there may be for each one that is wanted, since not all of them count. */
const MOST_ROUNDS = 3

type Servers = Readonly<Record<keyof Row, Server>>
type AllShots = Readonly<Record<keyof Row, Shots>>

/**
 * Each round has processes of its own, so that what differs from start to start is in the spread.
 * Rounds go on until enough of them counted for each cell, or there were too many.
 * Progress goes to stderr.
 * @returns the cells, some perhaps with fewer rows than wanted, and the memory of the last round.
 */
export async function compare(start: Starters, plan: Plan): Promise<{ cells: Cell[]; memory: Memory }> {
  const cells = OPERATIONS.flatMap((operation) =>
    plan.connections.map((connections) => ({ operation, connections, rows: [] as Row[] })),
  )
  for (let round = 1, lacking = cells; ; round += 1) {
    console.error(`Round ${round}: ${lacking.length} of ${cells.length} need more`)
    const memory = await playRound(start, lacking, plan.seconds)
    lacking = cells.filter(({ rows }) => rows.length < plan.rounds)
    if (lacking.length === 0 || round === plan.rounds * MOST_ROUNDS) return { cells, memory }
  }
}

/** Adds a row to each cell for which the round counts. */
async function playRound(
  start: Starters,
  cells: readonly (Omit<Cell, 'rows'> & { readonly rows: Row[] })[],
  seconds: number,
): Promise<Memory> {
  const servers: Servers = {
    bare: await start.bare(),
    'release-ops': await start['release-ops'](),
    sdk: await start.sdk(),
    control: await start.bare(),
  }
  const memory = () => eachOf(servers, ({ pid }) => residentMemory(pid))
  try {
    const idle = await memory()
    const shots = await eachOf(servers, ({ shots }) => shots())
    await eachOf(servers, ({ pid }, name) => warmUp(pid, Object.values(shots[name])))
    for (const { operation, connections, rows } of cells) {
      const row = await playRow(servers, shots, operation, connections, seconds)
      if (agree(row)) rows.push(row)
    }
    const loaded = await memory()
    return await eachOf(servers, (_, name) => ({ idle: idle[name], loaded: loaded[name] }))
  } finally {
    await eachOf(servers, ({ stop }) => stop())
  }
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
