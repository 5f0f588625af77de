/**
 * `npm run test:peers`: the tests of this folder. It installs the npm packages that they need when
 * those are missing or older than the lock file; system programs it only asks for.
 */
import { accessSync, constants, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPeers, run } from './install.ts'

/** A program on PATH that a test here starts, and the Debian package that has it. */
type SystemProgram = { readonly program: string; readonly package: string }

const SYSTEM_PROGRAMS: readonly SystemProgram[] = [
  { program: 'redis-server', package: 'redis-server' },
  { program: 'nginx', package: 'nginx' },
]

const PEERS = import.meta.dirname

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
  const code = installPeers()
  if (code !== 0) return code
  const missing = SYSTEM_PROGRAMS.filter(({ program }) => !isOnPath(program))
  for (const { program, package: name } of missing)
    console.error(`${program} is not on PATH. Get it with: apt-get install -y ${name}`)
  if (missing.length > 0) return 1

  const tests = readdirSync(PEERS).filter((name) => name.endsWith('.test.ts'))
  const files = tests.sort().map((name) => join(PEERS, name))
  return run(process.execPath, ['--import', 'tsx', '--test', ...files])
}

process.exitCode = main()
