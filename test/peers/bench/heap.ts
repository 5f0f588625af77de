/** Whether requests leave something behind: the heap in use after a forced collection. */
import { at, callTool } from '../../../client.ts'
import { openLoad, TURN_MS } from './load.ts'
import { startFork } from './servers.ts'

/** Requests after which the heap is measured. */
export const CHECKPOINTS = [100_000, 1_000_000] as const
const CONNECTIONS = 10

/** All five operations take turns. @returns bytes at each checkpoint. */
export async function heapAfterRequests(): Promise<number[]> {
  const { pid, url, shots, stop } = await startFork(0)
  const used: number[] = []
  try {
    let answers = 0
    for (const checkpoint of CHECKPOINTS) {
      const loads = await Promise.all(
        Object.values(await shots()).map((shot) => openLoad(pid, shot, CONNECTIONS)),
      )
      while (answers < checkpoint) for (const { run } of loads) answers += await run(TURN_MS)
      for (const { end } of loads) end()
      const reply = await callTool(url, 'heap_used', {})
      used.push(Number(at(reply.body, 'result', 'content', '0', 'text')))
    }
    return used
  } finally {
    await stop()
  }
}
