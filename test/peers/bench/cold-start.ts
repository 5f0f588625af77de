/** From the start of the process to the end of its first answer. */
import { send } from '../../../client.ts'
import { KINDS, type Kind, type Starters } from './servers.ts'

/** @returns milliseconds, one figure for each round. */
export async function coldStarts(start: Starters, rounds: number): Promise<Record<Kind, number[]>> {
  const times: Record<Kind, number[]> = { bare: [], 'release-ops': [], sdk: [] }
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of KINDS) {
      const started = performance.now()
      const { discover, stop } = await start[kind]()
      const { status, text } = await send(discover.url, discover.message)
      times[kind].push(performance.now() - started)
      await stop()
      if (status !== 200) throw new Error(`${kind} answered its first request with ${status}: ${text}`)
    }
  }
  return times
}
