/**
 * release-ops: a stateless MCP server with one risky tool behind a human confirmation gate.
 *
 * This file wires the parts together and starts them; nothing else reads the environment, opens a
 * port or looks at the clock. To make the server yours, change the list of tools, the identity and
 * the secrets here.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { type Config, readConfig } from './lib/config.ts'
import { edge } from './lib/edge.ts'
import { type HttpServer, httpServer } from './lib/http-server.ts'
import { runUntilSignal } from './lib/lifecycle.ts'
import { jsonLog, type Log } from './lib/log.ts'
import { identified, toolMethods } from './lib/methods.ts'
import { DEMO_USER } from './lib/principal.ts'
import { textReply } from './lib/reply.ts'
import { signer } from './lib/seal.ts'
import { requestStates } from './lib/state.ts'
import type { Tool } from './lib/tool.ts'
import { compileTools } from './lib/tool-definition.ts'
import { rollbackRelease } from './lib/tools/rollback-release.ts'

const INSTRUCTIONS = 'Release operations. rollback_release asks for confirmation.'
/** The longest that an action may take before a stop no longer waits for it, in milliseconds. */
const ACTION_MS = 60_000

/** Every tool of this server, in the order of `tools/list`. */
export const tools: readonly Tool[] = [
  rollbackRelease(() => {
    // Simulated: put what really rolls back here.
  }),
]

/** What a test replaces: the tools it counts, the clock it moves, the log it reads. */
export type Parts = { tools: readonly Tool[]; now: () => number; log: Log }

/** The whole server, not yet listening. @throws Error for a tool that can't be offered. */
export function compose(config: Config, { tools, now, log }: Parts): HttpServer {
  const compiled = compileTools(tools)
  const { audience, ttlMs } = config
  const states = requestStates(signer(config.secrets), { audience, ttlMs, now })
  const { name, version } = JSON.parse(
    readFileSync(new URL('package.json', import.meta.url), 'utf8'),
  )
  const answer = edge({
    methods: identified({ name, version }, toolMethods(INSTRUCTIONS, compiled, states)),
    authenticate: () => DEMO_USER,
    rules: config.rules,
    documents: new Map([['/healthz', textReply('ok')]]),
    paramHeaders: [...compiled.values()].flatMap((tool) => tool.paramHeaders.map((p) => p.header)),
    maxBodyBytes: config.maxBodyBytes,
  })
  return httpServer(answer, log)
}

/** Starts the server as its environment says, or says what is wrong with that. */
async function main(): Promise<void> {
  try {
    const config = readConfig(process.env)
    const log = jsonLog(config.logRequests)
    config.warnings.forEach(log.say)
    await runUntilSignal(compose(config, { tools, now: Date.now, log }), config, ACTION_MS)
  } catch (problem) {
    console.error(problem instanceof Error ? problem.message : problem)
    process.exitCode = 1
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  await main()
}
