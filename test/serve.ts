/**
 * A real server on a free port for one test: fixed, visibly fake secrets, a clock that only the test
 * moves, a log that the test reads, and a count of how often the risky action ran.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { at, type Json, type Message, message, paramHeaders, type Reply, send } from '../client.ts'
import type { Action, Values } from '../lib/action.ts'
import type { Variables } from '../lib/environment.ts'
import type { HttpServer } from '../lib/http-server.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import type { Log, RequestLine } from '../lib/log.ts'
import type { Tool } from '../lib/tool.ts'
import { compose, type Parts } from '../server.ts'

export const SECRET = 'test-secret-0-test-secret-0-test-secret-0'
export const ROLLBACK = { service: 'checkout', version: 'v1.41.2' }
export const QUESTION = 'Roll checkout back to v1.41.2? This restarts every instance.'
export const REFUSED = 'Confirmation expired or was tampered with. Start again.'
export const CANCELLED = 'Rollback cancelled. Nothing changed.'
/** 2026-12-01T00:00:00Z, when the clock of every test server starts. */
export const EPOCH = 1_796_083_200_000

export type Clock = { now: number }

export type Served = {
  readonly url: URL
  readonly http: HttpServer
  /** Every action that was performed. Tests of a refusal assert that it is empty. */
  readonly performed: Values[]
  readonly clock: Clock
  readonly lines: RequestLine[]
  readonly decisions: object[]
  readonly failures: unknown[]
  /** Calls a tool with the headers that mirror its arguments. */
  readonly call: (args?: Json, retry?: Json, options?: CallOptions) => Promise<Reply>
  /** A first call; @returns the state that it hands out. */
  readonly ask: (args?: Json, options?: CallOptions) => Promise<string>
  /** A retry that says yes. */
  readonly yes: (requestState: unknown, args?: Json, options?: CallOptions) => Promise<Reply>
}

export type CallOptions = {
  readonly tool?: string
  readonly capabilities?: Json
  readonly edit?: (message: Message) => Message
}

/** What is not named here goes to `compose` as it is. */
export type Options = Omit<Parts, 'now' | 'log' | 'action' | 'tools'> & {
  readonly env?: Variables
  readonly tools?: readonly Tool[]
  readonly clock?: Clock
  /** Runs inside the action, before it is counted. */
  readonly during?: () => void | Promise<void>
  /** What the action does instead of succeeding; it is counted when it succeeds. */
  readonly action?: Partial<Action>
  /** Sent with every request unless the test edits it. */
  readonly token?: string
}

export async function serve(t: TestContext, options: Options = {}): Promise<Served> {
  const { env = {}, clock = { now: EPOCH }, tools = [], during, action: acting, token, ...others } = options
  const performed: Values[] = []
  const lines: RequestLine[] = []
  const decisions: object[] = []
  const failures: unknown[] = []
  const action: Action = {
    faultOf: () => undefined,
    ...acting,
    run: async (values, reason, principal) => {
      await during?.()
      const failure = await acting?.run?.(values, reason, principal)
      if (failure === undefined) performed.push({ ...values, reason })
      return failure
    },
  }
  const log: Log = {
    request: (line) => lines.push(line),
    decision: (line) => decisions.push(line),
    failure: (thrown) => failures.push(thrown),
    say: () => {},
  }
  const parts = { now: () => clock.now, log, action, tools, ...others }
  const { http } = await compose({ STATE_SECRET: SECRET, ...env }, parts)
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))

  const signed: Message['headers'] = token === undefined ? [] : [['Authorization', `Bearer ${token}`]]
  const listing = message('tools/list')
  const list = await send(url, { headers: [...listing.headers, ...signed], body: listing.body })
  const definitions = (at(list.body, 'result', 'tools') ?? []) as Json[]

  const call: Served['call'] = async (args = ROLLBACK, retry = {}, how = {}) => {
    const { tool = 'rollback_release', capabilities, edit = (m) => m } = how
    const definition = definitions.find(({ name }) => name === tool)
    const { headers, body } = message('tools/call', { name: tool, arguments: args, ...retry }, capabilities)
    const mirrored = paramHeaders(definition?.inputSchema, args)
    return send(url, edit({ headers: [...headers, ...mirrored, ...signed], body }))
  }
  const ask: Served['ask'] = async (args, how) => stateOf(await call(args, {}, how))
  const yes: Served['yes'] = (requestState, args, how) =>
    call(args, { requestState, inputResponses: answer({ confirm: true, reason: 'p99 regression' }) }, how)
  return { url, http, performed, clock, lines, decisions, failures, call, ask, yes }
}

/** `inputResponses` with one answer, accepted unless another action is given. */
export function answer(content: unknown, action: unknown = 'accept'): Json {
  return { confirm: { action, content } }
}

export const stateOf = (reply: Reply): string => String(at(reply.body, 'result', 'requestState'))
export const textOf = (reply: Reply): unknown => at(reply.body, 'result', 'content', '0', 'text')
export const resultOf = (reply: Reply): unknown => at(reply.body, 'result')
export const errorOf = (reply: Reply): unknown => at(reply.body, 'error')
export const codeOf = (reply: Reply): unknown => at(reply.body, 'error', 'code')

/** A message whose body is known to be an object, so that a test can spoil a member of it. */
export type Call = Message & { readonly body: Json }

/** A retry that performs the rollback when it is sent as it is: what a refusal has to prevent. */
export async function approvedCall({ ask }: Served): Promise<Call> {
  const retry = { requestState: await ask(), inputResponses: answer({ confirm: true }) }
  const params = { name: 'rollback_release', arguments: ROLLBACK, ...retry }
  return plus(message('tools/call', params), 'Mcp-Param-Service', ROLLBACK.service)
}

/** Nothing was performed although the call is good: sent as it is, it performs. */
export async function assertHeldBack({ url, performed }: Served, call: Message): Promise<void> {
  assert.deepEqual(performed, [])
  await send(url, call)
  assert.equal(performed.length, 1)
}

/** Headers byte for byte: beside a text for a body, Node writes those beyond ASCII as UTF-8. */
export const sendBytes = (url: URL, { headers, body }: Message): Promise<Reply> =>
  send(url, { headers, body: Buffer.from(JSON.stringify(body)) })

export const plus = (call: Call, name: string, value: string): Call => {
  return { ...call, headers: [...call.headers, [name, value]] }
}
export const without = (call: Call, name: string): Call => {
  return { ...call, headers: call.headers.filter(([other]) => other !== name) }
}
export const replacing = (call: Call, name: string, value: string): Call =>
  plus(without(call, name), name, value)

/**
 * Asserts that a reply is one JSON-RPC error in one safe line, with this id or without any.
 * @returns its message.
 */
export function assertRefused(
  reply: Reply,
  status: number,
  code: number,
  id?: unknown,
  label?: string,
): string {
  const { error, ...rest } = Object(reply.body)
  assert.deepEqual(
    { label, status: reply.status, code: at(error, 'code'), ...rest },
    { label, status, code, jsonrpc: '2.0', ...(id === undefined ? {} : { id }) },
  )
  assert.match(String(reply.headers['content-type']), /^application\/json\b/)
  assert.match(String(at(error, 'message')), /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u)
  return String(at(error, 'message'))
}
