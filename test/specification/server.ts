/** What a server offers: discovery, tools, and the features that only the fixture has. */
import { FIXTURE_PASSES, may, must, mustNot, type Page, should, shouldNot } from './requirement.ts'

const DISCOVERED = 'server/discover says exactly what the contract says'
const LISTED = 'tools/list has the tools in their order, caching hints, and no second page'
const ROLLBACK_LISTED = 'tools/list shows rollback_release as the contract describes it'
const AGREES = 'structuredContent agrees with outputSchema after a yes and after a no'

export const DISCOVER: Page = {
  path: 'specification/2026-07-28/server/discover',
  requirements: [
    must('DISC-01', '', 'The server implements `server/discover`.', {
      'tool-definition.test.ts': [DISCOVERED],
      'peers/conformance.test.ts': [FIXTURE_PASSES],
    }),
    must('DISC-02', 'DiscoverResult', 'Discovery tells versions, capabilities and caching hints.', {
      'tool-definition.test.ts': [DISCOVERED],
    }),
    should('DISC-04', 'DiscoverResult', 'Discovery names the server, in `_meta`.', {
      'tool-definition.test.ts': [DISCOVERED],
    }),
  ],
}

export const TOOLS: Page = {
  path: 'specification/2026-07-28/server/tools',
  requirements: [
    should('TOOL-25', 'User Interaction Model', 'A person can say no to a call.', {
      'gate.test.ts': [
        'the first call asks one question in one form, hands out a state and does nothing',
        'a no is final, is no error and does nothing, whatever else the answer says',
        'no argument stands in for a person’s answer',
      ],
    }),
    must('DISC-03', 'Capabilities', 'A server with tools declares `tools`.', {
      'tool-definition.test.ts': [DISCOVERED],
    }),
    must('TOOL-01', 'Capabilities', '`tools/list` gives the tools that the caller has.', {
      'tool-definition.test.ts': [LISTED, ROLLBACK_LISTED],
      'auth-tokens.test.ts': ['a caller without the scope may list and discover'],
    }),
    mustNot(
      'TOOL-02',
      'Capabilities',
      'The list depends neither on the connection nor on earlier requests.',
      {
        'statelessness.test.ts': ['the list of tools is the same on every connection and after every call'],
        'tool-definition.test.ts': ['tools/list is the same for everybody, before and after a call'],
      },
    ),
    may(
      'TOOL-03',
      'Capabilities',
      'The list may depend on the credentials.',
      'It doesn’t: each caller sees each tool.',
    ),
    should('TOOL-04', 'Capabilities', 'The tools come in one order.', {
      'tool-definition.test.ts': [LISTED],
    }),
    may('TOOL-21', 'Input Required Tool Results', 'A call may be answered with a question first.', {
      'gate.test.ts': ['the first call asks one question in one form, hands out a state and does nothing'],
    }),
    should('TOOL-23', 'List Changed Notification', 'A declared `listChanged` is kept.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a subscription gets each change of what it asked for, with its id, and nothing else',
        ],
      },
    }),
    must('TOOL-06', 'Tool', 'An `inputSchema` is a JSON Schema object, of type `object`.', {
      'tool-definition.test.ts': ['an inputSchema is an object of type object'],
    }),
    should(
      'TOOL-08',
      'Tool',
      'A tool without arguments says that it takes none.',
      'Every tool of release-ops has arguments.',
    ),
    should('TOOL-07', 'Tool Names', 'A name has 1 to 128 letters, digits, underscores, hyphens and dots.', {
      'tool-definition.test.ts': ["a tool's name is 1 to 64 letters, digits, dots, dashes and underscores"],
    }),
    shouldNot('TOOL-26', 'Tool Names', 'No name has spaces, commas or other characters.', {
      'tool-definition.test.ts': ["a tool's name is 1 to 64 letters, digits, dots, dashes and underscores"],
    }),
    should('TOOL-27', 'Tool Names', 'Names have case, and no two are equal.', {
      'tool-definition.test.ts': ['no two tools have one name; names have case'],
      'admission.test.ts': ['an unknown tool is an error on HTTP 200, whatever a prototype has'],
    }),
    must('PARAM-24', 'x-mcp-header', 'Every mark keeps to the rules for names, types and places.', {
      'tool-definition.test.ts': [
        'an x-mcp-header is a token as RFC 9110 has it',
        'an x-mcp-header is unique within its tool, whatever the case and the depth',
        'only a string, an integer or a boolean is mirrored',
        'an x-mcp-header stands where properties alone lead from the root',
      ],
    }),
    mustNot('PARAM-25', 'x-mcp-header', 'No `x-mcp-header` is empty or holds a control character.', {
      'tool-definition.test.ts': ['an x-mcp-header is a token as RFC 9110 has it'],
    }),
    shouldNot('PARAM-17', 'x-mcp-header', 'No argument that is a secret is mirrored.', {
      'tool-definition.test.ts': [ROLLBACK_LISTED],
      'scale-service.test.ts': [
        'it is listed after rollback_release, with hints that it changes things and what it answers',
      ],
    }),
    should(
      'TOOL-22',
      'Embedded Resources',
      'A server whose tools embed resources has the `resources` capability.',
      { fixture: { 'peers/conformance.test.ts': [FIXTURE_PASSES] } },
    ),
    should('TOOL-19', 'Structured Content', 'Structured content is repeated as text.', {
      'tool-definition.test.ts': [AGREES],
      'scale-service.test.ts': [
        'structured content is what the outputSchema promises, repeated as text, and absent from errors',
      ],
    }),
    must('TOOL-18', 'Output Schema', 'Structured content is as its schema says.', {
      'tool-definition.test.ts': [
        AGREES,
        'a tool that breaks its outputSchema is an internal error, logged with its name',
      ],
      'scale-service.test.ts': [
        'structured content is what the outputSchema promises, repeated as text, and absent from errors',
      ],
    }),
    should('TOOL-10', 'Error Handling', 'An unknown tool is a protocol error.', {
      'admission.test.ts': ['an unknown tool is an error on HTTP 200, whatever a prototype has'],
    }),
    should('TOOL-11', 'Error Handling', 'A malformed call is a protocol error.', {
      'admission.test.ts': [
        'arguments are an object, which the message says',
        'Mcp-Name is asked for by three methods only, and only when the body has a name',
      ],
    }),
    should('TOOL-12', 'Error Handling', 'What fails in a tool is a result with `isError`.', {
      'command.test.ts': [
        'an exit status other than 0 is a tool error with the status and the last line alone',
      ],
      'scale-service.test.ts': [
        'a failed action is an error without data; its flow is over, and its key asks again',
      ],
    }),
    should('TOOL-13', 'Error Handling', 'Arguments that don’t fit are a result with `isError`.', {
      'gate.test.ts': [
        'an argument that is missing, too long, empty or of another type is named, and nobody is asked',
      ],
      'admission.test.ts': ['absent and null arguments are {}: the tool error names what is missing'],
    }),
    must('TOOL-14', 'Security Considerations', 'All inputs are validated.', {
      'gate.test.ts': [
        'an argument that is missing, too long, empty or of another type is named, and nobody is asked',
        'arguments that are absent or null are none, and those that are no object are refused',
        'an argument that nobody could see is no argument',
      ],
      'scale-service.test.ts': [
        'arguments that are missing, malformed or out of range are an error, and nothing is asked',
      ],
      'command.test.ts': [
        'a value that begins with a dash or holds NUL is an argument error before anything is asked',
      ],
    }),
    must('TOOL-15', 'Security Considerations', 'Tools are used by those only who may.', {
      'auth-tokens.test.ts': ['a caller without the scope gets 403, on the first call and on the retry'],
      'auth-jwt.test.ts': ['a token without the scope is 403, and the challenge names the scope'],
    }),
    must(
      'TOOL-16',
      'Security Considerations',
      'Calls are limited in rate. (Off on loopback without authentication: README says so.)',
      {
        'rate-limit.test.ts': [
          'as many calls as a minute may have pass at once, and the next one is refused',
          'a yes that comes too soon does nothing, and does it once it comes in time',
          'without the setting there is no limit on loopback and 120 calls a minute elsewhere',
        ],
      },
    ),
    must('TOOL-17', 'Security Considerations', 'Outputs are made harmless.', {
      'gate.test.ts': [
        'an argument can’t rewrite the question, and what is performed is the argument itself',
        'an answer can’t rewrite the result, and what is performed is the answer itself',
      ],
      'command.test.ts': [
        'what a program says on success is not told to the client',
        'the last line is harmless to look at, whatever the program prints',
        'a last line is cut',
      ],
    }),
  ],
}

