/** The checks of state, answer and admission, each as the text that removes it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are source code

export type Mutant = {
  readonly file: string
  /** What the program then lacks. */
  readonly without: string
  /** Stands exactly once in the file. */
  readonly from: string
  readonly to: string
  /** The test files, one of which must fail. */
  readonly tests: readonly string[]
}

const mutant =
  (file: string, tests: readonly string[]) =>
  (without: string, from: string, to = ''): Mutant => ({ file, without, from, to, tests })

const http = mutant('lib/http-server.ts', ['faults'])
const lifecycle = mutant('lib/lifecycle.ts', ['event-stream'])
const config = mutant('lib/config.ts', ['config'])
const edge = mutant('lib/edge.ts', ['edge'])
const rules = mutant('lib/http-rules.ts', ['edge'])
const body = mutant('lib/body.ts', ['edge'])
const admission = mutant('lib/admission.ts', ['admission'])
const envelope = mutant('lib/envelope.ts', ['admission'])
const meta = mutant('lib/request-meta.ts', ['admission'])
const headers = mutant('lib/headers.ts', ['headers', 'admission'])
const call = mutant('lib/tools-call.ts', ['admission', 'headers', 'gate', 'rate-limit'])
const retry = mutant('lib/retry.ts', ['admission'])
const boundary = mutant('lib/boundary.ts', ['boundary', 'state'])
const capability = mutant('lib/capabilities.ts', ['gate', 'boundary'])
const gate = mutant('lib/gate.ts', ['gate', 'single-use', 'scale-service'])
const form = mutant('lib/form.ts', ['gate'])
const state = mutant('lib/state.ts', ['state'])
const payload = mutant('lib/state-payload.ts', ['state'])
const hmac = mutant('lib/hmac.ts', ['hmac'])
const seal = mutant('lib/seal.ts', ['seal'])
const encryption = mutant('lib/encryption.ts', ['encryption'])
const single = mutant('lib/single-use.ts', ['single-use', 'scale-service'])
const store = mutant('lib/outcome-store.ts', ['single-use'])
const scale = mutant('lib/tools/scale-service.ts', ['scale-service'])
const command = mutant('lib/command.ts', ['command'])
const rate = mutant('lib/rate-limit.ts', ['rate-limit'])
const bearer = mutant('lib/bearer.ts', ['auth-tokens'])
const jwt = mutant('lib/jwt.ts', ['auth-jwt'])
const jwks = mutant('lib/jwks.ts', ['auth-jwt'])
const oauth = mutant('lib/auth-jwt.ts', ['auth-jwt'])
const tokens = mutant('lib/auth-tokens.ts', ['auth-tokens'])
const definition = mutant('lib/tool-definition.ts', ['tool-definition'])
const stream = mutant('lib/event-stream.ts', ['event-stream'])
const methods = mutant('lib/methods.ts', ['methods'])
const result = mutant('lib/result.ts', ['methods'])
const otherMethods = mutant('lib/boundary.ts', ['methods'])
const exchange = mutant('lib/exchange.ts', ['event-stream'])

