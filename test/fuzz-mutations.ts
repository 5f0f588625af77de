/**
 * What the fuzzer does to an honest request before it is bytes. A respelling says the same in another
 * way, so it must be answered as before. What spoils a request may change anything about it.
 */
import { encodeHeader, type Header } from '../client.ts'
import {
  escaped,
  find,
  inside,
  type Member,
  memberOf,
  type Place,
  type Written,
  write,
  written,
} from './fuzz-json.ts'
import type { Random } from './fuzz-random.ts'
import { type Draft, type Issued, ORIGIN, TOKENS } from './fuzz-requests.ts'

type Mutation = (draft: Draft, random: Random, issued: readonly Issued[]) => void

const RESPELLINGS: readonly Mutation[] = [
  function orderOfMembers({ body }, random) {
    if (body !== undefined) for (const members of inside(body).objects) random.shuffle(members)
  },
  function namesWithEscapes({ body }, random) {
    if (body === undefined) return
    for (const members of inside(body).objects) {
      for (const member of members) member.name = escaped(member.name, () => random.chance(20))
    }
  },
  function valuesWithEscapes({ body }, random) {
    if (body === undefined) return
    for (const place of inside(body).places) {
      const value = place.get()
      if ('text' in value && value.text.startsWith('"')) {
        place.put({ text: escaped(value.text, () => random.chance(20)) })
      }
    }
  },
  function strangeMembers({ body }, random) {
    const args = body && find(body, 'params', 'arguments')?.get()
    const holders = [body, body && find(body, 'params')?.get(), args]
    const holder = random.any(holders)
    if (holder === undefined || !('members' in holder)) return
    const name = random.pick(['__proto__', 'constructor', 'hasOwnProperty', 'extra', '', 'toString'])
    holder.members.push(
      memberOf(name, { text: random.pick(['null', '{"confirm":true}', '[[[]]]', '1e400']) }),
    )
  },
  function caseOfHeaderNames({ headers }, random) {
    for (const [index, [name, value]] of headers.entries()) {
      const changed = [...name].map((c) => (random.chance(50) ? c.toUpperCase() : c.toLowerCase()))
      headers[index] = [changed.join(''), value]
    }
  },
  function orderOfHeaders({ headers }, random) {
    random.shuffle(headers)
  },
  function spaceAroundValues({ headers }, random) {
    for (const [index, [name, value]] of headers.entries()) {
      headers[index] = [name, random.pick(['', ' ', '\t']) + value + random.pick(['', ' ', ' \t '])]
    }
  },
  function strangeHeaders({ headers }, random) {
    const name = random.pick(['X-Forwarded-For', 'constructor', '__proto__', 'Mcp-Session-Id', 'Cookie'])
    headers.push([name, random.pick(['1', '', '\xff\xfe', '{}', 'x'.repeat(500)])])
  },
  function mirroredInBase64({ headers }) {
    for (const [index, [name, value]] of headers.entries()) {
      if (/^mcp-(name|param-.*)$/i.test(name) && !value.trim().startsWith('=?')) {
        headers[index] = [name, inBase64(value.trim())]
      }
    }
  },
  function target(draft, random) {
    if (draft.target === '/mcp' && draft.body !== undefined)
      draft.target += random.pick(['/', '?x=1', '/?', '?/../../etc/passwd'])
  },
  function contentType({ headers }, random) {
    const type = random.pick([
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json ;a=b',
    ])
    replaceHeader(headers, 'content-type', () => type)
  },
]

