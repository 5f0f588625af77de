/** Numbers that look random and are the same each time: what a seed and a request's number make of them. */
export class Random {
  #state: number

  constructor(seed: number, number: number) {
    this.#state = mix(mix(seed) ^ number)
  }

  /** From 0 to `count` - 1. */
  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    return Math.floor((mix(this.#state) / 2 ** 32) * count)
  }

  /** @param percent how often it is true. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  /** @throws TypeError for an empty list. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new TypeError('There is nothing to pick.')
    return list[this.below(list.length)] as T // it is in range
  }

  /** Undefined only for an empty list. */
  any<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)]
  }

  shuffle<T>(list: T[]): void {
    for (let left = list.length; left > 1; left--) {
      const [moved] = list.splice(this.below(left), 1)
      if (moved !== undefined) list.push(moved)
    }
  }
}

/** The finaliser of MurmurHash3: each bit of the input changes half of the output's. */
function mix(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
