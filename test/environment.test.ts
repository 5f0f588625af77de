import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Environment, firstOf, type Variables } from '../lib/environment.ts'

/** What a reader gives for these variables, and the lines of what it finds wrong. */
function reading<T>(variables: Variables, read: (env: Environment) => T): { value: T; problems: string[] } {
  const env = new Environment(variables)
  const value = read(env)
  try {
    env.finish()
    return { value, problems: [] }
  } catch (problem) {
    assert.ok(problem instanceof Error, String(problem))
    return { value, problems: problem.message.split('\n') }
  }
}

const integer = (NUMBER: string | undefined) =>
  reading({ NUMBER }, (env) => env.integer('NUMBER', 7, 1, 2_000_000_000, 'a number of things'))
const choice = (CHOICE: string | undefined) =>
  reading({ CHOICE }, (env) => env.choice('CHOICE', ['signed', 'encrypted']))
const text = (TEXT: string | undefined) => reading({ TEXT }, (env) => env.text('TEXT'))
const list = (LIST: string | undefined) =>
  reading({ LIST }, (env) => env.list('LIST', (entry) => /^[a-z]+$/.test(entry), 'a word'))

// Readers.

test('what is not set is its default, and nothing is wrong with it', () => {
  assert.deepEqual(integer(undefined), { value: 7, problems: [] })
  assert.deepEqual(choice(undefined), { value: 'signed', problems: [] })
  assert.deepEqual(text(undefined), { value: undefined, problems: [] })
  assert.deepEqual(list(undefined), { value: undefined, problems: [] })
  assert.deepEqual(
    reading({}, (env) => env.file('FILE')),
    { value: undefined, problems: [] },
  )
})

test('a number is decimal digits within its range, both ends included', () => {
  for (const [written, value] of [
    ['1', 1],
    ['2000000000', 2_000_000_000],
    ['007', 7],
  ] as const) {
    assert.deepEqual(integer(written), { value, problems: [] })
  }
})

test('anything else is no number: it is a problem that names the range and the default, which is then given', () => {
  const line = 'NUMBER must be a number of things, from 1 to 2000000000; without it, it is 7.'
  for (const written of [
    '',
    ' ',
    '0',
    '2000000001',
    '99999999999999999999',
    '-1',
    '+1',
    '1.0',
    '1,000',
    '1_000',
    '1e3',
    '0x1',
    ' 1',
    '1 ',
    '1\n',
    '١',
    '１',
    'one',
    'NaN',
    'Infinity',
    'true',
  ]) {
    assert.deepEqual(integer(written), { value: 7, problems: [line] }, JSON.stringify(written))
  }
})

test('a choice is one of the words, exactly', () => {
  assert.deepEqual(choice('encrypted'), { value: 'encrypted', problems: [] })
  assert.deepEqual(choice('signed'), { value: 'signed', problems: [] })
  for (const written of ['', ' ', 'Encrypted', 'encrypted ', 'signed,encrypted', 'toString', '0']) {
    assert.deepEqual(choice(written), {
      value: 'signed',
      problems: ['CHOICE must be signed or encrypted.'],
    })
  }
})

test('a text is taken as it is, with its spaces; one without a visible character is a problem', () => {
  for (const written of ['x', ' x ', '0', 'false', '["a", "b"]']) {
    assert.deepEqual(text(written), { value: written, problems: [] })
  }
  for (const written of ['', ' ', '\t\n']) {
    assert.deepEqual(text(written), {
      value: written,
      problems: ['TEXT is empty: unset it or give it a value.'],
    })
  }
})

test('a raw value is taken as it is, empty or not, and is never a problem', () => {
  for (const RAW of ['', ' ', 'x', undefined]) {
    assert.deepEqual(
      reading({ RAW }, (env) => env.raw('RAW')),
      { value: RAW, problems: [] },
    )
  }
})

test('a list is split at commas, in lower case, once for each entry and without the spaces around it', () => {
  assert.deepEqual(list('One, two ,,ONE,three,'), { value: new Set(['one', 'two', 'three']), problems: [] })
  for (const written of ['', ' ', ',', ' , ,']) {
    assert.deepEqual(list(written), { value: undefined, problems: [] })
  }
})

test('each bad entry of a list is a problem of its own that repeats the entry in quotes', () => {
  assert.deepEqual(list('one,2,three four,"').problems, [
    'LIST has "2"; an entry must be a word.',
    'LIST has "three four"; an entry must be a word.',
    'LIST has "\\""; an entry must be a word.',
  ])
})

test('an entry can not start a line of its own in what is reported', () => {
  const { problems } = list('a\nPORT is fine')
  assert.equal(problems.length, 1)
  assert.match(problems[0] ?? '', /^LIST has "a\\nport is fine"/)
})

/** A folder for one test. */
function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'environment-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

test('a file is read byte for byte, also where it is no text', (t) => {
  const path = join(folder(t), 'a file with spaces')
  for (const content of ['', 'one line\n', 'ü\r\n\r\n', Buffer.from([0xff, 0x00, 0x0a])].map((c) =>
    Buffer.from(c),
  )) {
    writeFileSync(path, content)
    assert.deepEqual(
      reading({ FILE: path }, (env) => env.file('FILE')),
      { value: content, problems: [] },
    )
  }
})

test('a file that is missing, or is no file, is one problem that names the variable and not the path', (t) => {
  const path = folder(t)
  for (const FILE of [join(path, 'missing'), path, 'a\0b']) {
    const { value, problems } = reading({ FILE }, (env) => env.file('FILE'))
    assert.equal(value, undefined)
    assert.deepEqual(problems, [
      "FILE names a file that can't be read: check the path and who may read it.",
    ])
  }
})

test('an empty path is one problem, and no file is read', () => {
  for (const FILE of ['', ' ']) {
    assert.deepEqual(
      reading({ FILE }, (env) => env.file('FILE')),
      { value: undefined, problems: ['FILE is empty: unset it or give it a value.'] },
    )
  }
})

// What is found.

test('problems are reported together, one a line, in the order in which they were found', () => {
  const { problems } = reading({ A: '', B: 'x', C: 'y' }, (env) => {
    env.text('A')
    env.problem('Something else is wrong.')
    env.integer('B', 1, 0, 9, 'a digit')
    env.choice('C', ['0', '1'])
  })
  assert.deepEqual(
    problems.map((line) => line.split(' ')[0]),
    ['A', 'Something', 'B', 'C'],
  )
})

test('a warning is kept for whoever starts the server and stops nothing', () => {
  const env = new Environment({})
  assert.deepEqual(env.warnings, [])
  env.warn('The first.')
  env.warn('The second.')
  env.finish()
  assert.deepEqual(env.warnings, ['The first.', 'The second.'])
})

test('a problem is no warning, and is still there the second time', () => {
  const env = new Environment({})
  env.problem('This must change.')
  assert.deepEqual(env.warnings, [])
  for (let i = 0; i < 2; i++) assert.throws(() => env.finish(), { message: 'This must change.' })
})

test('of several parts the first that is there is taken, also when it is false, empty or zero', () => {
  assert.equal(firstOf([undefined, 'second', 'third']), 'second')
  for (const there of [0, '', false, null]) assert.equal(firstOf([undefined, there, 'later']), there)
  assert.equal(firstOf([undefined, undefined]), undefined)
  assert.equal(firstOf([]), undefined)
})
