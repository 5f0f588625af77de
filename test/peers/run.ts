/**
 * `npm run test:peers`: the tests of this folder. It installs the npm packages that they need when
 * those are missing or older than the lock file; system programs it only asks for.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program on PATH that a test here starts, and the Debian package that has it. */
type SystemProgram = { readonly program: string; readonly package: string }

const SYSTEM_PROGRAMS: readonly SystemProgram[] = [{ program: 'redis-server', package: 'redis-server' }]

const PEERS = import.meta.dirname
const ROOT = join(PEERS, '..', '..')

/** @returns the program's exit code. */
function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' })
  if (error !== undefined) console.error(`Can't start ${program}: ${error.message}`)
  return status ?? 1
}

const changed = (...path: string[]) =>
  statSync(join(PEERS, ...path), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** npm leaves a lock file of what it installed beside it. */
const areInstalled = () => changed('node_modules', '.package-lock.json') >= changed('package-lock.json')

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** @returns the exit code. */
function main(): number {
  if (!areInstalled()) {
    const code = run('npm', ['ci', '--prefix', PEERS])
    if (code !== 0) return code
  }
  const missing = SYSTEM_PROGRAMS.filter(({ program }) => !isOnPath(program))
  for (const { program, package: name } of missing)
    console.error(`${program} is not on PATH. Get it with: apt-get install -y ${name}`)
  if (missing.length > 0) return 1

  const tests = readdirSync(PEERS).filter((name) => name.endsWith('.test.ts'))
  const files = tests.sort().map((name) => join(PEERS, name))
  return run(process.execPath, ['--import', 'tsx', '--test', ...files])
}

process.exitCode = main()