/** Texts in the place of a JSON value; some are no JSON. */
const VALUES: readonly string[] = [
  ...[
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1',
    '-1',
    '1.5',
    '1e400',
    '-1e400',
    '1e-400',
    '9007199254740991',
  ],
  ...['9007199254740993', '1E2', '123456789012345678901234567890', '""', '" "', '"true"', '"confirm"'],
  ...['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u202e\\u200b"', '"__proto__"', '"constructor"'],
  ...['[]', '{}', '[{}]', '{"":{}}', '{"__proto__":{"confirm":true}}', '{"toString":1}', '{"length":1}'],
  ...[
    'NaN',
    'Infinity',
    'undefined',
    "'x'",
    '01',
    '+1',
    '.5',
    '1.',
    '"\\x"',
    '"\u0001"',
    '',
    '/**/1',
    '[,]',
  ],
  ...['{"a":1,}', '\ufeff1', '"unended', '[', '{', '"rollback_release"', '"scale_service"', '"tools/call"'],
  ...[
    '"2026-07-28"',
    '"2025-11-25"',
    '"initialize"',
    '"notifications/x"',
    '"accept"',
    '"checkout"',
    '"v1"',
  ],
  '['.repeat(100) + ']'.repeat(100),
  `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`,
  '['.repeat(2000) + ']'.repeat(2000),
  '['.repeat(5000),
  `"${'x'.repeat(300)}"`,
  `"${'é'.repeat(40_000)}"`,
  `[${'0,'.repeat(500)}0]`,
]

const NAMES: readonly string[] = [
  ...['id', 'jsonrpc', 'method', 'params', 'result', 'error', '_meta', 'name', 'arguments', 'requestState'],
  ...[
    'inputResponses',
    'confirm',
    'action',
    'content',
    'reason',
    'service',
    'version',
    'replicas',
    'cursor',
  ],
  ...[
    'idempotency_key',
    'dry_run',
    'max_spend_usd',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    '',
  ],
  ...[
    'io.modelcontextprotocol/protocolVersion',
    'io.modelcontextprotocol/clientCapabilities',
    'progressToken',
  ],
  ...[
    'io.modelcontextprotocol/clientInfo',
    'io.modelcontextprotocol/logLevel',
    'elicitation',
    'form',
    'Id',
  ],
]

const STRUCTURE: readonly Mutation[] = [
  function anotherValue({ body }, random) {
    placeIn(body, random)?.put({ text: random.pick(VALUES) })
  },
  function exchangedValues({ body }, random) {
    const [one, other] = [placeIn(body, random), placeIn(body, random)]
    const [left, right] = [one?.get(), other?.get()]
    if (left === undefined || right === undefined) return
    if (holds(left, right) || holds(right, left)) return // or the text would never end
    one?.put(right)
    other?.put(left)
  },
  function wrappedValue({ body }, random) {
    const place = placeIn(body, random)
    const value = place?.get()
    if (value === undefined) return
    const members = [memberOf(random.pick(NAMES), value)]
    place?.put(random.pick<Written>([{ items: [value] }, { members }, { items: [value, value] }]))
  },
  function missingMember({ body }, random) {
    const members = membersIn(body, random)
    members?.splice(random.below(members.length), 1)
  },
  function repeatedMember({ body }, random) {
    const members = membersIn(body, random)
    const member = members && random.any(members)
    if (member === undefined) return
    const value = random.chance(30) ? member.value : { text: random.pick(VALUES) }
    members?.splice(random.below(members.length + 1), 0, { ...member, value })
  },
  function extraMember({ body }, random) {
    const members = membersIn(body, random)
    const extra = memberOf(random.pick(NAMES), { text: random.pick(VALUES) })
    members?.splice(random.below(members.length + 1), 0, extra)
  },
  function renamedMember({ body }, random) {
    const members = membersIn(body, random)
    const member = members && random.any(members)
    if (member !== undefined) member.name = JSON.stringify(random.pick(NAMES))
  },
  function notAnObject(draft, random) {
    const { body } = draft
    if (body === undefined) return
    draft.body = random.pick<Written>([
      { items: [body] },
      { items: [body, body] },
      { text: random.pick(VALUES) },
    ])
  },
]

