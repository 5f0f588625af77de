/** The fuzzer in short, and proof that it sees what is wrong with servers that are. */
import assert from 'node:assert/strict'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { listen, stop } from '../lib/lifecycle.ts'
import { fuzz, growthOf, startTarget, type Target } from './fuzz.ts'
import type { Issued } from './fuzz-requests.ts'
import { type Acted, composeFuzzed } from './fuzz-server.ts'
import { generate } from './fuzz-wire.ts'

const SEED = 4
/** Longest wait, in milliseconds; only a broken fuzzer reaches it. */
const PATIENT = { timeout: 120_000 }

test('2,000 hostile requests to a real server have the right answers and no effect', PATIENT, async (t) => {
  const target = await startTarget()
  t.after(target.end)
  const { failures, sent, answered, acted } = await fuzz(target, { seed: SEED, requests: 2000 })
  assert.deepEqual(failures, [])
  assert.ok(
    sent >= 2000 && answered > 1500 && acted > 100,
    `${sent} sent, ${answered} answered, ${acted} acted`,
  )
})

const ISSUED: readonly Issued[] = ['alice', 'bob'].flatMap((user) => [
  {
    state: `s1.${user}`,
    tool: 'rollback_release',
    args: { service: 'checkout', version: 'v1' },
    user: 'alice',
  },
])

test('a seed makes the same requests again, and another seed makes others', () => {
  const bytes = (seed: number) =>
    Array.from({ length: 200 }, (_, number) => String(Buffer.concat(generate(seed, number, ISSUED).writes)))
  assert.deepEqual(bytes(1), bytes(1))
  const [one, other] = [bytes(1), bytes(2)]
  assert.ok(one.filter((text, index) => text === other[index]).length < 10, 'they are the same')
  assert.ok(new Set(one).size > 190, 'all but those without a body differ from each other')
})

test('the heap is compared from the first quarter on', () => {
  assert.equal(growthOf([1, 5, 6, 7, 8, 7, 6, 9]), 3)
})

type Reply = { status: number; body: string }
type Change = (reply: Reply, request: IncomingMessage) => Reply | undefined

/** A server that changes each answer before it is sent; without an answer it hangs up. */
async function changing(t: TestContext, change: Change, acts: Acted[] = []): Promise<Target> {
  const { http, obey } = await composeFuzzed()
  http.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const [writeHead, end] = [response.writeHead.bind(response), response.end.bind(response)]
    let status = 0
    let headers: OutgoingHttpHeaders = {}
    let body = ''
    const replacements = {
      writeHead: (code: number, lines: OutgoingHttpHeaders) => {
        status = code
        headers = lines
      },
      write: (text: string) => {
        body += text
      },
      end: (text = '') => {
        const reply = change({ status, body: body + text }, request)
        if (reply === undefined) return request.socket.destroy()
        const length = status === 204 ? {} : { 'Content-Length': Buffer.byteLength(reply.body) }
        writeHead(reply.status, { ...headers, ...length })
        return end(reply.body)
      },
    }
    Object.assign(response, replacements)
  })
  const url = new URL(`${await listen(http.server, 0, '127.0.0.1')}/mcp`)
  t.after(() => stop(http, 0))
  return {
    url,
    begin: async (batch) => {
      obey({ begin: batch })
    },
    report: async () => {
      const { acted = [], failures = [], heap = 0 } = obey({ report: true }) ?? {}
      return { acted: [...acted, ...acts.splice(0)], failures, heap }
    },
  }
}

