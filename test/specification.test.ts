import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from './instance.ts'
import { PAGES } from './specification/pages.ts'
import { registrationsOf } from './specification/registered-tests.ts'
import { DOCUMENT, TABLE, testsOf, written } from './specification.ts'

const requirements = TABLE.flatMap((page) => page.requirements)
const REMEDY = 'mend test/specification/, then: npm run specification'

test('SPECIFICATION.md is what the table says', () => {
  const [there, expected] = [readFileSync(DOCUMENT, 'utf8'), written()].map((text) => text.split('\n'))
  for (const [i, line] of expected?.entries() ?? [])
    assert.equal(there?.[i], line, `line ${i + 1}: ${REMEDY}`)
  assert.equal(there?.length, expected?.length, REMEDY)
})

test('every test that is listed exists, in the file that is named, once', () => {
  const sources = new Map<string, string>()
  for (const { id, evidence } of requirements) {
    for (const [file, names] of Object.entries(testsOf(evidence))) {
      const path = join(ROOT, 'test', file)
      assert.ok(existsSync(path), `${id}: there is no test/${file}: ${REMEDY}`)
      const source = sources.get(file) ?? readFileSync(path, 'utf8')
      sources.set(file, source)
      assert.ok(names.length > 0, `${id} names no test of ${file}`)
      assert.equal(new Set(names).size, names.length, `${id} names a test of ${file} twice`)
      for (const name of names) {
        assert.equal(registrationsOf(name, source), 1, `${id}: ${file} has no test "${name}": ${REMEDY}`)
      }
    }
  }
})

test('a name in a comment, of a test that is switched off or in another text is no test', () => {
  const source = [
    "test('plain', () => {})",
    "  test('inner it\\'s', async (t) => {})",
    'test("double (1+1)?", { timeout: 1 }, () => {})',
    "test(\n  'on a line of its own',\n  () => {})",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a test.
    "for (const what of ['one thing', 'another']) test(`${what} too`, () => {})",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a test.
    'test(`also ${what}${except} here`, () => {})',
    "// test('comment', () => {})",
    "/*\ntest('block', () => {})\n*/",
    "test.skip('skipped', () => {})",
    "test.todo('to do')",
    "retest('other', () => {})",
    'const text = "test(\'text\', () => {})"',
    'test(computed, () => {})',
  ].join('\n')
  const there = ['plain', "inner it's", 'double (1+1)?', 'on a line of its own', 'also one thing here']
  for (const name of there) assert.equal(registrationsOf(name, source), 1, name)
  const absent = ['comment', 'block', 'skipped', 'to do', 'other', 'text', 'computed', 'plai', 'plain ', '']
  for (const name of [...absent, 'double (11)', 'also a third here', 'also  here', 'one thing too']) {
    assert.equal(registrationsOf(name, source), 0, name)
  }
})

test('every MUST that applies has a test, and so has whatever is not said to have none', () => {
  for (const { id, level, evidence } of requirements) {
    if (typeof evidence === 'string') continue
    const isBare = 'untested' in evidence && !level.startsWith('MUST')
    assert.ok(isBare || Object.keys(testsOf(evidence)).length > 0, `${id} is a ${level} without a test`)
  }
})

test('no two requirements share an id, and each says something and why', () => {
  assert.equal(new Set(requirements.map(({ id }) => id)).size, requirements.length, 'an id is there twice')
  for (const { id, asks, evidence } of requirements) {
    assert.match(id, /^[A-Z]+-\d\d$/)
    assert.match(asks, /\S/, id)
    for (const reason of [evidence, Object(evidence).untested]) {
      if (typeof reason === 'string') assert.match(reason, /^\S.*\.\)?$/, id)
    }
  }
})

test('every page is one of the revision, and comes once', () => {
  const paths = TABLE.map(({ path }) => path)
  for (const path of paths) assert.ok(PAGES.includes(path), `there is no page ${path}`)
  assert.equal(new Set(paths).size, paths.length, 'a page is there twice')
})
