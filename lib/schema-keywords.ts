/**
 * The keywords of JSON Schema 2020-12, one entry each: what the keyword's own value must look like
 * (or the server does not start) and the rule that it makes for values. Knows nothing of references
 * and of places in a schema: those are schema.ts.
 *
 * Source: https://json-schema.org/draft/2020-12/json-schema-validation (-core for applicators)
 */

export type JsonObject = { readonly [name: string]: unknown }

/** What is wrong. `path` grows on the way out, so that a value that conforms builds no text. */
export type Failure = { path: string; readonly rule: string; readonly says: string }

/** The work of one check so far, and how many schemas it is in at the moment. */
export type Run = { steps: number; depth: number }

export type Rule = (value: unknown, run: Run) => Failure | undefined
export type Subschema = { readonly check: Rule }

/** Where a keyword stands: its name, its siblings, and how it reports and reaches further. */
export type Site = {
  readonly keyword: string
  readonly sibling: (keyword: string) => unknown
  readonly error: (says: string) => Error
  /** Compiles the schema that is this keyword's value, or that value's member or item `token`. */
  readonly sub: (schema: unknown, token?: string) => Subschema
  /** The schema of a sibling that stands before this keyword in the table. */
  readonly beside: (keyword: string) => Subschema | undefined
}

/** @returns the rule; undefined for a keyword that only helps another one, or only annotates. */
type Keyword = (value: unknown, at: Site) => Rule | undefined

/** Work that one check may do. A form of a hundred fields takes some hundred steps. */
export const MAX_STEPS = 100_000
/** Levels of arrays and objects in a value, and of schemas in a schema. People write about ten. */
export const MAX_DEPTH = 64
/** Schemas that one check may be in at once: several may look at each level of a value. */
const MAX_SCHEMAS_DEEP = 512

/** Thrown, not returned: `not` and `anyOf` must not take running out of steps for an answer. */
export class TooMuchWork extends Error {}

