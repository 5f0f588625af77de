/**
 * What honest requests notice of a crowd: 500 clients that send a byte of their request each second,
 * and as many connections that send nothing.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { bytesOf, type Measured, openLoad, type Shot, warmUp } from './load.ts'
import type { Server, Starters } from './servers.ts'

export const SLOW = 500
export const IDLE = 500
const CONNECTIONS = 10
/** This often one of the slow ones sends its next byte, in milliseconds. */
const PACE_MS = 1000 / SLOW

export type CrowdRow = Readonly<Record<'alone' | 'crowded', Measured>>

export async function amongCrowd(start: Starters, rounds: number, seconds: number): Promise<CrowdRow[]> {
  const server = await start['release-ops']()
  const rows: CrowdRow[] = []
  try {
    await warmUp(server.pid, [(await server.shots())['first call']])
    for (let round = 1; round <= rounds; round += 1) {
      const alone = await measure(server, seconds)
      const leave = await gather(server.discover)
      rows.push({ alone, crowded: await measure(server, seconds) })
      leave()
    }
    return rows
  } finally {
    await server.stop()
  }
}

async function measure({ pid, shots }: Server, seconds: number): Promise<Measured> {
  const { run, end } = await openLoad(pid, (await shots())['first call'], CONNECTIONS)
  await run(seconds * 1000)
  return end()
}

/** @returns what makes the crowd leave. A slow sender whom the server gives up on comes back. */
async function gather(shot: Shot): Promise<() => void> {
  const { url } = shot
  const request = bytesOf(shot)
  let gone = false
  const crowd = new Set<Socket>()
  const slow: { socket: Socket; sent: number }[] = []

  async function join(): Promise<Socket> {
    const socket = connect(Number(url.port), url.hostname).on('error', () => {})
    socket.on('close', () => crowd.delete(socket)).resume()
    crowd.add(socket)
    await once(socket, 'connect')
    return socket
  }
  async function joinSlowly(): Promise<void> {
    const sender = { socket: await join(), sent: 0 }
    slow.push(sender)
    sender.socket.on('close', () => {
      slow.splice(slow.indexOf(sender), 1)
      if (!gone) void joinSlowly()
    })
  }

  await Promise.all(Array.from({ length: IDLE }, join))
  await Promise.all(Array.from({ length: SLOW }, joinSlowly))
  const began = performance.now()
  let bytes = 0
  const pace = setInterval(() => {
    for (const due = (performance.now() - began) / PACE_MS; bytes < due; bytes += 1) {
      const sender = slow[bytes % SLOW]
      if (sender === undefined) continue // it is on its way back
      sender.socket.write(request.subarray(sender.sent, sender.sent + 1))
      sender.sent += 1
    }
  }, PACE_MS)
  return () => {
    gone = true
    clearInterval(pace)
    for (const socket of crowd) socket.destroy()
  }
}
