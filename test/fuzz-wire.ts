/**
 * From a request to the bytes that are sent, and the ways to send it: in pieces, in chunks, broken, several at
 * once, or not to the end.
 */
import type { Header } from '../client.ts'
import { write } from './fuzz-json.ts'
import { respell, spoil, textOf } from './fuzz-mutations.ts'
import { Random } from './fuzz-random.ts'
import { type Draft, type Expected, honest, type Issued } from './fuzz-requests.ts'

/** One request as it was written, for whoever judges the answer. */
export type Request = {
  readonly verb: string
  readonly target: string
  /** Host and framing are not among them. */
  readonly headers: readonly Header[]
  readonly body: Buffer
  /** Set while nothing but its spelling has been changed. */
  readonly expect: Expected | undefined
}

export type Sent = {
  readonly number: number
  /** More than one only when they are sent at once. */
  readonly requests: readonly [Request, ...Request[]]
  /** What is written, piece by piece. */
  readonly writes: readonly Buffer[]
  /**
   * Whole requests are all answered. After broken bytes the server may close, and is told at once that no
   * more will come. After a hang-up nobody listens.
   */
  readonly manner: 'whole' | 'broken' | 'hang-up'
}

/** An honest request, on its own. */
export function unspoiled(number: number, { body, ...draft }: Draft): Sent {
  const one = { ...draft, body: Buffer.from(body === undefined ? '' : write(body)) }
  return { number, requests: [one], writes: [plain(one)], manner: 'whole' }
}

/** The same for the same seed, number and states. */
export function generate(seed: number, number: number, issued: readonly Issued[]): Sent {
  const random = new Random(seed, number)
  const manner = random.below(100)
  if (manner < 78) {
    const one = request(random, number, issued)
    const bytes = random.chance(15) ? chunked(one, random) : plain(one)
    return { number, requests: [one], writes: pieces(bytes, random), manner: 'whole' }
  }
  if (manner < 86) {
    const first = request(random, number, issued)
    const rest = Array.from({ length: 1 + random.below(3) }, () => request(random, number, issued))
    const bytes = Buffer.concat([first, ...rest].map(plain))
    return { number, requests: [first, ...rest], writes: pieces(bytes, random), manner: 'whole' }
  }
  const one = request(random, number, issued)
  if (manner < 90) {
    const bytes = plain(one)
    const sent = random.chance(40) ? bytes : bytes.subarray(0, random.below(bytes.length))
    return { number, requests: [one], writes: pieces(sent, random), manner: 'hang-up' }
  }
  const bytes = random.pick(BREAKS)(one, random)
  return { number, requests: [one], writes: pieces(bytes, random), manner: 'broken' }
}

function request(random: Random, number: number, issued: readonly Issued[]): Request {
  const draft = honest(random, number, issued)
  respell(draft, random, issued)
  const spoiled = random.chance(75)
  if (spoiled) spoil(draft, random, issued)
  const { verb, target, headers, body, expect } = draft
  const bytes = Buffer.from(body === undefined ? '' : textOf(body, random))
  const garbled = spoiled && bytes.length > 0 && random.chance(10)
  return {
    verb,
    target,
    headers,
    body: garbled ? changed(bytes, random) : bytes,
    expect: spoiled ? undefined : expect,
  }
}

/** A few bytes are others, missing or too many. */
function changed(bytes: Buffer, random: Random): Buffer {
  let result = bytes
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = random.below(result.length + 1)
    const [before, after] = [result.subarray(0, at), result.subarray(at)]
    const byte = Buffer.from([random.below(256)])
    const how = random.below(4)
    if (how === 0) result = Buffer.concat([before, byte, after.subarray(1)])
    else if (how === 1) result = Buffer.concat([before, byte, after])
    else if (how === 2) result = Buffer.concat([before, after.subarray(1 + random.below(8))])
    else
      result = Buffer.concat([
        before,
        Buffer.from([(after[0] ?? 0) ^ (1 << random.below(8))]),
        after.subarray(1),
      ])
  }
  return result
}

const HOST: Header = ['Host', 'localhost']
const length = ({ body }: Request): Header => ['Content-Length', String(body.length)]

