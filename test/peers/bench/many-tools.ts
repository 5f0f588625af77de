/** What a call costs where 1,000 tools are registered, against the same call where one is. */
import { inTurns, type Measured, openLoad, warmUp } from './load.ts'
import type { Operation } from './operations.ts'
import { startFork } from './servers.ts'

export const MANY = 1000
export type ToolsRow = Readonly<Record<'one' | 'many', Measured>>

const CALLS: readonly Operation[] = ['first call', 'confirmed retry']
const CONNECTIONS = 10

/** @returns for each operation that calls a tool, its rounds. */
export async function manyTools(rounds: number, seconds: number): Promise<Map<Operation, ToolsRow[]>> {
  const servers = { one: await startFork(1), many: await startFork(MANY) }
  const [one, many] = [await servers.one.shots(), await servers.many.shots()]
  const row = async (operation: Operation) =>
    inTurns(
      {
        one: await openLoad(servers.one.pid, one[operation], CONNECTIONS),
        many: await openLoad(servers.many.pid, many[operation], CONNECTIONS),
      },
      seconds,
    )
  const rows = new Map<Operation, ToolsRow[]>()
  try {
    await warmUp(servers.one.pid, Object.values(one))
    await warmUp(servers.many.pid, Object.values(many))
    for (const operation of CALLS) {
      const measured: ToolsRow[] = []
      for (let round = 1; round <= rounds; round += 1) measured.push(await row(operation))
      rows.set(operation, measured)
    }
    return rows
  } finally {
    await Promise.all([servers.one.stop(), servers.many.stop()])
  }
}
