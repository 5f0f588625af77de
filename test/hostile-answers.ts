/**
 * What comes back to the hostile cases: telling apart the ways in which a server can answer, and what has to
 * hold of an answer. Where the specification leaves a status or a text open, so does what is expected here;
 * what it never leaves open is that the action is not performed.
 */
import { at, type Reply } from '../client.ts'
import { type Shot, stateIn, type Target } from './hostile-requests.ts'
import { parsed } from './hostile-socket.ts'

export type Expectation = {
  readonly must: string
  readonly holds: (reply: Reply, sent: Shot, target: Target) => boolean | Promise<boolean>
}

/** `done` is a result that reports no error; what was done only {@link Target.done} tells. */
export type Kind = 'asked' | 'done' | 'failed' | 'error' | 'accepted' | 'turned away' | 'closed' | 'other'

export function kindOf({ status, body, text }: Reply): Kind {
  const { result, error } = Object(body)
  if (status === 0) return 'closed'
  if (Number.isInteger(at(error, 'code')) && result === undefined) return 'error'
  if (result !== undefined) {
    const type = at(result, 'resultType')
    if (status !== 200 || error !== undefined) return 'other'
    if (type === 'input_required') return 'asked'
    if (type !== 'complete') return 'other'
    return at(result, 'isError') === true ? 'failed' : 'done'
  }
  if (status === 202 && text === '') return 'accepted'
  return status >= 400 && status < 500 ? 'turned away' : 'other'
}

/** No answer at all: the connection closed. */
export const CLOSED: Reply = { status: 0, headers: {}, text: '', body: undefined }

export const textOf = (reply: Reply) => at(reply.body, 'result', 'content', '0', 'text')

/** In one line that is safe on a terminal. */
export function describe(reply: Reply): string {
  const { status, body, text } = reply
  const error = at(body, 'error')
  const what: { readonly [kind in Kind]: string } = {
    asked: 'a question',
    done: `a result: ${textOf(reply) ?? text}`,
    failed: `a tool error: ${textOf(reply)}`,
    error: `error ${at(error, 'code')}: ${at(error, 'message')}`,
    accepted: 'no body',
    'turned away': text || 'no body',
    closed: '',
    other: text || 'no body',
  }
  const kind = kindOf(reply)
  return kind === 'closed' ? 'a closed connection and no answer' : shown(`HTTP ${status}, ${what[kind]}`)
}

