/**
 * Environment variables, read so that everything wrong with them is found in one go: each reader
 * writes down what is wrong and what to do about it, and {@link Environment.finish} ends a bad
 * start before the first request.
 */
import { readFileSync } from 'node:fs'

export type Variables = { readonly [name: string]: string | undefined }

export class Environment {
  readonly #variables: Variables
  readonly #problems: string[] = []
  readonly #warnings: string[] = []

  constructor(variables: Variables) {
    this.#variables = variables
  }

  /** What whoever starts the server should know; not wrong, so it starts. */
  get warnings(): readonly string[] {
    return this.#warnings
  }

  problem(sentence: string): void {
    this.#problems.push(sentence)
  }

  /** Whether something is wrong already with a variable whose name begins like this. */
  hasProblem(prefix: string): boolean {
    return this.#problems.some((sentence) => sentence.startsWith(prefix))
  }

  warn(sentence: string): void {
    this.#warnings.push(sentence)
  }

  /** @throws Error whose message has a line for each problem there is. */
  finish(): void {
    if (this.#problems.length > 0) throw new Error(this.#problems.join('\n'))
  }

  /** @returns the value as it is, or undefined when the variable is not set. */
  raw(name: string): string | undefined {
    return this.#variables[name]
  }

  /** @returns the value, or undefined when the variable is not set; an empty value is a problem. */
  text(name: string): string | undefined {
    const value = this.#variables[name]
    if (value?.trim() === '') this.problem(`${name} is empty: unset it or give it a value.`)
    return value
  }

  /** @param what says what the number counts, for the message. */
  integer(name: string, fallback: number, min: number, max: number, what: string): number {
    const text = this.#variables[name]
    if (text === undefined) return fallback
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    this.problem(`${name} must be ${what}, from ${min} to ${max}; without it, it is ${fallback}.`)
    return fallback
  }

  /** The first choice is the default. */
  choice<C extends string>(name: string, choices: readonly [C, ...C[]]): C {
    const value = this.#variables[name] ?? choices[0]
    const chosen = choices.find((choice) => choice === value)
    if (chosen === undefined) this.problem(`${name} must be ${choices.join(' or ')}.`)
    return chosen ?? choices[0]
  }

  /** The entry that the variable names; the first is the default. */
  pick<T>(name: string, entries: Readonly<Record<string, T>>): T {
    const [first, ...rest] = Object.keys(entries)
    if (first === undefined) throw new TypeError(`${name} needs something to choose from.`)
    return entries[this.choice(name, [first, ...rest])] as T // choice gives one of the keys
  }

  /** The one part that is configured, if any is; two are a problem. */
  only<T>(problem: string, parts: readonly (T | undefined)[]): T | undefined {
    if (parts.filter((part) => part !== undefined).length > 1) this.problem(problem)
    return firstOf(parts)
  }

  /** A comma-separated list, in lower case; undefined when there is no entry. */
  list(name: string, valid: (entry: string) => boolean, what: string): Set<string> | undefined {
    const text = (this.#variables[name] ?? '').toLowerCase()
    const entries = text.split(',').flatMap((entry) => entry.trim() || [])
    for (const entry of entries) {
      if (!valid(entry)) this.problem(`${name} has ${JSON.stringify(entry)}; an entry must be ${what}.`)
    }
    return entries.length === 0 ? undefined : new Set(entries)
  }

  /** The bytes of the file that the variable names, or undefined when it is not set. */
  file(name: string): Buffer | undefined {
    const path = this.text(name)
    if (path === undefined || path.trim() === '') return undefined
    try {
      return readFileSync(path)
    } catch {
      this.problem(`${name} names a file that can't be read: check the path and who may read it.`)
      return undefined
    }
  }
}

/** @returns the first part that is configured, if any is. */
export function firstOf<T>(parts: readonly (T | undefined)[]): T | undefined {
  return parts.find((part) => part !== undefined)
}
