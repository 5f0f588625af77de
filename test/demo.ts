/**
 * `npm run demo`: the tutorial against a real server, and then what "stateless" means. Two instances
 * share nothing but a secret; the question is asked by one that is gone when the answer comes.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { at, callTool } from '../client.ts'
import { type Instance, start, startServer } from './instance.ts'

const TOOL = 'rollback_release'
const ARGS = { service: 'checkout', version: 'v1.41.2' }
const EXPECTED = 'Rolled checkout back to v1.41.2. Reason: p99 regression'

const env = { STATE_SECRET: randomBytes(32).toString('base64url'), LOG: 'off' }
const a = await startServer(env)
const b = await startServer(env)
try {
  const tour = await playTour(a)
  const stateless = await confirmElsewhere(a, b)
  process.exitCode = tour && stateless ? 0 : 1
} finally {
  await Promise.all([a.stop(), b.stop()])
}

async function playTour({ url }: Instance): Promise<boolean> {
  const client = start('client.ts', [url.href], {})
  client.stdout?.pipe(process.stdout)
  client.stderr?.pipe(process.stderr)
  const [code] = await once(client, 'close')
  return code === 0
}

async function confirmElsewhere(a: Instance, b: Instance): Promise<boolean> {
  console.log('--- the server that asked is gone, another one gets the answer')
  const asked = await callTool(a.url, TOOL, ARGS)
  console.log(`asked on port ${a.url.port}: ${at(asked.body, 'result', 'resultType')}`)
  console.log(`stopped port ${a.url.port}: exit code ${await a.stop()}`)
  const content = { confirm: true, reason: 'p99 regression' }
  const done = await callTool(b.url, TOOL, ARGS, {
    requestState: at(asked.body, 'result', 'requestState'),
    inputResponses: { confirm: { action: 'accept', content } },
  })
  const text = at(done.body, 'result', 'content', '0', 'text')
  console.log(`answered on port ${b.url.port}: ${text}`)
  return text === EXPECTED
}