const RETRY: readonly Mutation[] = [
  function changedState({ body }, random) {
    const place = body && find(body, 'params', 'requestState')
    const state = place && stringAt(place)
    if (state !== undefined) place?.put(written(misspelled(state, random)))
  },
  function anotherState({ body }, random, issued) {
    const other = random.any(issued)
    const place = body && find(body, 'params', 'requestState')
    if (other !== undefined) place?.put(written(other.state))
  },
  function anotherAnswer({ body }, random) {
    const place = body && find(body, 'params', 'inputResponses')
    place?.put({ text: random.pick(ANSWERS) })
  },
  function anotherConfirm({ body }, random) {
    const place = body && find(body, 'params', 'inputResponses', 'confirm', 'content', 'confirm')
    place?.put({ text: random.pick(VALUES) })
  },
  function otherArguments({ body }, random, issued) {
    const other = random.any(issued)
    const place = body && find(body, 'params', 'arguments')
    if (other !== undefined) place?.put(written(other.args))
  },
  function otherArgument({ body }, random) {
    const members = body && find(body, 'params', 'arguments')?.get()
    const member = members !== undefined && 'members' in members ? random.any(members.members) : undefined
    if (member !== undefined) member.value = { text: random.pick(VALUES) }
  },
  function anotherTool({ body, headers }, random) {
    const tool = random.pick(['rollback_release', 'scale_service', 'Rollback_Release', 'constructor', ''])
    if (body !== undefined) find(body, 'params', 'name')?.put(written(tool))
    if (random.chance(70)) replaceHeader(headers, 'mcp-name', () => tool)
  },
  function anotherMethod({ body, headers }, random) {
    const names = [
      'prompts/get',
      'resources/read',
      'initialize',
      'ping',
      'constructor',
      'notifications/x',
      '',
    ]
    const method = random.pick([...names, 'tools/list', 'server/discover'])
    if (body !== undefined) find(body, 'method')?.put(written(method))
    if (random.chance(80)) replaceHeader(headers, 'mcp-method', () => method)
  },
  function anotherVersion({ body, headers }, random) {
    const version = random.pick(['2025-11-25', '2026-07-29', '1900-01-01', 'DRAFT', '', '2026-07-28 '])
    const place = body && find(body, 'params', '_meta', 'io.modelcontextprotocol/protocolVersion')
    place?.put(written(version))
    if (random.chance(80)) replaceHeader(headers, 'mcp-protocol-version', () => version)
  },
  function anotherCapability({ body }, random) {
    const place = body && find(body, 'params', '_meta', 'io.modelcontextprotocol/clientCapabilities')
    const capabilities = ['{}', '{"elicitation":{}}', '{"elicitation":{"url":{}}}', '{"elicitation":true}']
    place?.put({ text: random.pick(capabilities) })
  },
  function anotherCaller({ headers }, random) {
    const token = random.pick([...Object.values(TOKENS), 'nobody', ''])
    replaceHeader(headers, 'authorization', () => `Bearer ${token}`)
  },
]

