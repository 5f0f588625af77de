import { parseArgs } from 'node:util'
import { compare, startServers } from './comparison.ts'
import { spread } from './statistics.ts'

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { rounds: { type: 'string' }, seconds: { type: 'string' }, connections: { type: 'string' } },
  })
  const servers = await startServers()
  const cells = await compare(servers, {
    rounds: Number(values.rounds ?? 7),
    seconds: Number(values.seconds ?? 1),
    connections: (values.connections ?? '1,10,50,200').split(',').map(Number),
  })
  for (const s of Object.values(servers)) await s.stop()
  const r = (n: number) => n.toFixed(2)
  for (const { operation, connections, rows } of cells) {
    const cpu = (of: (row: (typeof rows)[number]) => number) => spread(rows.map(of))
    const b = cpu((x) => (x.bare.cpu + x['bare again'].cpu) / 2)
    const o = cpu((x) => x['release-ops'].cpu)
    const s = cpu((x) => x.sdk.cpu)
    const ob = cpu((x) => (2 * x['release-ops'].cpu) / (x.bare.cpu + x['bare again'].cpu))
    const so = cpu((x) => x.sdk.cpu / x['release-ops'].cpu)
    console.log(
      `${operation.padEnd(16)} ${String(connections).padStart(3)} n=${rows.length} bare ${r(b.median)} ours ${r(o.median)} sdk ${r(s.median)} ours/bare ${r(ob.median)} [${r(ob.min)}-${r(ob.max)}] sdk/ours ${r(so.median)} [${r(so.min)}-${r(so.max)}]  rps ${rows.map((x) => [x.bare, x['release-ops'], x.sdk].map((m) => m.perSecond.toFixed(0)).join('/'))[0]}`,
    )
  }
}
