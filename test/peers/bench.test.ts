/** The bench itself, without its figures: CI doesn't measure, but what measures must be right. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chart } from './bench/chart.ts'
import { inOrder, type Load, openLoad, type Shot } from './bench/load.ts'
import { OPERATIONS } from './bench/operations.ts'
import { targetsSection } from './bench/report.ts'
import { KINDS, type Server, starters } from './bench/servers.ts'
import { median, quantile, spread } from './bench/statistics.ts'
import { isReached, operationTargets } from './bench/targets.ts'

/** Long enough for some answers, in milliseconds. */
const MOMENT_MS = 20
const start = await starters()
const onLinux = { skip: process.platform !== 'linux' && 'processor time is read from /proc' }

test('the median of an even number of values lies between the two in the middle', () => {
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([9, 1, 5, 3]), 4)
  assert.ok(Number.isNaN(median([])), 'of nothing there is none')
})

test('a quantile is a value that was measured', () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index)
  assert.equal(quantile(values, 0.5), 100)
  assert.equal(quantile(values, 0.99), 198)
  assert.equal(quantile([7], 0.99), 7)
})

test('the spread of rounds is their median between the least and the greatest', () => {
  assert.deepEqual(spread([2, 12, 1]), { median: 2, min: 1, max: 12 })
})

test('servers that take turns follow each other equally often, across passes too', () => {
  for (const servers of ['ab', 'abcd']) {
    const each = [...servers]
    const passes = each.map((_, pass) => inOrder(each, pass))
    for (const pass of passes) assert.deepEqual(pass.toSorted(), each)
    const within = passes.flatMap((pass) => pass.slice(1).map((name, turn) => `${pass[turn]}${name}`))
    assert.equal(new Set(within).size, each.length * (each.length - 1), 'every ordered pair')
    const across = passes.map((pass, i) => `${passes.at(i - 1)?.at(-1)}${pass[0]}`)
    assert.deepEqual(across.map(([, next]) => next).toSorted(), each, 'each begins a pass once')
  }
})

test('a target for which no round counted is in the table, and is not reached', () => {
  const targets = operationTargets([{ operation: 'list', connections: 10, rows: [] }])
  assert.equal(targets.length, 2)
  for (const target of targets) assert.equal(isReached(target), false, target.what)
  assert.match(
    targetsSection(targets),
    /list: release-ops \/ bare \| – {2}\| at most 1\.25 {2}\| \*\*missed/,
  )
})

test('the chart has a bar in proportion and a text for each value, and escapes names', () => {
  const bars = [
    { name: 'a', value: 100 },
    { name: 'b & <c>', value: 50 },
  ]
  const svg = chart('Title', 'µs', [{ name: 'group', bars }])
  const widths = [...svg.matchAll(/<rect x=.*? width="([\d.]+)"/g)].map(([, width]) => Number(width))
  assert.equal(widths.length, 2)
  assert.equal(widths[0], 2 * Number(widths[1]))
  assert.match(svg, /<title>group, b &amp; &lt;c&gt;: 50 µs<\/title>/)
  assert.match(svg, /<desc id="description">group: a 100 µs, b &amp; &lt;c&gt; 50 µs\.<\/desc>/)
})

test(
  'every server of the bench gives the expected answer to every operation, and costs time',
  onLinux,
  async () => {
    for (const kind of KINDS) {
      const server = await start[kind]()
      try {
        const shots = await server.shots()
        for (const operation of OPERATIONS) {
          const { answers, cpu } = await briefly(server, shots[operation])
          assert.ok(answers > 0, `${kind}: ${operation}`)
          assert.ok(cpu > 0, `${kind}: ${operation}`)
        }
      } finally {
        await server.stop()
      }
    }
  },
)

test(
  'an answer with another status or without the expected text ends the measurement',
  onLinux,
  async () => {
    const server = await start['release-ops']()
    try {
      const { discover } = server
      await assert.rejects(briefly(server, { ...discover, status: 404 }), /^Error: Expected 404 with/)
      await assert.rejects(
        briefly(server, { ...discover, marker: 'no such text' }),
        /with no such text, got: HTTP/,
      )
    } finally {
      await server.stop()
    }
  },
)

async function briefly({ pid }: Server, shot: Shot): Promise<{ answers: number; cpu: number }> {
  const load: Load = await openLoad(pid, shot, 3)
  const answers = await load.run(MOMENT_MS)
  return { answers, cpu: load.end().cpu }
}