const ANSWERS: readonly string[] = [
  ...[
    '{}',
    '[]',
    'null',
    '"accept"',
    '{"confirm":null}',
    '{"confirm":[]}',
    '{"confirm":true}',
    '{"confirm":{}}',
  ],
  '[{"action":"accept","content":{"confirm":true}}]',
  '{"confirm":[{"action":"accept","content":{"confirm":true}}]}',
  '{"Confirm":{"action":"accept","content":{"confirm":true}}}',
  '{"__proto__":{"confirm":{"action":"accept","content":{"confirm":true}}}}',
  '{"confirm":{"__proto__":{"action":"accept","content":{"confirm":true}}}}',
  '{"confirm":{"action":"accept","content":{"__proto__":{"confirm":true}}}}',
  '{"confirm":{"action":"accept","content":[true]}}',
  '{"confirm":{"action":"accept","content":"{\\"confirm\\":true}"}}',
  '{"confirm":{"action":"ACCEPT","content":{"confirm":true}}}',
  '{"confirm":{"action":["accept"],"content":{"confirm":true}}}',
  '{"confirm":{"action":"decline","content":{"confirm":true}}}',
  '{"confirm":{"action":"cancel","content":{"confirm":true}}}',
  '{"confirm":{"action":"accept"}}',
  '{"confirm":{"action":"accept","confirm":true}}',
  '{"confirm":{"action":"accept","content":{"confirm":true,"confirm":false}}}',
  '{"confirm":{"action":"accept","content":{"confirm":false,"confirm":true}}}',
  '{"confirm":{"action":"accept","content":{"confirm":true,"reason":1}}}',
  '{"confirm":{"action":"accept","content":{"confirm":true,"reason":null}}}',
  `{"confirm":{"action":"accept","content":{"confirm":true,"reason":"${'x'.repeat(501)}"}}}`,
  '{"confirm":{"action":"accept","content":{"confirm":true,"reason":"\\ud800"}}}',
  '{"confirm":{"action":"accept","content":{"confirm":true,"extra":{}}}}',
  '{"other":{"action":"accept","content":{"confirm":true}}}',
]

const HEADERS: readonly Mutation[] = [
  function missingHeader({ headers }, random) {
    headers.splice(random.below(headers.length), 1)
  },
  function repeatedHeader({ headers }, random) {
    const header = random.any(headers)
    if (header === undefined) return
    const again: Header = random.chance(50) ? header : [header[0], hostileValue(header[1], random)]
    headers.splice(random.below(headers.length + 1), 0, again)
  },
  function anotherHeaderValue({ headers }, random) {
    const index = random.below(headers.length)
    const header = headers[index]
    if (header !== undefined) headers[index] = [header[0], hostileValue(header[1], random)]
  },
  function exchangedHeaderValues({ headers }, random) {
    const [one, other] = [random.below(headers.length), random.below(headers.length)]
    const [left, right] = [headers[one], headers[other]]
    if (left === undefined || right === undefined) return
    headers[one] = [left[0], right[1]]
    headers[other] = [right[0], left[1]]
  },
  function renamedHeader({ headers }, random) {
    const index = random.below(headers.length)
    const [name, value] = headers[index] ?? ['X', '']
    const other = random.pick([name.replaceAll('-', '_'), `${name}-`, `X-${name}`, name.slice(1) || 'X'])
    headers[index] = [other, value]
  },
  function extraHeader({ headers }, random) {
    headers.splice(random.below(headers.length + 1), 0, random.pick(EXTRA))
  },
  function verb(draft, random) {
    draft.verb = random.pick(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'POST'])
  },
  function anotherTarget(draft, random) {
    const paths = [
      '/',
      '/mcp/x',
      '//mcp',
      '/MCP',
      '/%6dcp',
      '/mcp%00',
      '/healthz',
      '/healthz/',
      '/.well-known/x',
    ]
    const odd = [
      'http://evil.example/mcp',
      'https://localhost/mcp',
      '/constructor',
      '/mcp;a',
      '/mcp/../mcp',
      '*',
    ]
    draft.target = random.pick([...paths, ...odd, `/mcp?${'x'.repeat(3000)}`])
  },
]

const EXTRA: readonly Header[] = [
  ...[
    'https://evil.example',
    'null',
    '',
    ORIGIN,
    'HTTP://LOCALHOST',
    'http://localhost:1@evil.example',
  ].map((origin): Header => ['Origin', origin]),
  ['Content-Encoding', 'gzip'],
  ['Content-Type', 'text/plain'],
  ['Mcp-Param-Service', 'checkout'],
  ['Mcp-Param-Version', 'v1'],
  ['Mcp-Param-__proto__', 'x'],
  ['Mcp-Name', 'rollback_release'],
  ['Mcp-Method', 'tools/list'],
  ['MCP-Protocol-Version', '2025-11-25'],
  ['Authorization', 'Basic Zm9vOmJhcg=='],
  ['Authorization', `Bearer ${TOKENS.bob}`],
  ['Accept', ''],
  ['X-HTTP-Method-Override', 'DELETE'],
]