/** @param framing the lines that say who is asked and where the body ends. */
function head(
  { verb, target, headers }: Request,
  framing: readonly Header[],
  version = 'HTTP/1.1',
): Buffer {
  const lines = [...framing, ...headers].map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${verb} ${target} ${version}\r\n${lines.join('')}\r\n`, 'latin1')
}

const framed = (one: Request, framing: readonly Header[], body = one.body) =>
  Buffer.concat([head(one, framing), body])

const plain = (one: Request) => framed(one, one.body.length === 0 ? [HOST] : [HOST, length(one)])

const CHUNKED: Header = ['Transfer-Encoding', 'chunked']

/** @param spell writes one chunk. */
function chunks(body: Buffer, random: Random, spell = chunk): Buffer {
  const parts: Buffer[] = []
  for (let from = 0; from < body.length; ) {
    const size = 1 + random.below(Math.min(500, body.length - from))
    parts.push(spell(body.subarray(from, from + size)))
    from += size
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function chunk(part: Buffer, extension = ''): Buffer {
  const size = part.length.toString(16)
  return Buffer.concat([Buffer.from(`${size}${extension}\r\n`), part, Buffer.from('\r\n')])
}

function chunked(one: Request, random: Random): Buffer {
  const extension = random.pick(['', '', ';a=b', ';a="b c"'])
  return framed(
    one,
    [HOST, CHUNKED],
    chunks(one.body, random, (part) => chunk(part, extension)),
  )
}

function pieces(bytes: Buffer, random: Random): Buffer[] {
  if (!random.chance(10)) return [bytes]
  const cuts = Array.from({ length: 1 + random.below(4) }, () => random.below(bytes.length + 1))
  const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length]
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index] ?? 0, end))
}

type Break = (one: Request, random: Random) => Buffer

/** The head alone: from a body whose bytes are others nobody could tell which id is right. */
function changedHead(one: Request, random: Random): Buffer {
  return Buffer.concat([changed(head(one, [HOST, length(one)]), random), one.body])
}

/** Requests whose end, or beginning, two parsers may see in two places. */
const BREAKS: readonly Break[] = [
  changedHead,
  function changedSizes(one, random) {
    const spell = (part: Buffer) => {
      const size = changed(Buffer.from(`${part.length.toString(16)}\r\n`), random)
      return random.chance(70) ? chunk(part) : Buffer.concat([size, part, Buffer.from('\r\n')])
    }
    return framed(one, [HOST, CHUNKED], chunks(one.body, random, spell))
  },
  (one, random) => plain(one).subarray(0, random.below(plain(one).length)),
  (one, random) => Buffer.concat([plain(one), changedHead(one, random)]),
  function badLength(one, random) {
    const size = one.body.length
    const texts = [
      `+${size}`,
      `-${size}`,
      `0x${size.toString(16)}`,
      `${size}, ${size}`,
      '1e3',
      '',
      `${size} 1`,
    ]
    const numbers = [
      size + 1,
      size + 100_000,
      Math.max(0, size - 1),
      0,
      2 ** 53,
      '9'.repeat(30),
      `0${size}`,
    ]
    const value = String(random.any([...texts, ...numbers]))
    return framed(one, [HOST, ['Content-Length', value]])
  },
  function twoLengths(one, random) {
    const other: Header = ['Content-Length', String(one.body.length + random.below(3))]
    return framed(one, [HOST, length(one), other])
  },
  function bothFramings(one, random) {
    return framed(
      one,
      [HOST, length(one), CHUNKED],
      random.chance(50) ? one.body : chunks(one.body, random),
    )
  },
  function otherCodings(one, random) {
    const values = [
      'gzip, chunked',
      'chunked, identity',
      'xchunked',
      'chunked, chunked',
      '\tchunked',
      'Chunked',
    ]
    const value = random.pick([...values, 'identity', ''])
    return framed(one, [HOST, ['Transfer-Encoding', value]], chunks(one.body, random))
  },
  function badChunks(one, random) {
    const spell = random.pick<(part: Buffer) => Buffer>([
      (part) => chunk(part, random.pick([';'.repeat(100), `;${'x'.repeat(20_000)}`, '\n', ' ', ';\0'])),
      (part) =>
        Buffer.concat([Buffer.from(`${(part.length + 1).toString(16)}\r\n`), part, Buffer.from('\r\n')]),
      (part) => Buffer.concat([Buffer.from(`${part.length.toString(16)}\n`), part, Buffer.from('\n')]),
      (part) =>
        Buffer.concat([
          Buffer.from(random.pick(['FFFFFFFFFFFFFFFFF\r\n', '-1\r\n', 'g\r\n', '0x5\r\n'])),
          part,
        ]),
      (part) => Buffer.concat([chunk(part), Buffer.from('0\r\nTrailer: x\r\nContent-Length: 5\r\n\r\n')]),
    ])
    return framed(one, [HOST, CHUNKED], chunks(one.body, random, spell))
  },
  function badHeaderLine(one, random) {
    const lines = [
      'X\0: 1',
      'X: \0',
      'X : 1',
      ': 1',
      'X',
      'X: 1\r\n folded',
      'X: 1\rY: 2',
      'X: 1\nY: 2',
      'é: 1',
    ]
    const more = [
      `X: ${'x'.repeat(20_000)}`,
      'X: 1\r\n'.repeat(1500).trim(),
      'X: \x7f',
      '\x01: 1',
      'X: 1\r\n\r',
    ]
    const line = random.pick([...lines, ...more])
    const whole = plain(one).toString('latin1')
    const at = whole.indexOf('\r\n') + 2
    return Buffer.from(`${whole.slice(0, at)}${line}\r\n${whole.slice(at)}`, 'latin1')
  },
  function host(one, random) {
    const names = [
      'evil.example',
      '',
      'localhost, localhost',
      '[::1',
      'localhost:99999',
      'a@localhost',
      'LOCALHOST',
    ]
    const hosts = random.chance(20) ? [] : [random.pick(names)]
    if (random.chance(20)) hosts.push('localhost')
    return framed(one, [...hosts.map((name): Header => ['Host', name]), length(one)])
  },
  function connection(one, random) {
    const lines: readonly Header[] = [
      ['Connection', 'close'],
      ['Connection', 'Upgrade'],
      ['Connection', 'authorization, mcp-name'],
      ['Expect', '100-continue'],
      ['Expect', '200-maybe'],
    ]
    return framed(one, [HOST, length(one), ['Upgrade', 'websocket'], random.pick(lines)])
  },
  function version(one, random) {
    const odd = ['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'http/1.1', 'HTTP/1.1 ', 'HTTPS/1.1', '']
    return Buffer.concat([head(one, [HOST, length(one)], random.pick(odd)), one.body])
  },
  function verb(one, random) {
    const odd = ['post', 'CONNECT', 'PRI', 'POST ', 'P\0ST', '', 'M-SEARCH', 'X'.repeat(300)] as const
    return plain({ ...one, verb: random.pick(odd) })
  },
  function noHttp(_, random) {
    const odd = [
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      '\r\n\r\n',
      '\0'.repeat(64),
      'GET /',
      '{"id":1}\n',
    ]
    return Buffer.from(random.pick(odd), 'latin1')
  },
]
