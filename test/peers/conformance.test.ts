/**
 * The official conformance suite against the real server, in a process of its own. Every check has to
 * pass; those that can't tell anything about this server are listed, each with the reason, and a
 * listed check that does pass fails the test, so that the list can't outlive its reasons.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Instance, startServer } from '../instance.ts'
import { node22 } from './node22.ts'

/** What is read of a line of the suite's report. */
type Check = {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly errorMessage?: string
  readonly details?: { readonly note?: string }
}

type Excuse = {
  readonly status: Check['status']
  /** What the suite itself has to give as its reason: any other failure is a fault. */
  readonly says: string
  readonly because: string
}

type Scenario = {
  readonly name: string
  /** How many checks pass: a suite that gave up half-way must not look green. */
  readonly passing: number
  readonly excused?: { readonly [id: string]: Excuse }
}

const SUITE = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
/** The longest that one scenario may take, in milliseconds. */
const TIMEOUT_MS = 60_000

const needsTool = (tool: string, shows: string): Excuse => ({
  status: 'FAILURE',
  says: `Not testable: server does not list the diagnostic tool '${tool}'`,
  because: `only ${tool}, a tool made for this suite, could show ${shows}`,
})
const needsSubscriptions: Excuse = {
  status: 'SKIPPED',
  says: 'Server advertises no subscription-delivered capability',
  because: 'the tools never change while the server runs, so that there is nothing to subscribe to',
}
const needsListChanged = (list: string): Excuse => ({
  status: 'SKIPPED',
  says: `Server did not declare ${list}.listChanged capability`,
  because: 'nothing that the server lists changes while it runs',
})

const SCENARIOS: readonly Scenario[] = [
  { name: 'http-header-validation', passing: 14 },
  { name: 'http-custom-header-server-validation', passing: 10 },
  { name: 'dns-rebinding-protection', passing: 2 },
  { name: 'tools-list', passing: 4 },
  {
    name: 'server-stateless',
    passing: 21,
    excused: {
      'sep-2575-server-rejects-undeclared-capability': needsTool(
        'test_missing_capability',
        'that a tool which needs `sampling` is refused without it',
      ),
      'sep-2575-missing-capability-http-400': needsTool(
        'test_missing_capability',
        'the HTTP status of that refusal',
      ),
      'sep-2575-http-server-no-independent-requests-on-stream': needsTool(
        'test_streaming_elicitation',
        'that an event stream carries no request of its own; this server never opens a stream',
      ),
      'sep-2575-server-no-log-without-loglevel': needsTool(
        'test_logging_tool',
        'that no log message is sent unasked; this server never sends one',
      ),
      // With subscriptions, test_trigger_tool_change and test_trigger_prompt_change were needed too.
      'sep-2575-server-sends-subscription-ack': needsSubscriptions,
      'sep-2575-server-tags-subscription-id': needsSubscriptions,
      'sep-2575-server-honors-notification-filter': needsSubscriptions,
      'sep-2575-server-sends-prompts-list-changed-on-subscription': needsListChanged('prompts'),
      'sep-2575-server-sends-tools-list-changed-on-subscription': needsListChanged('tools'),
    },
  },
]

let server: Instance

before(async () => {
  server = await startServer({ LOG: 'off' })
})

after(() => server.stop())

/** @returns the suite's report on one scenario. */
async function report(scenario: string): Promise<readonly Check[]> {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'))
  try {
    const flags = ['--url', server.url.href, '--spec-version', '2026-07-28', '--scenario', scenario]
    const args = [SUITE, 'server', ...flags, '--output-dir', folder]
    const output = await new Promise<string>((resolve) => {
      // Its exit code is 1 for an excused check too: the report is judged instead.
      execFile(node22(), args, { timeout: TIMEOUT_MS }, (_, stdout, stderr) => resolve(stdout + stderr))
    })
    const [run] = await readdir(folder)
    assert.ok(run !== undefined, `The suite left no report: ${output}`)
    return JSON.parse(await readFile(join(folder, run, 'checks.json'), 'utf8'))
  } finally {
    await rm(folder, { recursive: true })
  }
}

for (const { name, passing, excused = {} } of SCENARIOS) {
  const excuses = Object.keys(excused)
  const except = excuses.length === 0 ? '' : `, except ${excuses.length} with a reason`
  test(`the official suite passes every check of ${name}${except}`, async (t) => {
    const checks = await report(name)
    const others = checks.filter(({ status }) => status !== 'SUCCESS')
    const faults = others.filter(({ id, status, errorMessage, details }) => {
      const excuse = excused[id]
      const reason = errorMessage ?? details?.note ?? ''
      return excuse?.status !== status || !reason.startsWith(excuse.says)
    })
    t.diagnostic(`${checks.length - others.length} of ${checks.length} checks pass`)
    for (const [id, { status, because }] of Object.entries(excused))
      t.diagnostic(`${status} ${id}: ${because}`)

    assert.deepEqual(faults, [])
    assert.deepEqual(others.map(({ id }) => id).sort(), excuses.sort(), 'each excuse is needed, once')
    assert.equal(checks.length - others.length, passing)
  })
}