export const CACHING: Page = {
  path: 'specification/2026-07-28/server/utilities/caching',
  requirements: [
    must('CACHE-01', 'Cacheable Results', 'Discovery and lists come with both hints.', {
      'tool-definition.test.ts': [DISCOVERED, LISTED],
    }),
    mustNot(
      'CACHE-08',
      'Cacheable Results',
      'No question comes with a caching hint: only complete results do.',
      {
        'tool-definition.test.ts': ['a question has no caching hint and no content'],
        'peers/fixture.test.ts': [
          'what came of a retry is not to be kept by anybody, and a question has no caching at all',
        ],
      },
    ),
    must(
      'FIX-05',
      'Cacheable Results',
      'Lists of prompts, resources and templates come with both hints, and so do reads.',
      {
        fixture: {
          'peers/conformance.test.ts': [FIXTURE_PASSES],
          'peers/fixture.test.ts': [
            'prompts/list has one order, says how long it holds, and knows no cursor',
            'resources/list has one order, says how long it holds, and knows no cursor',
            'resources/templates/list has one order, says how long it holds, and knows no cursor',
          ],
        },
      },
    ),
    must('CACHE-02', 'Time-to-Live (TTL) Field', '`ttlMs` is not negative.', {
      'tool-definition.test.ts': [DISCOVERED, LISTED],
    }),
    must(
      'CACHE-04',
      'Interaction with Pagination',
      'All pages of a list have one `cacheScope`.',
      'No list here has a second page.',
    ),
    may(
      'CACHE-05',
      'Interaction with Pagination',
      'The pages of a list may differ in `ttlMs`.',
      'No list here has a second page.',
    ),
    must(
      'CACHE-06',
      'Security Considerations',
      'What is `public` may reach anybody: it holds nothing of a caller.',
      {
        'tool-definition.test.ts': ['tools/list is the same for everybody, before and after a call'],
        'auth-tokens.test.ts': ['a caller without the scope may list and discover'],
      },
    ),
    must('CACHE-09', 'Security Considerations', 'Each tool is protected where it is called.', {
      'auth-tokens.test.ts': ['a caller without the scope gets 403, on the first call and on the retry'],
    }),
    must(
      'AUTH-25',
      'Choosing a Cache Scope',
      'A list that depends on the token is `private`.',
      'No list depends on the token.',
    ),
    mustNot('CACHE-07', 'Security Considerations', '`cacheScope` alone is not what keeps anybody out.', {
      'auth-tokens.test.ts': [
        'a caller without the scope gets 403, on the first call and on the retry',
        'a caller without the scope may list and discover',
      ],
    }),
  ],
}

