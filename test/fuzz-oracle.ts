/**
 * Judges the answers of a fuzzed server from the bytes that were sent to it. It uses nothing of `lib/`: what it
 * knows is the contract, so that a mistake in there is not made twice.
 */
import { isDeepStrictEqual } from 'node:util'
import { at, type Header, type Json } from '../client.ts'
import { type Issued, TOKENS } from './fuzz-requests.ts'
import type { Request, Sent } from './fuzz-wire.ts'

export type Answer = {
  readonly status: number
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** What is done, and for whom. */
export type Deed = { readonly user: string; readonly values: Json }
/** A deed that somebody agreed to. */
export type Approved = Deed & { readonly once: boolean }

const STATUSES = new Set([200, 202, 204, 400, 401, 403, 404, 405, 408, 413, 415, 431])
/** A stack, a file of a program, or the name of a class; none is in what the fuzzer sends. */
const LEAK =
  /\n\s+at |node:|\.[cm]?[jt]s\b|node_modules|\b[A-Z]\w*(Error|Exception)\b|\/(work|home|usr|tmp|root)\//
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @returns what is wrong with the answers, or undefined. */
export function faultOf(
  { manner, requests }: Sent,
  answers: readonly Answer[],
  approvals: readonly (Approved | undefined)[],
): string | undefined {
  if (manner === 'hang-up') return undefined
  for (const [index, answer] of answers.entries()) {
    const request = manner === 'whole' ? requests[index] : requests[0]
    if (request === undefined) return 'more answers than requests'
    const approved = approvals[manner === 'whole' ? index : 0]
    const fault = faultOfAnswer(request, answer, manner === 'broken') ?? faultOfDeed(answer, approved)
    if (fault !== undefined) return `answer ${index + 1}: ${fault}`
  }
  const closed = answers.at(-1)?.headers.get('connection')?.toLowerCase() === 'close'
  if (manner !== 'whole' || answers.length === requests.length || closed) return undefined
  return `${answers.length} answers to ${requests.length} requests`
}

function faultOfAnswer(request: Request, answer: Answer, broken: boolean): string | undefined {
  const { status, headers, body } = answer
  if (!STATUSES.has(status)) return `status ${status}`
  const text = decoded(body)
  if (text === undefined) return 'not UTF-8'
  const leak = LEAK.exec([...headers.values(), text].join('\n'))
  if (leak !== null) return `it tells ${JSON.stringify(leak[0])}`
  if (request.expect !== undefined && !broken) {
    const there = kindOf(answer)
    if (!there.includes(request.expect)) return `expected ${request.expect}, got ${there.join() || status}`
  }
  const type = headers.get('content-type')
  if (request.verb === 'HEAD') return body.length > 0 ? 'a body after HEAD' : undefined
  if (type === 'application/json') return faultOfMessage(request, status, read(body), broken)
  if (text === '') return [202, 204, 400, 408, 431].includes(status) ? undefined : 'no body'
  if (!/^text\/plain\b/.test(type ?? '')) return `content type ${type}`
  return /^[^\p{Cc}{]{2,200}\n?$/u.test(text) ? undefined : 'no plain sentence'
}

/** The outcome of an approval that counts once is told to others of its flow; a rollback's is not. */
function faultOfDeed({ body }: Answer, approved: Approved | undefined): string | undefined {
  const done = at(read(body), 'result', 'structuredContent')
  const acted = at(done, 'status') === 'performed' && at(done, 'version') !== undefined
  return acted && approved === undefined ? 'it acted, and nobody approved that' : undefined
}

/** JSON-RPC 2.0, with the id that the contract wants. */
function faultOfMessage(
  request: Request,
  status: number,
  message: unknown,
  broken: boolean,
): string | undefined {
  if (at(message, 'jsonrpc') !== '2.0') return 'no JSON-RPC'
  const { jsonrpc: _, id, result, error, ...others } = Object(message)
  if (Object.keys(others).length > 0) return `a member ${Object.keys(others)[0]}`
  if ((result === undefined) === (error === undefined)) return 'neither a result nor an error'

  const sent = idIn(request.body)
  if (result !== undefined) {
    if (sent === undefined || id !== sent) return `a result for id ${id} instead of ${sent}`
    const named = at(result, '_meta', 'io.modelcontextprotocol/serverInfo', 'name')
    const complete = ['complete', 'input_required'].includes(String(at(result, 'resultType')))
    return status === 200 && complete && typeof named === 'string' ? undefined : 'a malformed result'
  }
  const { code, message: sentence } = Object(error)
  if (!Number.isSafeInteger(code) || typeof sentence !== 'string') return 'a malformed error'
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(sentence)) return 'an error that is not one harmless line'
  const owed = unread(request, status, code, broken) ? undefined : sent
  if (id === owed || (broken && id === undefined)) return undefined
  return `error ${code} with id ${JSON.stringify(id)} instead of ${JSON.stringify(owed)}`
}

/** Whether the contract answers without an id although there is one: the body was not, or can't be, read. */
function unread(request: Request, status: number, code: number, broken: boolean): boolean {
  if (code === -32700) return broken || read(request.body) === undefined
  return (
    status === 403 &&
    code === -32600 &&
    (broken || request.headers.some(([name]) => /^origin$/i.test(name)))
  )
}

/** The id that can be read in a body: of a request or notification, not of a response or a batch. */
function idIn(body: Buffer): unknown {
  const message = read(body)
  if (!isObject(message)) return undefined
  const isResponse = message.result !== undefined || message.error !== undefined
  if (isResponse && typeof message.method !== 'string') return undefined
  const { id } = message
  return typeof id === 'string' || Number.isSafeInteger(id) ? id : undefined
}

/** What an honest client would take the answer for. */
function kindOf({ status, headers, body }: Answer): string[] {
  if (status === 202 && body.length === 0) return ['accepted']
  if (status === 204) return headers.has('access-control-allow-headers') ? ['preflight'] : []
  if (status !== 200) return []
  if (body.toString() === 'ok') return ['healthy']
  const result = at(read(body), 'result')
  if (Array.isArray(at(result, 'supportedVersions'))) return ['discovered']
  if (Array.isArray(at(result, 'tools'))) return ['listed']
  if (typeof at(result, 'requestState') === 'string') return ['asked', 'settled']
  const outcome = at(result, 'structuredContent', 'status')
  return outcome === 'performed' || outcome === 'cancelled' ? [outcome, 'settled'] : []
}

/**
 * What a request may make happen: all that was asked and agreed to, by the same caller, for the same tool and
 * arguments, with headers that say the same as the body. Most requests may do nothing.
 * @param broken when the head was spoiled once more: what was wrong with it may be right after all.
 */
export function approvedBy(
  request: Request,
  issued: ReadonlyMap<string, Issued>,
  broken: boolean,
): Approved | undefined {
  const params = at(read(request.body), 'params')
  const state = at(params, 'requestState')
  const question = typeof state === 'string' ? issued.get(state) : undefined
  if (question === undefined) return undefined
  const { tool, args, user } = question
  const answer = at(params, 'inputResponses', 'confirm')
  const agreed = at(answer, 'action') === 'accept' && at(answer, 'content', 'confirm') === true
  const sameCall = at(params, 'name') === tool && sameArguments(at(params, 'arguments'), args)
  if (!(agreed && sameCall && (broken || headSays(request, question)))) return undefined
  const { idempotency_key: once, ...values } = args
  return { user, values, once: once !== undefined }
}

/** Whether the head is a POST by that caller, and says of the call what the body says. */
function headSays({ verb, headers }: Request, { tool, args, user }: Issued): boolean {
  const { service, replicas } = args
  return (
    verb === 'POST' &&
    oneValue(headers, 'authorization')?.replace(/^bearer +/i, '') === TOKENS[user] &&
    oneValue(headers, 'mcp-protocol-version') === '2026-07-28' &&
    oneValue(headers, 'mcp-method') === 'tools/call' &&
    unwrapped(oneValue(headers, 'mcp-name')) === tool &&
    unwrapped(oneValue(headers, 'mcp-param-service')) === service &&
    (replicas === undefined || unwrapped(oneValue(headers, 'mcp-param-replicas')) === String(replicas))
  )
}

/** How often each thing may still be done. */
export class Ledger {
  readonly #left = new Map<string, number>()

  allow(approved: Approved): void {
    const key = keyOf(approved)
    this.#left.set(key, approved.once ? 1 : (this.#left.get(key) ?? 0) + 1)
  }

  /** Whether this deed may be done, once. */
  covers(deed: Deed): boolean {
    const key = keyOf(deed)
    const left = this.#left.get(key) ?? 0
    this.#left.set(key, left - 1)
    return left > 0
  }

  clear(): void {
    this.#left.clear()
  }
}

const keyOf = ({ user, values }: Deed) => `${user} ${JSON.stringify(values)}`

/** All that a tool declares: what else is sent it never sees. */
function sameArguments(sent: unknown, args: Json): boolean {
  const declared = ['service', 'version', 'replicas', 'idempotency_key', 'dry_run', 'max_spend_usd']
  const relevant = declared.filter(
    (name) => !('version' in args) || name === 'service' || name === 'version',
  )
  return relevant.every((name) => isDeepStrictEqual(at(sent, name), at(args, name)))
}

/** The value of a header that is there once. */
function oneValue(headers: readonly Header[], name: string): string | undefined {
  const [first, second] = headers.filter(([spelled]) => spelled.toLowerCase() === name)
  return second === undefined ? first?.[1].replace(/^[ \t]+|[ \t]+$/g, '') : undefined
}

function unwrapped(value: string | undefined): string | undefined {
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value ?? '') ?? []
  return base64 === undefined ? value : decoded(Buffer.from(base64, 'base64'))
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return UTF8.decode(bytes)
  } catch {
    return undefined
  }
}

/** What a body says as JSON; read once, since most of a run's time goes into this. */
const readings = new WeakMap<Buffer, unknown>()

function read(body: Buffer): unknown {
  if (!readings.has(body)) readings.set(body, parsed(decoded(body)))
  return readings.get(body)
}

function parsed(text = ''): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
