import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { at } from '../client.ts'
import { gatedTool } from '../lib/gate.ts'
import type { Tool } from '../lib/tool.ts'
import { ROOT } from './instance.ts'
import { serve, textOf } from './serve.ts'

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const README = read('README.md')
const SOURCES = [
  'server.ts',
  'client.ts',
  ...readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `lib/${file}`),
]
const CODE = SOURCES.map(read).join('\n')

/** The text below a heading, up to the next one of the same or a higher level. */
function section(heading: string): string {
  const [, below = ''] = README.split(`\n## ${heading}\n`)
  assert.notEqual(below, '', `README has no section ${heading}`)
  return below.split('\n## ')[0] ?? ''
}

/** The first cells of a section's table rows, as they stand between backticks. */
function firstCells(text: string): string[] {
  const cells = text.split('\n').flatMap((line) => /^\| (`.*?)\s*\|/.exec(line)?.[1] ?? [])
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''))
}

const [MAIN = '', LEAVES = ''] = section('Read it in fifteen minutes').split('\nThe leaves')

test('the reading list names every file of the program once', () => {
  assert.deepEqual([...firstCells(MAIN), ...firstCells(LEAVES)].sort(), SOURCES.sort())
})

test('the main path is at most 700 lines long', () => {
  const lines = firstCells(MAIN).map((file) => read(file).split('\n').length - 1)
  const total = lines.reduce((sum, count) => sum + count, 0)
  assert.ok(total <= 700, `it has ${total}`)
})

test('the configuration table names every variable that is read, and no other', () => {
  const named = firstCells(section('Configure it'))
  const direct =
    /env\s*\.(?:text|integer|choice|pick|list|file|raw)\(\s*'([A-Z_]+)'|(?:readSecret|actionOf)\((?:env, )?'([A-Z_]+)'/g
  const found = [...CODE.matchAll(direct)].map(([, a, b]) => a ?? b ?? '')
  const files = found.filter((name) => /^STATE_SECRET/.test(name)).map((name) => `${name}_FILE`)
  assert.deepEqual([...new Set(named)].sort(), [...new Set([...found, ...files])].sort())
})

test('the admission table has the rows 0 to 25, in order, and the code has them in that order', () => {
  const rows = [...section('Admission').matchAll(/^\| (\d+) \|/gm)].map(([, row]) => Number(row))
  assert.deepEqual(
    rows,
    Array.from({ length: 26 }, (_, row) => row),
  )
  for (const file of ['lib/edge.ts', 'lib/admission.ts', 'lib/tools-call.ts']) {
    const numbers = [...read(file).matchAll(/\/\/ +rows? +(\d+)/g)].map(([, row]) => Number(row))
    assert.deepEqual(
      numbers.slice(0, -1),
      [...numbers.slice(0, -1)].sort((a, b) => a - b),
      file,
    )
    assert.ok(numbers.length >= 5, file)
  }
})

test('every command of the README is a script, and every script is in the README', () => {
  const scripts = Object.keys(JSON.parse(read('package.json')).scripts)
  const named = [...README.matchAll(/npm (?:run )?([a-z:]+)/g)].map(([, name]) => name ?? '')
  for (const name of named) assert.ok(['ci', 'install', ...scripts].includes(name), name)
  for (const name of scripts) assert.ok(['dev', 'coverage', ...named].includes(name), name)
})

test('every message under "When it says" is one that the program says', () => {
  const messages = [...section('When it says …').matchAll(/^- `([^`]+)`/gm)].map(([, text]) => text ?? '')
  assert.ok(messages.length > 8)
  for (const message of messages) {
    for (const part of message.replace(/3000|127\.0\.0\.1/g, '…').split('…')) {
      const words = part.trim().replace(/^[:.]\s*/, '')
      assert.ok(CODE.includes(words), `${message}: ${words}`)
    }
  }
})

test('the nginx configuration that the README shows is the one that is tested', () => {
  const shown = [...README.matchAll(/```nginx\n([\s\S]*?)```/g)].map(([, block]) => block)
  assert.deepEqual(shown, [read('test/peers/balancer/round-robin.conf')])
  const named = [...README.matchAll(/test\/peers\/balancer\/[\w-]+\.conf/g)].map(([file]) => file)
  const files = readdirSync(join(ROOT, 'test/peers/balancer')).map((file) => `test/peers/balancer/${file}`)
  assert.deepEqual([...new Set(named)].sort(), files.sort())
})

test('the two answers that the README shows are those of the server', async (t) => {
  const { call, yes, performed } = await serve(t)
  const [shownAsk, shownDone] = [...section('Call it').matchAll(/```json\n(.*)\n```/g)].map(([, json]) =>
    JSON.parse(json ?? ''),
  )
  const asked = await call()
  const requestState = at(asked.body, 'result', 'requestState')
  assert.match(String(requestState), /^s1\./)
  assert.deepEqual({ ...Object(at(asked.body, 'result')), requestState: 's1.…' }, shownAsk.result)
  assert.deepEqual(performed, [])
  const done = await yes(requestState)
  assert.deepEqual(at(done.body, 'result'), shownDone.result)
})

test('the tool that the README shows works as it is written', async (t) => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(section('Make it yours')) ?? []
  assert.ok(code.trim().split('\n').length <= 15)
  const body = code.replace('export const restartService =', 'return')
  const restart = new Function('gatedTool', body)(gatedTool) as Tool
  const { ask, yes } = await serve(t, { tools: [restart] })
  const how = { tool: 'restart_service' }
  const state = await ask({ service: 'checkout' }, how)
  assert.equal(textOf(await yes(state, { service: 'checkout' }, how)), 'Restarted checkout.')
})
