/** The npm packages of this folder: installed when they are missing or older than the lock file. */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'

const PEERS = import.meta.dirname
const ROOT = join(PEERS, '..', '..')

/** Runs a program in the project's folder, its output beside ours. @returns its exit code. */
export function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' })
  if (error !== undefined) console.error(`Can't start ${program}: ${error.message}`)
  return status ?? 1
}

const changed = (...path: string[]) =>
  statSync(join(PEERS, ...path), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** npm leaves a lock file of what it installed beside it. */
const areInstalled = () => changed('node_modules', '.package-lock.json') >= changed('package-lock.json')

/** @returns the exit code. */
export function installPeers(): number {
  return areInstalled() ? 0 : run('npm', ['ci', '--prefix', PEERS])
}