export const PAGINATION: Page = {
  path: 'specification/2026-07-28/server/utilities/pagination',
  requirements: [
    must('PAGE-01', 'Response Format', '`nextCursor` is there only where there may be more.', {
      'tool-definition.test.ts': [LISTED],
    }),
    should('PAGE-02', 'Implementation Guidelines', 'Cursors are stable.', 'No cursor is ever given out.'),
    should('PAGE-03', 'Error Handling', 'An unknown cursor gets -32602.', {
      'admission.test.ts': ['no cursor was ever given out, so none is known'],
    }),
  ],
}

export const LOGGING: Page = {
  path: 'specification/2026-07-28/server/utilities/logging',
  requirements: [
    shouldNot('LOG-01', '', 'No new server offers log messages.', {
      'tool-definition.test.ts': [DISCOVERED],
    }),
    must('LOG-04', 'Capabilities', 'A server that sends log messages declares `logging`.', {
      fixture: { 'peers/fixture.test.ts': ['the fixture declares just what it serves'] },
    }),
    mustNot('LOG-02', 'Per-request log level', 'No log message is sent for a request that sets no level.', {
      'statelessness.test.ts': [
        'a connection carries one answer to each request and nothing else, whatever was asked for',
      ],
      'peers/fixture.test.ts': [
        'log messages come at the level that the request names, and above, on its own answer only',
      ],
    }),
    mustNot(
      'LOG-05',
      'Per-request log level',
      'No log message is sent on another stream than its request’s.',
      {
        fixture: {
          'peers/fixture.test.ts': [
            'log messages come at the level that the request names, and above, on its own answer only',
          ],
        },
      },
    ),
    should('LOG-03', 'Error Handling', 'A level that is none gets an error.', {
      'admission.test.ts': ['every known key of _meta has its type; the message names the key'],
    }),
    mustNot(
      'LOG-06',
      'Security',
      'Log messages hold no secrets, no personal data and no inner workings.',
      'release-ops sends no client a log message, and the fixture only fixed words. The server’s own log keeps to it too (trail.test.ts).',
    ),
  ],
}

