/** What was promised, and whether the figures keep it. */
import type { Cell, Row } from './comparison.ts'
import { MANY, type ToolsRow } from './many-tools.ts'
import type { Operation } from './operations.ts'
import { type Spread, spread } from './statistics.ts'

export type Target = {
  readonly what: string
  readonly measured: Spread
  /** Reached when the median is within it. */
  readonly atMost?: number
  readonly atLeast?: number
  readonly unit?: string
}

/** Targets are for this many connections. */
export const CONNECTIONS = 10
/** How many times the processor time of the bare server a request may cost. */
const OF_BARE: Readonly<Record<Operation, number>> = {
  discover: 1.25,
  list: 1.25,
  'first call': 2.2,
  'confirmed retry': 1.9,
  'refused retry': 1.9,
}
/** How many times the processor time of release-ops it costs on the SDK. */
const OF_OURS = 12
/** How many times the processor time with one tool a call may cost with many. */
const OF_ONE = 1.1
/** How much more heap may be in use after the last request counted than after the first, in MB. */
const HEAP_MB = 5

export const ofBare = (row: Row) => row['release-ops'].cpu / ((row.bare.cpu + row.control.cpu) / 2)
export const ofOurs = (row: Row) => row.sdk.cpu / row['release-ops'].cpu
export const ofOne = (row: ToolsRow) => row.many.cpu / row.one.cpu

export const isReached = ({ measured: { median }, atMost = Infinity, atLeast = -Infinity }: Target) =>
  median <= atMost && median >= atLeast

export function operationTargets(cells: readonly Cell[]): Target[] {
  return cells
    .filter(({ connections }) => connections === CONNECTIONS)
    .flatMap(({ operation, rows }) => [
      {
        what: `${operation}: release-ops / bare`,
        measured: spread(rows.map(ofBare)),
        atMost: OF_BARE[operation],
      },
      { what: `${operation}: SDK / release-ops`, measured: spread(rows.map(ofOurs)), atLeast: OF_OURS },
    ])
}

export function toolsTargets(rows: ReadonlyMap<Operation, readonly ToolsRow[]>): Target[] {
  return [...rows].map(([operation, rows]) => ({
    what: `${operation}: with ${MANY} tools / with one`,
    measured: spread(rows.map(ofOne)),
    atMost: OF_ONE,
  }))
}

export function heapTarget(used: readonly number[]): Target {
  const growth = (Number(used.at(-1)) - Number(used[0])) / 1e6
  return {
    what: 'heap after the last requests less the first',
    measured: spread([growth]),
    atMost: HEAP_MB,
    unit: 'MB',
  }
}
