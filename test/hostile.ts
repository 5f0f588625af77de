/**
 * Attacks a server with the hostile cases: finds out how its tool asks, plays the cases one after the other
 * and says of each whether what had to happen did.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { at, type Json, message, paramHeaders, type Reply, send } from '../client.ts'
import { describe, flawOf, kindOf, shown, textOf } from './hostile-answers.ts'
import { CASES, type Case } from './hostile-cases.ts'
import type { Verdict } from './hostile-plays.ts'
import { Fault, retryOf, type Shot, Skip, sample, type Target } from './hostile-requests.ts'
import { abandon, converse } from './hostile-socket.ts'

const usage = (
  defaultUrl: string,
) => `client --hostile [URL] [--tool NAME --arguments JSON] [--case ID] [--list]

  URL                the server; default ${defaultUrl}
  --tool NAME        a tool of it that asks a yes-or-no question; default rollback_release
  --arguments JSON   arguments that the tool takes; default {"service":"checkout","version":"v1.41.2"}
  --case ID          only this case
  --list             names the cases; needs no server

The cases that say yes honestly really perform the action, about twenty times in a whole run: aim at something
that may happen. An argument named like an idempotency key is made new for each call. Each request carries
MCP_TOKEN, where it is set, as its bearer token.

Exit code 0 when every case passed or was skipped, 1 otherwise.`

const TOOL = 'rollback_release'
const ARGUMENTS = '{"service":"checkout","version":"v1.41.2"}'
/** Longest wait that a server may ask for with Retry-After, in seconds, and how often it may. */
const MAX_WAIT = 60
const MAX_WAITS = 10
/** A list of tools longer than this never ends. */
const MAX_PAGES = 20
const IDEMPOTENCY_KEY = /idempot|nonce|request_?id/i

/** @returns the exit code. */
export async function attack(args: string[], defaultUrl: string): Promise<number> {
  const options = readOptions(args, defaultUrl)
  if (typeof options === 'string') return complain(options)
  if (options.help) return say(usage(defaultUrl))
  if (options.list) return say(CASES.map(({ id, group, attack }) => `${id} ${group}: ${attack}`).join('\n'))
  const cases = CASES.filter(({ id }) => options.only === undefined || id === options.only)
  if (cases.length === 0) return complain(`There is no case ${options.only}. --list names them.`)
  try {
    const target = await aim(options.url, options.tool, options.arguments)
    return typeof target === 'string' ? complain(target) : await play(cases, target)
  } catch (error) {
    const reason = at(error, 'code') ?? at(error, 'message') ?? error
    return complain(`No answer from ${options.url} (${reason}). Start the server with: npm start`)
  }
}

type Options = {
  readonly url: URL
  readonly tool: string
  readonly arguments: Json
  readonly only: string | undefined
  readonly list: boolean
  readonly help: boolean
}

/** @returns the options, or what is wrong with them. */
function readOptions(args: string[], defaultUrl: string): Options | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        tool: { type: 'string', default: TOOL },
        arguments: { type: 'string', default: ARGUMENTS },
        case: { type: 'string' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    const [address = defaultUrl, ...more] = positionals
    const given: unknown = JSON.parse(values.arguments)
    if (!/^https?:\/\//.test(address) || !URL.canParse(address) || more.length > 0) return usage(defaultUrl)
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      return '--arguments must be a JSON object.'
    const { tool, case: only, list, help } = values
    return { url: new URL(address), tool, arguments: given as Json, only, list, help }
  } catch (error) {
    return `${at(error, 'message')}\n\n${usage(defaultUrl)}`
  }
}

function say(text: string): number {
  console.log(text)
  return 0
}

function complain(text: string): number {
  console.error(text)
  return 1
}

/** @returns the exit code. */
async function play(cases: readonly Case[], target: Target): Promise<number> {
  const count = { passed: 0, failed: 0, skipped: 0 }
  for (const { id, group, attack, must, page, run } of cases) {
    const verdict = await run(target).catch(verdictOf)
    const name = `${id} ${group}: ${attack}`
    if (verdict === 'pass') {
      count.passed += 1
      console.log(`pass ${name}`)
    } else if ('skip' in verdict) {
      count.skipped += 1
      console.log(`skip ${name} — ${verdict.skip}`)
    } else {
      count.failed += 1
      console.log(`FAIL ${name} — must: ${must}; got: ${verdict.got}; see ${page}`)
    }
  }
  console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
  return count.failed > 0 ? 1 : 0
}

function verdictOf(thrown: unknown): Verdict {
  if (thrown instanceof Skip) return { skip: thrown.message }
  if (thrown instanceof Fault) return { got: thrown.message }
  return { got: shown(`no answer (${at(thrown, 'code') ?? at(thrown, 'message') ?? thrown})`) }
}

