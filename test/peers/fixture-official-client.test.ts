/**
 * The official TypeScript client against the fixture: what it makes of prompts, resources, completion,
 * progress, log messages and subscriptions, all over HTTP.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  Client,
  MissingRequiredClientCapabilityError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { stop } from '../../lib/lifecycle.ts'
import { type Fixture, serveFixture } from './fixture-client.ts'

const REVISION = '2026-07-28'
const WATCHED = 'test://watched-resource'
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} }

type Host = Fixture & { readonly client: Client; readonly asked: string[] }

/** A fixture, and a client whose user, model and roots answer everything. */
async function host(t: TestContext, capabilities: object = CAPABILITIES): Promise<Host> {
  const fixture = await serveFixture(t)
  const asked: string[] = []
  const client = new Client(
    { name: 'peer', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: { pin: REVISION } } },
  )
  if ('elicitation' in capabilities) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      asked.push(params.message)
      const content = { name: 'Ada', context: 'the launch', allow: true, ok: true, color: 'blue' }
      return { action: 'accept', content }
    })
  }
  if ('sampling' in capabilities) {
    client.setRequestHandler('sampling/createMessage', async () => {
      return { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris.' } }
    })
  }
  if ('roots' in capabilities) {
    client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///work' }] }))
  }
  await client.connect(new StreamableHTTPClientTransport(fixture.url))
  t.after(() => client.close())
  return { ...fixture, client, asked }
}

/** The first text of a tool's answer. */
async function textOf({ client }: Host, name: string, args: Record<string, string> = {}): Promise<string> {
  const [block] = (await client.callTool({ name, arguments: args })).content
  return block?.type === 'text' ? block.text : ''
}

test('the official client lists tools, prompts, resources and templates', async (t) => {
  const { client } = await host(t)
  assert.ok((await client.listTools()).tools.length > 20, 'it keeps every tool')
  assert.equal((await client.listPrompts()).prompts[0]?.name, 'test_simple_prompt')
  assert.equal((await client.listResources()).resources[0]?.uri, 'test://static-text')
  const [template] = (await client.listResourceTemplates()).resourceTemplates
  assert.equal(template?.uriTemplate, 'test://template/{id}/data')
})

test('the official client asks user, model and roots, and brings all answers back', async (t) => {
  const all = await host(t)
  await all.client.listTools()
  const multiple = 'test_input_required_result_multiple_inputs'
  assert.equal(await textOf(all, multiple), 'Hello, Ada! Paris. Roots: file:///work')
  const rounds = 'test_input_required_result_multi_round'
  const content = { name: 'Ada', context: 'the launch', allow: true, ok: true, color: 'blue' }
  assert.equal(await textOf(all, rounds), `Hello, Ada! You said: accept ${JSON.stringify(content)}`)
  assert.deepEqual(all.asked, [
    'What is your name?',
    'Step 1: What is your name?',
    'Step 2: What is your favorite color?',
  ])
})

test('the official client gets prompts and reads resources that ask first', async (t) => {
  const { client, asked } = await host(t)
  const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' })
  const text = 'Use this context: the launch'
  assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text } }])
  const { contents } = await client.readResource({ uri: 'test://guarded-resource' })
  assert.deepEqual(contents, [
    { uri: 'test://guarded-resource', mimeType: 'text/plain', text: 'The guarded content.' },
  ])
  assert.equal(asked.length, 2)
})

test('an official client that has nobody to ask learns which capability it lacks', async (t) => {
  const { client } = await host(t, {})
  const lacking = (needed: object) => (error: unknown) => {
    assert.ok(error instanceof MissingRequiredClientCapabilityError, String(error))
    assert.deepEqual(error.requiredCapabilities, needed)
    return true
  }
  const form = { elicitation: { form: {} } }
  await assert.rejects(client.getPrompt({ name: 'test_input_required_result_prompt' }), lacking(form))
  await assert.rejects(client.readResource({ uri: 'test://guarded-resource' }), lacking(form))
  await assert.rejects(
    client.callTool({ name: 'test_missing_capability', arguments: {} }),
    lacking({ sampling: {} }),
  )
})

test('the official client completes arguments', async (t) => {
  const { client } = await host(t)
  const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' } as const
  const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 'par' } })
  assert.deepEqual(completion, { values: ['paris', 'park', 'party'], total: 3, hasMore: false })
})

test('the official client hears progress in order', async (t) => {
  const { client } = await host(t)
  const heard: [number, number | undefined][] = []
  await client.callTool(
    { name: 'test_tool_with_progress', arguments: {} },
    { onprogress: ({ progress, total }) => heard.push([progress, total]) },
  )
  assert.deepEqual(heard, [
    [0, 100],
    [50, 100],
    [100, 100],
  ])
})

test('the official client is told of changes, reads the new list, and learns of the end', async (t) => {
  const { client, http, changes, tool } = await host(t)
  const heard: string[] = []
  let wake = () => {}
  const hear = (what: string) => () => {
    heard.push(what)
    wake()
  }
  client.setNotificationHandler('notifications/tools/list_changed', hear('tools'))
  client.setNotificationHandler('notifications/prompts/list_changed', hear('prompts'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => hear(params.uri)())
  const until = async (count: number) => {
    while (heard.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  const { tools } = await client.listTools()
  const filter = { toolsListChanged: true, resourceSubscriptions: [WATCHED, 'test://nope'] }
  const subscription = await client.listen(filter)
  assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [WATCHED] })
  await tool('test_trigger_prompt_change')
  await tool('test_trigger_tool_change')
  await tool('test_trigger_resource_update')
  await until(2)
  assert.deepEqual(heard, ['tools', WATCHED])
  assert.equal((await client.listTools()).tools.length, tools.length + 1, 'its cache was invalidated')

  const other = await client.listen({ promptsListChanged: true })
  await other.close()
  assert.equal(await other.closed, 'local')
  while (changes.listening > 1) await new Promise(setImmediate)

  await stop(http, 0)
  assert.equal(await subscription.closed, 'graceful')
})