export const PROMPTS: Page = {
  path: 'specification/2026-07-28/server/prompts',
  requirements: [
    must('FIX-01', 'Capabilities', 'A server with prompts declares and lists them.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'the fixture declares just what it serves',
          'prompts/list has one order, says how long it holds, and knows no cursor',
        ],
      },
    }),
    mustNot(
      'FIX-11',
      'Capabilities',
      'The list of prompts depends neither on the connection nor on earlier requests.',
      {
        fixture: {
          'peers/fixture.test.ts': ['prompts/list changes for every connection alike, and back again'],
        },
      },
    ),
    may('FIX-12', 'Getting a Prompt', 'A prompt may be answered with a question first.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': ['a prompt that asks is answered when its state and its answer come back'],
      },
    }),
    should('SUB-11', 'List Changed Notification', 'A declared `listChanged` is kept.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a subscription gets each change of what it asked for, with its id, and nothing else',
        ],
      },
    }),
    must('FIX-08', 'Image Content', 'Images and sounds are Base64 with their MIME type.', {
      fixture: { 'peers/conformance.test.ts': [FIXTURE_PASSES] },
    }),
    should('FIX-03', 'Error Handling', 'An unknown prompt or a missing argument gets -32602.', {
      fixture: {
        'peers/fixture.test.ts': [
          'an unknown prompt and arguments that are missing or no texts are refused with -32602',
        ],
      },
    }),
    must('FIX-13', 'Security', 'Inputs and outputs of prompts are validated.', {
      fixture: {
        'peers/fixture.test.ts': [
          'an unknown prompt and arguments that are missing or no texts are refused with -32602',
          'a prompt is filled in with its arguments, and takes no others',
        ],
      },
    }),
  ],
}

export const RESOURCES: Page = {
  path: 'specification/2026-07-28/server/resources',
  requirements: [
    must('FIX-14', 'Capabilities', 'A server with resources declares and lists them.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'the fixture declares just what it serves',
          'resources/list has one order, says how long it holds, and knows no cursor',
        ],
      },
    }),
    mustNot(
      'FIX-15',
      'Capabilities',
      'The list of resources depends neither on the connection nor on earlier requests.',
      {
        fixture: {
          'peers/fixture.test.ts': ['resources/list changes for every connection alike, and back again'],
        },
      },
    ),
    may('FIX-16', 'Reading Resources', 'A read may be answered with a question first.', {
      fixture: {
        'peers/fixture.test.ts': [
          'a resource that asks is read when the user allowed it, and by nobody else',
        ],
      },
    }),
    must('FIX-17', 'Custom URI Schemes', 'A scheme of one’s own is a scheme of RFC 3986.', {
      fixture: {
        'peers/fixture.test.ts': ['a resource is read by its URI, or by a template that fits it'],
      },
    }),
    must('FIX-02', 'Error Handling', 'An unknown resource gets -32602.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a URI of no resource, or that is none, is refused with -32602 and repeated in data',
        ],
      },
    }),
    mustNot('FIX-18', 'Error Handling', 'An unknown resource never gets empty `contents`.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a URI of no resource, or that is none, is refused with -32602 and repeated in data',
        ],
      },
    }),
    must('FIX-06', 'Security Considerations', 'URIs are validated.', {
      fixture: {
        'peers/fixture.test.ts': [
          'a URI of no resource, or that is none, is refused with -32602 and repeated in data',
        ],
      },
    }),
    must('FIX-19', 'Security Considerations', 'Binary data is Base64.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': ['a resource is read by its URI, or by a template that fits it'],
      },
    }),
    must(
      'FIX-20',
      'Security Considerations',
      'Paths of `file://` resources can’t leave their folder.',
      'No resource here is a file.',
    ),
  ],
}

export const COMPLETION: Page = {
  path: 'specification/2026-07-28/server/utilities/completion',
  requirements: [
    must('FIX-21', 'Capabilities', 'A server with completions declares them.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': ['the fixture declares just what it serves'],
      },
    }),
    should('FIX-22', 'Error Handling', 'An unknown prompt or a missing argument gets -32602.', {
      fixture: {
        'peers/fixture.test.ts': [
          'completion for what does not exist, and malformed, is refused with -32602',
        ],
      },
    }),
    must('FIX-23', 'Security', 'Inputs are validated.', {
      fixture: {
        'peers/fixture.test.ts': [
          'completion for what does not exist, and malformed, is refused with -32602',
        ],
      },
    }),
    must(
      'FIX-24',
      'Security',
      'Completions are limited in rate and give nothing away.',
      'Only the fixture has completions, on loopback and of fixed words that are no secret.',
    ),
  ],
}
