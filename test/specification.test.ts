import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from './instance.ts'
import { PAGES } from './specification/pages.ts'
import { registeredTests } from './specification/registered-tests.ts'
import { DOCUMENT, standingOf, TABLE, testsOf, written } from './specification.ts'

const requirements = TABLE.flatMap((page) => page.requirements)
const REMEDY = 'mend test/specification/, then: npm run specification'

test('SPECIFICATION.md is what the table says', () => {
  assert.equal(readFileSync(DOCUMENT, 'utf8'), written(), REMEDY)
})

test('every test that is listed exists, in the file that is named, once', () => {
  const registered = new Map<string, readonly string[]>()
  for (const { id, evidence } of requirements) {
    for (const [file, names] of Object.entries(testsOf(evidence))) {
      const path = join(ROOT, 'test', file)
      assert.ok(existsSync(path), `${id}: there is no test/${file}: ${REMEDY}`)
      const there = registered.get(file) ?? registeredTests(readFileSync(path, 'utf8'))
      registered.set(file, there)
      assert.ok(names.length > 0, `${id} names no test of ${file}`)
      assert.equal(new Set(names).size, names.length, `${id} names a test of ${file} twice`)
      for (const name of names) {
        assert.equal(there.filter((one) => one === name).length, 1, `${id}: ${file} has no test "${name}"`)
      }
    }
  }
})

test('a name in a comment, of a test that is switched off or in another text is no test', () => {
  const source = [
    "test('plain', () => {})",
    "  test('inner it\\'s', async (t) => {})",
    'test("double", { timeout: 1 }, () => {})',
    "test(\n  'on a line of its own',\n  () => {})",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a test.
    'test(`${what} and ${a}${b} more`, () => {})',
    "// test('comment', () => {})",
    "/*\ntest('block', () => {})\n*/",
    "test.skip('skipped', () => {})",
    "test.todo('to do')",
    "retest('other', () => {})",
    'const text = "test(\'text\', () => {})"',
    'test(computed, () => {})',
  ].join('\n')
  const expected = ['plain', "inner it's", 'double', 'on a line of its own', '… and … more']
  assert.deepEqual(registeredTests(source), expected)
})

test('every MUST that applies has a test; the rows of the fixture may wait until it has its own', () => {
  const landed = existsSync(join(ROOT, 'test/peers/fixture.test.ts'))
  for (const { id, level, evidence } of requirements) {
    const standing = standingOf(evidence)
    assert.ok(
      !(landed && standing === 'to be shown by the fixture'),
      `${id} waits for peers/fixture.test.ts`,
    )
    assert.ok(!(level.startsWith('MUST') && standing === 'untested'), `${id} is a MUST without a test`)
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
