/**
 * What a fork adds beside tools: features with methods of their own, of which one asks before it
 * answers, as prompts/get and resources/read may. All over real HTTP.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { at, type Json, message, type Reply, send } from '../client.ts'
import { anonymousIdentity } from '../lib/anonymous.ts'
import { type Errand, run } from '../lib/boundary.ts'
import { edge } from '../lib/edge.ts'
import { Environment } from '../lib/environment.ts'
import { httpServer } from '../lib/http-server.ts'
import { listen, stop } from '../lib/lifecycle.ts'
import { methodTable, toolsFeature } from '../lib/methods.ts'
import type { JsonObject } from '../lib/protocol.ts'
import { invalidParams } from '../lib/refusal.ts'
import type { Decided, Feature, Method } from '../lib/request.ts'
import { readRetry } from '../lib/retry.ts'
import { signer } from '../lib/seal.ts'
import { requestStates } from '../lib/state.ts'
import { plainTool } from '../lib/tool.ts'
import { compileTools } from '../lib/tool-definition.ts'
import { assertRefused, EPOCH, errorOf, plus, resultOf, SECRET, stateOf } from './serve.ts'

const SERVER = { name: 'a-fork', version: '2.0.0' }
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
const QUESTION = {
  name: { method: 'elicitation/create', params: { mode: 'form', message: 'Who?', requestedSchema: {} } },
}
const ADA = { name: { action: 'accept', content: { name: 'Ada' } } }
const INVALID_STATE = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
}

/** What a method that asks does beside asking. */
type Asking = Pick<Errand<JsonObject>, 'refusedState'>

/** A server of these features, and of one more whose methods ask before they answer. */
async function serve(
  t: TestContext,
  features: readonly Feature[],
  asking: Asking = { refusedState: undefined },
) {
  const decided: Decided[] = []
  const acted: unknown[] = []
  const states = requestStates(signer([Buffer.from(SECRET)]), {
    audience: 'test',
    ttlMs: 1000,
    now: () => EPOCH,
  })
  const services = { states, permits: [], trail: (line: Decided) => decided.push(line) }

  const asks =
    (member: string): Method =>
    (request) => {
      const target = request.params[member]
      if (typeof target !== 'string') throw invalidParams(`${member} must be a string`)
      return run<JsonObject>(services, {
        retry: readRetry(request.params),
        ...asking,
        request,
        target,
        arguments: { topic: request.params.topic ?? null },
        handle: ({ flow, answers }) => {
          const name = at(answers, 'name', 'content', 'name')
          if (flow === undefined || name === undefined) return { inputRequests: QUESTION, data: [target] }
          acted.push([target, name, flow.data])
          return { said: `${name} about ${target}` }
        },
      })
    }
  const asksToo: Feature = {
    capabilities: { prompts: {}, resources: { subscribe: false } },
    methods: { 'prompts/get': asks('name'), 'resources/read': asks('uri') },
  }
  const definition = { name: 'hello', description: 'Asks too.', inputSchema: { type: 'object' } }
  const hello = plainTool(definition, ({ flow }) => {
    if (flow === undefined) return { inputRequests: QUESTION }
    acted.push('hello')
    return { content: [] }
  })
  const all = [toolsFeature(compileTools([hello]), services), asksToo, ...features]
  const answer = edge({
    methods: methodTable(SERVER, 'A fork.', all),
    identity: anonymousIdentity(new Environment({}), true),
    rules: { loopback: true, allowedOrigins: undefined, allowedHosts: undefined },
    documents: new Map(),
    paramHeaders: [],
    maxBodyBytes: 10_000,
  })
  const log = { request: () => {}, decision: () => {}, failure: () => {}, say: () => {} }
  const http = httpServer(answer, log)
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))
  const ask = (
    method: string,
    params: Json = {},
    capabilities: Json = { elicitation: {} },
  ): Promise<Reply> => {
    const sent = message(method, params, capabilities)
    const { uri } = params
    return send(url, typeof uri === 'string' ? plus(sent, 'Mcp-Name', uri) : sent)
  }
  return { ask, decided, acted }
}

const feature = (methods: Feature['methods'], capabilities: Json = {}): Feature => ({
  methods,
  capabilities,
})
const prompt = (more: Json = {}) => ({ name: 'launch', ...more })

test('what another feature declares is discovered beside the tools', async (t) => {
  const completions = feature(
    { 'completion/complete': () => ({ resultType: 'complete' }) },
    { completions: {} },
  )
  const { ask } = await serve(t, [completions])
  const discovered = resultOf(await ask('server/discover'))
  assert.deepEqual(at(discovered, 'capabilities'), {
    tools: {},
    prompts: {},
    resources: { subscribe: false },
    completions: {},
  })
  assert.equal(at(discovered, 'instructions'), 'A fork.')
})

test('a method of another feature is served, with the name of the server beside its own _meta', async (t) => {
  const echo: Method = ({ params }) => ({ resultType: 'complete', echoed: params.word, _meta: { own: 1 } })
  const { ask } = await serve(t, [feature({ 'fork/echo': echo })])
  const reply = await ask('fork/echo', { word: 'hi' })
  assert.deepEqual(resultOf(reply), {
    resultType: 'complete',
    echoed: 'hi',
    _meta: { own: 1, [SERVER_INFO]: SERVER },
  })
  const missing = await ask('fork/other')
  assertRefused(missing, 404, -32601, at(missing.body, 'id'))
})

