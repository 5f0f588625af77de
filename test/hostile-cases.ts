/**
 * What an attacker tries, one fault a line, and what has to happen. A block takes one honest request, spoils
 * one thing about it on each line, and names the answer that all its lines must get. Where the request is a
 * confirmed call (`yes`), a server that misses the fault acts. An attack that says "honestly" is a control: a
 * server that refuses everything fails it.
 *
 * A case knows nothing of the server's code: it says the same about any server of this revision.
 */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Json } from '../client.ts'
import {
  ACCEPTED,
  ACTS,
  ACTS_OR_REFUSES,
  ASKS,
  ASKS_AGAIN,
  ASKS_OR_REFUSES,
  ASKS_VISIBLY,
  ASKS_WELL,
  BAD_PARAMS,
  DECLINED,
  type Expectation,
  FORBIDDEN,
  INCAPABLE,
  MALFORMED,
  MISMATCH,
  NEVER_RUN,
  NO_REQUEST,
  NO_REQUEST_NO_ID,
  NO_SESSION,
  NO_SUCH_VERB,
  NOT_JSON,
  NOTHING_DONE,
  OLD_CLIENT,
  OTHER_VERSION,
  or,
  REFUSES,
  SAYS_VISIBLY,
  SERVED,
  TURNED_AWAY,
  TURNED_AWAY_OR_CLOSED,
  UNKNOWN_METHOD,
} from './hostile-answers.ts'
import {
  changesItsMind,
  comparesRefusals,
  hangsUp,
  hurries,
  listsAsAnother,
  type Play,
  pipelines,
  reliesOnBefore,
  saysYesTwice,
  sends,
  sendsNoise,
  waitsFor100,
  writes,
} from './hostile-plays.ts'
import {
  acting,
  also,
  answer,
  answers,
  answersIn,
  args,
  argumentsAsText,
  ask,
  asked,
  badChunk,
  behindProto,
  body,
  both,
  calling,
  capable,
  chain,
  changedAt,
  chunked,
  confirming,
  content,
  cut,
  discover,
  type Edit,
  extra,
  fullWidth,
  header,
  hidden,
  holding,
  inArguments,
  inHeader,
  inQuery,
  instead,
  integer,
  keep,
  leftOut,
  legacy,
  lines,
  list,
  lookAlike,
  loopback,
  meta,
  metaless,
  mirrored,
  mirroredInteger,
  misspelt,
  moved,
  mute,
  needing,
  noParamHeaders,
  otherCase,
  otherTool,
  padded,
  percentEncoded,
  plain,
  put,
  renamed,
  required,
  requiredArgument,
  Skip,
  type Source,
  speaking,
  starting,
  state,
  swapCase,
  text,
  to,
  tool,
  twice,
  typing,
  typingTooMuch,
  unadvertised,
  uninvited,
  value,
  verb,
  withBytes,
  without,
  withSpareBits,
  wrapped,
  yes,
  yesWith,
} from './hostile-requests.ts'

export type Group = 'transport' | 'headers' | 'envelope' | 'first pass' | 'state' | 'answer'

export type Case = Play & {
  readonly id: string
  readonly group: Group
  /** What the attacker does. */
  readonly attack: string
  /** The page of the specification, and its section. */
  readonly page: string
}

type Line = readonly [id: string, attack: string, ...edits: Edit[]]
type Block = Omit<Case, 'group'>[]

const group = (name: Group, ...blocks: Block[]): Case[] =>
  blocks.flat().map((line) => ({ ...line, group: name }))

/** Lines that spoil one request and expect one answer. `over` a bare socket where bytes matter. */
const block = (page: string, source: Source, expected: Expectation, lines: Line[], over = sends): Block =>
  lines.map(([id, attack, ...edits]) => ({ id, attack, page, ...over(source, chain(...edits), expected) }))

/** Anything that is no single spoilt request. */
const special = (page: string, lines: [id: string, attack: string, play: Play][]): Block =>
  lines.map(([id, attack, play]) => ({ id, attack, page, ...play }))

const HTTP = 'basic/transports/streamable-http'
const ENDPOINT = `${HTTP}#security-&-endpoint`
const SENDING = `${HTTP}#sending-messages`
const VALIDATION = `${HTTP}#server-validation`
const ENCODING = `${HTTP}#value-encoding`
const CUSTOM = `${HTTP}#server-behavior-for-custom-headers`
const CASE = `${HTTP}#case-sensitivity`
const EARLIER = `${HTTP}#earlier-streamable-http-revisions`
const VERSION_HEADER = `${HTTP}#protocol-version-header`
const CANCELLATION = 'basic/patterns/cancellation#transport-specific-cancellation'
const MESSAGES = 'basic/index#messages'
const REQUESTS = 'basic/index#requests'
const NOTIFICATIONS = 'basic/index#notifications'
const META = 'basic/index#_meta'
const CODES = 'basic/index#error-codes'
const STATELESS = 'basic/index#statelessness'
const VERSIONS = 'basic/versioning#protocol-version-negotiation'
const INITIALIZE = 'basic/versioning#backward-compatibility-with-initialization-based-versions'
const TOOLS = 'server/tools#capabilities'
const TOOL_ERRORS = 'server/tools#error-handling'
const TOOL_SECURITY = 'server/tools#security-considerations'
const PAGES = 'server/utilities/pagination#error-handling'
const MRTR = 'basic/patterns/mrtr#server-requirements-basic-workflow'
const MRTR_ERRORS = 'basic/patterns/mrtr#error-handling'
const SUPPORTED = 'basic/patterns/mrtr#supported-requests'
const CAPABILITIES = 'client/elicitation#capabilities'
const ACTIONS = 'client/elicitation#response-actions'
const FORM_SECURITY = 'client/elicitation#form-mode-security'

