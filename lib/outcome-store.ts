/**
 * Where the outcomes of approvals that count only once are kept, so that every instance sees them.
 * This file has the seam and the store of a single instance; a shared one is in `redis-store.ts`.
 */

/** Each method is one atomic step. A method that rejects means that nothing may be done. */
export type OutcomeStore = {
  /** Writes unless the key is there. @returns undefined when it wrote, else what is there. */
  readonly claim: (key: string, value: string, lifeMs: number) => Promise<string | undefined>
  readonly read: (key: string) => Promise<string | undefined>
  /** Replaces what {@link OutcomeStore.claim} wrote; a life of 0 gives the key up. */
  readonly settle: (key: string, value: string, lifeMs: number) => Promise<void>
}

/** Entries, not bytes: an outcome is a short text, so this is some 10 MB. */
const CAPACITY = 10_000

/**
 * For one instance: another one would know nothing of these outcomes.
 * @param capacity how many live entries fit. A full store refuses; it never forgets a live entry,
 *   since that would let its approval be used again.
 */
export function memoryStore(now: () => number, capacity = CAPACITY): OutcomeStore {
  const entries = new Map<string, { value: string; endsAt: number }>()

  function live(key: string): string | undefined {
    const entry = entries.get(key)
    return entry !== undefined && now() < entry.endsAt ? entry.value : undefined
  }

  function write(key: string, value: string, lifeMs: number): void {
    if (!entries.has(key) && entries.size >= capacity) {
      for (const [old, { endsAt }] of entries) if (!(now() < endsAt)) entries.delete(old)
      if (entries.size >= capacity) throw new Error('The store of outcomes is full.')
    }
    entries.set(key, { value, endsAt: now() + lifeMs })
  }

  return {
    async claim(key, value, lifeMs) {
      const there = live(key)
      if (there === undefined) write(key, value, lifeMs)
      return there
    },
    async read(key) {
      return live(key)
    },
    async settle(key, value, lifeMs) {
      if (lifeMs > 0) write(key, value, lifeMs)
      else entries.delete(key)
    },
  }
}
