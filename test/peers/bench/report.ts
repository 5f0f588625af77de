/** Everything that was measured, in Markdown. */
import { readFileSync } from 'node:fs'
import { arch, cpus, release, type as system, totalmem } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../instance.ts'
import type { Cell, Memory, Row } from './comparison.ts'
import { type CrowdRow, IDLE, SLOW } from './crowd.ts'
import { CHECKPOINTS } from './heap.ts'
import { oursInstalled, type Size, sdkInstalled } from './installed-size.ts'
import type { Measured } from './load.ts'
import { MANY, type ToolsRow } from './many-tools.ts'
import type { Operation } from './operations.ts'
import { KINDS, type Kind } from './servers.ts'
import { spread } from './statistics.ts'
import { medianOf, number, range, rangeOf, table } from './table.ts'
import { isReached, ofBare, ofOne, ofOurs, type Target } from './targets.ts'

const NAMES: Readonly<Record<Kind, string>> = { bare: 'bare', 'release-ops': 'release-ops', sdk: 'SDK' }

/** What was run, on what, and how to read the figures. */
export function header(args: readonly string[], rounds: number): string {
  const versionOf = (...path: string[]): string =>
    JSON.parse(readFileSync(join(ROOT, ...path, 'package.json'), 'utf8')).version
  const sdk = ['server', 'node'].map((name) => {
    const full = `@modelcontextprotocol/${name}`
    return `${full} ${versionOf('test', 'peers', 'node_modules', full)}`
  })
  const node = ['node', ...process.execArgv].join(' ')
  return `# Measured

By \`${[node, 'test/peers/bench/run.ts', ...args].join(' ')}\`, which \`npm run bench\` runs. Each server is a process of its own, started with \`${node} FILE\`.

${table(
  ['', ''],
  [
    ['machine', `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${number(totalmem() / 1e9)} GB`],
    ['system', `${system()} ${release()} ${arch()}, Node.js ${process.version}`],
    ['date', new Date().toISOString().slice(0, 10)],
    ['release-ops', `${versionOf('.')}, all checks on, \`LOG=off\``],
    ['SDK', `${sdk.join(', ')}: the same tool, its own state codec`],
    ['bare', 'node:http that reads, parses and answers the bytes that release-ops answers'],
  ],
)}

Values are medians of the rounds that counted, ${rounds} unless a table says fewer, with the least and the greatest in brackets. A round of the operations has new processes, which take turns of 50 ms, each after each other equally often; it counts where the CPU times of two identical bare servers agree within 10 %. A ratio is taken within a round. CPU is the time that all threads of the server's process spend on a processor, user and kernel mode, for each request.`
}

export function targetsSection(targets: readonly Target[]): string {
  const rows = targets.map((target) => {
    const { what, measured, atMost, atLeast, unit = '' } = target
    const bound = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`
    return [
      what,
      `${range(measured)} ${unit}`,
      `${bound} ${unit}`,
      isReached(target) ? 'reached' : '**missed**',
    ]
  })
  return `## Targets\n\nCPU time for a request, 10 connections.\n\n${table(['', 'measured', 'target', ''], rows)}`
}

export function operationsSections(cells: readonly Cell[]): string {
  const ofBoth = (figure: keyof Measured) => (row: Row) =>
    row['release-ops'][figure] / ((row.bare[figure] + row.control[figure]) / 2)
  const ratios = cells.map(({ operation, connections, rows }) => [
    operation,
    String(connections),
    String(rows.length),
    rangeOf(rows, ofBare),
    rangeOf(rows, ofOurs),
    rangeOf(rows, ofBoth('perSecond')),
    rangeOf(rows, (row) => row['release-ops'].perSecond / row.sdk.perSecond),
    rangeOf(rows, ofBoth('p99')),
    rangeOf(rows, (row) => row.sdk.p99 / row['release-ops'].p99),
  ])
  const figures = cells.flatMap(({ operation, connections, rows }) =>
    KINDS.map((kind) => [
      operation,
      String(connections),
      NAMES[kind],
      medianOf(rows, (row) => row[kind].perSecond),
      medianOf(rows, (row) => row[kind].p50),
      medianOf(rows, (row) => row[kind].p99),
      medianOf(rows, (row) => row[kind].cpu),
    ]),
  )
  const both = ['release-ops / bare', 'SDK / release-ops']
  return `## Ratios\n\n${table(
    [
      'operation',
      'connections',
      'rounds',
      ...both.map((of) => `CPU, ${of}`),
      'requests/s, release-ops / bare',
      'requests/s, release-ops / SDK',
      ...both.map((of) => `p99, ${of}`),
    ],
    ratios,
  )}\n\n## Figures\n\n${table(
    ['operation', 'connections', 'server', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs'],
    figures,
  )}`
}

export function footprintSection(starts: Record<Kind, readonly number[]>, memory: Memory): string {
  const megabytes = (bytes: number) => `${number(bytes / 1e6)} MB`
  const size = ({ bytes, files, packages }: Size) =>
    `${megabytes(bytes)} in ${files} files, ${packages} packages`
  return `## Start, memory, size\n\n${table(
    ['', ...KINDS.map((kind) => NAMES[kind])],
    [
      ['start to first answer, ms', ...KINDS.map((kind) => range(spread(starts[kind])))],
      ['memory (RSS) idle', ...KINDS.map((kind) => megabytes(memory[kind].idle))],
      ['memory (RSS) after the load', ...KINDS.map((kind) => megabytes(memory[kind].loaded))],
      ['installed (Node.js 22.18 or later aside)', '–', size(oursInstalled()), size(sdkInstalled())],
    ],
  )}`
}

export function toolsSection(operations: ReadonlyMap<Operation, readonly ToolsRow[]>): string {
  const rows = [...operations].map(([operation, rows]) => [
    operation,
    medianOf(rows, ({ one }) => one.cpu),
    medianOf(rows, ({ many }) => many.cpu),
    rangeOf(rows, ofOne),
  ])
  return `## ${MANY} tools\n\n${table(['operation', 'CPU µs with one', `with ${MANY}`, 'ratio'], rows)}`
}

export function heapSection(used: readonly number[]): string {
  const rows = CHECKPOINTS.map((requests, index) => [
    requests.toLocaleString('en'),
    `${number(Number(used[index]) / 1e6)} MB`,
  ])
  return `## Heap\n\nIn use after a forced collection; the five operations take turns.\n\n${table(['requests', 'heap'], rows)}`
}

export function crowdSection(rows: readonly CrowdRow[]): string {
  const line = (name: string, figure: (measured: Measured) => number) => [
    name,
    medianOf(rows, ({ alone }) => figure(alone)),
    medianOf(rows, ({ crowded }) => figure(crowded)),
    rangeOf(rows, ({ alone, crowded }) => figure(crowded) / figure(alone)),
  ]
  return `## Slow senders\n\nFirst calls on 10 connections of release-ops, alone and beside ${SLOW} clients that send a byte a second and ${IDLE} that send nothing.\n\n${table(
    ['', 'alone', 'beside them', 'ratio'],
    [
      line('requests/s', ({ perSecond }) => perSecond),
      line('p50 ms', ({ p50 }) => p50),
      line('p99 ms', ({ p99 }) => p99),
      line('CPU µs', ({ cpu }) => cpu),
    ],
  )}`
}
