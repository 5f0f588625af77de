/**
 * A server's first and last moments: taking its port, and letting go of it without dropping an
 * answer that somebody is waiting for.
 */
import type { Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import type { Config } from './config.ts'
import type { HttpServer } from './http-server.ts'

/** How long a stop waits for requests that are still arriving or answers still leaving. */
const GRACE_MS = 2500
/** How much longer than its limit an action takes that has to be ended by force, in milliseconds. */
const OVERRUN_MS = 3000
/** How often a stop looks whether the last action has ended. */
const POLL_MS = 50

/** What to do about a port or address that can't be had, by Node's error code. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    'EADDRINUSE',
    'it is taken. Stop the program that has it, or set PORT to another one; PORT=0 picks a free one.',
  ],
  ['EACCES', 'this user may not. Set PORT to one above 1023.'],
  ['EADDRNOTAVAIL', 'this machine has no such address. Set HOST to one it has, such as 127.0.0.1.'],
  ['ENOTFOUND', 'that name has no address. Set HOST to an address, such as 127.0.0.1.'],
])

/**
 * @returns the URL of the bound address.
 * @throws Error with one sentence that says what to do.
 */
export function listen(server: Server, port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const remedy = REMEDIES.get(error.code ?? '') ?? `${error.message}.`
      reject(new Error(`Can't listen on port ${port} of ${host}: ${remedy}`))
    })
    server.listen(port, host, () => resolve(originOf(server.address())))
  })
}

function originOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port.')
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return `http://${host}:${address.port}`
}

/** Listens, says so on stdout, and stops at the first signal; a second one ends the process at once. */
export async function runUntilSignal(http: HttpServer, { port, host, actionMs }: Config): Promise<void> {
  let stopping = false
  const onSignal = () => {
    if (stopping) process.exit(1)
    stopping = true
    void stop(http, actionMs).then(() => process.exit(0))
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal)
  process.stdout.on('error', () => {}) // nobody reads it any more
  process.stderr.on('error', () => {})
  process.stdout.write(`MCP on ${await listen(http.server, port, host)}/mcp\n`)
}

/**
 * Stops accepting, answers what runs, and returns when that is done: soon while nothing acts, and
 * when the last action ends otherwise, whose outcome nobody could find out later.
 * @param actionMs the longest that an action may take, in milliseconds.
 */
export async function stop(
  { server, serving, leaving, drain }: HttpServer,
  actionMs: number,
): Promise<void> {
  const started = Date.now()
  let closed = false
  drain()
  // Not the close of node:http: that hangs up also where an answer has ended and is still leaving.
  const closing = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  void closing.then(() => {
    closed = true
  })
  while (
    !(closed && serving() === 0) &&
    Date.now() - started <= (serving() > 0 ? actionMs + OVERRUN_MS : GRACE_MS)
  ) {
    if (!leaving()) server.closeIdleConnections()
    const pause = new Promise((resolve) => setTimeout(resolve, POLL_MS))
    await (closed ? pause : Promise.race([closing, pause]))
  }
  server.closeAllConnections()
}
