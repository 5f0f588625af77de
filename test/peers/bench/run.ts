import { installPeers } from '../install.ts'

const code = installPeers()
if (code !== 0) process.exit(code)
const { bench } = await import('./bench.ts')
await bench(process.argv.slice(2))
