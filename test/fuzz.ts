/**
 * `npm run fuzz -- [--requests N] [--seed S] [--only NUMBER]`: sends a real server honest requests that are
 * spoiled in every way we could think of, and judges what it answers and what it does. The same seed
 * makes the same requests again; `--only` sends one of them, and shows the answer.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { at } from '../client.ts'
import { approvedBy, faultOf, Ledger } from './fuzz-oracle.ts'
import { callDraft, type Issued, questionsOf } from './fuzz-requests.ts'
import type { Order, Report } from './fuzz-server.ts'
import { Line } from './fuzz-socket.ts'
import { generate, type Sent, unspoiled } from './fuzz-wire.ts'

const REQUESTS = 200_000
/** The same each time, so that a failure is the change's and not the draw's. */
const SEED = 1
/** How many requests share their states, and are compared with what the server did. */
const BATCH = 2000
const CONNECTIONS = 8
/** How many failures are shown before it ends. */
const ENOUGH = 5
/** How much the heap may grow after the first quarter, in bytes: caches fill and the collector leaves some. */
const MARGIN = 4 * 1024 * 1024

export type Target = {
  readonly url: URL
  /** Other random bytes and a later time, the same for the same batch. */
  readonly begin: (batch: number) => Promise<void>
  /** What has happened since the last report. */
  readonly report: () => Promise<Report>
}

export type Run = { readonly seed: number; readonly requests: number; readonly only?: number | undefined }

export type Verdict = {
  readonly failures: readonly string[]
  readonly sent: number
  readonly answered: number
  readonly acted: number
  /** Heap after each batch, in bytes. */
  readonly heaps: readonly number[]
}

/** Sends the requests of a seed, and stops early when enough has gone wrong. */
export async function fuzz(target: Target, { seed, requests, only }: Run): Promise<Verdict> {
  const failures: string[] = []
  const heaps: number[] = []
  const count = { sent: 0, answered: 0, acted: 0 }
  const lines = Array.from({ length: CONNECTIONS }, () => new Line(target.url))
  const ledger = new Ledger()

  /** Sends one and judges its answers. */
  async function attack(line: Line, sent: Sent, states: ReadonlyMap<string, Issued>): Promise<void> {
    const approvals = sent.requests.map((one) => approvedBy(one, states, sent.manner === 'broken'))
    for (const approved of approvals) if (approved !== undefined) ledger.allow(approved)
    const answers = await line.exchange(sent).catch(String)
    const fault = typeof answers === 'string' ? answers : faultOf(sent, answers, approvals)
    if (fault !== undefined) failures.push(`${shown(sent)}\n  ${fault}`)
    if (only !== undefined) console.log(shown(sent), answers)
    count.sent += sent.requests.length
    count.answered += Array.isArray(answers) ? answers.length : 0
  }

  /** Compares what the server did since the last time with what it was allowed to do. @returns its heap. */
  async function settle(when: string): Promise<number> {
    const { acted, failures: thrown, heap } = await target.report()
    for (const failure of thrown) failures.push(`${when}: ${failure}`)
    for (const deed of acted) {
      if (!ledger.covers(deed)) failures.push(`${when}: nobody approved ${JSON.stringify(deed)}`)
    }
    count.acted += acted.length
    return heap
  }

  async function runBatch(start: number): Promise<void> {
    const issued = await questions(target, start / BATCH)
    await settle(`before request ${start}`) // of clients that have hung up
    ledger.clear()
    const states = new Map(issued.map((question) => [question.state, question]))
    const [from, to] = only === undefined ? [start, Math.min(start + BATCH, requests)] : [only, only + 1]
    let next = from
    const work = async (line: Line) => {
      while (next < to && failures.length < ENOUGH)
        await attack(line, generate(seed, next++, issued), states)
    }
    await Promise.all(lines.map(work))
    heaps.push(await settle(`requests ${from} to ${to - 1}`))
  }

  try {
    const first = only === undefined ? 0 : only - (only % BATCH)
    const end = only === undefined ? requests : only + 1
    for (let start = first; start < end && failures.length < ENOUGH; start += BATCH) await runBatch(start)
    if (failures.length === 0) await questions(target, Math.ceil(end / BATCH)) // honest ones still work
  } catch (thrown) {
    failures.push(String(thrown))
  }
  for (const line of lines) line.close()
  return { failures, heaps, ...count }
}

