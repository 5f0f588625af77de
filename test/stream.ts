/** An answer that arrives bit by bit, as a client sees a stream of events. */
import assert from 'node:assert/strict'
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { Message } from '../client.ts'

export type Stream = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The next JSON-RPC message, or undefined when the answer has ended. */
  readonly next: () => Promise<unknown>
  /** All that have not been read yet, up to the end. */
  readonly rest: () => Promise<unknown[]>
  /** Hangs up. */
  readonly hangUp: () => void
}

/** Sends a message on a connection of its own, or of the agent, and waits for the head of the answer. */
export async function openStream(url: URL, { headers, body }: Message, agent?: Agent): Promise<Stream> {
  const bytes = Buffer.from(JSON.stringify(body))
  const lines = [['Host', url.host], ['Content-Length', String(bytes.length)], ...headers].flat()
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', headers: lines, agent: agent ?? false }, resolve)
    outgoing.on('error', reject).end(bytes)
  })
  const messages = messagesOf(incoming)
  const next = async () => (await messages.next()).value
  const rest = async () => {
    const all: unknown[] = []
    for await (const message of messages) all.push(message)
    return all
  }
  const { statusCode: status = 0, headers: received } = incoming
  return { status, headers: received, next, rest, hangUp: () => incoming.destroy() }
}

/** Of an answer in JSON its one message, of a stream the data of each event; comments are skipped. */
async function* messagesOf(incoming: IncomingMessage): AsyncGenerator<unknown, undefined> {
  incoming.setEncoding('utf8')
  const isStream = incoming.headers['content-type'] === 'text/event-stream'
  let text = ''
  for await (const chunk of incoming) {
    text += chunk
    if (isStream && !chunk.includes('\n')) continue // or a long event would be searched again and again
    const events = isStream ? text.split('\n\n') : [text]
    text = events.pop() ?? ''
    for (const event of events) if (event !== ':') yield JSON.parse(dataOf(event))
  }
  if (!isStream) yield JSON.parse(text)
  else assert.equal(text, '', 'a stream ends with a whole event')
  return undefined
}

function dataOf(event: string): string {
  const [, data = ''] = /^event: message\ndata: ([^\n]*)$/.exec(event) ?? []
  assert.notEqual(data, '', `it is an event of one line of data: ${event}`)
  return data
}
