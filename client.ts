/**
 * The other side: a small MCP host. It plays the six sections of the tutorial, lets a person answer
 * the question (`--ask`), or attacks a server (`--hostile`). It imports nothing from `lib/`, because
 * an attacker doesn't get to either.
 */
import { realpathSync } from 'node:fs'
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { createInterface } from 'node:readline/promises'
import { inspect } from 'node:util'

export const VERSION = '2026-07-28'
const DEFAULT_URL = 'http://127.0.0.1:3000/mcp'
/** Longest wait for an answer, in milliseconds: a real rollback takes a while. */
const TIMEOUT_MS = 90_000
/** A server may ask again for ever; a person need not answer for ever. */
const MAX_ROUNDS = 10

export type Json = { readonly [member: string]: unknown }
export type Header = readonly [name: string, value: string]
/** A request before it is sent: a hostile case spoils any part of it. */
export type Message = { readonly headers: readonly Header[]; readonly body: unknown }
/** `body` is the parsed JSON, or undefined where the answer holds none. */
export type Reply = { status: number; headers: IncomingHttpHeaders; text: string; body: unknown }

let lastId = 0

/** A request as the specification wants it, with the headers that mirror its body. */
export function message(
  method: string,
  params: Json = {},
  capabilities: Json = { elicitation: { form: {} } },
  version = VERSION,
): Message & { readonly body: Json } {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'release-ops-client', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const headers: Header[] = [
    ['Content-Type', 'application/json'],
    ['Accept', 'application/json, text/event-stream'],
    ['MCP-Protocol-Version', version],
    ['Mcp-Method', method],
  ]
  if (typeof params.name === 'string') headers.push(['Mcp-Name', encodeHeader(params.name)])
  lastId += 1
  return { headers, body: { jsonrpc: '2.0', id: lastId, method, params: { ...params, _meta } } }
}

/** A value as a header may carry it: as it is, or in Base64 ("Value Encoding"). */
export function encodeHeader(value: string): string {
  const plain = /^([!-~]([ -~]*[!-~])?)?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)
  return plain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

/** `Mcp-Param-*` for the arguments that a tool's inputSchema mirrors, nested ones included. */
export function paramHeaders(schema: unknown, args: unknown): Header[] {
  return Object.entries(Object(at(schema, 'properties'))).flatMap(([name, property]): Header[] => {
    const value = at(args, name)
    const header = at(property, 'x-mcp-header')
    if (value === undefined || value === null) return []
    if (typeof header === 'string') return [[`Mcp-Param-${header}`, encodeHeader(String(value))]]
    return paramHeaders(property, value)
  })
}

/** Own members all the way down, or undefined: `at(reply.body, 'result', 'content', '0', 'text')`. */
export function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((here, member) => {
    return Object.hasOwn(Object(here), member) ? Object(here)[member] : undefined
  }, value)
}

/** Sends a message, or a body that is none, on a connection of its own. Headers may repeat. */
export async function send(url: URL, { headers, body }: Message, verb = 'POST'): Promise<Reply> {
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const lines = [['Host', url.host], ['Content-Length', String(bytes.length)], ...headers]
  const token = process.env.MCP_TOKEN
  const signed = headers.some(([name]) => /^authorization$/i.test(name))
  if (token !== undefined && !signed) lines.push(['Authorization', `Bearer ${token}`])
  const options = { method: verb, headers: lines.flat(), agent: false as const, timeout: TIMEOUT_MS }
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(url, options, resolve).on('error', reject)
    outgoing.on('timeout', () => outgoing.destroy(new Error('it took too long'))).end(bytes)
  })
  const text = Buffer.concat(await incoming.toArray()).toString()
  const { statusCode: status = 0, headers: received } = incoming
  const isJson = received['content-type']?.startsWith('application/json')
  return { status, headers: received, text, body: isJson ? JSON.parse(text) : undefined }
}

/** Calls a tool, listing first: only the list says which arguments are mirrored. */
export async function callTool(url: URL, name: string, args: Json, retry: Json = {}): Promise<Reply> {
  const list = at((await send(url, message('tools/list'))).body, 'result', 'tools')
  const tool = Array.isArray(list) ? list.find((tool) => at(tool, 'name') === name) : undefined
  const { headers, body } = message('tools/call', { name, arguments: args, ...retry })
  const mirrored = paramHeaders(at(tool, 'inputSchema'), args)
  return send(url, { headers: [...headers, ...mirrored], body })
}

const ofResult = (reply: Reply, ...path: string[]) => at(reply.body, 'result', ...path)
const textOf = (reply: Reply) => ofResult(reply, 'content', '0', 'text')
const formOf = (reply: Reply) => ofResult(reply, 'inputRequests', 'confirm', 'params')
const retryOf = (reply: Reply, answer: Json): Json => {
  return { requestState: ofResult(reply, 'requestState'), inputResponses: { confirm: answer } }
}

/** Prints a section of the tutorial, and what it had to print when that is something else. */
function section(title: string, line: string, expected: string): void {
  console.log(`--- ${title}\n${line}`)
  if (line === expected) return
  console.error(`expected: ${expected}`)
  process.exitCode = 1
}

