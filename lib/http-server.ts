/**
 * The socket side of HTTP: Node's server with its deadlines, one exchange for each request, the
 * errors that nobody foresaw, and the log line.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { departures } from './departure.ts'
import { Exchange } from './exchange.ts'
import type { Log } from './log.ts'
import { answerParserErrors } from './parser-errors.ts'
import { CODE } from './protocol.ts'
import { Refusal } from './refusal.ts'
import { type Reply, refusalReply } from './reply.ts'

/** Throws a Refusal to refuse. */
export type Answer = (exchange: Exchange) => Promise<Reply>

export type HttpServer = {
  readonly server: Server
  /** How many admitted requests are being served right now. */
  readonly serving: () => number
  /** Whether an answer, or a part of one, waits for a client that reads it slowly. */
  readonly leaving: () => boolean
  /** From now on every reply closes its connection. */
  readonly drain: () => void
}

/** Row 8: a request must have arrived in full after this long. */
const ARRIVAL_MS = 20_000
/** Longer than the 60 s that proxies and pools keep an idle connection, so that they close first. */
const KEEP_ALIVE_MS = 65_000

/**
 * @param arrivalMs how long a request may take to arrive, in milliseconds.
 * @returns the server, not yet listening.
 */
export function httpServer(answer: Answer, log: Log, arrivalMs = ARRIVAL_MS): HttpServer {
  const open = new Set<Exchange>()
  /** The last request of each connection, once it has brought one. */
  const last = new Map<Duplex, Exchange | undefined>()
  const depart = departures()
  let draining = false

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now()
    const exchange = new Exchange(request, response)
    open.add(exchange)
    last.set(request.socket, exchange)
    let reply: Reply
    try {
      reply = await answer(exchange)
    } catch (thrown) {
      reply = refuse(thrown, exchange)
    }
    depart(() => leave(exchange, reply, started))
  }

  function leave(exchange: Exchange, reply: Reply, started: number): void {
    open.delete(exchange)
    // Only the last answer may close the connection, or those behind it would be lost.
    exchange.send(reply, draining && last.get(exchange.request.socket) === exchange)
    const { method, tool, outcome = 'ok' } = exchange.note
    log.request?.({ method, tool, status: reply.status, outcome, ms: since(started) })
  }

  /** Whatever is no refusal was not foreseen: the client learns nothing but that it happened. */
  function refuse(thrown: unknown, { note, serving }: Exchange): Reply {
    const foreseen = thrown instanceof Refusal
    if (!foreseen) log.failure(thrown)
    const refusal = foreseen ? thrown : internalError()
    note.outcome ??= refusal.reason
    return refusalReply(refusal.to(refusal.id ?? serving))
  }

  const server = createServer({
    requestTimeout: arrivalMs,
    headersTimeout: arrivalMs,
    connectionsCheckingInterval: Math.min(1000, arrivalMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
  })
  server.maxHeadersCount = 0 // or Node drops lines after the 1000th unseen; their size is bounded anyway
  server.on('connection', (socket: Socket) => {
    last.set(socket, undefined)
    socket.once('close', () => last.delete(socket))
  })
  server.on('request', handle)
  server.on('checkExpectation', handle) // or Node would answer 417 before any of our checks
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    // Or Node would hang up without an answer. Its parser lets go of the connection, so it ends here.
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', () => socket.destroySoon())
    void handle(request, response)
  })
  answerParserErrors(server, (socket) => last.get(socket))
  return {
    server,
    serving: () => [...open].filter(({ serving }) => serving !== undefined).length,
    leaving: () => [...last.keys()].some(({ writableLength }) => writableLength > 0),
    drain: () => {
      draining = true
    },
  }
}

/** @returns milliseconds, to the microsecond. */
function since(started: number): number {
  return Math.round((performance.now() - started) * 1000) / 1000
}

function internalError(): Refusal {
  return new Refusal(500, { code: CODE.internalError, message: 'Internal error' }, 'internal error')
}
