/** The honest requests that the fuzzer starts from: every kind that this server answers. */
import { type Header, type Json, message, paramHeaders } from '../client.ts'
import { type Written, written } from './fuzz-json.ts'
import type { Random } from './fuzz-random.ts'

/** Who may call; carol lacks the scope. */
export const TOKENS = { alice: 'token-of-alice', bob: 'token-of-bob', carol: 'token-of-carol' } as const
export type User = keyof typeof TOKENS

export const ORIGIN = 'http://localhost:5173'

/** A question as the server has put it: what its state may approve. */
export type Issued = {
  readonly state: string
  readonly tool: string
  readonly args: Json
  readonly user: User
}

/** A request before it is bytes. A mutation changes it in place. */
export type Draft = {
  verb: string
  target: string
  /** One character a byte. */
  headers: Header[]
  body: Written | undefined
  /** What an honest spelling of it is answered with. */
  expect: Expected
}

export type Expected =
  | 'discovered'
  | 'listed'
  | 'asked'
  | 'performed'
  | 'cancelled'
  | 'settled'
  | 'accepted'
  | 'healthy'
  | 'preflight'

/** Arguments whose headers are plain, need Base64, or look as if they were Base64. */
export const ROLLBACKS: readonly Json[] = [
  { service: 'checkout', version: 'v1.41.2' },
  { service: 'checkout', version: 'v1.0.0' },
  { service: 'naïve-サービス', version: '2026.12.01-😀' },
  { service: ' padded ', version: '__proto__' },
  { service: '=?base64?Y2hlY2tvdXQ=?=', version: '"\\\n' },
]
const SCALES = 4

/** The arguments that are asked about anew in each batch: an outcome of `scale_service` is kept. */
export function questionsOf(batch: number): { tool: string; args: Json }[] {
  const scales = Array.from({ length: SCALES }, (_, index): Json => {
    return { service: 'checkout', replicas: index + 2, idempotency_key: `key-${batch}-${index}` }
  })
  return [
    ...ROLLBACKS.map((args) => ({ tool: 'rollback_release', args })),
    ...scales.map((args) => ({ tool: 'scale_service', args })),
  ]
}

/** As `tools/list` has them. */
const MIRRORED = { service: { 'x-mcp-header': 'Service' }, replicas: { 'x-mcp-header': 'Replicas' } }

/** A call of a tool, with the headers that mirror its arguments. */
export function callDraft(id: unknown, tool: string, args: Json, user: User, retry: Json = {}): Draft {
  const mirrored = paramHeaders({ properties: MIRRORED }, args)
  return draft(id, 'tools/call', 'asked', user, { name: tool, arguments: args, ...retry }, mirrored)
}

function draft(
  id: unknown,
  method: string,
  expect: Expected,
  user: User,
  params: Json = {},
  more: Header[] = [],
): Draft {
  const { headers, body } = message(method, params)
  const signed: Header = ['Authorization', `Bearer ${TOKENS[user]}`]
  const bytes = [...headers, ...more, signed].map(([name, value]): Header => [name, value])
  return { verb: 'POST', target: '/mcp', headers: bytes, body: written({ ...body, id }), expect }
}

/** An honest request of any kind, the risky one the most often. @param issued the states of this batch. */
export function honest(random: Random, number: number, issued: readonly Issued[]): Draft {
  const id = random.chance(30) ? `request ${number} "\\😀` : number
  const user = random.pick<User>(['alice', 'bob'])
  const kind = random.below(100)
  if (kind < 5) return draft(id, 'server/discover', 'discovered', user)
  if (kind < 10) return draft(id, 'tools/list', 'listed', user)
  if (kind < 13) return draftNotification(user)
  if (kind < 15) return bare('GET', '/healthz', 'healthy', [])
  if (kind < 17) {
    const asks: Header[] = [
      ['Origin', ORIGIN],
      ['Access-Control-Request-Method', 'POST'],
      ['Access-Control-Request-Headers', 'mcp-method, mcp-param-service'],
    ]
    return bare('OPTIONS', '/mcp', 'preflight', asks)
  }
  const question = random.any(issued)
  if (question === undefined) return draft(id, 'server/discover', 'discovered', user)
  const { tool, args, state: requestState } = question
  const scales = tool === 'scale_service'
  if (kind < 30) {
    return { ...callDraft(id, tool, args, question.user), expect: scales ? 'settled' : 'asked' }
  }
  const yes = random.chance(80)
  const reason = scales ? {} : { reason: `request ${number}` }
  const confirm = yes ? { action: 'accept', content: { confirm: true, ...reason } } : noOf(random)
  const retry = callDraft(id, tool, args, question.user, { requestState, inputResponses: { confirm } })
  return { ...retry, expect: scales ? 'settled' : yes ? 'performed' : 'cancelled' }
}

function noOf(random: Random): Json {
  const content = { confirm: false }
  return random.pick<Json>([{ action: 'decline' }, { action: 'cancel' }, { action: 'accept', content }])
}

function draftNotification(user: User): Draft {
  const told = draft(0, 'notifications/cancelled', 'accepted', user, { requestId: 1 })
  const body = told.body
  if (body !== undefined && 'members' in body) {
    body.members = body.members.filter(({ name }) => name !== '"id"')
  }
  return told
}

const bare = (verb: string, target: string, expect: Expected, headers: Header[]): Draft => {
  return { verb, target, headers, body: undefined, expect }
}