/** The six sections. */
async function tour(url: URL): Promise<void> {
  const tool = 'rollback_release'
  const args = { service: 'checkout', version: 'v1.41.2' }
  const discovered = await send(url, message('server/discover'))
  section('discover', inspect(ofResult(discovered, 'supportedVersions')), "[ '2026-07-28' ]")

  const asked = await callTool(url, tool, args)
  section(
    'call 1: the server asks',
    `${ofResult(asked, 'resultType')} | ${at(formOf(asked), 'message')}`,
    'input_required | Roll checkout back to v1.41.2? This restarts every instance.',
  )
  const yes = { action: 'accept', content: { confirm: true, reason: 'p99 regression' } }
  const done = await callTool(url, tool, args, retryOf(asked, yes))
  section(
    'call 2: the user says yes',
    `${ofResult(done, 'resultType')} | ${textOf(done)}`,
    'complete | Rolled checkout back to v1.41.2. Reason: p99 regression',
  )
  const replayed = await callTool(url, tool, { ...args, version: 'v1.0.0' }, retryOf(asked, yes))
  section(
    'replay the same state against different arguments',
    `${ofResult(replayed, 'isError')} | ${textOf(replayed)}`,
    'true | Confirmation expired or was tampered with. Start again.',
  )
  const { headers, body } = message('tools/call', { name: tool, arguments: args })
  const lie: Header = ['Mcp-Name', 'something_else']
  const forged = await send(url, { headers: headers.map((h) => (h[0] === lie[0] ? lie : h)), body })
  section('forged Mcp-Name header', `${forged.status} ${at(forged.body, 'error', 'code')}`, '400 -32020')

  const old = await send(url, message('server/discover', {}, {}, '1900-01-01'))
  section(
    'unsupported version',
    `${old.status} ${JSON.stringify(at(old.body, 'error', 'data'))}`,
    '400 {"supported":["2026-07-28"],"requested":"1900-01-01"}',
  )
}

/** A server's text on a terminal: escape codes and bidi marks are shown, not obeyed. */
const shown = (value: unknown) => String(value).replace(/[\p{Cc}\p{Cf}]/gu, (c) => `<${c.codePointAt(0)}>`)

/** A person at the terminal answers. End of input or Ctrl-C cancels. */
async function ask(url: URL, args: Json): Promise<void> {
  const terminal = createInterface({ input: process.stdin })
  const lines = terminal[Symbol.asyncIterator]()
  const prompt = async (label: string): Promise<string | undefined> => {
    process.stdout.write(label)
    const { value, done } = await lines.next()
    return done === true ? undefined : value.trim()
  }
  /** Asks for each field, and lets the person look at the answer once more before it is sent. */
  const fillForm = async (properties: unknown): Promise<Json> => {
    const content: { [field: string]: unknown } = {}
    for (const [field, schema] of Object.entries(Object(properties))) {
      const label = shown(at(schema, 'title') ?? field)
      const isBoolean = at(schema, 'type') === 'boolean'
      const typed = await prompt(isBoolean ? `${label}? (y/n) ` : `${label}, or Enter: `)
      if (isBoolean && typed === undefined) return { action: 'cancel' }
      if (isBoolean && !/^y(es)?$/i.test(typed ?? '')) return { action: 'decline' }
      if (typed) content[field] = isBoolean ? true : typed
    }
    const review = process.stdin.isTTY ? await prompt('Send? (Enter, e to edit, c to cancel) ') : ''
    if (review === 'e') return fillForm(properties)
    return review === '' ? { action: 'accept', content } : { action: 'cancel' }
  }

  let reply = await callTool(url, 'rollback_release', args)
  for (let round = 0; round < MAX_ROUNDS && formOf(reply) !== undefined; round++) {
    console.log(`${url.host} asks:\n  ${shown(at(formOf(reply), 'message'))}`)
    const answer = await fillForm(at(formOf(reply), 'requestedSchema', 'properties'))
    reply = await callTool(url, 'rollback_release', args, retryOf(reply, answer))
  }
  terminal.close()
  console.log(shown(textOf(reply) ?? reply.text))
  const served = ofResult(reply, 'resultType') === 'complete' && ofResult(reply, 'isError') !== true
  process.exitCode = served ? 0 : 1
}

const USAGE = `client [URL]
client --ask SERVICE VERSION [URL]
client --hostile [URL] [--tool NAME --arguments JSON] [--case ID] [--list]`

async function main([mode, ...rest]: string[]): Promise<void> {
  if (mode === '--hostile') {
    process.exitCode = await (await import('./test/hostile.ts')).attack(rest, DEFAULT_URL)
    return
  }
  const [service, version, askUrl] = mode === '--ask' ? rest : []
  const address = (mode === '--ask' ? askUrl : mode) ?? DEFAULT_URL
  process.exitCode = 1
  if (!URL.canParse(address) || (mode === '--ask' && version === undefined)) return console.error(USAGE)
  try {
    process.exitCode = 0
    await (mode === '--ask' ? ask(new URL(address), { service, version }) : tour(new URL(address)))
  } catch (error) {
    const reason = at(error, 'code') ?? at(error, 'message') ?? error
    console.error(`No answer from ${address} (${reason}). Start the server with: npm start`)
    process.exitCode = 1
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  void main(process.argv.slice(2)) // awaited, it would wait for the hostile cases, which import this file
}