/** Looks at the server and has the tool ask once. @returns the target, or why it is none. */
async function aim(url: URL, name: string, given: Json): Promise<Target | string> {
  const sends = async (shot: Shot) => {
    const address = shot.to === undefined ? url : new URL(shot.to, url)
    const [reply] = await patiently(async () => [await send(address, shot, shot.verb)])
    return reply as Reply
  }
  const discovered = await sends(message('server/discover'))
  if (kindOf(discovered) !== 'done')
    return `${url} does not speak revision 2026-07-28: ${describe(discovered)}`
  const tools = await allTools(sends)
  const tool = tools.find((candidate) => candidate.name === name)
  if (tool === undefined)
    return `${url} has no tool ${name}. It has: ${tools.map((t) => t.name).join(', ')}`

  let flows = 0
  const args = (): Json => {
    flows += 1
    const entries = Object.entries(given).map(([argument, value]) => {
      return [argument, IDEMPOTENCY_KEY.test(argument) ? `${value}-${process.pid}-${flows}` : value]
    })
    return Object.fromEntries(entries)
  }
  const call: Target['call'] = (args, more = {}, called = tool) => {
    const { headers, body } = message('tools/call', { name: called.name, arguments: args, ...more })
    return { headers: [...headers, ...paramHeaders(called.inputSchema, args)], body }
  }
  const asked = await sends(call(args()))
  const question = questionIn(asked)
  if (question === undefined)
    return `${name} has to ask a yes-or-no question, but came back with ${describe(asked)}`

  const target: Target = {
    ...question,
    url,
    tool,
    tools,
    capabilities: Object(at(discovered.body, 'result', 'capabilities')),
    args,
    call,
    done: once(() => confirmed(target)),
    send: async (shot) => flawless(await sends(shot), shot),
    converse: async (...script) => {
      const replies = await patiently(() => converse(url, script))
      return replies.map((reply) => flawless(reply))
    },
    abandon: (bytes) => abandon(url, bytes),
  }
  return target
}

/** Sends again whatever a rate limit has held back, when the server says that it may be. */
async function patiently(attempt: () => Promise<Reply[]>): Promise<Reply[]> {
  for (let waits = 0; ; waits++) {
    const replies = await attempt()
    const limited = replies.find(({ status }) => status === 429)
    const seconds = Number(limited?.headers['retry-after'])
    if (limited === undefined || Number.isNaN(seconds) || waits === MAX_WAITS) return replies
    await wait(Math.min(seconds, MAX_WAIT) * 1000)
  }
}

function flawless(reply: Reply, sent?: Shot): Reply {
  const flaw = flawOf(reply, sent)
  if (flaw !== undefined) throw new Fault(flaw)
  return reply
}

async function allTools(sends: (shot: Shot) => Promise<Reply>): Promise<Json[]> {
  const tools: Json[] = []
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const { body } = await sends(message('tools/list', cursor === undefined ? {} : { cursor }))
    const listed = at(body, 'result', 'tools')
    if (Array.isArray(listed)) tools.push(...listed)
    cursor = at(body, 'result', 'nextCursor')
    if (cursor === undefined) break
  }
  return tools
}

/** @returns the question with a yes-or-no field and answers to all questions; undefined when there is none. */
function questionIn(reply: Reply): Pick<Target, 'key' | 'form' | 'field' | 'yes'> | undefined {
  const forms = Object.entries(Object(at(reply.body, 'result', 'inputRequests'))).map(
    ([key, request]): [string, Json] => [key, Object(at(request, 'params', 'requestedSchema'))],
  )
  const yes = Object.fromEntries(
    forms.map(([key, form]) => [key, { action: 'accept', content: contentFor(form) }]),
  )
  for (const [key, form] of forms) {
    const fields = Object.entries(Object(form.properties)).filter(
      ([, field]) => at(field, 'type') === 'boolean',
    )
    const [field] = fields.find(([name]) => isRequired(form, name)) ?? fields[0] ?? []
    if (field !== undefined) return { key, form, field, yes: withYes(yes, key, field) }
  }
  return undefined
}

const isRequired = ({ required }: Json, field: string) =>
  Array.isArray(required) && required.includes(field)

/** The least that a form takes. */
function contentFor(form: Json): Json {
  const fields = Object.entries(Object(form.properties)).filter(([field]) => isRequired(form, field))
  return Object.fromEntries(fields.map(([field, schema]) => [field, sample(schema)]))
}

function withYes(answers: Json, key: string, field: string): Json {
  const { action, content } = Object(answers[key])
  return { ...answers, [key]: { action, content: { ...content, [field]: true } } }
}

/** Says yes, honestly. @returns the text of the result. @throws Fault when nothing was done. */
async function confirmed(target: Target): Promise<unknown> {
  const args = target.args()
  const asked = await target.send(target.call(args))
  const state = String(at(asked.body, 'result', 'requestState'))
  const reply = await target.send(retryOf(target, { args, state }, target.yes))
  if (kindOf(reply) === 'done') return textOf(reply)
  throw new Fault(`an honest yes is not served: ${describe(reply)}`)
}

/** The first outcome, however often it is asked for. */
function once<T>(run: () => Promise<T>): () => Promise<T> {
  let outcome: Promise<T> | undefined
  return () => {
    outcome ??= run()
    return outcome
  }
}
