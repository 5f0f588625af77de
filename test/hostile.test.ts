import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { at } from '../client.ts'
import { attack } from './hostile.ts'
import { CASES } from './hostile-cases.ts'
import { ROOT, start, startServer } from './instance.ts'

const NOWHERE = 'http://127.0.0.1:1/mcp'
const IMPORT = /\bfrom\s+'([^']+)'|\bimport\(\s*'([^']+)'/g

type Ended = { readonly code: number; readonly out: string[]; readonly err: string[] }

/** Runs the attack and hears what it says. */
async function run(t: TestContext, ...args: string[]): Promise<Ended> {
  const [out, err]: [string[], string[]] = [[], []]
  const log = t.mock.method(console, 'log', (line: string) => out.push(...line.split('\n')))
  const error = t.mock.method(console, 'error', (line: string) => err.push(...line.split('\n')))
  try {
    return { code: await attack(args, NOWHERE), out, err }
  } finally {
    log.mock.restore()
    error.mock.restore()
  }
}

const idsOf = (lines: string[], verdict: string) =>
  lines.flatMap((line) => (line.startsWith(`${verdict} `) ? [line.split(' ')[1] ?? ''] : []))

test('the table has at least a hundred cases, each with an id and a page of its own, in all groups', () => {
  assert.ok(CASES.length >= 100)
  assert.equal(new Set(CASES.map(({ id }) => id)).size, CASES.length)
  assert.equal(new Set(CASES.map(({ group, attack }) => `${group}: ${attack}`)).size, CASES.length)
  const groups = ['transport', 'headers', 'envelope', 'first pass', 'state', 'answer']
  assert.deepEqual([...new Set(CASES.map(({ group }) => group))], groups)
  for (const { id, attack, must, page } of CASES) {
    assert.match(id, /^[A-Z]\d\d$/)
    assert.match(page, /^[a-z-]+(\/[a-z-]+)+(#\S+)?$/, id)
    assert.ok(attack !== '' && must !== '', id)
  }
})

test('an attacker imports nothing of the server', () => {
  const files = readdirSync(join(ROOT, 'test')).filter((name) => /^hostile(-\w+)?\.ts$/.test(name))
  assert.ok(files.includes('hostile.ts') && files.includes('hostile-cases.ts'))
  for (const file of files) {
    const source = readFileSync(join(ROOT, 'test', file), 'utf8')
    for (const [, name = '', dynamic = name] of source.matchAll(IMPORT)) {
      assert.match(dynamic, /^(node:.+|\.\.\/client\.ts|\.\/hostile-\w+\.ts)$/, file)
    }
  }
})

test('the server withstands every case', async (t) => {
  const server = await startServer({ LOG: 'off' })
  t.after(server.stop)
  const { code, out } = await run(t, server.url.href)
  assert.deepEqual(
    out.filter((line) => line.startsWith('FAIL')),
    [],
  )
  assert.equal(code, 0)
  const played = idsOf(out, 'pass').length
  const skipped = idsOf(out, 'skip')
  assert.equal(played + skipped.length, CASES.length)
  assert.equal(out.at(-1), `${played} passed, 0 failed, ${skipped.length} skipped`)
  const reasons = new Set(out.filter((line) => line.startsWith('skip')).map((line) => line.split(' — ')[1]))
  for (const reason of reasons) {
    assert.match(
      String(reason),
      /^(no argument is an integer|every declared argument is given|its Base64 has no spare bits|the server has no other tool that says it is risky|MCP_TOKEN is not set)$/,
    )
  }
})

test('a server that acts on any answer is found out', async (t) => {
  const { url } = await naiveServer(t)
  const { code, out } = await run(t, url)
  assert.equal(code, 1)
  const failed = idsOf(out, 'FAIL')
  for (const id of [
    ...['T02', 'T13', 'T17', 'T31', 'T39'], // where a call comes from, and as what
    ...['H01', 'H06', 'H12', 'H13', 'H15', 'H36', 'H37'], // headers that say something else
    ...['E13', 'E22', 'E41', 'E53', 'E68', 'E73', 'E75'], // no request of this revision
    ...['F02', 'F19', 'F32', 'F35', 'F37'], // what must not lead to a question
    ...['S01', 'S11', 'S16', 'S18', 'S26', 'S36', 'S45', 'S46', 'S47', 'S63', 'S68'], // a state that nobody looks at
    ...['A02', 'A10', 'A13', 'A61'], // an answer that is no yes
  ]) {
    assert.ok(failed.includes(id), `${id} of a naive server passes`)
  }
  for (const id of ['T01', 'F01', 'S55', 'A01', 'A57']) {
    assert.ok(idsOf(out, 'pass').includes(id), `${id} of a naive server fails`)
  }
  const line = out.find((said) => said.startsWith('FAIL S01'))
  assert.equal(
    line,
    'FAIL S01 state: says yes before it was asked — must: the question, or a refusal; got: HTTP 200, a result: Done.; see basic/patterns/mrtr#server-requirements-basic-workflow',
  )
})

test('one case can be played, on any tool that asks yes or no', async (t) => {
  const { url } = await naiveServer(t)
  const one = await run(t, url, '--case', 'A01', '--tool', 'naive', '--arguments', '{"what":"x"}')
  assert.deepEqual(one.out, ['pass A01 answer: honestly says yes', '1 passed, 0 failed, 0 skipped'])
  assert.equal(one.code, 0)
})

test('a rate limit is waited for', async (t) => {
  const { url, refused } = await naiveServer(t, 2)
  const { code } = await run(t, url, '--case', 'A01')
  assert.equal(code, 0)
  assert.ok(refused() > 1)
})

test('a case that is none, a tool that is none and options that are none say so', async (t) => {
  const { url } = await naiveServer(t)
  const says = async (pattern: RegExp, ...args: string[]) => {
    const { code, out, err } = await run(t, ...args)
    assert.equal(code, 1)
    assert.deepEqual(out, [])
    assert.match(err.join('\n'), pattern)
  }
  await says(/^There is no case X99\. --list names them\.$/, '--case', 'X99')
  await says(/has no tool nothing\. It has: rollback_release, naive$/, url, '--tool', 'nothing')
  await says(
    /^naive has to ask a yes-or-no question/,
    url,
    '--tool',
    'naive',
    '--arguments',
    '{"quiet":true}',
  )
  await says(/^--arguments must be a JSON object\.$/, url, '--arguments', '[]')
  await says(/--tool NAME/, url, '--no-such-option')
  await says(/--tool NAME/, 'not-a-url')
  await says(
    /^No answer from http:\/\/127\.0\.0\.1:1\/mcp \(ECONNREFUSED\)\. Start the server with: npm start$/,
  )
})

test('the client lists the cases without a server', async () => {
  const child = start('client.ts', ['--hostile', '--list'], {})
  let said = ''
  child.stdout?.on('data', (chunk) => {
    said += chunk
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 0)
  const listed = said.trimEnd().split('\n')
  assert.deepEqual(
    listed,
    CASES.map(({ id, group, attack }) => `${id} ${group}: ${attack}`),
  )
})

/**
 * A server as it is quickly written: it asks as it should, and then acts on whatever says accept.
 * @param limit how many requests it serves before it wants to be left alone for a while.
 */
async function naiveServer(t: TestContext, limit = Number.POSITIVE_INFINITY) {
  let served = 0
  let refused = 0
  const server = createServer(async (request, response) => {
    const json = Buffer.concat(await request.toArray().catch(() => [])).toString()
    if (served >= limit) {
      served = 0
      refused += 1
      response.writeHead(429, { 'Retry-After': '0' }).end()
      return
    }
    served += 1
    const { id, method, params } = parsed(json)
    const result = resultOf(method, params)
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/mcp`, refused: () => refused }
}

function resultOf(method: unknown, params: unknown): object {
  const string = { type: 'string' }
  if (method === 'tools/list') {
    const service = { ...string, 'x-mcp-header': 'Service' }
    const properties = { service, version: string }
    const inputSchema = { type: 'object', properties, required: ['service'] }
    const naive = { name: 'naive', inputSchema: { type: 'object' } }
    return { resultType: 'complete', tools: [{ name: 'rollback_release', inputSchema }, naive] }
  }
  const action = at(params, 'inputResponses', 'confirm', 'action')
  const quiet = at(params, 'arguments', 'quiet') === true
  if (method !== 'tools/call' || quiet) return { resultType: 'complete', capabilities: { tools: {} } }
  if (action === 'accept') return { resultType: 'complete', content: [{ type: 'text', text: 'Done.' }] }
  if (action === 'decline')
    return { resultType: 'complete', content: [{ type: 'text', text: 'Not done.' }] }
  const requestedSchema = {
    type: 'object',
    properties: { confirm: { type: 'boolean' } },
    required: ['confirm'],
  }
  const message = `Roll back to ${at(params, 'arguments', 'version')}?`
  const confirm = { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } }
  return {
    resultType: 'input_required',
    inputRequests: { confirm },
    requestState: 'state_of-all_questions-312',
  }
}

function parsed(json: string): { [member: string]: unknown } {
  try {
    return Object(JSON.parse(json))
  } catch {
    return {}
  }
}
