/** What a process has cost so far, as Linux counts it. */
import { readdirSync, readFileSync } from 'node:fs'

/**
 * @returns nanoseconds that all threads of the process have spent on a processor, in user and kernel
 * mode. It is exact while they sleep, so read it when no request is on its way.
 */
export function cpuTime(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const times = tasks.map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
  )
  return times.reduce((sum, time) => sum + time, 0)
}

/** @returns bytes of the process that are in memory. */
export function residentMemory(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}