/**
 * Asks everything anew, as an honest client does, and again within the same flow.
 * @returns the states. @throws Error when honest requests are no longer served.
 */
async function questions({ url, begin }: Target, batch: number): Promise<Issued[]> {
  await begin(batch)
  const line = new Line(url)
  const issued: Issued[] = []
  for (const { tool, args } of questionsOf(batch)) {
    for (const user of ['alice', 'bob'] as const) {
      let retry = {}
      for (let round = 1; round <= 2; round++) {
        const answers = await line.exchange(unspoiled(0, callDraft(round, tool, args, user, retry)))
        const state = at(JSON.parse(String(answers[0]?.body)), 'result', 'requestState')
        if (typeof state !== 'string') throw new Error(`No honest question any more: ${answers[0]?.body}`)
        issued.push({ state, tool, args, user })
        retry = { requestState: state, inputResponses: {} } // no answer, so it asks again
      }
    }
  }
  line.close()
  return issued
}

/** A request as it can be read and sent again. */
function shown({ number, manner, writes }: Sent): string {
  const bytes = writes.map((piece) => JSON.stringify(piece.toString('latin1')))
  return `request ${number} (${manner}):\n  ${bytes.join('\n  ')}`
}

/** The server in a process of its own. */
export async function startTarget(): Promise<Target & { readonly end: () => void }> {
  const child = fork(fileURLToPath(new URL('fuzz-server.ts', import.meta.url)))
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The server has ended: ${signal ?? `exit code ${code}`}.`)
  })
  ended.catch(() => {}) // whoever wants something of it is told
  const order = async (what: Order): Promise<unknown> => {
    const answer = Promise.race([once(child, 'message'), ended])
    if (child.connected) child.send(what)
    const [said] = await answer
    return said
  }
  const [origin] = await once(child, 'message')
  return {
    url: new URL(`${origin}/mcp`),
    begin: async (batch) => {
      await order({ begin: batch })
    },
    report: async () => (await order({ report: true })) as Report,
    end: () => child.disconnect(),
  }
}

/** @returns what the heap has grown by since the first quarter of a run, in bytes. */
export function growthOf(heaps: readonly number[]): number {
  return (heaps.at(-1) ?? 0) - (heaps[Math.floor(heaps.length / 4)] ?? 0)
}

const inMegabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`

async function main(): Promise<void> {
  const option = { type: 'string' } as const
  const { values } = parseArgs({ options: { requests: option, seed: option, only: option } })
  const seed = Number(values.seed ?? SEED)
  const only = values.only === undefined ? undefined : Number(values.only)
  const requests = Number(values.requests ?? REQUESTS)
  console.log(`seed ${seed}`)
  const target = await startTarget()
  const started = performance.now()
  const verdict = await fuzz(target, { seed, requests, only })
  target.end()
  const seconds = (performance.now() - started) / 1000
  const { failures, sent, answered, acted, heaps } = verdict
  for (const failure of failures) console.error(failure)
  if (failures.length > 0) console.error(`Again: npm run fuzz -- --seed ${seed} --only NUMBER`)

  const rate = `${sent} requests in ${seconds.toFixed(1)} s (${Math.round(sent / seconds)} a second)`
  console.log(`${rate}, ${answered} answers, ${acted} actions, ${failures.length} failures`)
  const growth = growthOf(heaps)
  const end = heaps.at(-1) ?? 0
  console.log(`heap after a quarter ${inMegabytes(end - growth)}, at the end ${inMegabytes(end)}`)
  if (growth > MARGIN) console.error(`The heap has grown by more than ${inMegabytes(MARGIN)}.`)
  if (failures.length > 0 || growth > MARGIN) process.exitCode = 1
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main()
}