const TOKENS = 'basic/authorization/index#token-handling'
/** The token that the runner was given, where the target tells callers apart. */
const TOKEN = process.env.MCP_TOKEN ?? ''
const signedIn = () => {
  if (TOKEN === '') throw new Skip('MCP_TOKEN is not set')
}
const bearer = (change: (token: string) => string) => header('Authorization', `Bearer ${change(TOKEN)}`)
const UNSIGNED = [{ alg: 'none' }, { sub: 'admin' }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.')

const EVIL = 'http://evil.example'
const origin = (value: string) => header('Origin', value)
const type = (value: string) => header('Content-Type', value)
const session = header('Mcp-Session-Id', 'dead')
const upgrade = header('Upgrade', 'websocket')
const GET = verb('GET')
/** Another verb and version where the bytes are written by hand. */
const line = (verb: string, version: string) => starting((url) => `${verb} ${url.pathname} HTTP/${version}`)

const VERSION = 'MCP-Protocol-Version'
const METHOD = 'Mcp-Method'
const NAME = 'Mcp-Name'
const OTHER = 'something_else'
/** Another value of Mcp-Name: as it is, or made from its encoded form. */
const named = (change: (name: string) => string) => value(NAME, change)
const encoded = (change: (encoded: string) => string) => named((name) => change(wrapped(name)))

const transport = group(
  'transport',
  block('server/discover#response', discover, SERVED, [['T01', 'honestly discovers the server']]),
  block(ENDPOINT, yes, FORBIDDEN, [
    ['T02', 'calls from a foreign page', origin(EVIL)],
    ['T03', 'calls from a sandboxed frame', origin('null')],
    ['T04', 'sends an empty Origin', origin('')],
    ['T05', 'begins its host name with a loopback one', origin('http://localhost.evil.example')],
    ['T06', 'ends its host name with a loopback one', origin('http://evil-localhost')],
    ['T07', 'puts a loopback name where a user name goes', origin('http://localhost:3000@evil.example')],
    ['T08', 'puts a loopback name into the fragment', origin(`${EVIL}/#http://localhost`)],
    ['T09', 'calls from a local file', origin('file://')],
    ['T10', 'calls from an editor extension', origin('vscode-webview://abc')],
    ['T11', 'sends two Origins', also('Origin', 'http://localhost'), also('Origin', EVIL)],
    ['T12', 'opens a stream from a foreign page', GET, origin(EVIL)],
    ['T13', 'asks for a preflight from a foreign page', verb('OPTIONS'), origin(EVIL)],
    ['T14', 'sends broken JSON from a foreign page', origin(EVIL), text(() => '{')],
    ['T15', 'notifies from a foreign page', origin(EVIL), cut('id'), calling('notifications/cancelled')],
  ]),
  block(ENDPOINT, needing(loopback, ask), ASKS, [
    ['T16', 'honestly calls from a page on a loopback name', origin('http://localhost:5173')],
  ]),
  block(
    ENDPOINT,
    yes,
    TURNED_AWAY,
    [
      ['T17', 'rebinds DNS: Host is a foreign name', header('Host', 'evil.example')],
      ['T18', 'begins its Host with a loopback name', header('Host', 'localhost.evil.example')],
      ['T19', 'puts a loopback name before an @ in Host', header('Host', 'localhost@evil.example')],
      ['T20', 'sends a second Host', also('Host', 'evil.example')],
      ['T21', 'sends no Host', without('Host')],
      ['T22', 'speaks HTTP/1.0 without Host', line('POST', '1.0'), without('Host')],
    ],
    writes,
  ),
  block(INITIALIZE, yes, TURNED_AWAY, [['T23', 'posts to another path', to('/no-such-endpoint')]]),
  block(EARLIER, yes, NO_SUCH_VERB, [
    ['T24', 'opens a stream', GET, header('Accept', 'text/event-stream')],
    ['T25', 'resumes a stream', GET, header('Last-Event-ID', '7')],
    ['T26', 'deletes a session', verb('DELETE'), session],
    ['T27', 'sends HEAD', verb('HEAD')],
    ['T28', 'sends PUT', verb('PUT')],
    ['T29', 'sends PATCH', verb('PATCH')],
    ['T30', 'overrides the verb of a GET', GET, header('X-HTTP-Method-Override', 'POST')],
  ]),
  block(SENDING, yes, TURNED_AWAY, [
    ['T31', 'sends a type that needs no preflight', type('text/plain')],
    ['T32', 'sends a form', type('application/x-www-form-urlencoded')],
    ['T33', 'hides the JSON type in a parameter', type('text/plain; application/json')],
    ['T34', 'sends a type that begins like JSON', type('application/jsonp')],
    ['T35', 'sends two types', also('Content-Type', 'text/plain')],
    ['T36', 'sends no type', without('Content-Type')],
    ['T37', 'declares another charset', type('application/json; charset=utf-16')],
    ['T38', 'compresses the body', header('Content-Encoding', 'gzip'), text((json) => gzipSync(json))],
    ['T39', 'sends a body of 8 MB', put('x'.repeat(8_000_000), 'params', 'padding')],
  ]),
  block(SENDING, ask, ASKS, [
    ['T40', 'honestly spells the type in another way', type('Application/JSON ;charset="UTF-8"')],
    ['T41', 'honestly accepts anything', header('Accept', '*/*')],
  ]),
  block(
    SENDING,
    ask,
    ASKS,
    [
      ['T42', 'honestly sends the body in chunks', chunked],
      ['T43', 'honestly sends the whole URL as target', starting(({ href }) => `POST ${href} HTTP/1.1`)],
    ],
    writes,
  ),
  block(
    SENDING,
    yes,
    TURNED_AWAY_OR_CLOSED,
    [
      ['T44', 'smuggles: a length and chunks', also('Transfer-Encoding', 'chunked')],
      ['T45', 'smuggles: two lengths', also('Content-Length', '5')],
      ['T46', 'smuggles: a length with a sign', value('Content-Length', (n) => `+${n}`)],
      [
        'T47',
        'smuggles: chunks inside another coding',
        chunked,
        value('Transfer-Encoding', (v) => `${v}, gzip`),
      ],
      ['T48', 'sends a chunk without a size', badChunk],
      ['T49', 'sends 8 MB in chunks', padded(8_000_000), chunked],
      ['T50', 'puts a space before the colon', lines(NAME, (v) => [['Mcp-Name ', v]])],
      ['T51', 'folds a header over two lines', named((name) => `${name.slice(0, 4)}\r\n ${name.slice(4)}`)],
      ['T52', 'ends a header with a bare carriage return', named((name) => `${name}\rX-Injected: 1`)],
      ['T53', 'sends a header of 100 kB', also('X-Long', 'x'.repeat(100_000))],
      [
        'T54',
        'asks for another protocol',
        line('GET', '1.1'),
        header('Connection', 'Upgrade, close'),
        upgrade,
      ],
    ],
    writes,
  ),
  block(
    ENCODING,
    yes,
    TURNED_AWAY,
    [
      ['T55', 'puts a NUL into a header', named((name) => `${name}\0`)],
      ['T56', 'puts a DEL into a header', named((name) => `${name}\x7f`)],
    ],
    writes,
  ),
  block(
    SENDING,
    yes,
    NOT_JSON,
    [['T57', 'ends the length in the middle of the body', value('Content-Length', () => '20')]],
    writes,
  ),
  special(SENDING, [
    ['T58', 'honestly waits for 100 Continue', waitsFor100],
    ['T59', 'sends noise', sendsNoise],
    ['T60', 'sends two requests in one write', pipelines],
  ]),
  special(CANCELLATION, [
    ['T61', 'hangs up in the middle of the head', hangsUp(yes, (request) => request.subarray(0, 60))],
    ['T62', 'hangs up in the middle of the body', hangsUp(yes, (request) => request.subarray(0, -40))],
  ]),
  block(TOKENS, needing(signedIn, yes), TURNED_AWAY, [
    ['T63', 'sends an empty Authorization', header('Authorization', '')],
    ['T64', 'sends a token that nobody gave out', bearer(() => 'no-such-token')],
    [
      'T65',
      'changes the last character of its token',
      bearer((token) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')),
    ],
    ['T66', 'leaves out the last character of its token', bearer((token) => token.slice(0, -1))],
    ['T67', 'adds a character to its token', bearer((token) => `${token}a`)],
    ['T68', 'writes a word behind its token', bearer((token) => `${token} more`)],
    ['T69', 'sends its token under another scheme', header('Authorization', `Basic ${TOKEN}`)],
    ['T70', 'sends its token without a scheme', header('Authorization', TOKEN)],
    [
      'T71',
      'sends its token twice',
      also('Authorization', `Bearer ${TOKEN}`),
      also('Authorization', `Bearer ${TOKEN}`),
    ],
    [
      'T72',
      'sends a good and a bad token',
      also('Authorization', `Bearer ${TOKEN}`),
      also('Authorization', 'Bearer x'),
    ],
    ['T73', 'sends its token in the query', header('Authorization', ''), to(`?access_token=${TOKEN}`)],
    [
      'T74',
      'sends its token in the body',
      header('Authorization', ''),
      put(TOKEN, 'params', '_meta', 'access_token'),
    ],
    ['T75', 'sends a token of 10 000 characters', bearer(() => 'a'.repeat(10_000))],
    ['T76', 'sends an unsigned token', bearer(() => `${UNSIGNED}.`)],
  ]),
  block(TOKENS, needing(signedIn, ask), ASKS, [
    ['T77', 'honestly writes the scheme in lower case', header('Authorization', `bearer ${TOKEN}`)],
  ]),
)

/** Another value of the header of a mirrored argument. */
const param = (change: (argument: string) => string) =>
  mirrored(({ header: name, argument }) => header(name, change(argument)))

const headers = group(
  'headers',
  block(VALIDATION, yes, MISMATCH, [
    ['H01', 'leaves the version out', without(VERSION)],
    ['H02', 'sends another version than the body', header(VERSION, '1900-01-01')],
    ['H03', 'sends the version twice', twice(VERSION)],
    ['H04', 'encodes the version, which is never encoded', value(VERSION, wrapped)],
    ['H05', 'leaves the method out', without(METHOD)],
    ['H06', 'names a harmless method', header(METHOD, 'tools/list')],
    ['H07', 'sends an empty method', header(METHOD, '')],
    ['H08', 'sends the method twice', twice(METHOD)],
    ['H09', 'names a harmless method first', twice(METHOD, () => 'tools/list')],
    ['H10', 'names a harmless method last', twice(METHOD, keep, () => 'tools/list')],
    ['H11', 'encodes the method, which is never encoded', value(METHOD, wrapped)],
    ['H12', 'leaves the name out', without(NAME)],
    ['H13', 'names another tool', header(NAME, OTHER)],
    ['H14', 'sends an empty name', header(NAME, '')],
    ['H15', 'sends the name twice', twice(NAME)],
    ['H16', 'names another tool first', twice(NAME, () => OTHER)],
    ['H17', 'names another tool last', twice(NAME, keep, () => OTHER)],
    ['H18', 'names two tools in one line', named((name) => `${name}, ${OTHER}`)],
    ['H19', 'spells the header with an underscore', lines(NAME, (v) => [['Mcp_Name', v]])],
  ]),
  block(CASE, yes, MISMATCH, [
    ['H20', 'writes the method in capitals', value(METHOD, (v) => v.toUpperCase())],
    ['H21', 'writes the name in capitals', named((name) => name.toUpperCase())],
  ]),
  block(ENCODING, yes, MISMATCH, [
    ['H22', 'encodes the name of another tool', named(() => wrapped(OTHER))],
    ['H23', 'leaves out the padding', named((name) => misspelt(name, 'no padding'))],
    ['H24', 'sets the spare bits of the Base64', named((name) => misspelt(name, 'spare bits'))],
    ['H25', 'puts a foreign character into the Base64', encoded((v) => v.replace('?=', '!?='))],
    ['H26', 'puts a space into the Base64', encoded((v) => v.replace('64?', '64? '))],
    ['H27', 'encodes bytes that are not UTF-8', named((name) => wrapped(`${name}\xff`, 'latin1'))],
    ['H28', 'encodes a byte order mark before the name', named((name) => wrapped(`\ufeff${name}`))],
    ['H29', 'encodes twice', encoded((v) => wrapped(v))],
    ['H30', 'writes the marker in capitals', encoded((v) => v.replace('base64', 'BASE64'))],
    ['H31', 'begins an encoded value and does not end it', encoded((v) => v.replace('?=', ''))],
    ['H32', 'sends a value that is only marker', named(() => '=?base64?=')],
    ['H33', 'percent-encodes the name', named(percentEncoded)],
    ['H34', 'adds a byte of Latin-1', named((name) => `${name}\xe9`)],
    ['H35', 'hides a no-break space behind the name', named((name) => `${name}\xa0`)],
  ]),
  block(CUSTOM, yes, MISMATCH, [
    ['H36', 'leaves out the header of an argument', mirrored(({ header }) => without(header))],
    ['H37', 'mirrors another argument', param((argument) => `${argument}-other`)],
    ['H38', 'mirrors an empty argument', param(() => '')],
    ['H39', 'mirrors the argument in other case', param(swapCase)],
    ['H40', 'mirrors the argument twice', mirrored(({ header }) => twice(header))],
    ['H41', 'mirrors the argument and then another', mirrored(({ header }) => also(header, 'other'))],
    ['H42', 'encodes another argument', param((argument) => wrapped(`${argument}-other`))],
    ['H43', 'leaves out the padding of an argument', param((argument) => misspelt(argument, 'no padding'))],
    ['H44', 'sets the spare bits of an argument', param((argument) => misspelt(argument, 'spare bits'))],
    ['H45', 'encodes the argument as UTF-16', param((argument) => wrapped(argument, 'utf16le'))],
    ['H46', 'adds a byte of Latin-1 to an argument', param((argument) => `${argument}\xe9`)],
    ['H47', 'writes an integer in hexadecimal', mirroredInteger((n) => `0x${n.toString(16)}`)],
    ['H48', 'mirrors a fraction of an integer', mirroredInteger((n) => `${n}.5`)],
    ['H49', 'mirrors another integer', mirroredInteger((n) => `${n + 1}`)],
  ]),
  block(CUSTOM, yes, REFUSES, [
    [
      'H50',
      'mirrors an argument that the body has not',
      mirrored(({ name }) => cut('params', 'arguments', name)),
    ],
  ]),
  block(CUSTOM, ask, ASKS, [
    ['H51', 'honestly encodes the argument', param(wrapped)],
    ['H52', 'honestly writes an integer with a fraction of zero', mirroredInteger((n) => `${n}.0`)],
    ['H53', 'sends a parameter header that no tool has', also('Mcp-Param-Nonsense', 'x')],
  ]),
  block(ENCODING, ask, ASKS, [
    ['H54', 'honestly encodes the name', named(wrapped)],
    ['H55', 'honestly puts spaces around the name', named((name) => `  ${name}\t`)],
  ]),
  block(CASE, ask, ASKS, [['H56', 'honestly writes header names in other case', otherCase]]),
  block(EARLIER, ask, NO_SESSION, [['H57', 'brings an old session id', session]]),
  block(VALIDATION, list, SERVED, [['H58', 'names a tool where none is needed', header(NAME, 'junk')]]),
)

/** Another id, as JSON says it. */
const id = (json: string) => text((old) => old.replace(/"id":\d+/, `"id":${json}`))

const envelope = group(
  'envelope',
  block(MESSAGES, yes, NOT_JSON, [
    ['E01', 'sends no body', text(() => '')],
    ['E02', 'sends half of the JSON', text((json) => json.slice(0, json.length / 2))],
    ['E03', 'sends a byte that is not UTF-8', text((json) => withBytes(json, 0xff))],
    ['E04', 'sends an overlong encoding', text((json) => withBytes(json, 0xc0, 0xaf))],
    ['E05', 'sends a surrogate as UTF-8', text((json) => withBytes(json, 0xed, 0xa0, 0x80))],
    ['E06', 'sends UTF-16', text((json) => Buffer.from(json, 'utf16le'))],
    ['E07', 'sends two objects', text((json) => json + json)],
    ['E08', 'leaves a comma at the end', text((json) => `${json.slice(0, -1)},}`)],
    ['E09', 'comments its JSON', text((json) => `/**/${json}`)],
    ['E10', 'quotes like JavaScript', text((json) => json.replaceAll('"', "'"))],
    ['E11', 'sends a number that JSON has not', text((json) => json.replace('{', '{"x":NaN,'))],
    ['E12', 'ends a string with a raw line feed', text((json) => json.replace('"2.0"', '"2.0\n"'))],
  ]),
  block(SENDING, yes, NO_REQUEST_NO_ID, [
    ['E13', 'sends a batch of one', body((b) => [b])],
    ['E14', 'sends a batch of two', body((b) => [{ jsonrpc: '2.0', method: 'notifications/x' }, b])],
    ['E15', 'sends an empty batch', body(() => [])],
    ['E16', 'sends null', body(() => null)],
    ['E17', 'sends a string of JSON', body((b) => JSON.stringify(JSON.stringify(b)))],
    ['E18', 'sends a number', body(() => 42)],
  ]),
  block(SENDING, yes, REFUSES, [
    ['E19', 'posts a result', body(() => ({ jsonrpc: '2.0', id: 5, result: { resultType: 'complete' } }))],
    ['E20', 'posts an error', body(() => ({ jsonrpc: '2.0', id: 5, error: { code: 1, message: 'x' } }))],
    ['E21', 'sends a request that is also a result', put({}, 'result')],
  ]),
  block(REQUESTS, yes, NO_REQUEST_NO_ID, [
    ['E22', 'sends a null id', id('null')],
    ['E23', 'sends a fraction as id', id('1.5')],
    ['E24', 'sends a boolean as id', id('true')],
    ['E25', 'sends an object as id', id('{}')],
    ['E26', 'sends an array as id', id('[1]')],
    ['E27', 'sends an id that no double can hold', id('9007199254740993')],
  ]),
  block(REQUESTS, yes, NO_REQUEST, [
    ['E28', 'leaves jsonrpc out', cut('jsonrpc')],
    ['E29', 'speaks JSON-RPC 1.0', put('1.0', 'jsonrpc')],
    ['E30', 'sends jsonrpc as a number', put(2, 'jsonrpc')],
    ['E31', 'leaves the method out', cut('method')],
    ['E32', 'sends the method as an array', put(['tools/call'], 'method')],
    ['E33', 'hides the method behind __proto__', hidden('method')],
  ]),
  block(REQUESTS, ask, ASKS, [
    ['E34', 'honestly sends zero as id', id('0')],
    ['E35', 'honestly sends an empty string as id', id('""')],
  ]),
  block(NOTIFICATIONS, yes, NEVER_RUN, [
    ['E36', 'calls without an id', cut('id')],
    ['E37', 'dresses a call as a notification', cut('id'), calling('notifications/tools/call')],
  ]),
  block(NOTIFICATIONS, yes, ACCEPTED, [
    ['E38', 'cancels a request that nobody made', cut('id'), calling('notifications/cancelled')],
  ]),
  block(INITIALIZE, legacy('notifications/initialized'), NEVER_RUN, [
    ['E39', 'ends an old handshake', cut('id')],
  ]),
  block(INITIALIZE, legacy('initialize'), OLD_CLIENT, [['E40', 'begins an old handshake']]),
  block(CODES, yes, UNKNOWN_METHOD, [
    ['E41', 'calls a method that is none', calling('no/such')],
    ['E42', 'calls a method in other case', calling('Tools/Call')],
    ['E43', 'calls a method of every object', calling('constructor')],
    ['E44', 'calls the prototype of every object', calling('__proto__')],
    ['E45', 'calls a notification', calling('notifications/cancelled')],
    ['E46', 'pings, which was removed', calling('ping')],
    ['E47', 'sets the log level, which was removed', calling('logging/setLevel')],
    ['E48', 'calls what is not advertised', unadvertised],
  ]),
  block(META, yes, MALFORMED, [
    ['E49', 'leaves params out', cut('params')],
    ['E50', 'sends null as params', put(null, 'params')],
    ['E51', 'sends an array as params', put([], 'params')],
    ['E52', 'sends a string as params', put('x', 'params')],
    ['E53', 'leaves _meta out', cut('params', '_meta')],
    ['E54', 'sends null as _meta', put(null, 'params', '_meta')],
    ['E55', 'sends an array as _meta', put([], 'params', '_meta')],
    ['E56', 'hides _meta behind __proto__', hidden('_meta')],
    ['E57', 'leaves the version out of the body', metaless('protocolVersion')],
    ['E58', 'sends the version as a number', meta(20_260_728, 'protocolVersion')],
    ['E59', 'leaves the capabilities out', metaless('clientCapabilities')],
    ['E60', 'sends null as capabilities', capable(null)],
    ['E61', 'sends an array as capabilities', capable([])],
    ['E62', 'sends a string as capabilities', capable('elicitation')],
  ]),
  block(META, yes, REFUSES, [
    ['E63', 'declares a capability as true', capable({ elicitation: true })],
    ['E64', 'declares a mode as true', capable({ elicitation: { form: true } })],
    ['E65', 'declares a list of modes', capable({ elicitation: ['form'] })],
  ]),
  block(META, ask, ASKS, [
    ['E66', 'honestly does not say who it is', metaless('clientInfo')],
    ['E67', 'sends _meta keys that nobody knows', meta({}, 'no-such-key')],
  ]),
  block(VERSIONS, yes, OTHER_VERSION, [
    ['E68', 'speaks an older revision', speaking('2025-11-25')],
    ['E69', 'speaks a revision that never was', speaking('1900-01-01')],
    ['E70', 'speaks a later revision', speaking('2099-01-01')],
    ['E71', 'speaks a version of another form', speaking('v999.0.0')],
    ['E72', 'names a member of every object as version', speaking('constructor')],
  ]),
  block(VERSION_HEADER, yes, MISMATCH, [
    ['E73', 'speaks another version in the body', meta('v999.0.0', 'protocolVersion')],
    ['E74', 'puts a space behind the version in the body', meta('2026-07-28 ', 'protocolVersion')],
  ]),
  special(STATELESS, [['E75', 'relies on the capabilities of the request before', reliesOnBefore]]),
)

const DEEP = '['.repeat(20_000) + ']'.repeat(20_000)

const firstPass = group(
  'first pass',
  block(MRTR, ask, ASKS_WELL, [['F01', 'honestly calls']]),
  block(TOOL_ERRORS, ask, BAD_PARAMS, [
    ['F02', 'calls a tool that is none', tool(() => 'no_such_tool')],
    ['F03', 'writes the name of the tool in other case', tool(swapCase)],
    ['F04', 'puts a space behind the name of the tool', tool((name) => `${name} `)],
    ['F05', 'calls a member of every object', tool(() => 'constructor')],
    ['F06', 'calls the prototype of every object', tool(() => '__proto__')],
  ]),
  block(TOOL_ERRORS, ask, REFUSES, [
    ['F07', 'names no tool', cut('params', 'name')],
    ['F08', 'names a tool by number', without(NAME), put(7, 'params', 'name')],
    ['F09', 'names a tool in a member of other case', renamed('name', 'Name')],
    ['F10', 'hides the name behind __proto__', hidden('name')],
    ['F11', 'sends its arguments as JSON text', argumentsAsText],
    ['F12', 'sends its arguments as an array', noParamHeaders, put([], 'params', 'arguments')],
    ['F13', 'sends a number as arguments', noParamHeaders, put(7, 'params', 'arguments')],
  ]),
  block(TOOL_ERRORS, ask, ASKS, [
    ['F14', 'names another tool in a member of other case', put('x', 'params', 'Name')],
  ]),
  block(TOOL_SECURITY, needing(requiredArgument, ask), REFUSES, [
    ['F15', 'leaves the arguments out', noParamHeaders, cut('params', 'arguments')],
    ['F16', 'sends null as arguments', noParamHeaders, put(null, 'params', 'arguments')],
    ['F17', 'sends no argument', noParamHeaders, put({}, 'params', 'arguments')],
    ['F18', 'hides its arguments behind __proto__', noParamHeaders, hidden('arguments')],
    ['F19', 'sends null for an argument', required(null)],
    ['F20', 'sends an object for an argument', required({})],
    ['F21', 'sends an array for an argument', required(['x'])],
    ['F22', 'sends a number for a text', both(() => 42)],
    ['F23', 'sends true for a text', plain(() => true)],
    ['F24', 'sends a text for an integer', integer(String)],
    ['F25', 'sends a fraction for an integer', integer((n) => n + 0.5)],
  ]),
  block(TOOL_SECURITY, ask, ASKS_OR_REFUSES, [
    ['F26', 'confirms by an argument', extra({ confirm: true, confirmed: true, force: true, yes: true })],
    ['F27', 'reaches for a prototype', inArguments('"__proto__":{"a":1},"constructor":{}')],
    ['F28', 'nests an argument 20 000 deep', inArguments(`"deep":${DEEP}`)],
    ['F29', 'sends a number that no double can hold', inArguments('"huge":1e400,"long":9007199254740993')],
    ['F30', 'sends a text of 100 kB', plain(() => 'x'.repeat(100_000))],
    ['F31', 'sends half a surrogate pair', plain((argument) => `${argument}\ud800`)],
  ]),
  block(TOOL_SECURITY, ask, or(ASKS_VISIBLY, REFUSES), [
    ['F32', 'turns the direction of the question', plain((argument) => `\u202e${argument}\u2066`)],
    ['F33', 'adds lines to the question', plain((argument) => `${argument}\n\nThis is safe.\u001b[2J`)],
    ['F34', 'hides text of no width in the question', plain((argument) => `\u200b${argument}\u2060`)],
  ]),
  block(CAPABILITIES, ask, INCAPABLE, [
    ['F35', 'declares no capability', capable({})],
    ['F36', 'declares another capability', capable({ sampling: {}, roots: {} })],
    ['F37', 'declares only the URL mode', capable({ elicitation: { url: {} } })],
    ['F38', 'declares the capability in other case', capable({ Elicitation: { form: {} } })],
    ['F39', 'hides the capability behind __proto__', capable(behindProto({ elicitation: {} }))],
  ]),
  block(CAPABILITIES, ask, ASKS, [
    ['F40', 'honestly declares no mode, which means forms', capable({ elicitation: {} })],
    ['F41', 'honestly declares both modes', capable({ elicitation: { form: {}, url: {} } })],
  ]),
  block(PAGES, list, BAD_PARAMS, [
    ['F42', 'invents a cursor', put('no-such-cursor', 'params', 'cursor')],
    ['F43', 'sends a number as cursor', put(1, 'params', 'cursor')],
  ]),
  special(TOOLS, [['F44', 'honestly lists the tools as somebody else', listsAsAnother]]),
)

const reversed = (given: Json): Json => {
  if (Object.keys(given).length < 2) throw new Skip('there is only one argument')
  return Object.fromEntries(Object.entries(given).reverse())
}
/** Every small letter inside the arguments as JSON escapes it. */
const escaped = (json: string) =>
  json.replace(/(?<="arguments":)\{.*?\}/, (given) =>
    given.replace(/[a-z]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
  )
const noise = (length: number) => randomBytes(length).toString('base64url').slice(0, length)
const appended = (more: string) => state((s) => s + more)

const states = group(
  'state',
  block(MRTR, uninvited, ASKS_OR_REFUSES, [
    ['S01', 'says yes before it was asked'],
    ['S02', 'says yes and sends null as state', put(null, 'params', 'requestState')],
  ]),
  block(MRTR, yes, ASKS_OR_REFUSES, [
    ['S03', 'puts the state into _meta', moved('params', '_meta', 'requestState')],
    ['S04', 'puts the state into the arguments', moved('params', 'arguments', 'requestState')],
    ['S05', 'puts the state into the answers', moved('params', 'inputResponses', 'requestState')],
    ['S06', 'puts the state beside params', moved('requestState')],
    ['S07', 'hides the state behind __proto__', hidden('requestState')],
    ['S08', 'writes the member in other case', renamed('requestState', 'RequestState')],
    ['S09', 'puts the state into a header', inHeader],
    ['S10', 'puts the state into the query', inQuery],
  ]),
  block(MRTR, yes, REFUSES, [
    ['S11', 'sends an empty state', state(() => '')],
    ['S12', 'sends a number as state', state(() => 7)],
    ['S13', 'sends true as state', state(() => true)],
    ['S14', 'sends an array with the state', state((s) => [s])],
    ['S15', 'sends an object as state', state((s) => ({ state: s }))],
    ['S16', 'changes the first character', state((s) => changedAt(s, 0))],
    ['S17', 'changes a character in the middle', state((s) => changedAt(s, Math.floor(s.length / 2)))],
    ['S18', 'changes the last character', state((s) => changedAt(s, s.length - 1))],
    ['S19', 'changes the case of the first letter', state((s) => s.replace(/[a-z]/i, swapCase))],
    ['S20', 'changes the case of every letter', state(swapCase)],
    ['S21', 'cuts off the last character', state((s) => s.slice(0, -1))],
    ['S22', 'cuts off the first character', state((s) => s.slice(1))],
    ['S23', 'cuts off the second half', state((s) => s.slice(0, s.length / 2))],
    ['S24', 'keeps only the beginning', state((s) => s.slice(0, 3))],
    ['S25', 'appends a character', appended('A')],
    ['S26', 'appends -TAMPERED', appended('-TAMPERED')],
    ['S27', 'appends padding', appended('=')],
    ['S28', 'appends a space', appended(' ')],
    ['S29', 'appends a line feed', appended('\n')],
    ['S30', 'appends a NUL', appended('\0')],
    ['S31', 'appends a segment', appended('.AAAA')],
    ['S32', 'puts a byte order mark before it', state((s) => `\ufeff${s}`)],
    ['S33', 'puts a space into it', state((s) => `${s.slice(0, 20)} ${s.slice(20)}`)],
    ['S34', 'percent-encodes a character', state(percentEncoded)],
    ['S35', 'writes a character in full width', state(fullWidth)],
    ['S36', 'sets the spare bits of the last character', state(withSpareBits)],
    ['S37', 'sends it twice in a row', state((s) => s + s)],
    ['S38', 'joins it with another state', state(async (s, t) => s + (await asked(t)).state)],
    [
      'S39',
      'begins one state and ends another',
      state(async (s, t) => s.slice(0, -40) + (await asked(t)).state.slice(-40)),
    ],
    ['S40', 'sends random characters', state((s) => noise(s.length))],
    ['S41', 'sends 64 kB of random characters', state(() => noise(65_536))],
    ['S42', 'sends 1 MiB of random characters', state(() => noise(1_048_576))],
    ['S43', 'sends an unsigned token', state(() => 'eyJhbGciOiJub25lIn0.eyJjb25maXJtIjp0cnVlfQ.')],
    ['S44', 'sends a state in plain JSON', state(() => '{"confirm":true}')],
  ]),
  block(MRTR, yesWith(/[-_]/), REFUSES, [
    ['S45', 'spells it in the other alphabet', state((s) => s.replace(/-/g, '+').replace(/_/g, '/'))],
  ]),
  block(MRTR, yes, REFUSES, [
    ['S46', 'confirms one call and makes another', plain((argument) => `${argument}-other`)],
    ['S47', 'changes an argument and its header', both((argument) => `${argument}-other`)],
    ['S48', 'changes the case of an argument', both(swapCase)],
    ['S49', 'puts a space behind an argument', plain((argument) => `${argument} `)],
    ['S50', 'replaces a letter by a look-alike', both(lookAlike)],
    ['S51', 'sends an array with the same argument', plain((argument) => [argument])],
    ['S52', 'changes a number', integer((n) => n + 1)],
    ['S53', 'adds an argument that was left out', args((given, t) => ({ ...given, ...leftOut(t) }))],
    ['S54', 'confirms one tool and calls another', otherTool],
  ]),
  block(MRTR, yes, ACTS, [
    ['S55', 'honestly sends the arguments in another order', args(reversed)],
    ['S56', 'honestly indents its JSON', text((json) => JSON.stringify(JSON.parse(json), null, '\t'))],
    ['S57', 'honestly escapes every letter', text(escaped)],
    ['S58', 'honestly reports progress', put('p-1', 'params', '_meta', 'progressToken')],
    ['S59', 'adds a member that nobody knows', put({ confirm: false }, 'params', 'noSuchMember')],
  ]),
  block(MRTR, yes, ACTS_OR_REFUSES, [
    ['S60', 'adds an argument that nobody declared', extra({ no_such: 'x' })],
  ]),
  block(MRTR_ERRORS, mute, ASKS_AGAIN, [
    ['S61', 'sends the state and no answer'],
    ['S62', 'sends the state and empty answers', put({}, 'params', 'inputResponses')],
  ]),
  block(CAPABILITIES, yes, INCAPABLE, [
    ['S63', 'takes its capability back on the retry', capable({})],
    ['S64', 'retries with only the URL mode', capable({ elicitation: { url: {} } })],
  ]),
  block(CAPABILITIES, mute, INCAPABLE, [
    ['S65', 'takes its capability back and does not answer', capable({})],
  ]),
  block(SUPPORTED, list, SERVED, [
    ['S66', 'lists the tools with a state', put('x', 'params', 'requestState')],
  ]),
  block(SUPPORTED, discover, SERVED, [
    ['S67', 'discovers with a state', put('x', 'params', 'requestState')],
  ]),
  special(MRTR, [
    ['S68', 'compares the refusals', comparesRefusals],
    ['S69', 'sends its yes twice', saysYesTwice],
    ['S70', 'says no, then yes', changesItsMind],
    ['S71', 'sends its yes three times at once', hurries],
  ]),
)

const MODEL_CONTENT = { type: 'text', text: 'yes' }
const MANY = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`no-${i}`, { action: 'accept' }]))

