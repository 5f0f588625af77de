/**
 * Half a minute in production: a real nginx in front of three real server processes with a real
 * Redis, people who confirm all the time, an instance that is killed while it acts, and a secret that
 * is rotated. Nobody is refused, and nothing that counts once is done twice.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startNginx } from './nginx.ts'
import { people } from './people.ts'
import { end, until } from './processes.ts'
import { redisIn, WITH_REDIS_PACKAGE } from './redis-server.ts'
import { type Replica, startReplicas } from './replicas.ts'

/** How long people confirm at least, in milliseconds, and how many people. */
const LOAD_MS = 30_000
const PEOPLE = 4
/** How many more confirmations there are to be before the next phase of the rotation. */
const STEADY = 25

const OLD = 'the old secret, which is of 32 bytes at least'
const NEW = 'the new secret, which is of 32 bytes at least'
/** The three phases, as README has them. */
const BEFORE = { STATE_SECRET: OLD }
const FIRST = { STATE_SECRET: OLD, STATE_SECRET_ACCEPTED: NEW }
const SECOND = { STATE_SECRET: NEW, STATE_SECRET_ACCEPTED: OLD }
const THIRD = { STATE_SECRET: NEW }

/** The action: notes the service and which process acts. `held` then goes on while there is a second file. */
const COMMAND =
  'echo "$RELEASE_SERVICE $PPID" >> "$0"; while test "$RELEASE_SERVICE" = held -a -e "$1"; do sleep 0.02; done'
/** In seconds. An outcome counts as unknown when it is 10 more overdue. */
const ACTION_TIMEOUT_SECONDS = '3'

/** The lines that the action left. */
function actionsIn(file: string): { readonly service: string; readonly pid: number }[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  return lines.map((line) => {
    const [service = '', pid] = line.split(' ')
    return { service, pid: Number(pid) }
  })
}

/** The key ids that a process says it has, the sealing one first. */
const keysOf = ({ instance }: Replica) => /^State keys.*: (.*)$/m.exec(instance().stderr())?.[1]?.split(' ')

const NAME =
  'while an instance is killed and the secret is rotated, every honest yes is done, and none twice'
test(NAME, { timeout: 10 * LOAD_MS }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rotation-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [done, hold] = [join(folder, 'done'), join(folder, 'hold')]
  writeFileSync(hold, '')
  const redis = redisIn(t, folder)
  await redis.start()
  const shared = {
    REDIS_URL: redis.url,
    SCALE_COMMAND: JSON.stringify(['/bin/sh', '-c', COMMAND, done, hold]),
    ACTION_TIMEOUT_SECONDS,
    NODE_OPTIONS: WITH_REDIS_PACKAGE,
  }
  const replicas = await startReplicas(t, 3, { ...shared, ...BEFORE })
  const nginx = await startNginx(t, 'round-robin.conf', {
    instances: replicas.map(({ address }) => address),
  })
  const keysBefore = replicas.flatMap(keysOf)

  const gone = new AbortController()
  t.after(() => gone.abort())
  const timesOf = (service: string) => actionsIn(done).filter((action) => action.service === service).length
  const { tally, scale, rollBack, confirm, settled } = await people(nginx.url, timesOf, gone.signal)
  const began = performance.now()
  const over = new AbortController()
  const load = Promise.all(Array.from({ length: PEOPLE }, () => confirm(over.signal)))
  load.catch(() => {}) // awaited below, unless something fails before

  const steadily = async () => {
    const goal = tally.confirmed + STEADY
    await until(t, () => tally.confirmed >= goal || tally.refusals.length > 0)
    assert.deepEqual(tally.refusals, [])
  }
  let starts = 0
  /** It counts as restarted when it was given something to do again. */
  const startAgain = async (replica: Replica, secrets: Record<string, string>) => {
    starts++
    await replica.start({ ...shared, ...secrets })
    await until(t, () => replica.instance().stderr().includes('"outcome":"acted"'))
  }
  const restart = async (replica: Replica, secrets: Record<string, string>) => {
    assert.equal(await replica.instance().stop(), 0)
    await startAgain(replica, secrets)
  }

  await steadily()
  const sealedBefore = [await scale(), await scale(), await rollBack(), await rollBack()]
  const held = (await scale('held'))()
  await until(t, () => timesOf('held') > 0)
  const { pid } = actionsIn(done).find(({ service }) => service === 'held') ?? {}
  const victim = replicas.find(({ instance }) => instance().process.pid === pid)
  assert.ok(victim, 'one of the three acts')
  await end(victim.instance().process)
  rmSync(hold)
  await startAgain(victim, FIRST)
  for (const replica of replicas) if (replica !== victim) await restart(replica, FIRST)

  await steadily()
  for (const replica of replicas) await restart(replica, SECOND)
  for (const yes of sealedBefore) await yes() // of instances that all seal with the new one

  // What README's 30 minutes are for: whatever was begun before has come to its end.
  await settled()
  await held
  assert.ok(tally.unknown.includes('held'), 'nobody can say what came of it')
  for (const replica of replicas) await restart(replica, THIRD)

  await steadily()
  await until(t, () => performance.now() - began >= LOAD_MS)
  over.abort()
  await load
  t.diagnostic(
    `${tally.confirmed} confirmations in ${Math.round((performance.now() - began) / 1000)} s, ` +
      `${starts} starts, ${tally.refusals.length} refusals, ${tally.unavailable} times 503, ` +
      `${tally.unanswered} unanswered requests sent again, unknown outcomes: ${tally.unknown.join(', ')}`,
  )

  assert.deepEqual(tally.refusals, [])
  const actions = actionsIn(done).map(({ service }) => service)
  const nothing = tally.unknown.filter((service) => timesOf(service) === 0) // and was then asked again
  const expected = tally.scaled.filter((service) => !nothing.includes(service))
  assert.deepEqual(actions.sort(), expected.sort(), 'each approval acted once, the killed one too')
  const keys = new Set(replicas.flatMap(keysOf))
  assert.equal(keys.size, 1)
  assert.ok(!keysBefore.some((key) => keys.has(key)), 'all have the new secret alone')
})
