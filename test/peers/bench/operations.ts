/** The five operations that are measured. */
import { at, type Json, type Message, message, paramHeaders, send } from '../../../client.ts'
import type { Shot } from './load.ts'

export const OPERATIONS = ['discover', 'list', 'first call', 'confirmed retry', 'refused retry'] as const
export type Operation = (typeof OPERATIONS)[number]
export type Shots = Readonly<Record<Operation, Shot>>

/** How a server refuses a state that it didn't write; all else every server answers alike. */
export type Refused = Pick<Shot, 'status' | 'marker'>
/** release-ops: a tool error that a model can read. */
export const TOOL_ERROR: Refused = { status: 200, marker: 'Confirmation expired or was tampered with' }

const CALL = { name: 'rollback_release', arguments: { service: 'checkout', version: 'v1.41.2' } }
const YES = { confirm: { action: 'accept', content: { confirm: true, reason: 'p99 regression' } } }
/** Of the tool's schema, what the request's headers depend on. */
const MIRRORED = { properties: { service: { 'x-mcp-header': 'Service' } } }

export function discoverShot(url: URL): Shot {
  return { url, message: request('server/discover'), status: 200, marker: '"supportedVersions"' }
}

/** Asks the server for a state, and builds the requests with it; they are good while it lives. */
export async function shotsFor(url: URL, refused: Refused = TOOL_ERROR): Promise<Shots> {
  const first = { url, message: call(), status: 200, marker: '"input_required"' }
  const answer = await send(url, first.message)
  const requestState = at(answer.body, 'result', 'requestState')
  if (typeof requestState !== 'string') throw new Error(`No state in: ${answer.text}`)
  const confirmed = call({ requestState, inputResponses: YES })
  const flipped = call({ requestState: withOneCharacterChanged(requestState), inputResponses: YES })
  const performed = '"Rolled checkout back to v1.41.2. Reason:'
  return {
    discover: discoverShot(url),
    list: { url, message: request('tools/list'), status: 200, marker: '"inputSchema"' },
    'first call': first,
    'confirmed retry': { url, message: confirmed, status: 200, marker: performed },
    'refused retry': { url, message: flipped, ...refused },
  }
}

function call(retry: Json = {}): Message {
  const { headers, body } = request('tools/call', { ...CALL, ...retry })
  return { headers: [...headers, ...paramHeaders(MIRRORED, CALL.arguments)], body }
}

/** The id is always the same, so that answers to one operation have one length. */
function request(method: string, params: Json = {}): Message {
  const { headers, body } = message(method, params)
  return { headers, body: { ...body, id: 1 } }
}

function withOneCharacterChanged(text: string): string {
  const middle = text.length >> 1
  return text.slice(0, middle) + (text[middle] === 'A' ? 'B' : 'A') + text.slice(middle + 1)
}
