/**
 * The whole measurement, or the parts that are named. RESULTS.md and chart.svg are written only by a
 * whole one of enough rounds.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chart } from './chart.ts'
import { coldStarts } from './cold-start.ts'
import { type Cell, compare } from './comparison.ts'
import { amongCrowd } from './crowd.ts'
import { heapAfterRequests } from './heap.ts'
import { manyTools } from './many-tools.ts'
import {
  crowdSection,
  footprintSection,
  header,
  heapSection,
  operationsSections,
  targetsSection,
  toolsSection,
} from './report.ts'
import { starters } from './servers.ts'
import { median } from './statistics.ts'
import {
  CONNECTIONS,
  heapTarget,
  isReached,
  operationTargets,
  type Target,
  toolsTargets,
} from './targets.ts'

const PARTS = ['operations', 'tools', 'heap', 'crowd'] as const
/** With fewer the spread says little. */
const ENOUGH_ROUNDS = 7
const ALL_CONNECTIONS = '1,10,50,200'

export async function bench(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: String(ENOUGH_ROUNDS) },
      seconds: { type: 'string', default: '1' },
      connections: { type: 'string', default: ALL_CONNECTIONS },
    },
  })
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
  const connections = values.connections.split(',').map(Number)
  const known: readonly string[] = PARTS
  if (!(rounds >= 1 && seconds > 0 && connections.every((number) => number >= 1)))
    throw new Error('--rounds, --seconds and --connections take numbers above 0, as 7, 0.5 and 1,10.')
  if (!positionals.every((part) => known.includes(part)))
    throw new Error(`The parts are ${PARTS.join(', ')}.`)
  const wanted = (part: (typeof PARTS)[number]) => positionals.length === 0 || positionals.includes(part)
  const targets: Target[] = []
  const sections: string[] = []
  let cells: Cell[] = []
  const start = await starters()

  if (wanted('operations')) {
    console.error('Start to first answer')
    const starts = await coldStarts(start, rounds)
    const compared = await compare(start, { rounds, seconds, connections })
    cells = compared.cells
    targets.push(...operationTargets(cells))
    sections.push(operationsSections(cells), footprintSection(starts, compared.memory))
  }
  if (wanted('tools')) {
    console.error('Many tools')
    const rows = await manyTools(rounds, seconds)
    targets.push(...toolsTargets(rows))
    sections.push(toolsSection(rows))
  }
  if (wanted('heap')) {
    console.error('Heap')
    const used = await heapAfterRequests()
    targets.push(heapTarget(used))
    sections.push(heapSection(used))
  }
  if (wanted('crowd')) {
    console.error('Slow senders')
    sections.push(crowdSection(await amongCrowd(start, rounds, seconds)))
  }

  if (targets.length > 0) sections.unshift(targetsSection(targets))
  const report = `${[header(args, rounds), ...sections].join('\n\n')}\n`
  console.log(report)
  for (const { what } of targets.filter((target) => !isReached(target))) console.error(`Missed: ${what}`)
  if (rounds < ENOUGH_ROUNDS || positionals.length > 0 || values.connections !== ALL_CONNECTIONS) return
  const short = cells.filter(({ rows }) => rows.length < rounds)
  if (short.length > 0) {
    const which = short.map(({ operation, connections }) => `${operation} at ${connections}`).join(', ')
    console.error(`Not written, since too few rounds counted for ${which}: stop what else is running,`)
    console.error('or give the servers longer turns with --seconds, and measure again.')
    return
  }
  writeFileSync(join(import.meta.dirname, 'RESULTS.md'), report)
  writeFileSync(join(import.meta.dirname, 'chart.svg'), chartOf(cells))
}

function chartOf(cells: readonly Cell[]): string {
  const groups = cells
    .filter(({ connections }) => connections === CONNECTIONS)
    .map(({ operation, rows }) => ({
      name: operation,
      bars: [
        { name: 'bare node:http', value: median(rows.map(({ bare }) => bare.cpu)) },
        { name: 'release-ops', value: median(rows.map((row) => row['release-ops'].cpu)) },
        { name: 'official SDK', value: median(rows.map(({ sdk }) => sdk.cpu)) },
      ],
    }))
  return chart('Processor time of the server for a request, 10 connections', 'µs', groups)
}
