/**
 * `npm run mutants`: proof that the tests can fail. Each mutant is this project with one check
 * removed; for each of them some test must fail. A mutant whose text is no longer in its file is an
 * error too, so that the table follows the code.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './instance.ts'
import { MUTANTS, type Mutant } from './mutant-table.ts'

/** A test that never ends is one that fails; so is a file of tests that takes longer than this. */
const LIMIT = '--test-timeout=90000'

const COPIED = ['lib', 'test', 'server.ts', 'client.ts', 'package.json', 'tsconfig.json', 'README.md']

/** A copy of the project that mutants take turns in. */
function workshop(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutants-'))
  const keep = (source: string) => !source.includes('node_modules') && !source.includes('peers')
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter: keep })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** A test failed and another one passed: the check is gone, and not more than that. */
const dead = (output: string) => /^not ok/m.test(output) && /^ok/m.test(output)

/** @returns undefined when a test failed as it should, else what is wrong with the mutant. */
async function survived(folder: string, { file, from, to, tests }: Mutant): Promise<string | undefined> {
  const path = join(folder, file)
  const source = readFileSync(path, 'utf8')
  if (source.split(from).length !== 2)
    return `its text stands ${source.split(from).length - 1} times in ${file}`
  writeFileSync(
    path,
    source.replace(from, () => to),
  )
  try {
    const args = [
      ...process.execArgv,
      '--test',
      '--test-reporter=tap',
      LIMIT,
      ...tests.map((name) => `test/${name}.test.ts`),
    ]
    const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      if (dead(output)) child.kill()
    })
    await once(child, 'close')
    if (!/^not ok/m.test(output)) return 'no test failed'
    return dead(output) ? undefined : 'every test failed, so it broke more than the check'
  } finally {
    writeFileSync(path, source)
  }
}

/** `npm run mutants -- lib/jwt.ts` runs those of one file. */
const [only = ''] = process.argv.slice(2)
const chosen = MUTANTS.filter(({ file }) => file.includes(only))
const waiting = [...chosen.entries()]
let alive = 0

async function work(): Promise<void> {
  const folder = workshop()
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [number, mutant] = next
    const problem = await survived(folder, mutant)
    if (problem !== undefined) alive += 1
    const verdict = problem === undefined ? 'killed' : `ALIVE (${problem})`
    console.log(`${verdict} ${number + 1} ${mutant.file}: ${mutant.without}`)
  }
  rmSync(folder, { recursive: true })
}

await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, work))
console.log(`${chosen.length - alive} killed, ${alive} alive`)
process.exitCode = alive === 0 ? 0 : 1
