/**
 * The official TypeScript client against this server, in one process: it negotiates the revision,
 * mirrors the headers, asks its user and retries by itself. Each test counts the rollbacks.
 */
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import {
  Client,
  type ElicitResult,
  type FetchLike,
  MissingRequiredClientCapabilityError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import type { Action, Values } from '../../lib/action.ts'
import { compose } from '../../server.ts'

const REVISION = '2026-07-28'
const CHECKOUT = { service: 'checkout', version: 'v1.41.2' }
const YES: ElicitResult = {
  action: 'accept',
  content: { confirm: true, reason: 'p99 regression' },
}
const QUESTION = 'Roll checkout back to v1.41.2? This restarts every instance.'
const CANCELLED = 'Rollback cancelled. Nothing changed.'
const REFUSED = 'Confirmation expired or was tampered with. Start again.'

/** What a test changes: the person's answer, the client's capabilities, the way to the server. */
type Situation = {
  readonly answer?: ElicitResult
  /** How many instances of the server take turns; they share a secret and nothing else. */
  readonly instances?: number
  readonly elicits?: boolean
  readonly fetch?: FetchLike
}

/** One request as it left the client, and the instance that got it. */
type Sent = { readonly headers: Headers; readonly to: string }

type Host = {
  readonly client: Client
  readonly call: (args: Record<string, string>) => ReturnType<Client['callTool']>
  readonly asked: string[]
  readonly rolled: Values[]
  /** The requests of `tools/call` alone. */
  readonly sent: Sent[]
}

/** Starts an instance on a free port. */
async function start(rolled: Values[]): Promise<{ server: Server; origin: string }> {
  const action: Action = {
    faultOf: () => undefined,
    run: async (values, reason) => {
      rolled.push({ ...values, reason })
      return undefined
    },
  }
  const variables = { STATE_SECRET: 'no secret, but of 32 bytes at least', LOG: 'off' }
  const { http } = await compose(variables, { action })
  const { server } = http
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** A server and a client that has listed its tools, both new, while `use` runs. */
async function withHost(
  { answer = YES, instances = 1, elicits = true, fetch = globalThis.fetch }: Situation,
  use: (host: Host) => Promise<void>,
): Promise<void> {
  const asked: string[] = []
  const rolled: Values[] = []
  const sent: Sent[] = []
  const running = await Promise.all(Array.from({ length: instances }, () => start(rolled)))
  const client = new Client(
    { name: 'peer', version: '1.0.0' },
    {
      capabilities: elicits ? { elicitation: { form: {} } } : {},
      versionNegotiation: { mode: { pin: REVISION } },
    },
  )
  if (elicits) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      asked.push(params.message)
      return answer
    })
  }
  const travel: FetchLike = (url, init) => {
    const headers = new Headers(init?.headers)
    const { pathname } = new URL(url)
    const to = new URL(pathname, running[sent.length % instances]?.origin)
    if (headers.get('mcp-method') === 'tools/call') sent.push({ headers, to: to.origin })
    return fetch(to, init)
  }
  const call: Host['call'] = (args) => client.callTool({ name: 'rollback_release', arguments: args })
  try {
    const url = new URL('http://the-server/mcp')
    await client.connect(new StreamableHTTPClientTransport(url, { fetch: travel }))
    await client.listTools()
    await use({ client, call, asked, rolled, sent })
  } finally {
    await client.close()
    for (const { server } of running) server.close().closeAllConnections()
  }
}

const text = (text: string) => ({ type: 'text', text })

test('server/discover tells the client the revision, the capabilities and what the server is for', async () => {
  await withHost({}, async ({ client, rolled }) => {
    assert.equal(client.getNegotiatedProtocolVersion(), REVISION)
    assert.equal(client.getProtocolEra(), 'modern')
    assert.equal(client.getServerVersion()?.name, 'release-ops')
    assert.deepEqual(client.getServerCapabilities(), { tools: {} })
    assert.equal(client.getInstructions(), 'Release operations. rollback_release asks for confirmation.')
    assert.deepEqual((await client.discover()).supportedVersions, [REVISION])
    assert.deepEqual(rolled, [])
  })
})

test('a client that drops tools with a wrong x-mcp-header keeps rollback_release', async () => {
  await withHost({}, async ({ client, rolled }) => {
    const { tools } = await client.listTools({}, { cacheMode: 'refresh' })
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['rollback_release', 'scale_service'],
    )
    const service = tools[0]?.inputSchema.properties?.service
    assert.equal(Object(service)['x-mcp-header'], 'Service')
    assert.deepEqual(rolled, [])
  })
})

