/**
 * A validator for JSON Schema 2020-12, the dialect of MCP tools (basic, "JSON Schema Usage").
 *
 * It refuses rather than guesses: a schema with a keyword that is not in schema-keywords.ts, with a
 * reference that leaves the document, or with one that leads nowhere does not compile. So nothing
 * that a tool's author wrote is silently skipped. `format` is an annotation, as 2020-12 has it.
 * Patterns run as they are written: they are the operator's, and so is their cost.
 */
import {
  type Failure,
  failure,
  isList,
  isObject,
  type JsonObject,
  KEYWORDS,
  MAX_DEPTH,
  type Rule,
  type Run,
  spend,
  TooMuchWork,
  tooDeep,
} from './schema-keywords.ts'

export type JsonSchema = JsonObject

/**
 * Where a value breaks its schema: `path` is what a person reads, e.g. `service` or `hosts[2].name`
 * ('' for the whole value), `rule` the keyword (or `false schema`, `limit`), `message` one sentence
 * that never holds the value itself, e.g. `service must have at least 1 character`.
 */
export type Violation = { readonly path: string; readonly rule: string; readonly message: string }

export type Validator = {
  /** @returns undefined when the value (as JSON.parse makes them) conforms, else the first violation. */
  check(value: unknown): Violation | undefined
  /**
   * A deep copy of a value that passed check(), without the members that its schema does not
   * declare: where there is `properties`, a member stays only if that, `patternProperties`,
   * `additionalProperties` or `required` speaks of it. Where several schemas speak of the same value
   * (`allOf`, `if`, `$ref` with siblings...), none of them alone says what is declared: all stays.
   */
  project(value: unknown): unknown
}

/**
 * The type of a value that passed, from a schema written `as const` (or taken through a `const` type
 * parameter). Sees type, enum, const, items, properties and required; `unknown` where it can't tell.
 */
export type Infer<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: readonly (infer T)[] }
      ? OfType<T, S>
      : S extends { readonly type: infer T }
        ? OfType<T, S>
        : unknown

/** Distributes over T, so that `type: ['string', 'null']` becomes `string | null`. */
type OfType<T, S> = T extends keyof Types<S> ? Types<S>[T] : unknown
type Types<S> = {
  string: string
  number: number
  integer: number
  boolean: boolean
  null: null
  array: S extends { readonly items: infer I; readonly prefixItems?: never } ? Infer<I>[] : unknown[]
  object: S extends { readonly properties: infer P }
    ? Flat<
        { [K in keyof P as K & RequiredOf<S>]: Infer<P[K]> } & {
          [K in keyof P as Exclude<K, RequiredOf<S>>]?: Infer<P[K]>
        }
      >
    : { [name: string]: unknown }
}
type RequiredOf<S> = S extends { readonly required: readonly (infer R)[] } ? R : never
type Flat<T> = { -readonly [K in keyof T]: T[K] }

/** Schemas within one schema: bounds the work of compiling, also of one that contains itself. */
const MAX_SUBSCHEMAS = 10_000
const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

const TOO_DEEP = failure('limit', `is nested deeper than ${MAX_DEPTH} levels`)
const TOO_MUCH = failure('limit', 'takes too many steps to check')

const NOT_IMPLEMENTED = new Set(
  '$id $vocabulary $dynamicRef $dynamicAnchor unevaluatedProperties unevaluatedItems'.split(' '),
)
/** Keywords whose schemas look at the same value as the schema that they stand in. */
const IN_PLACE = new Set('$ref allOf anyOf oneOf not if then else dependentSchemas'.split(' '))
/** Keywords under which a second schema speaks of a value, its members or its items. */
const SEVERAL_SPEAK = [...IN_PLACE, 'contains']
const STRUCTURE = 'properties patternProperties additionalProperties prefixItems items'.split(' ')

type Project = (value: unknown) => unknown
type Node = { readonly check: Rule; project: Project; readonly parts: Part[] }
/** A schema within a schema: under which keyword, and under which member or item of its value. */
type Part = { readonly keyword: string; readonly token: string; readonly node: Node }

/**
 * @param name what the schema is, for messages, e.g. `Tool rollback_release: inputSchema`
 * @throws Error with one sentence that names the place (a JSON Pointer) and what to change.
 */
