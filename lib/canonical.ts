/**
 * Two questions about a JSON value: is there one text for it (RFC 8785, so that its digest means
 * the same everywhere), and do all readers of its text see the same value?
 */
import { type Violation, violation } from './schema.ts'
import { type Failure, failure, inside, MAX_DEPTH } from './schema-keywords.ts'

/** Text that is the same between quotes: no quote, no backslash, no control, nothing past ASCII. */
const PLAIN = /^[ !#-[\]-~]*$/
const HALF = 'holds half a surrogate pair, which not every JSON parser reads the same'
const INEXACT = `is a number that not every JSON parser reads the same; stay within ±${Number.MAX_SAFE_INTEGER}`

/**
 * @returns the canonical text (RFC 8785): members sorted by UTF-16 code units, no white space,
 *   numbers and strings as ECMAScript writes them. A member named `__proto__` is like any other.
 * @throws TypeError for what JSON can't carry or I-JSON forbids: non-finite numbers, lone surrogates,
 *   undefined, functions, objects of a class; also for nesting (or a cycle) beyond 64 levels.
 */
export function canonicalJson(value: unknown): string {
  return write(value, MAX_DEPTH)
}

function write(value: unknown, levels: number): string {
  if (typeof value === 'string') return quote(value)
  // ECMAScript's form, with -0 as 0 (RFC 8785, 3.2.2.3).
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') throw new TypeError(`JSON has no text for this ${typeof value}.`)
  if (levels === 0) throw new TypeError(`The value is nested deeper than ${MAX_DEPTH} levels.`)
  if (Array.isArray(value)) {
    // Array.from visits holes too: there is no text for one.
    return `[${Array.from(value, (item) => write(item, levels - 1)).join()}]`
  }
  if (!isPlain(value)) throw new TypeError('JSON has no text for an object of a class.')
  let text = ''
  // The default order of sort() is by UTF-16 code units, as RFC 8785, 3.2.3 wants it.
  for (const name of Object.keys(value).sort()) {
    text += `${text === '' ? '' : ','}${quote(name)}:${write(value[name], levels - 1)}`
  }
  return `{${text}}`
}

function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  if (!text.isWellFormed()) throw new TypeError('JSON has no text for half a surrogate pair.')
  return JSON.stringify(text)
}

function isPlain(value: object): value is { readonly [name: string]: unknown } {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/**
 * The first place where two readers of a JSON text could see different values: a number beyond what
 * a double holds exactly (1e400 too), a lone surrogate in a string or name (RFC 7493, 2.1 and 2.2),
 * or nesting that some parsers refuse.
 *
 * @param value what JSON.parse returned
 * @returns undefined when every reader sees the same; else `rule` is `number`, `string` or `depth`.
 */
export function ambiguity(value: unknown): Violation | undefined {
  const found = find(value, MAX_DEPTH)
  return found && violation(found)
}

function find(value: unknown, levels: number): Failure | undefined {
  if (typeof value === 'string') {
    return value.isWellFormed() ? undefined : failure('string', HALF)
  }
  if (typeof value === 'number') return isExact(value) ? undefined : failure('number', INEXACT)
  if (typeof value !== 'object' || value === null) return undefined
  if (levels === 0) return failure('depth', `is nested deeper than ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = find(item, levels - 1)
      if (found !== undefined) return inside(index, found)
    }
    return undefined
  }
  for (const [name, member] of Object.entries(value)) {
    const found = name.isWellFormed()
      ? find(member, levels - 1)
      : failure('string', `has a name that ${HALF}`)
    if (found !== undefined) return inside(name, found)
  }
  return undefined
}

const isExact = (value: number): boolean =>
  Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)
