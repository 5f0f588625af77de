/**
 * What the hostile cases send: an honest request and edits that spoil one thing about it. The table that
 * combines them with what has to come back is hostile-cases.ts.
 */
import { at, encodeHeader, type Header, type Json, type Message, message, type Reply } from '../client.ts'
import { describe, kindOf } from './hostile-answers.ts'
import { chunks, head } from './hostile-socket.ts'

/** A server, and a tool of it that asks a yes-or-no question before it acts. */
export type Target = {
  readonly url: URL
  /** As `tools/list` defines it. */
  readonly tool: Json
  readonly tools: readonly Json[]
  /** What `server/discover` advertises. */
  readonly capabilities: Json
  /** The key of the question in `inputRequests`, its form, and the form's yes-or-no field. */
  readonly key: string
  readonly form: Json
  readonly field: string
  /** `inputResponses` that say yes. */
  readonly yes: Json
  /** Arguments for a flow of its own. */
  readonly args: () => Json
  /** A valid call of the tool, or of another one, with the headers that mirror its arguments. */
  readonly call: (args: Json, more?: Json, tool?: Json) => Shot
  /** The text of a confirmed call. The first time it is wanted, a call is confirmed. */
  readonly done: () => Promise<unknown>
  /** These throw a Fault for what no answer may be. */
  readonly send: (shot: Shot) => Promise<Reply>
  readonly converse: (...script: (Buffer | RegExp)[]) => Promise<Reply[]>
  readonly abandon: (bytes: Buffer) => Promise<void>
}

/** A message on its way to being spoilt. */
export type Shot = Message & {
  readonly verb?: string
  /** Where it is sent, relative to the endpoint. */
  readonly to?: string
  /** The request line, where the bytes are written by hand. */
  readonly start?: string
}

/** The case says nothing about this target. */
export class Skip extends Error {}
/** What came back is wrong whatever the case. */
export class Fault extends Error {}

export type Source = (target: Target) => Shot | Promise<Shot>
export type Edit = (shot: Shot, target: Target) => Shot | Promise<Shot>

// --- Honest requests

export const discover: Source = () => message('server/discover')
export const list: Source = () => message('tools/list')
/** A first call: the tool asks. */
export const ask: Source = (target) => target.call(target.args())
/** A retry that says yes: sent as it is, the tool acts. */
export const yes: Source = async (target) => retryOf(target, await asked(target), target.yes)
/** A retry without any answer. */
export const mute: Source = async (target) => retryOf(target, await asked(target))
/** A first call that already says yes. */
export const uninvited: Source = (target) => target.call(target.args(), { inputResponses: target.yes })

/** A retry that says yes with a state in which something occurs. */
export function yesWith(pattern: RegExp): Source {
  return async (target) => {
    for (let attempt = 0; attempt < 20; attempt++) {
      const question = await asked(target)
      if (pattern.test(question.state)) return retryOf(target, question, target.yes)
    }
    throw new Skip(`no state has ${pattern} in it`)
  }
}

