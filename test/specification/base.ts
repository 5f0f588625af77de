/** What every message, version and schema has to keep to. */
import { FIXTURE_PASSES, may, must, mustNot, type Page, should, shouldNot } from './requirement.ts'

export const BASE: Page = {
  path: 'specification/2026-07-28/basic/index',
  requirements: [
    must('GEN-01', '', 'Base protocol, versioning and message patterns are there; all else is optional.', {
      'tool-definition.test.ts': ['server/discover says exactly what the contract says'],
      'admission.test.ts': [
        'a request that breaks JSON-RPC is refused with its id',
        'a method that is not served is 404 with its name, whatever a prototype has',
      ],
      'gate.test.ts': ['a yes performs what was asked, and says so with the reason'],
      'peers/fixture.test.ts': [
        'a subscription gets each change of what it asked for, with its id, and nothing else',
      ],
    }),
    must('RPC-01', 'Messages', 'Messages are JSON-RPC 2.0.', {
      'admission.test.ts': [
        'a request that breaks JSON-RPC is refused with its id',
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
    }),
    must('RPC-02', 'Requests', 'An id is a string or an integer.', {
      'admission.test.ts': [
        'an id is a string or a safe integer and comes back as it was',
        'any other id is refused and not repeated; null is not the id of a notification',
      ],
    }),
    mustNot('RPC-03', 'Requests', 'No id is null.', {
      'admission.test.ts': [
        'any other id is refused and not repeated; null is not the id of a notification',
      ],
    }),
    mustNot(
      'RPC-15',
      'Requests',
      'No id is that of another request under way from the same sender.',
      'For clients. Each HTTP exchange has its own answer, so a server need not tell two equal ids apart.',
    ),
    must('RPC-04', 'Result Responses', 'A result has the id of its request, a string staying a string.', {
      'admission.test.ts': ['an id is a string or a safe integer and comes back as it was'],
    }),
    must('RPC-05', 'Result Responses', 'A response has a `result`, and that a `resultType`.', {
      'tool-definition.test.ts': [
        'every result says which server it is from, in the version of package.json',
        'a tool error has its text and no structuredContent',
      ],
    }),
    must('RPC-06', 'ResultType', 'A `resultType` is one of the core, or of an advertised extension.', {
      'tool-definition.test.ts': [
        'every result says which server it is from, in the version of package.json',
        'server/discover says exactly what the contract says',
      ],
      'boundary.test.ts': [
        'a state that a handler makes up itself is not sent: the boundary seals its own',
      ],
    }),
    must('RPC-07', 'Error Responses', 'An error has the id of its request where that can be read.', {
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
        'an id is a string or a safe integer and comes back as it was',
      ],
      'rate-limit.test.ts': [
        'the refusal has the id of its request, a string too, and nothing that could be taken for a result',
      ],
    }),
    must('RPC-09', 'Error Responses', 'An error has an integer `code` and a `message`.', {
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
    }),
    mustNot('ERR-01', 'Error Codes', 'No new code is allocated from -32000 to -32019.', {
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
    }),
    shouldNot('ERR-02', 'Error Codes', 'No new implementation uses a code from -32000 to -32019 at all.', {
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
      'edge.test.ts': ['an origin that is not exactly a loopback one is forbidden, and reads nothing'],
    }),
    mustNot(
      'ERR-03',
      'Error Codes',
      'No code from -32020 to -32099 is sent but those that the revision defines.',
      {
        'admission.test.ts': [
          'every error repeats a readable id, and uses no code that is reserved or retired',
        ],
      },
    ),
    must('ERR-04', 'Error Codes', 'Defined codes mean what they are defined to mean, with their data.', {
      'admission.test.ts': [
        'an unsupported version is told what is supported, whatever else is wrong',
        'an unforeseen failure says Internal error and nothing of itself',
      ],
      'boundary.test.ts': ['a question is asked only of a client that declared just that, to the mode'],
    }),
    mustNot('ERR-05', 'Error Codes', 'The retired codes -32002 and -32042 are never sent.', {
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
    }),
    should('ERR-06', 'Error Codes', 'Codes of an application lie outside -32768 to -32000.', {
      'rate-limit.test.ts': [
        'as many calls as a minute may have pass at once, and the next one is refused',
      ],
    }),
    mustNot('RPC-11', 'Notifications', 'No notification is answered, and none is sent with an id.', {
      'admission.test.ts': [
        'every notification is taken with 202 and nothing else',
        'anything else without an id is refused without id and never executed',
      ],
    }),
    mustNot(
      'STATE-01',
      'Statelessness',
      'No request gets its context from earlier ones on its connection.',
      {
        'statelessness.test.ts': [
          'what one request says of its client counts for no other on its connection',
        ],
      },
    ),
    should('STATE-02', 'Statelessness', 'Requests of unrelated tasks may mingle.', {
      'gate.test.ts': [
        '20 retries at once are all answered, and each acts on its own arguments',
        'a retry may have the id of the first call, or of any other one',
      ],
      'edge.test.ts': [
        'requests in one write are answered in their order, though the second is done first',
      ],
    }),
    shouldNot(
      'HTTP-19',
      'Statelessness',
      'Related requests need neither the same connection nor the same process.',
      {
        'process.test.ts': ['what one instance asked, another with the same secret and audience accepts'],
        'peers/official-client.test.ts': ['the retry may reach another instance than the one that asked'],
      },
    ),
    must(
      'STATE-03',
      'Statelessness',
      'State beyond one request is named by an identifier in the request.',
      {
        'gate.test.ts': ['answers that come without a state are answers to nothing: the question is asked'],
        'scale-service.test.ts': [
          'a repeat of a performed call gets its outcome whole, asks nobody and does nothing',
        ],
      },
    ),
    should('MRTR-13', 'Statelessness', 'A retry brings all that is needed to go on.', {
      'process.test.ts': ['what one instance asked, another with the same secret and audience accepts'],
    }),
    should('AUTH-01', 'Auth', 'Over HTTP, authorization follows the pages on it.', {
      'auth-jwt.test.ts': [
        'without a token the challenge says where to ask and for what, and names no error',
        'the metadata is public and comes from the configuration, whatever Host says',
      ],
    }),
    must(
      'SCH-01',
      'Schema Dialect',
      'JSON Schema 2020-12 is supported, and meant where no dialect is named.',
      {
        'schema.test.ts': [
          'items judges what prefixItems leaves over',
          'required and dependentRequired name the member that is missing',
          'allOf, anyOf, oneOf and not combine what is said of one value',
          'if chooses between then and else, and both mean nothing without it',
          'a $ref goes to the root, to a pointer or to an anchor, and its siblings count too',
          'a keyword that is not implemented stops the server: nothing is silently skipped',
        ],
        'peers/json-schema-test-suite.test.ts': [
          'every group within the implemented keywords passes, and every other one is refused',
        ],
        'peers/schema.test.ts': ['ajv gives the same verdict on every pair of schema and value'],
      },
    ),
    must(
      'SCH-02',
      'Implementation Requirements',
      'A dialect that is not supported gets an error that says so.',
      {
        'tool-definition.test.ts': [
          'a schema that the validator would misread stops the server, in input and output',
        ],
      },
    ),
    should('SCH-03', 'Implementation Requirements', 'The supported dialects are documented.', {
      untested: 'README, under "What it isn\'t, on purpose": no dialect but 2020-12.',
    }),
    must('SCH-04', 'Schema Validation', 'A schema is valid in its dialect.', {
      'tool-definition.test.ts': [
        'a schema that the validator would misread stops the server, in input and output',
      ],
      'schema.test.ts': [
        'a keyword whose own value has the wrong shape stops the server',
        'what is no schema at all does not compile',
      ],
    }),
    mustNot('SCH-05', '$ref Resolution', 'No `$ref` to the network is followed by itself.', {
      'tool-definition.test.ts': ['a schema on the network is refused at start and never fetched'],
    }),
    must(
      'SCH-06',
      '$ref Resolution',
      'A mode that fetches schemas is off unless switched on.',
      'There is no such mode.',
    ),
    should('SCH-07', '$ref Resolution', 'A schema with a `$ref` that leads nowhere is refused.', {
      'tool-definition.test.ts': [
        'a schema on the network is refused at start and never fetched',
        'a schema that the validator would misread stops the server, in input and output',
      ],
      'schema.test.ts': ['a $ref to no schema, to another document or back to itself stops the server'],
    }),
    should(
      'SCH-08',
      'Composition-Keyword Resource Use',
      'The cost of a schema and of a check is bounded.',
      {
        'schema.test.ts': [
          'a schema that is too deep, too large or contains itself is refused without a stack overflow',
          'a check gives up after a number of steps, and `not` does not turn that into a yes',
        ],
        'gate.test.ts': ['arguments that are nested without end are a tool error, at once'],
      },
    ),
    must('META-01', '_meta', 'A request without `_meta` gets -32602 on HTTP 400.', {
      'admission.test.ts': [
        'params, _meta and the version in it must be there; the message names what is not',
      ],
    }),
    must('META-02', '_meta', 'A request whose `_meta` names no protocol version gets -32602 on HTTP 400.', {
      'admission.test.ts': [
        'params, _meta and the version in it must be there; the message names what is not',
      ],
    }),
    must(
      'META-03',
      '_meta',
      'A request whose `_meta` has no client capabilities gets -32602 on HTTP 400.',
      {
        'admission.test.ts': ['every known key of _meta has its type; the message names the key'],
      },
    ),
    should('META-05', '_meta', 'Clients name themselves: `clientInfo` may be missing.', {
      'admission.test.ts': ['good values of known keys and any values of unknown ones pass'],
    }),
    mustNot('META-06', '_meta', 'No capability is relied on that this request doesn’t declare.', {
      'gate.test.ts': [
        'a client that declares none, or only other modes, is told what is needed: on every call',
      ],
      'statelessness.test.ts': [
        'what one request says of its client counts for no other on its connection',
      ],
    }),
    must(
      'META-07',
      '_meta',
      'Where a capability is missing: HTTP 400, -32021, and `requiredCapabilities` names it.',
      {
        'gate.test.ts': [
          'a client that declares none, or only other modes, is told what is needed: on every call',
        ],
        'boundary.test.ts': [
          'a question is asked only of a client that declared just that, to the mode',
          'of several questions each needs its capability',
        ],
      },
    ),
    should('META-09', '_meta', 'Every result names the server in its `_meta`.', {
      'tool-definition.test.ts': [
        'every result says which server it is from, in the version of package.json',
      ],
    }),
    shouldNot('META-10', '_meta', 'What a client calls itself changes and decides nothing.', {
      'state.test.ts': [
        'what identifies nothing may differ: client info, progress token, unknown members, the request’s id',
      ],
    }),
    mustNot('META-11', '_meta', 'Reserved and unknown keys of `_meta` are not taken to mean anything.', {
      'admission.test.ts': ['good values of known keys and any values of unknown ones pass'],
    }),
    must('META-12', '_meta', 'Keys of `_meta` are a prefix of dotted labels, a slash and a name.', {
      'tool-definition.test.ts': [
        'every result says which server it is from, in the version of package.json',
      ],
    }),
    should(
      'META-13',
      '_meta',
      'A prefix of one’s own is a domain name backwards.',
      'The server puts no key of its own into `_meta`.',
    ),
    must(
      'META-14',
      '_meta',
      'Values of `traceparent`, `tracestate` and `baggage` are well formed.',
      'The server neither sends nor forwards them; it answers whatever they say (META-11).',
    ),
    must('SUB-05', '_meta', 'A notification on a subscription carries the subscription’s id in `_meta`.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a subscription gets each change of what it asked for, with its id, and nothing else',
          'the id of a subscription is that of its request, also where it is a text',
        ],
      },
    }),
    must(
      'SEC-03',
      'icons',
      'Who shows icons takes them as hostile, and only from `https:` and `data:`.',
      'For clients. The server publishes no icons.',
    ),
  ],
}