test('no result gives another name to the server', async (t) => {
  const liar: Method = () => ({
    resultType: 'complete',
    _meta: { [SERVER_INFO]: { name: 'liar', version: '0' } },
  })
  const { ask } = await serve(t, [feature({ 'fork/liar': liar })])
  assert.deepEqual(at(resultOf(await ask('fork/liar')), '_meta'), { [SERVER_INFO]: SERVER })
})

test('two features that serve one method stop the server at start, and so does one that discovers', () => {
  const one = feature({ 'fork/echo': () => ({ resultType: 'complete' }) })
  assert.throws(
    () => methodTable(SERVER, '', [one, one]),
    /^Error: Two features serve fork\/echo: leave one/,
  )
  const discovers = feature({ 'server/discover': () => ({ resultType: 'complete' }) })
  assert.throws(() => methodTable(SERVER, '', [discovers]), /Two features serve server\/discover/)
})

test('a method of another feature asks, and answers when state and answer come back', async (t) => {
  const { ask, acted, decided } = await serve(t, [])
  const asked = await ask('prompts/get', prompt())
  const { requestState, ...question } = Object(resultOf(asked))
  assert.deepEqual(question, {
    resultType: 'input_required',
    inputRequests: QUESTION,
    _meta: { [SERVER_INFO]: SERVER },
  })
  assert.deepEqual(acted, [])
  const done = await ask('prompts/get', prompt({ requestState, inputResponses: ADA }))
  assert.deepEqual(resultOf(done), {
    resultType: 'complete',
    said: 'Ada about launch',
    _meta: { [SERVER_INFO]: SERVER },
  })
  assert.deepEqual(acted, [['launch', 'Ada', ['launch']]])
  assert.deepEqual(
    decided.map(({ decision, tool }) => [decision, tool]),
    [['asked', 'launch']],
  )
})

test('a state opens no other method, prompt, resource or arguments than those it was made for', async (t) => {
  const { ask, acted } = await serve(t, [])
  const uri = 'test://launch'
  const states = {
    prompt: stateOf(await ask('prompts/get', prompt())),
    resource: stateOf(await ask('resources/read', { uri })),
    tool: stateOf(await ask('tools/call', { name: 'hello', arguments: {} })),
    // Names that are the same text: only the method tells them apart.
    sameName: stateOf(await ask('prompts/get', { name: uri })),
  }
  const inputResponses = ADA
  for (const [of, method, params] of [
    ['prompt', 'prompts/get', { name: 'landing' }],
    ['prompt', 'prompts/get', prompt({ topic: 'rockets' })],
    ['prompt', 'tools/call', { name: 'hello', arguments: {} }],
    ['prompt', 'resources/read', { uri }],
    ['resource', 'resources/read', { uri: `${uri}/other` }],
    ['resource', 'prompts/get', { name: uri }],
    ['sameName', 'resources/read', { uri }],
    ['tool', 'prompts/get', { name: 'hello' }],
    ['tool', 'resources/read', { uri: 'hello' }],
  ] as const) {
    const reply = await ask(method, { ...params, requestState: states[of], inputResponses })
    assert.deepEqual(errorOf(reply), INVALID_STATE, `${of} on ${method} ${JSON.stringify(params)}`)
  }
  const forged = `${states.prompt.slice(0, -1)}${states.prompt.endsWith('A') ? 'B' : 'A'}`
  const tampered = await ask('prompts/get', prompt({ requestState: forged, inputResponses }))
  assert.deepEqual(errorOf(tampered), INVALID_STATE)
  assert.deepEqual(acted, [])

  await ask('prompts/get', prompt({ requestState: states.prompt, inputResponses }))
  await ask('resources/read', { uri, requestState: states.resource, inputResponses })
  assert.equal(acted.length, 2, 'each is good where it belongs')
})

test('a method may answer a refused state with a result of its own', async (t) => {
  const { ask, acted } = await serve(t, [], { refusedState: { said: 'Start again.' } })
  const reply = await ask('prompts/get', prompt({ requestState: 's1.nope', inputResponses: ADA }))
  assert.equal(at(resultOf(reply), 'said'), 'Start again.')
  assert.equal(at(resultOf(reply), 'resultType'), 'complete')
  assert.deepEqual(acted, [])
})

test('a method of another feature asks only a client that declared what it asks for', async (t) => {
  const { ask, acted } = await serve(t, [])
  for (const capabilities of [{}, { elicitation: { url: {} } }, { sampling: {} }]) {
    const reply = await ask('prompts/get', prompt(), capabilities)
    assertRefused(reply, 400, -32021, at(reply.body, 'id'))
    assert.deepEqual(at(errorOf(reply), 'data'), { requiredCapabilities: { elicitation: { form: {} } } })
  }
  assert.deepEqual(acted, [])
})

test('what a retry brings has its type for every method that asks', async (t) => {
  const { ask, acted } = await serve(t, [])
  for (const bad of [
    { requestState: 7 },
    { requestState: null },
    { inputResponses: [] },
    { inputResponses: null },
  ]) {
    const reply = await ask('resources/read', { uri: 'test://launch', ...bad })
    assertRefused(reply, 200, -32602, at(reply.body, 'id'))
  }
  assert.deepEqual(acted, [])
})
