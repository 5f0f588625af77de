/**
 * Once only: of any number of calls that bring the same key, one acts and all get its outcome.
 * "Servers for which a given `requestState` must be consumed at most once MUST enforce that
 * invariant server-side" (basic/patterns/mrtr), which no sealed state can do alone.
 */
import type { OutcomeStore } from './outcome-store.ts'
import { CODE, isObject, type ToolResult } from './protocol.ts'
import { Refusal, rpcRefusal } from './refusal.ts'
import { type SingleUse, toolResult } from './tool.ts'

/** What is stored under a key. */
type Entry = { readonly about: string } & (
  | { readonly state: 'running'; readonly since: number }
  | { readonly state: 'done'; readonly result: ToolResult }
)

/** How long a call waits for another one that acts, and how often it looks, in milliseconds. */
const WAIT_MS = 5000
const POLL_MS = 100
/** An action that has run this much longer than it may has died with its process. */
const OVERDUE_MS = 10_000

const LATER = 'Ask again for the outcome.'
const RUNNING = failed('Already running. Ask again for the outcome.')
const UNKNOWN = failed('The outcome is unknown.')
const OTHER = failed('This idempotency key was used with other arguments. Use a new key.')

/**
 * @param actionMs the longest that an action may take, in milliseconds.
 * @param stopping aborted when this process is about to end: nobody waits here for another's action then.
 * @param wait resolves after some milliseconds; a test's resolves at once and moves its clock.
 */
export function singleUse(
  store: OutcomeStore,
  actionMs: number,
  now: () => number,
  stopping: AbortSignal,
  wait: (ms: number) => Promise<unknown> = (ms) => new Promise((done) => setTimeout(done, ms)),
): SingleUse {
  return {
    async once(key, act, { until, about = '', retryFailed = false }) {
      const running: Entry = { about, state: 'running', since: now() }
      for (;;) {
        const claim = () => store.claim(key, JSON.stringify(running), until - now())
        const there = await attempt(claim, 'Nothing was done.')
        if (there === undefined) break
        const outcome = await outcomeOf(key, there, about)
        if (outcome !== undefined) return outcome // else whoever had the key gave it up
      }
      let result: ToolResult | undefined
      let refused = false
      try {
        result = await act()
        return result
      } catch (thrown) {
        refused = thrown instanceof Refusal // which comes before anything is done
        throw thrown
      } finally {
        // Another key's action may still run, or be unknown: that is no outcome of this one.
        const open = result === RUNNING || result === UNKNOWN
        const again = refused || open || (retryFailed && result?.isError === true)
        const entry: Entry = { about, state: 'done', result: result ?? UNKNOWN }
        await settle(key, entry, again ? 0 : until - now())
      }
    },
    async recall(key, about = '') {
      const there = await attempt(() => store.read(key), LATER)
      return there === undefined ? undefined : outcomeOf(key, there, about)
    },
  }

  /** What was done is done: a store that fails now must not turn it into an error. */
  async function settle(key: string, entry: Entry, lifeMs: number): Promise<void> {
    try {
      await store.settle(key, JSON.stringify(entry), lifeMs)
    } catch {
      // The entry stays as claimed, and is overdue in time.
    }
  }

  /** @returns undefined when the key was given up meanwhile. */
  async function outcomeOf(key: string, first: string, about: string): Promise<ToolResult | undefined> {
    const started = now()
    for (let text: string | undefined = first; ; text = await attempt(() => store.read(key), LATER)) {
      if (text === undefined) return undefined
      const entry = readEntry(text)
      if (entry === undefined) return UNKNOWN
      if (entry.about !== about) return OTHER
      if (entry.state === 'done') return entry.result
      if (now() - entry.since > actionMs + OVERDUE_MS) return UNKNOWN
      if (stopping.aborted || now() - started >= WAIT_MS) return RUNNING
      await wait(POLL_MS)
    }
  }
}

/** A store is another process, and what it returns is read as carefully as what a client sends. */
function readEntry(text: string): Entry | undefined {
  try {
    const entry: unknown = JSON.parse(text)
    if (!isObject(entry)) return undefined
    const { about, state, since, result } = entry
    if (typeof about !== 'string') return undefined
    if (state === 'running' && typeof since === 'number') return { about, state, since }
    return state === 'done' && isToolResult(result) ? { about, state, result } : undefined
  } catch {
    return undefined
  }
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content)
}

async function attempt<T>(step: () => Promise<T>, then: string): Promise<T> {
  try {
    return await step()
  } catch {
    throw unavailable(then)
  }
}

function unavailable(then: string): Refusal {
  const message = `The store of outcomes is unavailable. ${then}`
  return rpcRefusal(503, CODE.internalError, message, 'store unavailable')
}

function failed(text: string): ToolResult {
  return toolResult({ text, isError: true })
}