export const MUTANTS: readonly Mutant[] = [
  edge('row 1', 'exchange.origin = allowedOrigin(headers, rules)', 'exchange.origin = undefined'),
  edge('row 3', 'requireHost(headers, rules)'),
  http('the answers behind the one that closes', '&& last.get(exchange.request.socket) === exchange'),
  lifecycle('the answers that are still leaving', 'if (!leaving()) '),
  config('origins that no browser sends', '&& new URL(text).origin === text'),
  config('blank secrets', "bytes?.toString('latin1').trim() === ''", 'bytes === undefined'),
  edge('row 4', 'requireEndpoint(path)'),
  edge('row 5', 'requirePost(verb)'),
  edge('row 7', 'requireJson(headers)'),
  rules(
    'a repeated Origin',
    'if (lines.length === 1 && (local || listed) && URL',
    'if ((local || listed) && URL',
  ),
  rules(
    'a repeated Host',
    'if (more.length === 0 && (local || listed)) return',
    'if (local || listed) return',
  ),
  rules('Content-Encoding', " && !headers.has('content-encoding')", ''),
  rules('the charset', "every((charset) => charset === 'utf-8')", 'every(() => true)'),
  body(
    'the declared length',
    "if (Number(headers.get('content-length')?.[0]) > limit) throw tooLarge(limit)",
  ),
  body('the counted length', 'if (size <= limit) return chunks.push(chunk)', 'return chunks.push(chunk)'),
  admission('row 12', 'requirePresent(headers, VERSION_HEADER, versionInBody(envelope.params))'),
  admission('row 14', 'requireMirrored(headers, VERSION_HEADER, version)'),
  admission('row 15', 'requireSupported(version)'),
  admission(
    'row 16',
    'const capabilities = readCapabilities(meta)',
    'const capabilities = Object(meta["io.modelcontextprotocol/clientCapabilities"])',
  ),
  admission('row 17', "requireMirrored(headers, 'Mcp-Method', method)"),
  admission('row 18', 'requireName(headers, method, params)'),
  envelope('strict UTF-8', 'if (isUtf8(body)) return', 'return'),
  envelope(
    'batches',
    "if (Array.isArray(message)) throw invalidRequest('send one message at a time, never a batch')",
    'if (Array.isArray(message)) return readEnvelope(message[0])',
  ),
  envelope(
    'responses',
    "if (hasOutcome(message)) throw invalidRequest('a client sends requests, not responses')",
  ),
  envelope('jsonrpc', "if (jsonrpc !== '2.0') throw invalidRequest('jsonrpc must be \"2.0\"')"),
  envelope(
    'a null id',
    "if (Object.hasOwn(message, 'id')) throw invalidRequest('id must be a string or a safe integer')",
  ),
  envelope('a missing id', "if (method.startsWith('notifications/')) return undefined", 'return undefined'),
  envelope('safe integers', 'Number.isSafeInteger(id)', "typeof id === 'number'"),
  envelope(
    'versions for initialize',
    "if (method !== 'initialize') return refusal.to(id)",
    'return refusal.to(id)',
  ),
  meta(
    'the type of known keys',
    'if (!check(own(meta, key)))',
    'if (false && !check(own(meta, key)) && expected)',
  ),
  headers(
    'repeated lines',
    "if (lines.length > 1) throw mismatch(header, lines.join(', '), inBody, ' (repeated)')",
  ),
  headers(
    'plain ASCII',
    "if (!FIELD_VALUE.test(value)) throw mismatch(header, value, inBody, ' (not plain ASCII)')",
  ),
  headers(
    'the comparison of parameters',
    'if (absent || !equals(value, argument, type)) throw mismatch(header, value, inBody)',
    'void equals(value, argument, type)',
  ),
  headers(
    'a header without argument',
    'if (absent && !headers.has(header.toLowerCase())) continue',
    'if (absent) continue',
  ),
  headers('canonical Base64', "if (bytes.toString('base64') !== text) return undefined"),
  headers('safe integers', 'Number.isSafeInteger(argument) && INTEGER', 'INTEGER'),
  call('row 21', 'for (const permit of permits) permit(request, tool.scope)', 'void permits'),
  call('row 22', 'requireMirroredParams(request.arrival.headers, tool.paramHeaders, args)'),
  call('the schema', 'if (fault !== undefined) return fault.message', 'void fault'),
  call(
    'what JSON parsers disagree on',
    'ambiguity(declared)?.message ?? ',
    '(ambiguity as unknown as undefined) ?? ',
  ),
  retry(
    'a state that is no string',
    "throw invalidParams('requestState must be a string')",
    'return { requestState: undefined, answers: {} }',
  ),
  boundary(
    'the refusal of states',
    "if (opened !== undefined && 'failure' in opened) {",
    "if (opened !== undefined && 'failure' in opened && method === '') {",
  ),
  boundary('questions that can be answered', 'requireAnswerable(capabilities, inputRequests)'),
  boundary('the running flow', 'current ??= states.begin()', 'current = states.begin()'),
  capability('modes', 'Object.keys(modes).every((mode) => covers(name, have, mode))', 'Boolean(covers)'),
  capability('form is the default mode', 'Object.keys(have).length === 0', 'true'),
  gate(
    'row 25 on the retry',
    'requireCapability(call.capabilities, FORM) // row 25; the boundary looks before each question',
  ),
  gate(
    'the question that was asked',
    "if (answer.kind === 'unclear' || change !== undefined) return",
    "if (answer.kind === 'unclear') return",
  ),
  gate(
    'an unclear answer',
    "if (answer.kind === 'unclear' || change !== undefined) return asking(asked, change)",
    'if (change !== undefined) return asking(asked, change)',
  ),
  gate('a no', "if (answer.kind === 'no') return toolResult(cancelled(args))"),
  gate('a client that is gone', 'if (client.gone) throw goneClient()'),
  gate('an earlier outcome', 'if (earlier !== undefined) return earlier'),
  gate(
    'visible text',
    'const message = visible(change === undefined ? question : `${change} ${question}`)',
    'const message = change === undefined ? question : `${change} ${question}`',
  ),
  form('decline', "if (action === 'decline') return { kind: 'no', decision: 'declined' }"),
  form('cancel', "if (action === 'cancel') return { kind: 'no', decision: 'cancelled' }"),
  form('the action', "if (action !== 'accept' || !isObject(content)", 'if (!isObject(content)'),
  form('the schema of the answer', '|| check(content)) return', ') return'),
  form(
    'exactly true',
    "if (own(content, 'confirm') !== true)",
    "if (own(content, 'confirm') === undefined)",
  ),
  state('the audience', "if (!same(payload.audience, audience)) return 'audience'"),
  state('the principal', "if (!same(payload.principal, principal)) return 'principal'", 'void principal'),
  state('the method', "if (!same(payload.method, binding.method)) return 'method'"),
  state('the target', "if (!same(payload.target, binding.target)) return 'target'"),
  state('the arguments', "if (!same(payload.arguments, binding.arguments)) return 'arguments'"),
  state('the end of the flow', 'Math.min(issuedAt + ttlMs, flow.endsAt)', 'issuedAt + ttlMs'),
  state('a clock that fails', 'if (!isTime(issuedAt)) throw', 'if (issuedAt === -1) throw'),
  payload('the version', 'v === 1 && typed', 'v !== undefined && typed'),
  payload('one text for one payload', ' && writePayload(value) === text', ''),
  payload(
    'the order of times',
    'const inOrder = issuedAt < expiresAt && expiresAt <= flowEndsAt',
    'const inOrder = issuedAt < flowEndsAt',
  ),
  payload(
    'the longest life',
    'const bounded = flowEndsAt <= issuedAt + FLOW_MS + CLOCK_SKEW_MS',
    'const bounded = true || CLOCK_SKEW_MS > flowEndsAt',
  ),
  payload('the future', "if (!(issuedAt <= now + CLOCK_SKEW_MS)) return 'future'"),
  payload('the expiry', "if (!(now < expiresAt)) return 'expired'"),
  payload('the last millisecond', 'if (!(now < expiresAt))', 'if (!(now <= expiresAt))'),
  seal('the length', "if (token.length > MAX_TOKEN) return { failure: 'too_long' }"),
  seal('one spelling', "return bytes.toString('base64url') === text ? bytes : undefined", 'return bytes'),
  seal(
    'the MAC',
    'timingSafeEqual(bytes.subarray(-MAC_BYTES), ',
    'timingSafeEqual(mac(PREFIX_BYTES, signed), ',
  ),
  seal('the prefix under the MAC', 'Buffer.from(PREFIX)', 'Buffer.alloc(0)'),
  hmac('the outer key', '0x5c', '0x36'),
  hmac('long keys', 'if (key.length > BLOCK_BYTES)', 'if (key.length > 1000)'),
  seal('short secrets', 'if (secret.length < MIN_SECRET)', 'if (secret.length < 1)'),
  seal('the same secret twice', "if (ring.has(id.toString('latin1'))) throw", "if (ring.has('')) throw"),
  encryption('the associated data', 'decipher.setAAD(Buffer.concat([Buffer.from(PREFIX), id]))'),
  single('what the key is about', 'if (entry.about !== about) return OTHER'),
  single(
    'the wait',
    'if (stopping.aborted || now() - started >= WAIT_MS) return RUNNING',
    "if (entry.state === 'running') return RUNNING",
  ),
  single('the stop that ends the wait', 'stopping.aborted || '),
  single(
    'overdue actions',
    'if (now() - entry.since > actionMs + OVERDUE_MS) return UNKNOWN',
    'if (now() - entry.since > actionMs + OVERDUE_MS) return RUNNING',
  ),
  single('the claim', 'if (there === undefined) break', 'break'),
  store('live entries', 'if (there === undefined) write(key, value, lifeMs)', 'write(key, value, lifeMs)'),
  store('the capacity', 'if (entries.size >= capacity) throw', 'if (entries.size < 0) throw'),
  scale('the spending limit', 'cents > limitCents ? tooExpensive(cents, limitCents) : ', ''),
  scale('the rise of the price', 'if (cents <= before) return undefined', 'return undefined'),
  scale('the idempotency key', 'if (earlier !== undefined) return earlier', 'void earlier'),
  scale(
    'two decimals',
    "if (limitCents === undefined) return argumentFault('max_spend_usd must have at most two decimals')",
    'if (limitCents === undefined) return estimated(args, 0)',
  ),
  command('the dash', "if (String(value).startsWith('-')) return `${name} must not begin with -`"),
  command('NUL', "if (String(value).includes('\\0')) return `${name} must not hold a NUL character`"),
  command('the time limit', 'overdue = true', ''),
  command('the end with the server', 'running.add(abandon)'),
  command(
    "the server's secrets",
    'filter(([name]) => !PRIVATE.test(name))',
    'filter(([name]) => name !== "" || PRIVATE.test(name))',
  ),
  rate('the limit', 'if (tokens < 1 - ROUNDING) throw refused(tokens)', 'void refused'),
  bearer('a repeated header', "if (lines.length > 1) throw malformed('authorization repeated', hints)"),
  bearer('the scheme', "if (!BEARER_SCHEME.test(line)) throw unauthorized('token missing', hints)"),
  bearer('the length', "if (token.length > MAX_TOKEN) throw invalidToken('token too long', hints)"),
  tokens('the scope', 'if (!scopes.has(scope)) throw', 'if (scopes.size < 0) throw'),
  jwt('crit', "if (Object.hasOwn(head, 'crit')) return 'token crit'"),
  jwt('the type', "if (!TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ)) return 'token type'"),
  jwt('the fit of key and algorithm', 'if (!algorithmsOf(key).includes(algorithm)) return false'),
  jwt('the signature', 'return verify(', 'return true || verify('),
  jwt('the issuer', "if (iss !== issuer) return 'token issuer'"),
  jwt('the expiry', "if (typeof exp !== 'number' || !(seconds < exp)) return 'token expired'"),
  jwt('not before', 'nbf <= seconds + SKEW', 'true'),
  jwt('the subject', "return named ? undefined : 'token subject'", 'return undefined && named'),
  jwt('repeated members', '&& membersIn(text) === membersOf(value) ? value', '? value'),
  jwks('the bounded rate', 'since(triedAt) >= MIN_INTERVAL_MS', 'true'),
  jwks('the age of keys', 'since(loadedAt) >= MAX_AGE_MS || matching', 'matching'),
  jwks('the outage', 'throw unavailable()', 'void unavailable'),
  oauth('the claims', 'if (fault !== undefined) throw invalidToken(fault, hints)', 'void fault'),
  oauth('the scope', 'if (!scopes.has(scope)) throw', 'if (scopes.size < 0) throw'),
  methods(
    'one feature for a method',
    'if (table.has(name)) throw new Error(`Two features serve ${name}: leave one of them out.`)',
  ),
  result('the _meta of a result', '({}, isObject(_meta) ? _meta : undefined, identity)', '({}, identity)'),
  result(
    "the server's own name",
    '({}, isObject(_meta) ? _meta : undefined, identity)',
    '({}, identity, isObject(_meta) ? _meta : undefined)',
  ),
  otherMethods(
    'the binding to the method',
    'const binding = { principal, method, target,',
    "const binding = { principal, method: 'any', target,",
  ),
  otherMethods(
    'the binding to the target',
    'const binding = { principal, method, target,',
    "const binding = { principal, method, target: 'any',",
  ),
  otherMethods('the refusal without a text', 'if (refusedState === undefined) throw invalidState()'),
  stream(
    'the wait for a slow reader',
    'if (response.write(event(message)) || response.destroyed) return',
    'return void response.write(event(message))',
  ),
  stream('the end of comments', '!response.writableEnded && ', ''),
  stream('a comment only where there is room', ' && !response.writableNeedDrain', ''),
  exchange('the end of notifications', ' || response.writableEnded', ''),
  exchange('a client that was gone already', '    look()\n', ''),
  exchange('who hung up', 'if (this.gone) hangUp.abort()', 'hangUp.abort()'),
  exchange('CORS on a stream', 'this.#head(EVENT_STREAM)', 'EVENT_STREAM'),
  exchange(
    'the end of the connection',
    "if (last) response.once('finish', () => request.socket.destroySoon())",
  ),
  definition('duplicate names', 'if (compiled.has(tool.name)) throw', "if (compiled.has('')) throw"),
  definition('tool names', 'if (!TOOL_NAME.test(name))', 'if (name === "")'),
  definition('stray annotations', 'if (stray !== undefined)', 'if (stray === null)'),
  definition(
    'unique headers',
    'if (params.some((other) => other.header.toLowerCase() === header.toLowerCase()))',
    "if (header === '')",
  ),
]