test('one yes, asked for once, is one rollback', async () => {
  await withHost({}, async ({ call, asked, rolled, sent }) => {
    const { content, isError, structuredContent } = await call(CHECKOUT)
    const done = 'Rolled checkout back to v1.41.2. Reason: p99 regression'
    assert.deepEqual(content[0], text(done))
    assert.notEqual(isError, true)
    const rollback = { ...CHECKOUT, reason: 'p99 regression' }
    assert.deepEqual(structuredContent, { status: 'performed', ...rollback })
    assert.deepEqual(asked, [QUESTION])
    assert.deepEqual(rolled, [rollback])
    assert.deepEqual(
      sent.map(({ headers }) => headers.get('mcp-param-service')),
      ['checkout', 'checkout'],
    )
  })
})

test('the retry may reach another instance than the one that asked', async () => {
  await withHost({ instances: 2 }, async ({ call, asked, rolled, sent }) => {
    const { content } = await call(CHECKOUT)
    assert.deepEqual(content[0], text('Rolled checkout back to v1.41.2. Reason: p99 regression'))
    assert.equal(new Set(sent.map(({ to }) => to)).size, 2)
    assert.deepEqual(asked, [QUESTION])
    assert.equal(rolled.length, 1)
  })
})

const REFUSALS: readonly (readonly [what: string, answer: ElicitResult])[] = [
  ['a person who declines', { action: 'decline' }],
  ['a person who closes the form', { action: 'cancel' }],
  ['a form sent with the box unticked', { action: 'accept', content: { confirm: false } }],
]
for (const [what, answer] of REFUSALS) {
  test(`${what} is told that nothing changed, and nothing did`, async () => {
    await withHost({ answer }, async ({ call, asked, rolled }) => {
      const { content, isError } = await call(CHECKOUT)
      assert.deepEqual(content[0], text(CANCELLED))
      assert.notEqual(isError, true)
      assert.deepEqual(asked, [QUESTION], 'a refusal is final')
      assert.deepEqual(rolled, [])
    })
  })
}

test('a service named 世界 travels in a Base64 header and is rolled back by that name', async () => {
  await withHost({}, async ({ call, rolled, sent }) => {
    const { content } = await call({ service: '世界', version: 'v2' })
    assert.deepEqual(content[0], text('Rolled 世界 back to v2. Reason: p99 regression'))
    assert.deepEqual(
      sent.map(({ headers }) => headers.get('mcp-param-service')),
      ['=?base64?5LiW55WM?=', '=?base64?5LiW55WM?='],
    )
    assert.deepEqual(rolled, [{ service: '世界', version: 'v2', reason: 'p99 regression' }])
  })
})

/** A network that changes one character of every state; 0 is the first of them, 1 the last. */
function changing(position: number): FetchLike {
  return (url, init) => {
    const body = JSON.parse(String(init?.body ?? '{}'))
    const state = body.params?.requestState
    if (typeof state !== 'string') return fetch(url, init)
    const at = Math.floor(position * (state.length - 1))
    const other = state[at] === 'A' ? 'B' : 'A'
    body.params.requestState = state.slice(0, at) + other + state.slice(at + 1)
    return fetch(url, { ...init, body: JSON.stringify(body) })
  }
}

for (const [where, position] of [
  ['first', 0],
  ['middle', 0.5],
  ['last', 1],
] as const) {
  test(`a state whose ${where} character changes on the way is worth nothing`, async () => {
    await withHost({ fetch: changing(position) }, async ({ call, asked, rolled }) => {
      const { content, isError } = await call(CHECKOUT)
      assert.deepEqual(content, [text(REFUSED)])
      assert.equal(isError, true)
      assert.deepEqual(asked, [QUESTION], 'the person had said yes')
      assert.deepEqual(rolled, [])
    })
  })
}

test('a client that has nobody to ask learns which capability it lacks', async () => {
  await withHost({ elicits: false }, async ({ call, rolled, sent }) => {
    await assert.rejects(call(CHECKOUT), (error) => {
      assert.ok(error instanceof MissingRequiredClientCapabilityError)
      assert.deepEqual(error.requiredCapabilities, { elicitation: { form: {} } })
      return true
    })
    assert.equal(sent.length, 1)
    assert.deepEqual(rolled, [])
  })
})