export function compileSchema(schema: unknown, name: string): Validator {
  const nodes = new Map<string, Node>()
  const anchors = new Map<string, Node>()
  const links: (() => void)[] = []
  const refusal = (place: string, says: string) =>
    new Error(`${name}: ${place === '' ? 'the schema' : place} ${says}.`)

  function compile(part: unknown, place: string, depth: number): Node {
    if (depth > MAX_DEPTH) throw refusal(place, `is nested too deep: keep to ${MAX_DEPTH} levels`)
    if (nodes.size === MAX_SUBSCHEMAS) throw refusal(place, `is over the limit of ${nodes.size}`)
    const rules: Rule[] = []
    const node: Node = { check: (value, run) => judge(rules, value, run), project: copy, parts: [] }
    nodes.set(place, node)
    if (part === false) rules.push(() => failure('false schema', 'is not allowed'))
    if (typeof part === 'boolean') return node
    if (!isObject(part)) throw refusal(place, 'must be a schema: an object, true or false')

    for (const keyword of Object.keys(part)) {
      const at = `${place}/${escapeToken(keyword)}`
      if (keyword === '$schema') checkDialect(part.$schema, at)
      else if (keyword === '$anchor') addAnchor(part.$anchor, at, node)
      else if (keyword === '$ref') links.push(() => refer(part.$ref, at, node, rules))
      else if (NOT_IMPLEMENTED.has(keyword)) throw refusal(at, 'is not implemented: do without it')
      else if (!KEYWORDS.has(keyword)) throw refusal(at, 'is no keyword: correct or remove it')
    }
    for (const [keyword, compileKeyword] of KEYWORDS) {
      if (!Object.hasOwn(part, keyword)) continue
      const at = `${place}/${escapeToken(keyword)}`
      const rule = compileKeyword(part[keyword], {
        keyword,
        sibling: (other) => own(part, other),
        error: (says) => refusal(at, says),
        sub(child, token) {
          const below = token === undefined ? at : `${at}/${escapeToken(token)}`
          const compiled = compile(child, below, depth + 1)
          node.parts.push({ keyword, token: token ?? '', node: compiled })
          return compiled
        },
        beside: (other) => node.parts.find((sibling) => sibling.keyword === other)?.node,
      })
      if (rule !== undefined) rules.push(rule)
    }
    links.push(() => {
      node.project = projector(part, node.parts)
    })
    return node
  }

  /** "MUST NOT appear" below the root (core, 8.1.1), where it would change the dialect midway. */
  function checkDialect(value: unknown, at: string): void {
    if (at !== '/$schema' || (value !== DIALECT && value !== `${DIALECT}#`)) {
      throw refusal(at, `must be ${DIALECT}, and only at the root`)
    }
  }

  function addAnchor(value: unknown, at: string, node: Node): void {
    if (typeof value !== 'string' || !/^[A-Za-z_][-A-Za-z0-9._]*$/.test(value)) {
      throw refusal(at, 'must be a name of letters, digits, "-", "_" and "."')
    }
    if (anchors.has(value)) throw refusal(at, 'is taken by another schema: choose another name')
    anchors.set(value, node)
  }

  /** A reference is followed once all places are known. It may have siblings (core, 8.2.3.1). */
  function refer(value: unknown, at: string, node: Node, rules: Rule[]): void {
    if (typeof value !== 'string' || !value.startsWith('#')) {
      throw refusal(at, 'must start with "#": only schemas within this one are referred to')
    }
    const fragment = decodeFragment(value.slice(1))
    const target = nodes.get(fragment) ?? anchors.get(fragment)
    if (target === undefined) throw refusal(at, 'leads to no schema: correct it or add the schema')
    node.parts.push({ keyword: '$ref', token: '', node: target })
    rules.push(target.check)
  }

  const root = compile(schema, '', 0)
  for (const link of links) link()
  refuseLoops(nodes, refusal)

  return {
    check(value) {
      const run: Run = { steps: 0, depth: 0 }
      try {
        const failed = tooDeep(value, MAX_DEPTH, run) ? TOO_DEEP : root.check(value, run)
        return failed && violation(failed)
      } catch (error) {
        if (error instanceof TooMuchWork) return violation(TOO_MUCH)
        throw error
      }
    },
    project: (value) => root.project(value),
  }
}