/** A message of the revisions before this one, without the headers and the `_meta` of this one. */
export function legacy(method: string): Source {
  const clientInfo = { name: 'old', version: '1' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  const headers: Header[] = [
    ['Content-Type', 'application/json'],
    ['Accept', 'application/json, text/event-stream'],
  ]
  return () => ({ headers, body: { jsonrpc: '2.0', id: 'old-1', method, params } })
}

/** A source for targets that have what a case needs. */
export function needing(need: (target: Target) => unknown, source: Source): Source {
  return (target) => {
    need(target)
    return source(target)
  }
}

export type Question = { readonly args: Json; readonly state: string }

/** Has the tool ask its question. @throws Fault when it doesn't. */
export async function asked(target: Target): Promise<Question> {
  const args = target.args()
  const reply = await target.send(target.call(args))
  const state = at(reply.body, 'result', 'requestState')
  if (kindOf(reply) === 'asked' && typeof state === 'string') return { args, state }
  throw new Fault(`no question to begin with, but ${describe(reply)}`)
}

export function retryOf(target: Target, { args, state }: Question, answers?: Json): Shot {
  return target.call(args, { requestState: state, ...(answers && { inputResponses: answers }) })
}

// --- Edits of headers

/** One edit after the other. */
export function chain(...edits: Edit[]): Edit {
  return async (shot, target) => {
    let edited = shot
    for (const edit of edits) edited = await edit(edited, target)
    return edited
  }
}

/** Rewrites the lines of a header: none, one or several. */
export function lines(name: string, rewrite: (value: string) => Header[]): Edit {
  const isIt = (other: string) => other.toLowerCase() === name.toLowerCase()
  return (shot) => {
    return { ...shot, headers: shot.headers.flatMap((line) => (isIt(line[0]) ? rewrite(line[1]) : [line])) }
  }
}

export const without = (name: string) => lines(name, () => [])
/** Another value of a header that is there. */
export const value = (name: string, change: (value: string) => string) =>
  lines(name, (old) => [[name, change(old)]])
/** The value as it is. */
export const keep = (value: string) => value
/** Two lines of a header that is there. */
export const twice = (name: string, first = keep, second = keep) =>
  lines(name, (old) => [
    [name, first(old)],
    [name, second(old)],
  ])
/** One more header. */
export const also = (name: string, value: string): Edit => {
  return (shot) => ({ ...shot, headers: [...shot.headers, [name, value]] })
}
/** A header with this value, whether or not it was there. */
export const header = (name: string, value: string) => chain(without(name), also(name, value))

/** Names in capitals and in small letters, by turns. */
export const otherCase: Edit = (shot) => {
  const change = (name: string, i: number) => (i % 2 === 0 ? name.toUpperCase() : name.toLowerCase())
  return { ...shot, headers: shot.headers.map(([name, text], i): Header => [change(name, i), text]) }
}

export const noParamHeaders: Edit = (shot) => {
  return { ...shot, headers: shot.headers.filter(([name]) => !/^mcp-param-/i.test(name)) }
}

/** An edit for an argument that is mirrored. */
export function mirrored(edit: (argument: Mirrored) => Edit): Edit {
  return (shot, target) => edit(mirroredArgument(target))(shot, target)
}

/** Another way to write an integer in its header. */
export function mirroredInteger(write: (value: number) => string): Edit {
  return (shot, target) => {
    const { header: name, value } = integerArgument(target)
    if (name === undefined) throw new Skip('no integer argument is mirrored in a header')
    return header(name, write(value))(shot, target)
  }
}

export const verb = (verb: string): Edit => {
  return (shot) => ({ ...shot, verb })
}
export const to = (to: string): Edit => {
  return (shot) => ({ ...shot, to })
}

// --- Edits of bodies

export const body = (change: (body: unknown) => unknown): Edit => {
  return (shot) => ({ ...shot, body: change(shot.body) })
}
/** What JSON.stringify would not write. */
export const text = (change: (json: string) => string | Buffer) => {
  return body((old) => change(JSON.stringify(old)))
}
/** A member with this value, whether or not it was there. */
export const put = (value: unknown, ...path: string[]) => body((old) => replaced(old, path, () => [value]))
export const cut = (...path: string[]) => body((old) => replaced(old, path, () => []))

function replaced(here: unknown, path: string[], change: (old: unknown) => unknown[]): Json {
  const [member = '', ...rest] = path
  const old = at(here, member)
  const now = rest.length > 0 ? [replaced(old, rest, change)] : change(old)
  const others = Object.entries(Object(here)).filter(([name]) => name !== member)
  return Object.fromEntries([...others, ...now.map((value) => [member, value])])
}

/** The first member of this name under another one. */
export const renamed = (from: string, to: string) =>
  body((old) => JSON.parse(JSON.stringify(old).replace(`"${from}":`, `"${to}":`)))
/** Where a lookup that climbs the prototype chain finds it. */
export const hidden = (member: string) => renamed(member, '__proto__')

const META = 'io.modelcontextprotocol/'
export const meta = (value: unknown, name: string) => put(value, 'params', '_meta', META + name)
export const metaless = (name: string) => cut('params', '_meta', META + name)
export const capable = (capabilities: unknown) => meta(capabilities, 'clientCapabilities')

/** Another protocol version, in header and body alike. */
export const speaking = (version: string) =>
  chain(header('MCP-Protocol-Version', version), meta(version, 'protocolVersion'))
/** Another method, in header and body alike. */
export const calling = (method: string) => chain(header('Mcp-Method', method), put(method, 'method'))

/** A method that belongs to something which the server does not offer. */
export const unadvertised: Edit = (shot, target) => {
  const methods = {
    resources: 'resources/list',
    prompts: 'prompts/list',
    completions: 'completion/complete',
  }
  const found = Object.entries(methods).find(([offer]) => at(target.capabilities, offer) === undefined)
  if (found === undefined) throw new Skip('the server offers everything')
  return calling(found[1])(shot, target)
}

/** Another tool name, in header and body alike. */
export function tool(change: (name: string) => string): Edit {
  return (shot, target) => {
    const name = change(String(target.tool.name))
    return chain(header('Mcp-Name', encodeHeader(name)), put(name, 'params', 'name'))(shot, target)
  }
}

/** Other arguments on a call that is otherwise the same, mirrored as they are to be. */
export function args(change: (args: Json, target: Target) => Json): Edit {
  return (shot, target) => {
    const { arguments: old, requestState, inputResponses } = Object(at(shot.body, 'params'))
    return target.call(change(old, target), { requestState, inputResponses })
  }
}

/** Arguments with something more. */
export const extra = (more: Json) => args((given) => ({ ...given, ...more }))
/** Another value of an argument that has to be given. */
export const required = (other: unknown) =>
  args((given, target) => ({ ...given, [requiredArgument(target)]: other }))
/** Another value of a text argument that no header mirrors. */
export const plain = (change: (argument: string) => unknown) =>
  args((given, target) => changed(given, plainArgument(target).name, (old) => change(String(old))))
/** Another value of a text argument and of the header that mirrors it. */
export const both = (change: (argument: string) => unknown) =>
  args((given, target) => changed(given, mirroredArgument(target).name, (old) => change(String(old))))
export const integer = (change: (value: number) => unknown) =>
  args((given, target) => changed(given, integerArgument(target).name, (old) => change(Number(old))))
const changed = (given: Json, name: string, change: (old: unknown) => unknown) => {
  return { ...given, [name]: change(given[name]) }
}
/** More arguments, as JSON says them. */
export const inArguments = (json: string) =>
  text((old) => old.replace('"arguments":{', `"arguments":{${json},`))
export const argumentsAsText: Edit = (shot, target) =>
  put(JSON.stringify(at(shot.body, 'params', 'arguments')), 'params', 'arguments')(shot, target)

/** The retry on another tool that says of itself that it is risky, and so has to ask as well. */
export const otherTool: Edit = (shot, { tool, tools, call }) => {
  const { arguments: given, requestState, inputResponses } = Object(at(shot.body, 'params'))
  const isRisky = (other: Json) => at(other, 'annotations', 'destructiveHint') === true
  const other = tools.find((candidate) => candidate.name !== tool.name && isRisky(candidate))
  if (other === undefined) throw new Skip('the server has no other tool that says it is risky')
  const needed = Object.entries(Object(at(other, 'inputSchema', 'properties'))).map(([name, schema]) => [
    name,
    at(given, name) ?? sample(schema),
  ])
  return call(Object.fromEntries(needed), { requestState, inputResponses }, other)
}

// --- Edits of the state and of the answer

/** Another `requestState`. */
export function state(change: (state: string, target: Target) => unknown): Edit {
  return async (shot, target) =>
    put(await change(stateIn(shot), target), 'params', 'requestState')(shot, target)
}

export const stateIn = (shot: Shot) => String(at(shot.body, 'params', 'requestState'))

/** The state in another place. */
export const moved = (...path: string[]) =>
  chain((shot, target) => put(stateIn(shot), ...path)(shot, target), cut('params', 'requestState'))
export const inHeader: Edit = (shot, target) =>
  chain(header('Mcp-Request-State', stateIn(shot)), cut('params', 'requestState'))(shot, target)
export const inQuery: Edit = (shot, target) =>
  chain(to(`?requestState=${encodeURIComponent(stateIn(shot))}`), cut('params', 'requestState'))(
    shot,
    target,
  )

/** Other `inputResponses`. */
export function answers(change: (honest: Json, target: Target) => unknown): Edit {
  return (shot, target) => put(change(target.yes, target), 'params', 'inputResponses')(shot, target)
}

/** The answers in another place. */
export const answersIn = (...path: string[]) =>
  chain(
    (shot, target) => put(target.yes, ...path, 'inputResponses')(shot, target),
    cut('params', 'inputResponses'),
  )

/** Another answer to the question. */
export const answer = (change: (honest: Json, target: Target) => unknown) =>
  answers((honest, target) => ({ ...honest, [target.key]: change(Object(honest[target.key]), target) }))
export const instead = (other: unknown) => answer(() => other)
export const acting = (action: unknown) => answer((honest) => ({ ...honest, action }))

/** Another content of the answer. */
export const content = (change: (honest: Json, target: Target) => unknown) =>
  answer((honest, target) => ({ ...honest, content: change(Object(honest.content), target) }))
export const holding = (other: unknown) => content(() => other)
/** Something else where a yes is true. */
export const confirming = (other: unknown) =>
  content((honest, { field }) => ({ ...honest, [field]: other }))
/** Something in a text field of the form. */
export const typing = (typed: unknown) =>
  content((honest, target) => ({ ...honest, [textField(target).field]: typed }))
export const typingTooMuch: Edit = (shot, target) => {
  const { field, longest } = textField(target)
  if (!(longest < 100_000)) throw new Skip('the form has no bounded text field')
  return content((honest) => ({ ...honest, [field]: 'x'.repeat(longest + 1) }))(shot, target)
}

/** `{"__proto__": value}`, as a parser makes it: a member of its own, and no prototype. */
export const behindProto = (value: unknown) => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`)

// --- What a case needs of its target. Each throws a Skip.

type Argument = { readonly name: string; readonly argument: string }
type Mirrored = Argument & { readonly header: string }

export function loopback({ url }: Target): void {
  if (!/^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname))
    throw new Skip('the server is on no loopback name')
}

/** A text argument with a header of its own. */
export function mirroredArgument(target: Target): Mirrored {
  for (const { name, argument } of textArguments(target)) {
    const header = headerOf(target.tool, name)
    if (header !== undefined) return { name, argument, header }
  }
  throw new Skip('no text argument is mirrored in a header')
}

export function plainArgument(target: Target): Argument {
  const found = textArguments(target).find(({ name }) => headerOf(target.tool, name) === undefined)
  if (found === undefined) throw new Skip('every text argument is mirrored in a header')
  return found
}

export function integerArgument({ tool, args }: Target): {
  name: string
  value: number
  header: string | undefined
} {
  for (const [name, value] of Object.entries(args())) {
    const type = at(tool, 'inputSchema', 'properties', name, 'type')
    if (type === 'integer' && typeof value === 'number')
      return { name, value, header: headerOf(tool, name) }
  }
  throw new Skip('no argument is an integer')
}

export function requiredArgument({ tool, args }: Target): string {
  const required = at(tool, 'inputSchema', 'required')
  const given = args()
  const found = Array.isArray(required) ? required.find((name) => Object.hasOwn(given, name)) : undefined
  if (found === undefined) throw new Skip('no argument is required')
  return found
}

/** A declared argument that is not given, with a value for it. */
export function leftOut({ tool, args }: Target): Json {
  const given = args()
  const properties = Object.entries(Object(at(tool, 'inputSchema', 'properties')))
  const found = properties.find(([name]) => !Object.hasOwn(given, name))
  if (found === undefined) throw new Skip('every declared argument is given')
  return { [found[0]]: sample(found[1]) }
}

/** A text field of the form, and how much it holds. */
export function textField({ form }: Target): { field: string; longest: number } {
  for (const [field, schema] of Object.entries(Object(form.properties))) {
    const isFree = at(schema, 'type') === 'string' && !at(schema, 'enum') && !at(schema, 'oneOf')
    if (isFree && !at(schema, 'format')) {
      return { field, longest: Number(at(schema, 'maxLength') ?? Number.POSITIVE_INFINITY) }
    }
  }
  throw new Skip('the form has no text field')
}

function textArguments({ args }: Target): Argument[] {
  return Object.entries(args()).flatMap(([name, argument]) =>
    typeof argument === 'string' ? [{ name, argument }] : [],
  )
}

function headerOf(tool: Json, argument: string): string | undefined {
  const suffix = at(tool, 'inputSchema', 'properties', argument, 'x-mcp-header')
  return typeof suffix === 'string' ? `Mcp-Param-${suffix}` : undefined
}

/** The smallest value that a schema of the kind in forms and simple tools describes. */
export function sample(schema: unknown): unknown {
  const first = at(schema, 'const') ?? at(schema, 'default') ?? at(schema, 'enum', '0')
  const choice = first ?? at(schema, 'oneOf', '0', 'const') ?? at(schema, 'anyOf', '0', 'const')
  if (choice !== undefined) return choice
  const type = at(schema, 'type')
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return at(schema, 'minimum') ?? at(schema, 'maximum') ?? 1
  if (type === 'array') return [sample(at(schema, 'items'))]
  if (type === 'object') return {}
  const formats: Json = {
    email: 'a@example.com',
    uri: 'https://example.com/',
    date: '2026-07-28',
    'date-time': '2026-07-28T00:00:00Z',
  }
  const known = at(formats, String(at(schema, 'format')))
  return known ?? 'x'.repeat(Number(at(schema, 'minLength') ?? 1))
}

// --- Texts that look like another one

/** `=?base64?…?=`, whether or not the text needs it. */
export function wrapped(text: string, encoding: BufferEncoding = 'utf8'): string {
  return `=?base64?${Buffer.from(text, encoding).toString('base64')}?=`
}

/** Base64 that a lenient decoder reads as the same text. */
export function misspelt(text: string, how: 'no padding' | 'spare bits'): string {
  const canonical = Buffer.from(text).toString('base64')
  const bare = canonical.replace(/=+$/, '')
  if (bare === canonical) throw new Skip('its Base64 has no padding and no spare bits')
  const padding = how === 'no padding' ? '' : canonical.slice(bare.length)
  return `=?base64?${how === 'no padding' ? bare : withSpareBits(bare)}${padding}?=`
}

/** Base64 with another last character that says the same, by the bits of it that are not used. */
export function withSpareBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
  const bytes = Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64')
  const others = [...alphabet].map((last) => text.slice(0, -1) + last)
  const found = others.find((other) => {
    return other !== text && Buffer.from(other.slice(other.lastIndexOf('.') + 1), 'base64').equals(bytes)
  })
  if (found === undefined) throw new Skip('its Base64 has no spare bits')
  return found
}

export function swapCase(text: string): string {
  const swapped = text.replace(/[a-z]/gi, (c) => (c < 'a' ? c.toLowerCase() : c.toUpperCase()))
  if (swapped === text) throw new Skip('there is no letter in it')
  return swapped
}

/** Cyrillic letters that look like Latin ones. */
export function lookAlike(text: string): string {
  const letters: { [latin: string]: string } = { a: 'а', c: 'с', e: 'е', o: 'о', p: 'р', x: 'х', y: 'у' }
  const changed = text.replace(/[aceopxy]/, (c) => letters[c] ?? c)
  if (changed === text) throw new Skip('no letter of it has a look-alike')
  return changed
}

/** Another character at this place. */
export function changedAt(text: string, place: number): string {
  return text.slice(0, place) + (text[place] === 'A' ? 'B' : 'A') + text.slice(place + 1)
}

export const percentEncoded = (text: string) => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`
export const fullWidth = (text: string) => String.fromCharCode(text.charCodeAt(0) + 0xfee0) + text.slice(1)

/** Bytes in the middle of the first string of some JSON. */
export function withBytes(json: string, ...bytes: number[]): Buffer {
  return Buffer.concat([Buffer.from('{"x":"'), Buffer.from(bytes), Buffer.from(`",${json.slice(1)}`)])
}

// --- Requests as bytes

/** A message with the lines that frame it, its body as bytes. */
export function framed({ url }: Target, shot: Shot, last = true): Shot & { readonly body: Buffer } {
  const { headers, body } = shot
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const framing: Header[] = [['Content-Length', String(bytes.length)]]
  const token = process.env.MCP_TOKEN
  const signed = headers.some(([name]) => name === 'Authorization')
  if (token !== undefined && !signed) framing.push(['Authorization', `Bearer ${token}`])
  if (last) framing.push(['Connection', 'close'])
  return {
    ...shot,
    start: `POST ${url.pathname}${url.search} HTTP/1.1`,
    headers: [['Host', url.host], ...headers, ...framing],
    body: bytes,
  }
}

export function bytesOf({ start = '', headers, body }: Shot): Buffer {
  return Buffer.concat([head(start, headers), Buffer.isBuffer(body) ? body : Buffer.from(String(body))])
}

/** A framed message without its length, in chunks. */
export const chunked = chain(
  without('Content-Length'),
  also('Transfer-Encoding', 'chunked'),
  body((bytes) => (Buffer.isBuffer(bytes) ? chunks(bytes) : bytes)),
)
/** A framed message whose first chunk has a size that is no number. */
export const badChunk = chain(
  chunked,
  body((bytes) => Buffer.from(String(bytes).replace(/^\w+/, 'zz'))),
)
/** A framed message with white space behind its JSON. */
export const padded = (size: number) =>
  body((bytes) => (Buffer.isBuffer(bytes) ? Buffer.concat([bytes, Buffer.alloc(size, ' ')]) : bytes))
/** Another request line. */
export const starting = (line: (url: URL) => string): Edit => {
  return (shot, { url }) => ({ ...shot, start: line(url) })
}
