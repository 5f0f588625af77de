/** The fixture on a free port for one test, and requests to it as our own client writes them. */
import type { TestContext } from 'node:test'
import { encodeHeader, type Json, type Message, message, type Reply, send } from '../../client.ts'
import type { Variables } from '../../lib/environment.ts'
import type { HttpServer } from '../../lib/http-server.ts'
import { listen, stop } from '../../lib/lifecycle.ts'
import { openStream, type Stream } from '../stream.ts'
import type { Changes } from './fixture/changes.ts'
import { compose } from './fixture/server.ts'

/** What one request says beside its params. */
export type How = { readonly capabilities?: Json; readonly meta?: Json }

export type Fixture = {
  readonly url: URL
  readonly http: HttpServer
  readonly changes: Changes
  readonly ask: (method: string, params?: Json, how?: How) => Promise<Reply>
  readonly tool: (name: string, params?: Json, how?: How) => Promise<Reply>
  readonly open: (method: string, params?: Json, how?: How) => Promise<Stream>
}

export const EVERYTHING = { elicitation: {}, sampling: {}, roots: {} }

export async function serveFixture(t: TestContext, variables: Variables = {}): Promise<Fixture> {
  const { http, changes } = compose({ PORT: '0', LOG: 'off', ...variables })
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))
  const ask: Fixture['ask'] = (method, params, how) => send(url, request(method, params, how))
  const tool: Fixture['tool'] = (name, params, how) =>
    ask('tools/call', { name, arguments: {}, ...params }, how)
  const open: Fixture['open'] = (method, params, how) => openStream(url, request(method, params, how))
  return { url, http, changes, ask, tool, open }
}

/** A request with its mirrored headers: those of a resource too, which release-ops has none of. */
export function request(
  method: string,
  params: Json = {},
  { capabilities = EVERYTHING, meta = {} }: How = {},
): Message & { readonly body: Json } {
  const { headers, body } = message(method, params, capabilities)
  const sent = Object(body.params)
  const named: Message['headers'] =
    method === 'resources/read' ? [['Mcp-Name', encodeHeader(String(params.uri))]] : []
  return {
    headers: [...headers, ...named],
    body: { ...body, params: { ...sent, _meta: { ...sent._meta, ...meta } } },
  }
}
