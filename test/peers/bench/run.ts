/**
 * `npm run bench`: release-ops beside the official SDK and a bare server. `--rounds`, `--seconds` and
 * `--connections` make it shorter, and the names of parts (operations, tools, heap, crowd) choose some.
 * It reads /proc, so it needs Linux. CI doesn't run it.
 */
import { installPeers } from '../install.ts'

const code = installPeers()
if (code === 0) {
  // Servers start with the arguments of this process. Where Node reads TypeScript, tsx only costs time.
  if (Object(process.features).typescript) process.execArgv = []
  const { bench } = await import('./measurements.ts') // only now is all there that it imports
  await bench(process.argv.slice(2))
}
process.exitCode = code
