/**
 * A real server on a free port for one test: fixed, visibly fake secrets, a clock that only the test
 * moves, a log that the test reads, and a count of how often the risky action ran.
 */
import type { TestContext } from 'node:test'
import { at, type Json, type Message, message, paramHeaders, type Reply, send } from '../client.ts'
import { type Environment, readConfig } from '../lib/config.ts'
import type { HttpServer } from '../lib/http-server.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import type { RequestLine } from '../lib/log.ts'
import type { Tool } from '../lib/tool.ts'
import { type Rollback, rollbackRelease } from '../lib/tools/rollback-release.ts'
import { compose } from '../server.ts'

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
  /** Every rollback that was performed. Tests of a refusal assert that it is empty. */
  readonly performed: Rollback[]
  readonly clock: Clock
  readonly lines: RequestLine[]
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

export type Options = {
  readonly env?: Environment
  readonly tools?: readonly Tool[]
  readonly clock?: Clock
  /** Runs inside the action, before it is counted. */
  readonly during?: () => void | Promise<void>
}

export async function serve(t: TestContext, options: Options = {}): Promise<Served> {
  const { env = {}, clock = { now: EPOCH }, tools = [], during } = options
  const performed: Rollback[] = []
  const lines: RequestLine[] = []
  const failures: unknown[] = []
  const rollback = rollbackRelease(async (done) => {
    await during?.()
    performed.push(done)
  })
  const config = readConfig({ STATE_SECRET: SECRET, ...env })
  const http = compose(config, {
    tools: [rollback, ...tools],
    now: () => clock.now,
    log: {
      request: (line) => lines.push(line),
      failure: (thrown) => failures.push(thrown),
      say: () => {},
    },
  })
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))

  const list = await send(url, message('tools/list'))
  const definitions = at(list.body, 'result', 'tools') as Json[]

  const call: Served['call'] = async (args = ROLLBACK, retry = {}, how = {}) => {
    const { tool = 'rollback_release', capabilities, edit = (m) => m } = how
    const definition = definitions.find(({ name }) => name === tool)
    const { headers, body } = message(
      'tools/call',
      { name: tool, arguments: args, ...retry },
      capabilities,
    )
    const mirrored = paramHeaders(definition?.inputSchema, args)
    return send(url, edit({ headers: [...headers, ...mirrored], body }))
  }
  const ask: Served['ask'] = async (args, how) => stateOf(await call(args, {}, how))
  const yes: Served['yes'] = (requestState, args, how) =>
    call(
      args,
      { requestState, inputResponses: answer({ confirm: true, reason: 'p99 regression' }) },
      how,
    )
  return { url, http, performed, clock, lines, failures, call, ask, yes }
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
