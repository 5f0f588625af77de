/**
 * Where a Node.js 22 is. The conformance suite needs one (`globSync` of node:fs), while this project
 * also supports 20. npm installs the package of this platform, binary and all, as an optional
 * dependency; no install script has to run for it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** @throws Error with one sentence that says what to do. */
export function node22(): string {
  const platform = `node-${process.platform}-${process.arch}`
  const binary = join(import.meta.dirname, 'node_modules', platform, 'bin', 'node')
  if (existsSync(binary)) return binary
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath
  throw new Error(
    `There is no Node.js 22 for the conformance suite: run npm ci --prefix test/peers, or, where no ${platform} is listed in its package.json, run these tests with Node.js 22.18 or later.`,
  )
}