function judge(rules: readonly Rule[], value: unknown, run: Run): Failure | undefined {
  run.depth += 1
  spend(run, 1)
  for (const rule of rules) {
    const failed = rule(value, run)
    if (failed !== undefined) {
      run.depth -= 1
      return failed
    }
  }
  run.depth -= 1
  return undefined
}

/** A failure in the form that callers and people read. */
export function violation({ path, rule, says }: Failure): Violation {
  return { path, rule, message: `${path === '' ? 'the value' : path} ${says}` }
}

const LOOPS = `leads back to itself, or through ${MAX_DEPTH} schemas, without going into the value`

/** A schema "MUST NOT be run into an infinite loop against an instance" (core, 9.4.1). */
function refuseLoops(nodes: ReadonlyMap<string, Node>, refusal: (place: string, says: string) => Error) {
  const done = new Set<Node>()
  const loops = (node: Node, depth: number): boolean => {
    if (done.has(node)) return false
    const inPlace = node.parts.filter(({ keyword }) => IN_PLACE.has(keyword))
    if (depth > MAX_DEPTH || inPlace.some((next) => loops(next.node, depth + 1))) return true
    done.add(node)
    return false
  }
  for (const [place, node] of nodes) {
    if (loops(node, 0)) throw refusal(place, LOOPS)
  }
}

/** What `project` does at one schema; called when the schema's parts are all known. */
function projector(schema: JsonObject, parts: readonly Part[]): Project {
  const has = (keyword: string) => Object.hasOwn(schema, keyword)
  const under = (keyword: string) => parts.filter((part) => part.keyword === keyword)
  const several = SEVERAL_SPEAK.filter(has)
  const [target] = under('$ref')
  const structured = STRUCTURE.some(has)
  if (target && several.length === 1 && !structured) return (value) => target.node.project(value)
  if (several.length > 0 || !structured) return copy

  const closed = has('properties')
  const properties = new Map(under('properties').map(({ token, node }) => [token, node]))
  const patterns = under('patternProperties').map(({ token, node }) => ({
    pattern: new RegExp(token, 'u'),
    node,
  }))
  const [rest] = under('additionalProperties')
  const required = new Set(Object.values(own(schema, 'required') ?? []))
  const prefix = under('prefixItems')
  const [items] = under('items')

  /** The one schema that speaks of a member; `several` when more do. */
  function speaker(name: string): Node | 'several' | undefined {
    const named = properties.get(name)
    if (patterns.length === 0) return named ?? rest?.node
    const found = patterns.flatMap(({ pattern, node }) => (pattern.test(name) ? [node] : []))
    if (named !== undefined) found.push(named)
    return found.length > 1 ? 'several' : (found[0] ?? rest?.node)
  }
  return (value) => {
    if (isList(value)) return value.map((item, i) => projectItem(prefix[i] ?? items, item))
    if (!isObject(value)) return copy(value)
    return copyMembers(value, (member, name) => {
      const node = speaker(name)
      if (node === undefined && closed && !required.has(name)) return DROPPED
      return node === undefined || node === 'several' ? copy(member) : node.project(member)
    })
  }
}

const projectItem = (part: Part | undefined, item: unknown) =>
  part === undefined ? copy(item) : part.node.project(item)

const DROPPED = Symbol('a member that is not copied')

function copy(value: unknown): unknown {
  if (isList(value)) return value.map(copy)
  if (isObject(value)) return copyMembers(value, copy)
  return value === 0 ? 0 : value // -0 is 0 to every reader of JSON
}

function copyMembers(value: JsonObject, each: (member: unknown, name: string) => unknown) {
  const members: { [name: string]: unknown } = {}
  for (const name of Object.keys(value)) {
    const member = each(value[name], name)
    if (member === DROPPED) continue
    // Here it is data, as in the JSON text; an assignment would make it the prototype.
    if (name === '__proto__') Object.defineProperty(members, name, { ...OWN, value: member })
    else members[name] = member
  }
  return members
}

const OWN = { configurable: true, enumerable: true, writable: true }

const own = (value: JsonObject, name: string): unknown =>
  Object.hasOwn(value, name) ? value[name] : undefined

/** One reference token of a JSON Pointer (RFC 6901, section 3). */
const escapeToken = (token: string) => token.replaceAll('~', '~0').replaceAll('/', '~1')

/** "#/%24defs/a%20b": a pointer in a fragment is percent-encoded (RFC 6901, section 6). */
function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}