export function spend(run: Run, steps: number): void {
  run.steps += steps
  if (run.steps > MAX_STEPS || run.depth > MAX_SCHEMAS_DEEP) throw new TooMuchWork()
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean'
const isNumber = (value: unknown): value is number => Number.isFinite(value)

const TYPES = new Map<unknown, { readonly is: (value: unknown) => boolean; readonly noun: string }>([
  ['string', { is: isText, noun: 'a string' }],
  ['number', { is: isNumber, noun: 'a number' }],
  ['integer', { is: Number.isInteger, noun: 'an integer' }],
  ['boolean', { is: isFlag, noun: 'a boolean' }],
  ['null', { is: (value) => value === null, noun: 'null' }],
  ['array', { is: isList, noun: 'an array' }],
  ['object', { is: isObject, noun: 'an object' }],
])

/** In the order in which they judge a value: the first failure is the one that is told. */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map(
  Object.entries<Keyword>({
    type(value, at) {
      const names: unknown[] = Array.isArray(value) ? value : [value]
      const types = names.flatMap((name) => TYPES.get(name) ?? [])
      if (types.length === 0 || types.length < names.length || new Set(types).size < types.length) {
        throw at.error(`must be one of ${[...TYPES.keys()].join(', ')}, or a list of them`)
      }
      const says = `must be ${types.map(({ noun }) => noun).join(' or ')}`
      const [one, ...others] = types.map(({ is }) => is)
      return (part) => (one?.(part) || others.some((is) => is(part)) ? undefined : failure('type', says))
    },
    enum(value, at) {
      if (!isList(value)) throw at.error('must be a list')
      return oneOfValues(value, at)
    },
    const: (value, at) => oneOfValues([value], at),

    // In characters, which have one or two UTF-16 units: mostly the units alone tell.
    minLength: size('at least', 'character', isText, (text, min) => {
      return text.length >= 2 * min || characters(text) >= min
    }),
    maxLength: size('at most', 'character', isText, (text, max) => {
      return text.length <= max || characters(text) <= max
    }),
    pattern(value, at) {
      const pattern = regExp(value, at)
      return holds(isText, (text) => pattern.test(text), at, `must match the pattern ${shown(pattern)}`)
    },
    minimum: range('at least', (value, limit) => value >= limit),
    maximum: range('at most', (value, limit) => value <= limit),
    exclusiveMinimum: range('more than', (value, limit) => value > limit),
    exclusiveMaximum: range('less than', (value, limit) => value < limit),
    multipleOf(value, at) {
      if (!isNumber(value) || value <= 0) throw at.error('must be a number above 0')
      return holds(isNumber, (n) => isMultiple(n, value), at, `must be a multiple of ${value}`)
    },

    minItems: size('at least', 'item', isList, (list, min) => list.length >= min),
    maxItems: size('at most', 'item', isList, (list, max) => list.length <= max),
    uniqueItems(value, at) {
      if (!isFlag(value)) throw at.error('must be true or false')
      const differ = (list: readonly unknown[], run: Run) =>
        new Set(list.map((item) => equalityKey(item, run))).size === list.length
      return value ? holds(isList, differ, at, 'must not have the same item twice') : undefined
    },
    prefixItems(value, at) {
      const prefix = schemaList(value, at)
      return on(isList, (list, run) =>
        first(prefix.slice(0, list.length), (schema, i) => inside(i, schema.check(list[i], run))),
      )
    },
    items(value, at) {
      const rest = at.sub(value)
      const prefix = at.sibling('prefixItems')
      const start = isList(prefix) ? prefix.length : 0
      return on(isList, (list, run) =>
        first(list, (item, i) => (i < start ? undefined : inside(i, rest.check(item, run)))),
      )
    },
    minContains: (value, at) => void count(value, at),
    maxContains: (value, at) => void count(value, at),
    contains(value, at) {
      const wanted = at.sub(value)
      const [least, most] = [at.sibling('minContains') ?? 1, at.sibling('maxContains') ?? Infinity]
      return on(isList, (list, run) => {
        const found = list.filter((item) => wanted.check(item, run) === undefined).length
        if (found >= Number(least) && found <= Number(most)) return undefined
        const rule = found < Number(least) ? 'contains' : 'maxContains'
        return failure(rule, `has ${found} items of the form that its schema counts`)
      })
    },

    required(value, at) {
      const names = nameList(value, at)
      return on(isObject, (part) => missing(part, names, 'required', 'is required'))
    },
    dependentRequired(value, at) {
      const lists = members(value, at).map(([name, names]) => [name, nameList(names, at)] as const)
      return on(isObject, (part) =>
        first(lists, ([name, names]) => {
          const says = `is required when ${label(name)} is present`
          return Object.hasOwn(part, name) ? missing(part, names, at.keyword, says) : undefined
        }),
      )
    },
    minProperties: size('at least', 'member', isObject, (part, min) => namesIn(part).length >= min),
    maxProperties: size('at most', 'member', isObject, (part, max) => namesIn(part).length <= max),
    propertyNames(value, at) {
      const names = at.sub(value)
      return eachMember((_member, name, run) => {
        const failed = names.check(name, run)
        return failed && failure('propertyNames', `is not an allowed name: it ${failed.says}`)
      })
    },
    properties(value, at) {
      const declared = subschemas(value, at)
      // A plain loop: every request goes through here.
      return on(isObject, (part, run) => {
        for (const [name, schema] of declared) {
          if (!Object.hasOwn(part, name)) continue
          const failed = schema.check(part[name], run)
          if (failed !== undefined) return inside(name, failed)
        }
        return undefined
      })
    },
    patternProperties(value, at) {
      const patterns = subschemas(value, at).map(([text, sub]) => [regExp(text, at), sub] as const)
      return eachMember((member, name, run) =>
        first(patterns, ([pattern, sub]) => (pattern.test(name) ? sub.check(member, run) : undefined)),
      )
    },
    additionalProperties(value, at) {
      const rest = at.sub(value)
      const names = new Set(namesIn(at.sibling('properties')))
      const patterns = namesIn(at.sibling('patternProperties')).map((text) => regExp(text, at))
      return eachMember((member, name, run) => {
        if (names.has(name) || patterns.some((pattern) => pattern.test(name))) return undefined
        if (value === false) return failure(at.keyword, 'is not allowed here')
        return rest.check(member, run)
      })
    },
    dependentSchemas(value, at) {
      const dependent = subschemas(value, at)
      return on(isObject, (part, run) =>
        first(dependent, ([name, sub]) => (Object.hasOwn(part, name) ? sub.check(part, run) : undefined)),
      )
    },

    allOf(value, at) {
      const all = schemaList(value, at)
      return (part, run) => first(all, (schema) => schema.check(part, run))
    },
    anyOf(value, at) {
      const any = schemaList(value, at)
      const says = `must be of one of the ${any.length} forms in its schema`
      return (part, run) =>
        any.some((schema) => !schema.check(part, run)) ? undefined : failure('anyOf', says)
    },
    oneOf(value, at) {
      const one = schemaList(value, at)
      const says = `must be of exactly one of the ${one.length} forms in its schema`
      return (part, run) =>
        one.filter((schema) => !schema.check(part, run)).length === 1 ? undefined : failure('oneOf', says)
    },
    not(value, at) {
      const unwanted = at.sub(value)
      return (part, run) =>
        unwanted.check(part, run) ? undefined : failure('not', 'is of a form that is not allowed')
    },
    // biome-ignore lint/suspicious/noThenProperty: the keyword's name, and nothing awaits the table.
    then: (value, at) => void at.sub(value),
    else: (value, at) => void at.sub(value),
    if(value, at) {
      const condition = at.sub(value)
      const [yes, no] = [at.beside('then'), at.beside('else')]
      return (part, run) => (condition.check(part, run) ? no : yes)?.check(part, run)
    },

    $defs: (value, at) => void subschemas(value, at),
    contentSchema: (value, at) => void at.sub(value),
    default: () => undefined,
    examples: annotation(isList, 'a list'),
    title: annotation(isText, 'a string'),
    description: annotation(isText, 'a string'),
    $comment: annotation(isText, 'a string'),
    /** Asserted by no rule: in the dialect of 2020-12 it is an annotation (validation, 7.2.1). */
    format: annotation(isText, 'a string'),
    contentEncoding: annotation(isText, 'a string'),
    contentMediaType: annotation(isText, 'a string'),
    deprecated: annotation(isFlag, 'true or false'),
    readOnly: annotation(isFlag, 'true or false'),
    writeOnly: annotation(isFlag, 'true or false'),
    /** MCP: the request header that mirrors this argument (server/tools). */
    'x-mcp-header': annotation(isText, 'a string'),
  }),
)

// Makers of entries and of rules.

function size<T>(
  words: string,
  noun: string,
  is: (value: unknown) => value is T,
  fits: (value: T, limit: number) => boolean,
): Keyword {
  return (value, at) => {
    const limit = count(value, at)
    const says = `must have ${words} ${limit} ${noun}${limit === 1 ? '' : 's'}`
    return holds(is, (part) => fits(part, limit), at, says)
  }
}

function range(words: string, fits: (value: number, limit: number) => boolean): Keyword {
  return (limit, at) => {
    if (!isNumber(limit)) throw at.error('must be a number')
    return holds(isNumber, (value) => fits(value, limit), at, `must be ${words} ${limit}`)
  }
}

function annotation(is: (value: unknown) => boolean, noun: string): Keyword {
  return (value, at) => {
    if (!is(value)) throw at.error(`must be ${noun}`)
    return undefined
  }
}

/** A keyword says nothing of values of another kind than its own: those conform (validation, 6). */
function on<T>(
  is: (value: unknown) => value is T,
  judge: (value: T, run: Run) => Failure | undefined,
): Rule {
  return (value, run) => (is(value) ? judge(value, run) : undefined)
}

function holds<T>(
  is: (value: unknown) => value is T,
  test: (value: T, run: Run) => boolean,
  { keyword }: Site,
  says: string,
): Rule {
  return (value, run) => (!is(value) || test(value, run) ? undefined : failure(keyword, says))
}

function eachMember(judge: (member: unknown, name: string, run: Run) => Failure | undefined): Rule {
  return on(isObject, (part, run) => {
    const names = Object.keys(part)
    spend(run, names.length)
    return first(names, (name) => inside(name, judge(part[name], name, run)))
  })
}

function oneOfValues(values: readonly unknown[], at: Site): Rule {
  const free: Run = { steps: Number.NEGATIVE_INFINITY, depth: 0 }
  if (tooDeep(values, MAX_DEPTH, free)) throw at.error(`is nested deeper than ${MAX_DEPTH} levels`)
  const scalars = new Set(values.filter((value) => !isObject(value) && !isList(value)))
  const nested = values.filter((value) => !scalars.has(value))
  const keys = new Set(nested.map((value) => equalityKey(value, free)))
  const list = values.map((value) => JSON.stringify(value)).join(', ')
  const choice = list.length > 200 ? 'a value that its schema lists' : list
  const says = `must be ${values.length === 1 || choice !== list ? '' : 'one of '}${choice}`
  return (value, run) => {
    const found = scalars.has(value) || (keys.size > 0 && keys.has(equalityKey(value, run)))
    return found ? undefined : failure(at.keyword, says)
  }
}

function missing(part: JsonObject, names: readonly string[], rule: string, says: string) {
  const name = names.find((each) => !Object.hasOwn(part, each))
  return name === undefined ? undefined : failure(rule, says, label(name))
}

function first<T>(list: readonly T[], judge: (item: T, index: number) => Failure | undefined) {
  let index = 0
  for (const item of list) {
    const failed = judge(item, index)
    if (failed !== undefined) return failed
    index += 1
  }
  return undefined
}

// Failures.

export const failure = (rule: string, says: string, path = ''): Failure => ({ path, rule, says })

/** Puts a failure inside the member or item where it was found: `name` becomes `hosts[2].name`. */
export function inside(key: string | number, failed: Failure | undefined): Failure | undefined {
  if (failed === undefined) return undefined
  const dot = failed.path === '' || failed.path.startsWith('[') ? '' : '.'
  failed.path = `${label(key)}${dot}${failed.path}`
  return failed
}

/** A member's name may be the client's text: an odd one is quoted and escaped, a long one is cut. */
function label(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`
  const name = key.length > 64 ? `${key.slice(0, 64)}...` : key
  if (/^[\p{L}\p{N}_$-]+$/u.test(name)) return name
  const escaped = JSON.stringify(name).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `[${escaped}]`
}

// Values.

/** Whether arrays and objects stand in one another more than `levels` deep. */
export function tooDeep(value: unknown, levels: number, run: Run): boolean {
  if (typeof value !== 'object' || value === null) return false
  spend(run, 1)
  if (levels === 0) return true
  if (isList(value)) return value.some((item) => tooDeep(item, levels - 1, run))
  // `in` is the fast way; an inherited member would do no harm here.
  if (isObject(value)) for (const name in value) if (tooDeep(value[name], levels - 1, run)) return true
  return false
}

/**
 * A text that two values share exactly when they are equal: members in any order, numbers by value
 * (core, 4.2.2). So 1.0 is 1, and "1" is not.
 */
function equalityKey(value: unknown, run: Run): string {
  spend(run, 1)
  if (isList(value)) return `[${value.map((item) => equalityKey(item, run)).join()}]`
  if (!isObject(value)) return isText(value) ? JSON.stringify(value) : String(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${equalityKey(value[name], run)}`).join()}}`
}

/** Length is in characters, not in UTF-16 units (validation, 6.3.1): a surrogate pair is one. */
function characters(text: string): number {
  let length = text.length
  for (let i = 1; i < text.length; i += 1) {
    const isHigh = (text.charCodeAt(i - 1) & 0xfc00) === 0xd800
    if (isHigh && (text.charCodeAt(i) & 0xfc00) === 0xdc00) length -= 1
  }
  return length
}

/** Exact in decimal, as numbers are written: 0.3 is a multiple of 0.1, and 1e308 of 0.5. */
function isMultiple(value: number, unit: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(unit)) return value % unit === 0
  const [a, b] = [decimal(value), decimal(unit)]
  const least = Math.min(a.exponent, b.exponent)
  const scaled = ({ digits, exponent }: typeof a) => digits * 10n ** BigInt(exponent - least)
  return scaled(a) % scaled(b) === 0n
}

/** A number as digits times a power of ten: 0.0075 is 75e-4. */
function decimal(value: number): { digits: bigint; exponent: number } {
  const [digits = '', exponent] = value.toExponential().split('e')
  const [, fraction = ''] = digits.split('.')
  return { digits: BigInt(digits.replace('.', '')), exponent: Number(exponent) - fraction.length }
}

// A keyword's own value: what it must be, or the server does not start.

function count(value: unknown, at: Site): number {
  if (!isNumber(value) || !Number.isInteger(value) || value < 0) {
    throw at.error('must be a whole number, 0 or more')
  }
  return value
}

function regExp(value: unknown, at: Site): RegExp {
  try {
    if (isText(value)) return new RegExp(value, 'u')
  } catch {}
  throw at.error('must be a regular expression (ECMA-262, with the flag u)')
}

function nameList(value: unknown, at: Site): string[] {
  if (!isList(value) || !value.every(isText) || new Set(value).size < value.length) {
    throw at.error('must be a list of different names')
  }
  return [...value]
}

const namesIn = (value: unknown): string[] => (isObject(value) ? Object.keys(value) : [])

function members(value: unknown, at: Site): [string, unknown][] {
  if (!isObject(value)) throw at.error('must be an object')
  return Object.entries(value)
}

const subschemas = (value: unknown, at: Site): (readonly [string, Subschema])[] =>
  members(value, at).map(([name, schema]) => [name, at.sub(schema, name)])

function schemaList(value: unknown, at: Site): Subschema[] {
  if (!isList(value) || value.length === 0) throw at.error('must be a list with a schema or more')
  return value.map((schema, index) => at.sub(schema, String(index)))
}

/** A long pattern says nothing to whoever has to mend the value. */
function shown({ source }: RegExp): string {
  return source.length > 60 ? 'of its schema' : source
}
