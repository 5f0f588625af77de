/**
 * `npm run leaves`: proof that each optional part may go. For every part, a copy of this project
 * loses the part's files and its lines of `server.ts`, which are those that end in `// leaf: NAME`,
 * and what is left must still type-check.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { ROOT } from './instance.ts'

type Part = {
  readonly name: string
  /** What is deleted: the part itself first, and its own tests. */
  readonly files: readonly string[]
  /** Parts that are built on this one and go with it. */
  readonly carries?: readonly string[]
}

const PARTS: readonly Part[] = [
  { name: 'auth-tokens', files: ['lib/auth-tokens.ts', 'test/auth-tokens.test.ts'] },
  {
    name: 'auth-jwt',
    files: [
      'lib/auth-jwt.ts',
      'lib/jwt.ts',
      'lib/jwks.ts',
      'lib/protected-resource.ts',
      'test/auth-jwt.test.ts',
      'test/peers/jose.test.ts',
    ],
  },
  { name: 'encryption', files: ['lib/encryption.ts', 'test/encryption.test.ts'] },
  { name: 'command', files: ['lib/command.ts', 'test/command.test.ts'] },
  { name: 'rate-limit', files: ['lib/rate-limit.ts', 'test/rate-limit.test.ts'] },
  { name: 'trail', files: ['lib/trail.ts', 'test/trail.test.ts'] },
  {
    name: 'scale-service',
    files: [
      'lib/tools/scale-service.ts',
      'lib/money.ts',
      'test/scale-service.test.ts',
      'test/money.test.ts',
    ],
  },
  {
    name: 'redis-store',
    files: [
      'lib/redis-store.ts',
      'test/redis-store.test.ts',
      'test/peers/redis.test.ts',
      'test/peers/redis-server.ts',
      'test/peers/rotation.test.ts',
      'test/peers/people.ts',
    ],
  },
  {
    name: 'single-use',
    files: ['lib/single-use.ts', 'lib/outcome-store.ts', 'test/single-use.test.ts'],
    carries: ['redis-store', 'scale-service'],
  },
]

const COPIED = ['lib', 'test', 'server.ts', 'client.ts', 'package.json', 'tsconfig.json']
const SERVER = 'server.ts'
const MARK = /\/\/ leaf: (\S+)$/

const original = (file: string) => join(ROOT, file)
const lines = readFileSync(original(SERVER), 'utf8').split('\n')
const partOf = (line: string) => MARK.exec(line)?.[1]

/** A copy of the project that every part is deleted from in turn. */
function workshop(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leaves-'))
  const filter = (source: string) => !relative(ROOT, source).split(/[\\/]/).includes('node_modules')
  for (const name of COPIED) cpSync(original(name), join(folder, name), { recursive: true, filter })
  symlinkSync(original('node_modules'), join(folder, 'node_modules'))
  return folder
}

/** @returns what the compiler says about the copy; nothing when all is well. */
function typeCheck(folder: string): string {
  const compiler = original('node_modules/typescript/bin/tsc')
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  })
  return status === 0 ? '' : `${stdout}${stderr}`.trim() || `tsc ended with status ${status}`
}

/** @returns what keeps a part from being deleted; nothing when it may go. The copy is restored. */
function problemOf(folder: string, { name, files, carries = [] }: Part): string {
  const names = [name, ...carries]
  const gone = [
    files,
    ...PARTS.filter((part) => carries.includes(part.name)).map((part) => part.files),
  ].flat()
  const missing = files.find((file) => !existsSync(original(file)))
  if (missing !== undefined) return `${missing} does not exist: mend the table in test/leaves.ts`
  if (!lines.some((line) => partOf(line) === name)) return `no line of ${SERVER} ends in // leaf: ${name}`
  const kept = lines.filter((line) => !names.includes(partOf(line) ?? ''))
  try {
    for (const file of gone) rmSync(join(folder, file), { force: true })
    writeFileSync(join(folder, SERVER), kept.join('\n'))
    return typeCheck(folder)
  } finally {
    for (const file of [SERVER, ...gone]) {
      if (existsSync(original(file))) cpSync(original(file), join(folder, file))
    }
  }
}

/** Says in one line how a part stands, and below it what is wrong. */
function report(name: string, problem: string): void {
  console.log(problem === '' ? `may go  ${name}` : `STAYS   ${name}\n  ${problem.replaceAll('\n', '\n  ')}`)
  if (problem !== '') process.exitCode = 1
}

const known = new Set(PARTS.map(({ name }) => name))
const stray = lines.map(partOf).find((name) => name !== undefined && !known.has(name))
if (stray !== undefined) report(stray, `${SERVER} names it, the table in test/leaves.ts does not`)

const folder = workshop()
try {
  const before = typeCheck(folder)
  if (before !== '') report('the whole project', before)
  // A fork that has deleted a part goes on checking the others.
  const there = PARTS.filter(({ files: [first = ''] }) => existsSync(original(first)))
  if (before === '') for (const part of there) report(part.name, problemOf(folder, part))
} finally {
  rmSync(folder, { recursive: true })
}