export const VERSIONING: Page = {
  path: 'specification/2026-07-28/basic/versioning',
  requirements: [
    must(
      'VER-01',
      'Protocol Version Negotiation',
      'Another version gets -32022 with those that are served.',
      {
        'admission.test.ts': ['an unsupported version is told what is supported, whatever else is wrong'],
      },
    ),
    must('VER-03', 'Protocol Version Negotiation', 'Each request is judged by its own version.', {
      'admission.test.ts': ['one request with an unsupported version does not spoil the next'],
      'statelessness.test.ts': [
        'what one request says of its client counts for no other on its connection',
      ],
    }),
    must('DISC-06', 'Protocol Version Negotiation', 'The server implements `server/discover`.', {
      'tool-definition.test.ts': ['server/discover says exactly what the contract says'],
      'peers/official-client.test.ts': [
        'server/discover tells the client the revision, the capabilities and what the server is for',
      ],
    }),
    must(
      'VER-07',
      'Extension Negotiation',
      'An extension is named like a key of `_meta`, with a prefix.',
      'The server advertises no extension.',
    ),
    must('VER-08', 'Extension Negotiation', 'Where one side lacks an extension: the core, or an error.', {
      'admission.test.ts': ['good values of known keys and any values of unknown ones pass'],
    }),
    should(
      'VER-09',
      'Extension Negotiation',
      'An extension says what happens without it.',
      'The server has no extension.',
    ),
    should(
      'VER-04',
      'Backward Compatibility with Initialization-Based Versions',
      'Any error to `initialize` names the versions that are served.',
      {
        'admission.test.ts': [
          'every error to initialize names the supported versions, in text and as data',
        ],
      },
    ),
    may(
      'VER-06',
      'Backward Compatibility with Initialization-Based Versions',
      'A server may serve both eras.',
      'This one serves the modern era only.',
    ),
  ],
}