const WRONGS: readonly { wrong: string; change: Change; seen: RegExp }[] = [
  {
    wrong: 'answers 500 where a method is unknown',
    change: ({ status, body }) => ({ status: status === 404 ? 500 : status, body }),
    seen: /answer 1: status 500/,
  },
  {
    wrong: 'forgets the id of an error',
    change: ({ status, body }) => ({ status, body: body.replace(/"id":[^{}]*,("error")/, '$1') }),
    seen: /error -\d+ with id undefined instead of/,
  },
  {
    wrong: 'gives an id to what can not be parsed',
    change: ({ status, body }) => ({
      status,
      body: body.replace('"error":{"code":-32700', '"id":null,$&'),
    }),
    seen: /error -32700 with id null instead of undefined/,
  },
  {
    wrong: 'answers with the id of another request',
    change: ({ status, body }) => ({ status, body: body.replace(/"id":\d+,"result"/, '"id":1,"result"') }),
    seen: /a result for id 1 instead of/,
  },
  {
    wrong: 'shows where it failed',
    change: ({ status, body }) => ({ status, body: body.replace('Parse error', 'SyntaxError: bad') }),
    seen: /it tells "SyntaxError"/,
  },
  {
    wrong: 'sends half of its JSON',
    change: ({ status, body }) => ({ status, body: body.replace(/"code":-32601.*/, '') }),
    seen: /no JSON-RPC/,
  },
  {
    wrong: 'has no word for a wrong content type',
    change: (reply) => (reply.status === 415 ? undefined : reply),
    seen: /0 answers to 1 requests/,
  },
  {
    wrong: 'knows header names in one case only',
    change: ({ status, body }, { rawHeaders }) => {
      if (!rawHeaders.some((name) => name !== 'Mcp-Method' && /^mcp-method$/i.test(name)))
        return { status, body }
      const error = '"error":{"code":-32020,"message":"Header mismatch"}}'
      return { status: body.includes('"result"') ? 400 : status, body: body.replace(/"result":.*/, error) }
    },
    seen: /answer 1: expected \w+, got/,
  },
  {
    wrong: 'says that it has acted after a no',
    change: ({ status, body }) => ({ status, body: body.replaceAll('cancelled', 'performed') }),
    seen: /expected cancelled, got|it acted, and nobody approved that/,
  },
]

for (const { wrong, change, seen } of WRONGS) {
  test(`it sees a server that ${wrong}`, PATIENT, async (t) => {
    const { failures } = await fuzz(await changing(t, change), { seed: SEED, requests: 2000 })
    assert.match(failures.join('\n'), seen)
    assert.match(failures[0] ?? '', /^request \d+ \(/)
  })
}

test('it sees a server that acts when nobody has approved anything', PATIENT, async (t) => {
  const acts: Acted[] = []
  const values = { service: 'checkout', version: 'v0.0.1' }
  const target = await changing(
    t,
    (reply) => {
      if (reply.body.includes('tampered')) acts.push({ user: 'alice', values, reason: 'none' })
      return reply
    },
    acts,
  )
  const { failures } = await fuzz(target, { seed: SEED, requests: 500 })
  assert.match(
    failures[0] ?? '',
    /nobody approved \{"user":"alice","values":\{"service":"checkout","version":"v0\.0\.1"\}/,
  )
})

test('it sees a server that acts on each yes twice', PATIENT, async (t) => {
  const target = await changing(t, (reply) => reply)
  const twice = async () => {
    const { acted, ...report } = await target.report()
    return { ...report, acted: [...acted, ...acted] }
  }
  const { failures } = await fuzz({ ...target, report: twice }, { seed: SEED, requests: 500 })
  assert.match(failures[0] ?? '', /nobody approved \{"user":"\w+","values":\{"service"/)
})

test('it sees a server that has ended, and which requests were on their way', PATIENT, async () => {
  const target = await startTarget()
  const report = async () => {
    const happened = await target.report()
    setImmediate(target.end) // as the first batch is being sent
    return happened
  }
  const { failures } = await fuzz({ ...target, report }, { seed: SEED, requests: 500 })
  assert.match(failures.join('\n'), /0 answers to \d requests/)
  assert.match(failures.join('\n'), /The server has ended: exit code 0\./)
})