const answered = group(
  'answer',
  block(ACTIONS, yes, ACTS, [['A01', 'honestly says yes']]),
  block(FORM_SECURITY, yes, ASKS_OR_REFUSES, [
    ['A02', 'confirms with the text "true"', confirming('true')],
    ['A03', 'confirms with the text "yes"', confirming('yes')],
    ['A04', 'confirms with 1', confirming(1)],
    ['A05', 'confirms with null', confirming(null)],
    ['A06', 'confirms with an empty array', confirming([])],
    ['A07', 'confirms with an array', confirming([true])],
    ['A08', 'confirms with an object', confirming({})],
    ['A09', 'confirms with the text "false"', confirming('false')],
    ['A10', 'accepts and confirms nothing', holding({})],
    ['A11', 'confirms another field', holding({ no_such_field: true })],
    ['A12', 'writes the field in other case', content((h, t) => ({ [swapCase(t.field)]: h[t.field] }))],
    ['A13', 'accepts without content', instead({ action: 'accept' })],
    ['A14', 'accepts with null as content', holding(null)],
    ['A15', 'accepts with an array as content', content((honest) => [honest])],
    ['A16', 'accepts with a text as content', holding('true')],
    ['A17', 'accepts with true as content', holding(true)],
    ['A18', 'accepts with JSON text as content', content((honest) => JSON.stringify(honest))],
    ['A19', 'hides the content behind __proto__', content(behindProto)],
    [
      'A20',
      'confirms beside the content',
      answer(({ action, content }) => ({ action, ...Object(content) })),
    ],
    ['A21', 'types one character too many', typingTooMuch],
    ['A22', 'types a number into a text field', typing(5)],
    ['A23', 'types an object into a text field', typing({ a: 1 })],
  ]),
  block(ACTIONS, yes, ASKS_OR_REFUSES, [
    ['A24', 'writes the action with a capital', acting('Accept')],
    ['A25', 'writes the action in capitals', acting('ACCEPT')],
    ['A26', 'approves instead of accepting', acting('approved')],
    ['A27', 'puts a space behind the action', acting('accept ')],
    ['A28', 'sends an empty action', acting('')],
    ['A29', 'sends null as action', acting(null)],
    ['A30', 'sends a number as action', acting(1)],
    ['A31', 'sends true as action', acting(true)],
    ['A32', 'sends an array as action', acting(['accept'])],
    ['A33', 'leaves the action out', answer(({ content }) => ({ content }))],
    ['A34', 'hides the answer behind __proto__', answer(behindProto)],
  ]),
  block(MRTR_ERRORS, yes, ASKS_OR_REFUSES, [
    ['A35', 'answers with null', instead(null)],
    ['A36', 'answers with a number', instead(12_345)],
    ['A37', 'answers with true', instead(true)],
    ['A38', 'answers with a word', instead('accept')],
    ['A39', 'answers with JSON text', answer((honest) => JSON.stringify(honest))],
    ['A40', 'answers with an array', answer((honest) => [honest])],
    ['A41', 'wraps the answer in a result', answer((result) => ({ result }))],
    [
      'A42',
      'wraps the answer and its method',
      answer((result) => ({ method: 'elicitation/create', result })),
    ],
    ['A43', 'answers like a model', instead({ role: 'assistant', model: 'm', content: MODEL_CONTENT })],
    ['A44', 'answers with roots', instead({ roots: [{ uri: 'file:///' }] })],
    ['A45', 'answers another question', answers((honest, t) => ({ no_such_question: honest[t.key] }))],
    ['A46', 'writes the key in other case', answers((honest, t) => ({ [swapCase(t.key)]: honest[t.key] }))],
    ['A47', 'answers under __proto__', answers(behindProto)],
    ['A48', 'answers under constructor', answers((honest, t) => ({ constructor: honest[t.key] }))],
    ['A49', 'puts the answer where the answers go', answers((honest, t) => honest[t.key])],
    ['A50', 'sends null as answers', answers(() => null)],
    ['A51', 'sends an array of answers', answers((honest) => Object.values(honest))],
    ['A52', 'sends its answers as JSON text', answers((honest) => JSON.stringify(honest))],
    ['A53', 'sends a number as answers', answers(() => 12_345)],
    ['A54', 'answers in the arguments', answersIn('params', 'arguments')],
    ['A55', 'answers in _meta', answersIn('params', '_meta')],
    ['A56', 'answers beside params', answersIn()],
  ]),
  block(ACTIONS, yes, DECLINED, [
    ['A57', 'declines', instead({ action: 'decline' })],
    ['A58', 'declines and fills in a yes', acting('decline')],
  ]),
  block(ACTIONS, yes, NOTHING_DONE, [
    ['A59', 'cancels', instead({ action: 'cancel' })],
    ['A60', 'cancels and fills in a yes', acting('cancel')],
    ['A61', 'accepts with no', confirming(false)],
    ['A62', 'declines with broken content', chain(acting('decline'), holding('true'))],
  ]),
  block(MRTR_ERRORS, yes, ACTS, [
    [
      'A63',
      'answers one question more',
      answers((honest) => ({ ...honest, no_such: { action: 'decline' } })),
    ],
    ['A64', 'adds a member to the answer', answer((honest) => ({ ...honest, confirm: false, note: 'x' }))],
  ]),
  block(MRTR_ERRORS, yes, ACTS_OR_REFUSES, [
    ['A65', 'adds fields to the content', content((honest) => ({ ...honest, user: 'admin', no_such: 1 }))],
    ['A66', 'sends 10 000 answers more', answers((honest) => ({ ...MANY, ...honest }))],
  ]),
  block(TOOL_SECURITY, yes, or(SAYS_VISIBLY, ASKS_OR_REFUSES), [
    ['A67', 'types what a terminal obeys', typing('\u001b[2J\u202etxet\u0007')],
  ]),
  block(STATELESS, ask, ASKS, [['A68', 'honestly calls after all of this']]),
)

export const CASES: readonly Case[] = [
  ...transport,
  ...headers,
  ...envelope,
  ...firstPass,
  ...states,
  ...answered,
]