export const TRANSPORTS: Page = {
  path: 'specification/2026-07-28/basic/transports/index',
  requirements: [
    must('HTTP-11', 'Messages', 'JSON-RPC is UTF-8.', {
      'admission.test.ts': ['what is not JSON in UTF-8 is a parse error without id'],
      'edge.test.ts': [
        'a chunked body is put together byte by byte, also in the middle of a character',
        'any other content, above all what a page may send without a preflight, is 415',
      ],
    }),
    must(
      'HTTP-21',
      'Messages',
      'Clients send requests and notifications, servers the rest; no other way.',
      {
        'admission.test.ts': ['a batch, a response or what is no object is refused without id'],
        'statelessness.test.ts': [
          'a connection carries one answer to each request and nothing else, whatever was asked for',
        ],
      },
    ),
    must(
      'HTTP-22',
      'Custom Transports',
      'Another transport keeps format, patterns and metadata of messages.',
      'Streamable HTTP is the only transport here.',
    ),
  ],
}

export const PATTERNS: Page = {
  path: 'specification/2026-07-28/basic/patterns/index',
  requirements: [
    mustNot('HTTP-12', '', 'A server never sends a JSON-RPC request.', {
      'statelessness.test.ts': [
        'a connection carries one answer to each request and nothing else, whatever was asked for',
      ],
      'gate.test.ts': ['the first call asks one question in one form, hands out a state and does nothing'],
    }),
    may('SSE-12', 'Request and Response', 'Notifications about a request may be sent while it runs.', {
      'event-stream.test.ts': ['a notification arrives while the tool still works'],
      'peers/conformance.test.ts': [FIXTURE_PASSES],
    }),
  ],
}