/** Most requests stay whole but for one or two of these. */
export function spoil(draft: Draft, random: Random, issued: readonly Issued[]): void {
  const groups: readonly (typeof STRUCTURE)[] = [STRUCTURE, RETRY, HEADERS]
  for (let left = 1 + random.below(3); left > 0; left--)
    random.pick(random.pick(groups))(draft, random, issued)
}

export function respell(draft: Draft, random: Random, issued: readonly Issued[]): void {
  for (let left = random.below(3); left > 0; left--) random.pick(RESPELLINGS)(draft, random, issued)
}

/** The text of a body, with space between its tokens in some requests. */
export function textOf(body: Written, random: Random): string {
  if (!random.chance(20)) return write(body)
  return write(body, () => random.pick(['', '', ' ', '\n', '\t\r\n ']))
}

function placeIn(body: Written | undefined, random: Random): Place | undefined {
  return body && random.any(inside(body).places)
}

function membersIn(body: Written | undefined, random: Random): Member[] | undefined {
  return body && random.any(inside(body).objects)
}

function holds(outer: Written, inner: Written): boolean {
  if (outer === inner) return true
  return inside(outer).places.some((place) => place.get() === inner)
}

function stringAt(place: Place): string | undefined {
  const value = place.get()
  if (!('text' in value)) return undefined
  try {
    const text: unknown = JSON.parse(value.text)
    return typeof text === 'string' ? text : undefined
  } catch {
    return undefined
  }
}

const inBase64 = (value: string) => `=?base64?${Buffer.from(value, 'latin1').toString('base64')}?=`

function replaceHeader(headers: Header[], name: string, by: (value: string) => string): void {
  for (const [index, [spelled, value]] of headers.entries()) {
    if (spelled.toLowerCase() === name) headers[index] = [spelled, by(value)]
  }
}

/** Bytes that a header may hold, so that the request still has an end that everybody sees. */
function hostileValue(value: string, random: Random): string {
  return random.pick([
    ...[
      '',
      ' ',
      '\xff',
      'é',
      '__proto__',
      'x'.repeat(2000),
      '=?base64??=',
      '=?base64?',
      '?=',
      '2026-07-29',
    ],
    ...[inBase64(value), inBase64(value).replace(/=+\?=$/, '?='), inBase64(`${value}\xff`), inBase64('')],
    ...[
      value.toUpperCase(),
      `${value},${value}`,
      `${value} `,
      `"${value}"`,
      value.slice(0, -1),
      `${value}\t`,
    ],
    ...[encodeHeader(value), '=?BASE64?YQ==?=', '=?base64?YR==?=', '=?base64?Y Q==?=', '[object Object]'],
  ])
}

/** Any change of a state, a single bit among them. */
function misspelled(state: string, random: Random): unknown {
  const at = random.below(state.length)
  const flipped = String.fromCharCode(state.charCodeAt(at) ^ (1 << random.below(7)))
  return random.pick<unknown>([
    state.slice(0, at) + flipped + state.slice(at + 1),
    state.slice(0, at) + random.pick(['A', '-', '=', '.', ' ', '\u0000', '世']) + state.slice(at + 1),
    state.slice(0, at),
    state.slice(at),
    state.slice(0, at) + state.slice(at + 1),
    `${state}${random.pick(['=', '==', 'A', '\n', ' ', state])}`,
    state.replaceAll('-', '+').replaceAll('_', '/').concat('='),
    state.replace(/^s1/, random.pick(['e1', 'S1', 's2', ''])),
    state.replace('.', '%2E'),
    state.toLowerCase(),
    [...state].reverse().join(''),
    [state],
    { state },
    state.length,
    null,
    '',
    's1.',
    `s1.${'A'.repeat(20_000)}`,
  ])
}
