/** What the tests of this folder need to know of processes that they started. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'

/** For tests that wait for another process: they fail instead of waiting for ever when it is broken. */
export const PATIENT = { timeout: 60_000 }

/** How often it is looked, in milliseconds: often, but other processes are to have the time to act. */
const LOOK_MS = 5

/** Waits until something has happened; the test's time limit is the only one. */
export async function until(t: TestContext, happened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await happened())) {
    if (t.signal.aborted) throw new Error('It never happened.')
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Ends a process, unless it has ended, and waits for that. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}