export function shown(text: string): string {
  const line = text.trim().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ')
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

/** @returns what no answer may be, whatever was sent; or undefined. */
export function flawOf(reply: Reply, sent?: Shot): string | undefined {
  const { status, body, text } = reply
  const [id, expected, code] = [at(body, 'id'), idOf(sent), at(body, 'error', 'code')]
  if (status >= 500) return describe(reply)
  if (id === null) return `"id": null in ${describe(reply)}`
  if (id !== undefined && expected !== undefined && id !== expected)
    return `another id in ${describe(reply)}`
  if (typeof code === 'number' && code < -32_022 && code > -32_100) return `the reserved code ${code}`
  if (/\n\s+at \S+ ?\(|node:internal/.test(typeof body === 'object' ? deepText(body) : text))
    return 'a stack trace'
  return undefined
}

/** Every text in a body, without the escapes of JSON. */
const deepText = (body: unknown): string =>
  typeof body === 'string' ? body : Object.values(Object(body)).map(deepText).join('\n')

/** The id of a request, where it has one that can be read. */
function idOf(sent: Shot | undefined): unknown {
  const body = typeof sent?.body === 'string' ? parsed(sent.body) : sent?.body
  const id = at(body, 'id')
  return typeof id === 'string' || Number.isSafeInteger(id) ? id : undefined
}

/** Whether the tool acted. */
export async function acted(reply: Reply, target: Target): Promise<boolean> {
  return kindOf(reply) === 'done' && textOf(reply) === (await target.done())
}

const of = (must: string, ...kinds: Kind[]): Expectation => ({
  must,
  holds: (reply) => kinds.includes(kindOf(reply)),
})

/** A JSON-RPC error, with the request's id wherever that can be read. */
function error(statuses: readonly number[], code: number, id: 'echoed' | 'absent' = 'echoed'): Expectation {
  return {
    must: `HTTP ${statuses.join(' or ')} and error ${code}${id === 'absent' ? ' without id' : ''}`,
    holds: ({ status, body }, sent) => {
      const { jsonrpc, id: echoed, error: given, ...rest } = Object(body)
      return (
        statuses.includes(status) &&
        jsonrpc === '2.0' &&
        echoed === (id === 'echoed' ? idOf(sent) : undefined) &&
        at(given, 'code') === code &&
        /^[^\r\n]+$/.test(String(at(given, 'message') ?? '')) &&
        Object.keys(rest).length === 0
      )
    },
  }
}

/** The same, and more of it. */
export function and(
  { must, holds }: Expectation,
  more: string,
  also: (reply: Reply, sent: Shot, target: Target) => boolean,
): Expectation {
  return {
    must: `${must}, ${more}`,
    holds: async (...all) => (await holds(...all)) && also(...all),
  }
}

export function or(one: Expectation, other: Expectation): Expectation {
  return {
    must: `${one.must}, or ${other.must}`,
    holds: async (...all) => (await one.holds(...all)) || other.holds(...all),
  }
}

/** The statuses for a code where the specification names none. */
const OPEN = [200, 400]

export const MISMATCH = error([400], -32_020)
export const MALFORMED = error([400], -32_602)
export const UNKNOWN_METHOD = error([404], -32_601)
export const NOT_JSON = error(OPEN, -32_700, 'absent')
export const NO_REQUEST = error(OPEN, -32_600)
export const NO_REQUEST_NO_ID = error(OPEN, -32_600, 'absent')
export const BAD_PARAMS = error(OPEN, -32_602)

export const INCAPABLE = and(error([400], -32_021), 'naming elicitation', ({ body }) => {
  return at(body, 'error', 'data', 'requiredCapabilities', 'elicitation') !== undefined
})

export const OTHER_VERSION = and(error([400], -32_022), 'with both versions', ({ body }, sent) => {
  const { supported, requested } = Object(at(body, 'error', 'data'))
  const sentVersion = at(sent.body, 'params', '_meta', 'io.modelcontextprotocol/protocolVersion')
  return Array.isArray(supported) && supported.includes('2026-07-28') && requested === sentVersion
})

/** What a client of an older revision has to be told, unless the server speaks that one too. */
export const OLD_CLIENT: Expectation = {
  must: 'HTTP 400 and an error that names 2026-07-28, or the old handshake',
  holds: ({ status, body }) => {
    const error = JSON.stringify(at(body, 'error')) ?? ''
    return (
      at(body, 'result', 'protocolVersion') !== undefined ||
      (status === 400 && error.includes('2026-07-28'))
    )
  },
}

export const FORBIDDEN: Expectation = {
  must: 'HTTP 403 without id and without CORS',
  holds: ({ status, headers, body }) =>
    status === 403 &&
    at(body, 'result') === undefined &&
    at(body, 'id') === undefined &&
    headers['access-control-allow-origin'] === undefined,
}

export const NO_SUCH_VERB: Expectation = {
  must: 'HTTP 405 with Allow: POST',
  holds: ({ status, headers }) => status === 405 && /\bPOST\b/.test(headers.allow ?? ''),
}

export const TURNED_AWAY: Expectation = {
  must: 'a 4xx status',
  holds: ({ status, body }) => status >= 400 && status < 500 && at(body, 'result') === undefined,
}
/** For what is hardly HTTP. */
export const TURNED_AWAY_OR_CLOSED = or(TURNED_AWAY, of('a closed connection', 'closed'))

export const SERVED = of('a result', 'done')
export const ACCEPTED = of('HTTP 202 without a body', 'accepted')
export const REFUSES = of('a refusal', 'error', 'failed', 'turned away')
export const NEVER_RUN = of('an error, or HTTP 202', 'error', 'turned away', 'accepted')

export const ASKS: Expectation = {
  must: 'the question',
  holds: (reply, _, { key, field }) => {
    const { inputRequests, requestState } = Object(at(reply.body, 'result'))
    const form = at(inputRequests, key, 'params', 'requestedSchema')
    const hasField = at(form, 'properties', field) !== undefined
    return kindOf(reply) === 'asked' && hasField && typeof requestState === 'string' && requestState !== ''
  },
}
export const ASKS_AGAIN = and(ASKS, 'with a fresh state', ({ body }, sent) => {
  return at(body, 'result', 'requestState') !== stateIn(sent)
})
export const ASKS_OR_REFUSES = or(ASKS, REFUSES)

/** A form that every client can show, and no hint that an interim answer may be cached. */
export const ASKS_WELL = and(ASKS, 'as a flat form, not to be cached', ({ body }, _, { key }) => {
  const result = at(body, 'result')
  const { method, params } = Object(at(result, 'inputRequests', key))
  const { type, properties } = Object(at(params, 'requestedSchema'))
  const primitive = ['string', 'number', 'integer', 'boolean', 'array']
  return (
    method === 'elicitation/create' &&
    [undefined, 'form'].includes(at(params, 'mode') as string | undefined) &&
    typeof at(params, 'message') === 'string' &&
    type === 'object' &&
    Object.values(Object(properties)).every((field) => primitive.includes(String(at(field, 'type')))) &&
    at(result, 'ttlMs') === undefined &&
    at(result, 'cacheScope') === undefined
  )
})

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

export const ASKS_VISIBLY = and(ASKS, 'with nothing invisible in it', ({ body }, _, { key }) => {
  return !INVISIBLE.test(String(at(body, 'result', 'inputRequests', key, 'params', 'message')))
})
export const SAYS_VISIBLY = and(SERVED, 'with nothing invisible in it', (reply) => {
  return !INVISIBLE.test(String(textOf(reply)))
})
export const NO_SESSION = and(ASKS, 'and no session', ({ headers }) => {
  return headers['mcp-session-id'] === undefined
})

export const ACTS: Expectation = { must: 'the action', holds: (reply, _, target) => acted(reply, target) }
export const ACTS_OR_REFUSES = or(ACTS, REFUSES)
/** A no, which is neither the action nor an error of the protocol. */
export const DECLINED: Expectation = {
  must: 'a result, and nothing done',
  holds: async (reply, _, target) =>
    kindOf(reply) === 'failed' || (kindOf(reply) === 'done' && !(await acted(reply, target))),
}
/** A no that may as well be asked about again. */
export const NOTHING_DONE = or(DECLINED, ASKS_OR_REFUSES)