export const SCHEMA: Page = {
  path: 'specification/2026-07-28/schema',
  requirements: [
    must('RPC-08', 'JSONRPCErrorResponse', 'An error to an unreadable id leaves `id` out; null is no id.', {
      'admission.test.ts': [
        'what is not JSON in UTF-8 is a parse error without id',
        'any other id is refused and not repeated; null is not the id of a notification',
      ],
    }),
    should('RPC-10', 'Error', 'A message is one short sentence.', {
      'admission.test.ts': ['a name in a message is escaped and cut'],
      'headers.test.ts': ['the message names the header and both values, escaped and cut'],
    }),
    must('RPC-12', 'ParseError', 'What is no JSON gets -32700.', {
      'admission.test.ts': ['what is not JSON in UTF-8 is a parse error without id'],
    }),
    must('RPC-13', 'InvalidRequestError', 'What is JSON and no request gets -32600.', {
      'admission.test.ts': [
        'a batch, a response or what is no object is refused without id',
        'a request that breaks JSON-RPC is refused with its id',
      ],
    }),
    must('RPC-14', 'InternalError', 'A failure of the server gets -32603.', {
      'admission.test.ts': ['an unforeseen failure says Internal error and nothing of itself'],
      'gate.test.ts': ['an action that fails is an internal error and can be tried again'],
    }),
    must('META-04', 'RequestMetaObject', 'Keys of `_meta` have their types, optional ones too.', {
      'admission.test.ts': [
        'every known key of _meta has its type; the message names the key',
        'params, _meta and the version in it must be there; the message names what is not',
      ],
    }),
    must('META-08', 'RequestMetaObject', 'Capabilities are those of this request, not of earlier ones.', {
      'statelessness.test.ts': [
        'what one request says of its client counts for no other on its connection',
      ],
    }),
    must(
      'VER-02',
      'UnsupportedProtocolVersionError',
      'It repeats the version and lists what discovery lists.',
      {
        'admission.test.ts': ['an unsupported version is told what is supported, whatever else is wrong'],
        'tool-definition.test.ts': ['server/discover says exactly what the contract says'],
      },
    ),
    must('METH-02', 'MethodNotFoundError', 'Methods of a capability that is not declared are not found.', {
      'admission.test.ts': [
        'a method that is not served is 404 with its name, whatever a prototype has',
        'Mcp-Name is asked for by three methods only, and only when the body has a name',
      ],
    }),
    must('DISC-05', 'DiscoverRequest', 'Discovery takes no parameter but `_meta`.', {
      'tool-definition.test.ts': ['server/discover says exactly what the contract says'],
      'admission.test.ts': ['no cursor was ever given out, so none is known'],
    }),
    must(
      'TOOL-05',
      'ListToolsResult',
      'A list has its type, its tools, both hints, and a cursor only for more.',
      {
        'tool-definition.test.ts': [
          'tools/list has the tools in their order, caching hints, and no second page',
        ],
      },
    ),
    must('SCH-09', 'Tool', 'A schema is listed with all its keywords.', {
      'tool-definition.test.ts': [
        'tools/list shows all that an author may declare, and nothing of the code',
        'a schema that the validator would misread stops the server, in input and output',
      ],
    }),
    should('TOOL-24', 'ToolAnnotations', 'The hints of a tool are true.', {
      'tool-definition.test.ts': ['tools/list shows rollback_release as the contract describes it'],
      'scale-service.test.ts': [
        'it is listed after rollback_release, with hints that it changes things and what it answers',
      ],
    }),
    must('TOOL-09', 'CallToolResult', 'A result of a tool always has its `content`.', {
      'tool-definition.test.ts': [
        'structuredContent agrees with outputSchema after a yes and after a no',
        'a tool error has its text and no structuredContent',
      ],
    }),
    must('CACHE-03', 'ListToolsResult', '`cacheScope` is `public` or `private`.', {
      'tool-definition.test.ts': [
        'server/discover says exactly what the contract says',
        'tools/list has the tools in their order, caching hints, and no second page',
      ],
    }),
    must('TOOL-20', 'CallToolResult', 'Structured content is any JSON value, null too.', {
      'tool-definition.test.ts': ['structured content may be any JSON value, and null is one'],
    }),
    must(
      'MRTR-20',
      'InputResponseRequestParams',
      'Answers and state of a retry harm no method without retries.',
      {
        'boundary.test.ts': ['a state on a method that never asks is ignored'],
        'admission.test.ts': ['what a retry brings has its type, and is ignored where nothing is retried'],
      },
    ),
    must('SUB-01', 'SubscriptionsListenRequestParams', 'A subscription needs its filter.', {
      fixture: {
        'peers/fixture.test.ts': [
          'a subscription without a filter, or with a malformed one, is refused before a stream begins',
        ],
      },
    }),
    must(
      'SUB-10',
      'ResourceUpdatedNotificationParams',
      'An update is of a resource that was subscribed to.',
      {
        fixture: {
          'peers/fixture.test.ts': [
            'a subscription gets each change of what it asked for, with its id, and nothing else',
          ],
        },
      },
    ),
    must('FIX-07', 'CompleteResult', 'A completion has at most 100 values.', {
      fixture: {
        'peers/fixture.test.ts': [
          'completion gives what holds the typed text, the best first, and says how much there is',
        ],
      },
    }),
  ],
}
