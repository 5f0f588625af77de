/** The transport: its endpoint, its headers, its streams. */
import { FIXTURE_PASSES, may, must, mustNot, type Page, should, shouldNot } from './requirement.ts'

const METHOD_HEADER = 'Mcp-Method is there once and equals the method, with case and never decoded'
const NAME_HEADER = 'Mcp-Name is there once and equals the name of the tool'
const VERSION_HEADER = 'the version header is there once and equals the body, character for character'
const TOKEN = 'an x-mcp-header is a token as RFC 9110 has it'
const FOR_INTERMEDIARIES = 'For intermediaries. README says what a proxy has to pass on.'

export const STREAMABLE_HTTP: Page = {
  path: 'specification/2026-07-28/basic/transports/streamable-http',
  requirements: [
    must('HTTP-01', '', 'One path is the endpoint, and it takes POST.', {
      'edge.test.ts': [
        'the endpoint is /mcp, also with a trailing slash, a query, or as an absolute target',
        'every other path is 404 in plain text that names the endpoint',
      ],
    }),
    must(
      'HTTP-02',
      'Security & Endpoint',
      '`Origin` is judged on every connection; an invalid one gets 403.',
      {
        'edge.test.ts': [
          'an origin that is not exactly a loopback one is forbidden, and reads nothing',
          'two Origin lines are forbidden, even when each alone is allowed',
          'a foreign origin is forbidden on every verb and path, preflights and /healthz too',
          'ALLOWED_ORIGINS adds exact origins to the loopback ones',
          'a line that comes after a thousand others is seen like the first',
        ],
        'peers/conformance.test.ts': ['the official suite passes every check of dns-rebinding-protection'],
      },
    ),
    may(
      'HTTP-03',
      'Security & Endpoint',
      'The 403 to an `Origin` may hold a JSON-RPC error without an id.',
      {
        'edge.test.ts': ['an origin that is not exactly a loopback one is forbidden, and reads nothing'],
      },
    ),
    must('HTTP-04', 'Security & Endpoint', 'Only a present and invalid `Origin` is refused.', {
      'edge.test.ts': [
        'a page on a loopback name may call, whatever its port, scheme and case',
        'Accept is not judged, and the answer is JSON',
      ],
    }),
    should('HTTP-05', 'Security & Endpoint', 'Run locally, the server listens on loopback only.', {
      'config.test.ts': [
        'without any variable it listens on port 3000 of loopback, with a secret of its own',
      ],
      'process.test.ts': [
        'the first line on stdout is the address that was really bound, and nothing follows it',
      ],
    }),
    should('HTTP-06', 'Security & Endpoint', 'Connections are authenticated.', {
      'auth-tokens.test.ts': [
        'beyond loopback a server that authenticates nobody starts only when told to',
        'without a good token every request is 401 with a bare Bearer, before it is read',
      ],
    }),
    must('HTTP-07', 'Sending Messages', 'A body is one request or notification; a response is none.', {
      'admission.test.ts': ['a batch, a response or what is no object is refused without id'],
    }),
    must('HTTP-08', 'Sending Messages', 'A notification that is taken gets 202 without a body.', {
      'admission.test.ts': ['every notification is taken with 202 and nothing else'],
    }),
    must('HTTP-09', 'Sending Messages', 'A notification that is not taken gets an HTTP error.', {
      'admission.test.ts': ['anything else without an id is refused without id and never executed'],
    }),
    must('HTTP-10', 'Sending Messages', 'A request is answered with one JSON object or an event stream.', {
      'edge.test.ts': ['Accept is not judged, and the answer is JSON'],
      'admission.test.ts': [
        'every error repeats a readable id, and uses no code that is reserved or retired',
      ],
    }),
    must('SSE-01', 'Sending Messages', 'A stream is `text/event-stream`, each event one message.', {
      'event-stream.test.ts': [
        'a tool that notifies is answered as a stream: notifications first, the response last, then the end',
      ],
      'peers/conformance.test.ts': [FIXTURE_PASSES],
    }),
    may('SSE-10', 'Sending Messages', 'The server may choose between JSON and a stream for each request.', {
      'event-stream.test.ts': [
        'a tool that notifies is answered as a stream: notifications first, the response last, then the end',
        'a tool that notifies nobody is answered in JSON, even if it could have notified',
      ],
    }),
    must('SSE-02', 'Receiving Messages', 'Notifications on a stream are about its request.', {
      'event-stream.test.ts': [
        'streams at the same time carry what is theirs, and no event an id to resume by',
      ],
    }),
    mustNot('SSE-03', 'Receiving Messages', 'No stream carries a request of the server’s own.', {
      fixture: { 'peers/conformance.test.ts': [FIXTURE_PASSES] },
    }),
    mustNot('SSE-07', 'Receiving Messages', 'No stream has event ids, and none is resumed.', {
      'event-stream.test.ts': [
        'streams at the same time carry what is theirs, and no event an id to resume by',
      ],
    }),
    mustNot('PROG-06', 'Receiving Messages', 'Progress stays on its request’s own stream.', {
      fixture: {
        'peers/fixture.test.ts': ['streams at the same time have each their own progress and no event id'],
      },
    }),
    should('SSE-04', 'Receiving Messages', 'The response ends the stream.', {
      'event-stream.test.ts': [
        'a tool that notifies is answered as a stream: notifications first, the response last, then the end',
      ],
    }),
    should('SSE-05', 'Receiving Messages', 'A stream comes with `X-Accel-Buffering: no`.', {
      'event-stream.test.ts': [
        'a tool that notifies is answered as a stream: notifications first, the response last, then the end',
      ],
    }),
    should('SSE-06', 'Receiving Messages', 'A long stream gets a comment line now and then.', {
      'event-stream.test.ts': ['a quiet stream says that it is there, in comments that are no messages'],
    }),
    mustNot('SUB-08', 'Receiving Messages', 'No subscription carries progress or log messages.', {
      fixture: {
        'peers/fixture.test.ts': [
          'log messages come at the level that the request names, and above, on its own answer only',
          'a subscription gets each change of what it asked for, with its id, and nothing else',
        ],
      },
    }),
    must('SSE-11', 'Message Flow', 'Streams at the same time don’t mingle.', {
      'event-stream.test.ts': [
        'streams at the same time carry what is theirs, and no event an id to resume by',
      ],
    }),
    must('SSE-08', 'Cancellation', 'A client that closes its stream has cancelled the request.', {
      'event-stream.test.ts': [
        'a client that hangs up is gone for the tool, and what is written to it then is nothing',
      ],
    }),
    must('CANC-01', 'Cancellation', 'A client that hangs up has cancelled its request.', {
      'edge.test.ts': ['a client that hangs up cancels the tool that runs for it'],
    }),
    should('CANC-07', 'Cancellation', 'Work on a cancelled request stops soon.', {
      'gate.test.ts': ['a client that hangs up before the action starts has changed its mind'],
      'edge.test.ts': ['a client that hangs up cancels the tool that runs for it'],
    }),
    mustNot('CANC-02', 'Cancellation', 'Nothing more is sent for a cancelled request.', {
      'gate.test.ts': [
        'a client that hangs up before the action starts has changed its mind',
        'an action that runs when its client hangs up is finished and logged',
      ],
      'edge.test.ts': ['a client that hangs up in mid-body has sent no request, whatever had arrived'],
      'event-stream.test.ts': [
        'a client that hangs up is gone for the tool, and what is written to it then is nothing',
        'a notification that comes too late, after the response, is dropped',
      ],
    }),
    must(
      'HDR-01',
      'Protocol Version Header',
      'Every POST has `MCP-Protocol-Version`, or it gets 400, -32020.',
      {
        'admission.test.ts': [VERSION_HEADER],
      },
    ),
    must(
      'HDR-02',
      'Protocol Version Header',
      '`MCP-Protocol-Version` equals the version in the body, or 400, -32020.',
      {
        'admission.test.ts': [VERSION_HEADER],
      },
    ),
    must(
      'VER-10',
      'Protocol Version Header',
      'A version that is not served gets 400, -32022 and the served ones.',
      {
        'admission.test.ts': ['an unsupported version is told what is supported, whatever else is wrong'],
      },
    ),
    must('METH-01', 'Protocol Version Header', 'A method that is not served gets 404 and -32601.', {
      'admission.test.ts': ['a method that is not served is 404 with its name, whatever a prototype has'],
    }),
    must('METH-03', 'Protocol Version Header', 'Methods of older revisions are not served either.', {
      'admission.test.ts': [
        'a method that is not served is 404 with its name, whatever a prototype has',
        'every error to initialize names the supported versions, in text and as data',
      ],
    }),
    must('METH-04', 'Protocol Version Header', 'A method is found by its exact name.', {
      'admission.test.ts': ['a method that is not served is 404 with its name, whatever a prototype has'],
    }),
    must(
      'VER-05',
      'Protocol Version Header',
      'Without older clients to serve, a missing version is not guessed.',
      {
        'admission.test.ts': [
          VERSION_HEADER,
          'every error to initialize names the supported versions, in text and as data',
        ],
      },
    ),
    must('HDR-03', 'Standard Request Headers', '`Mcp-Method` comes with every request.', {
      'admission.test.ts': [METHOD_HEADER],
    }),
    must('HDR-05', 'Standard Request Headers', '`Mcp-Name` comes with calls, prompts and reads.', {
      'admission.test.ts': [
        NAME_HEADER,
        'Mcp-Name is asked for by three methods only, and only when the body has a name',
      ],
    }),
    must('HDR-12', 'Standard Request Headers', 'No other method needs `Mcp-Name`.', {
      'admission.test.ts': [
        'Mcp-Name is asked for by three methods only, and only when the body has a name',
      ],
    }),
    must(
      'FIX-04',
      'Standard Request Headers',
      'For a prompt `Mcp-Name` is the name, for a resource the URI.',
      {
        'admission.test.ts': [
          'Mcp-Name is asked for by three methods only, and only when the body has a name',
        ],
        'peers/fixture.test.ts': [
          'the header that mirrors a prompt or a URI must be there and say the same',
        ],
      },
    ),
    may(
      'PARAM-18',
      'Custom Headers from Tool Parameters',
      'A tool may mark arguments that headers mirror.',
      {
        'headers.test.ts': ['rollback_release mirrors its service, in any script'],
        'peers/official-client.test.ts': [
          'a client that drops tools with a wrong x-mcp-header keeps rollback_release',
        ],
      },
    ),
    mustNot('PARAM-01', 'Schema Extension', 'No `x-mcp-header` is empty.', {
      'tool-definition.test.ts': [TOKEN],
    }),
    must('PARAM-02', 'Schema Extension', 'An `x-mcp-header` is a token, as names of headers are.', {
      'tool-definition.test.ts': [TOKEN],
    }),
    mustNot('PARAM-19', 'Schema Extension', 'No `x-mcp-header` holds a control character.', {
      'tool-definition.test.ts': [TOKEN],
    }),
    must('PARAM-03', 'Schema Extension', 'No two `x-mcp-header` of a tool differ in case only.', {
      'tool-definition.test.ts': [
        'an x-mcp-header is unique within its tool, whatever the case and the depth',
      ],
    }),
    must(
      'PARAM-04',
      'Schema Extension',
      'An `x-mcp-header` marks an integer, a string or a boolean, never a `number`.',
      {
        'tool-definition.test.ts': ['only a string, an integer or a boolean is mirrored'],
      },
    ),
    must('PARAM-05', 'Schema Extension', 'A mirrored integer is one that a double holds exactly.', {
      'headers.test.ts': ['integers beyond what a double holds exactly are refused on either side'],
    }),
    must('PARAM-06', 'Schema Extension', 'Only `properties` lead from the root to a marked argument.', {
      'tool-definition.test.ts': [
        'an x-mcp-header stands where properties alone lead from the root',
        'what is only named like x-mcp-header, or is data, is no annotation',
      ],
    }),
    must('PARAM-15', 'Schema Extension', 'The mirrored value is that on exactly this path.', {
      'headers.test.ts': ['a nested argument is found on its exact path, through plain objects only'],
    }),
    must('HDR-09', 'Value Encoding', 'The markers of Base64 are exact, in lower case.', {
      'headers.test.ts': ['what only looks like an encoded value is literal'],
      'admission.test.ts': [
        'a name that only looks encoded is literal, and one beyond ASCII must be encoded',
      ],
    }),
    must('HDR-07', 'Value Encoding', 'An encoded `Mcp-Name` is decoded before it is compared.', {
      'admission.test.ts': ['an encoded Mcp-Name is decoded, and refused when it is not canonical'],
    }),
    must('PARAM-11', 'Value Encoding', 'An encoded argument is decoded before it is compared.', {
      'headers.test.ts': [
        'a value in Base64 is decoded, whatever JSON strings may hold',
        'Base64 has one spelling: any other is refused, though it could be read',
        'Base64 of what is not UTF-8 is refused, though it could be mended',
      ],
      'peers/official-client.test.ts': [
        'a service named 世界 travels in a Base64 header and is rolled back by that name',
      ],
    }),
    must('PARAM-21', 'Value Encoding', 'What is shaped like an encoded value is one.', {
      'headers.test.ts': ['what is shaped like an encoded value is one: it is never taken as literal'],
    }),
    must('HDR-10', 'Value Encoding', 'A value beyond visible ASCII, space and tab is invalid.', {
      'admission.test.ts': [
        'a name that only looks encoded is literal, and one beyond ASCII must be encoded',
      ],
      'headers.test.ts': ['a byte beyond ASCII in a mirrored header is refused, however it is read'],
      'edge.test.ts': ['a byte that no header may hold is a header mismatch without id'],
    }),
    must('HTTP-18', 'Value Encoding', 'Space around a value is none of it (RFC 9110, 5.5).', {
      'admission.test.ts': ['names of headers have no case, and space around a value is none of it'],
    }),
    must('PARAM-16', 'Server Behavior for Custom Headers', 'A header that mirrors nothing is ignored.', {
      'headers.test.ts': [
        'a header that mirrors nothing of this tool is ignored',
        'an argument may mirror to Mcp-Param-Method, which is another header than Mcp-Method',
      ],
    }),
    must(
      'PARAM-12',
      'Server Behavior for Custom Headers',
      'A mirrored header with invalid characters is refused.',
      {
        'headers.test.ts': [
          'a byte beyond ASCII in a mirrored header is refused, however it is read',
          'a header for an argument that is absent or null is refused, whatever it says',
        ],
      },
    ),
    must('PARAM-07', 'Server Behavior for Custom Headers', 'Header and argument agree, or 400, -32020.', {
      'headers.test.ts': [
        'a mirrored argument has its header, with the same value',
        '0, false and the empty string are values: they have their header',
        'an argument of the wrong JSON type is a mismatch, with its header or without',
        'an approval is worth nothing while the header of the service is wrong',
      ],
      'peers/conformance.test.ts': [
        'the official suite passes every check of http-custom-header-server-validation',
      ],
    }),
    must('PARAM-08', 'Server Behavior for Custom Headers', '0, false and the empty string are values.', {
      'headers.test.ts': ['0, false and the empty string are values: they have their header'],
    }),
    must('PARAM-10', 'Server Behavior for Custom Headers', 'A header without its argument is a mismatch.', {
      'headers.test.ts': ['a header for an argument that is absent or null is refused, whatever it says'],
    }),
    must('PARAM-22', 'Server Behavior for Custom Headers', 'An argument without its header is refused.', {
      'headers.test.ts': [
        'a mirrored argument has its header, with the same value',
        '0, false and the empty string are values: they have their header',
      ],
    }),
    mustNot(
      'PARAM-09',
      'Server Behavior for Custom Headers',
      'No header is expected for an argument that is null or absent.',
      {
        'headers.test.ts': ['no header is asked for an argument that is absent or null'],
      },
    ),
    must(
      'PARAM-23',
      'Server Behavior for Custom Headers',
      'Intermediaries pass on headers they don’t know.',
      FOR_INTERMEDIARIES,
    ),
    must('HTTP-16', 'Case Sensitivity', 'Names of headers have no case.', {
      'admission.test.ts': ['names of headers have no case, and space around a value is none of it'],
      'headers.test.ts': ['a mirrored argument has its header, with the same value'],
    }),
    must('HTTP-17', 'Case Sensitivity', 'Values of headers have case.', {
      'admission.test.ts': [METHOD_HEADER, NAME_HEADER],
      'headers.test.ts': ['strings are compared code unit by code unit'],
    }),
    must(
      'HDR-04',
      'Server Validation',
      '`Mcp-Method` equals the method of the body, or the request is refused.',
      {
        'admission.test.ts': [METHOD_HEADER],
      },
    ),
    must(
      'HDR-06',
      'Server Validation',
      '`Mcp-Name` equals the name in the body, or the request is refused.',
      { 'admission.test.ts': [NAME_HEADER] },
    ),
    must('HDR-14', 'Server Validation', 'A header that comes twice is a mismatch: neither is picked.', {
      'admission.test.ts': [VERSION_HEADER, METHOD_HEADER, NAME_HEADER],
      'headers.test.ts': ['a mirrored argument has its header, with the same value'],
    }),
    must('HDR-13', 'Server Validation', 'Base64 is for names and arguments alone.', {
      'admission.test.ts': [VERSION_HEADER, METHOD_HEADER],
    }),
    must('HDR-08', 'Server Validation', 'Base64 that can’t be decoded is refused.', {
      'admission.test.ts': ['an encoded Mcp-Name is decoded, and refused when it is not canonical'],
      'headers.test.ts': ['Base64 has one spelling: any other is refused, though it could be read'],
    }),
    should('PARAM-13', 'Server Validation', 'Integers are compared as numbers.', {
      'headers.test.ts': [
        'integers are compared as numbers, in plain decimal spelling',
        'integers are compared exactly, however many digits the header has',
      ],
    }),
    must('PARAM-14', 'Server Validation', 'Booleans and strings are compared exactly.', {
      'headers.test.ts': [
        'booleans are true and false, exactly',
        'strings are compared code unit by code unit',
      ],
    }),
    must(
      'HDR-11',
      'Server Validation',
      'A header that is refused gets HTTP 400 and a JSON-RPC error -32020.',
      {
        'admission.test.ts': [VERSION_HEADER, METHOD_HEADER, NAME_HEADER],
        'headers.test.ts': ['the message names the header and both values, escaped and cut'],
        'peers/conformance.test.ts': [
          'the official suite passes every check of http-header-validation',
          'the official suite passes every check of http-custom-header-server-validation',
        ],
      },
    ),
    must('SSE-09', 'Server Validation', 'A status that is due is decided before a stream begins.', {
      'event-stream.test.ts': ['what is refused is refused with its status, before any stream begins'],
      'peers/fixture.test.ts': [
        'a capability that is missing is told with its status, before a stream begins',
      ],
    }),
    must('SUB-12', 'Server Validation', 'A subscription is validated like any request.', {
      fixture: { 'peers/fixture.test.ts': ['a subscription is checked like any request'] },
    }),
    must('HDR-15', 'Server Validation', 'Nothing runs where the headers are wrong.', {
      'admission.test.ts': [METHOD_HEADER, NAME_HEADER],
      'headers.test.ts': ['an approval is worth nothing while the header of the service is wrong'],
    }),
    must(
      'HDR-16',
      'Server Validation',
      'An intermediary answers a header mismatch with an HTTP error.',
      FOR_INTERMEDIARIES,
    ),
    should('HTTP-13', 'Earlier Streamable HTTP Revisions', 'GET and DELETE on the endpoint get 405.', {
      'edge.test.ts': [
        'every verb but POST is 405 with Allow and one sentence',
        'a GET for a stream gets its 405 at once, and so does a verb whose body is on its way',
      ],
    }),
    should('HTTP-14', 'Earlier Streamable HTTP Revisions', '`Mcp-Session-Id` is ignored and never sent.', {
      'edge.test.ts': ['headers of sessions and resumed streams are ignored and never sent back'],
    }),
    should('HTTP-15', 'Earlier Streamable HTTP Revisions', '`Last-Event-ID` is ignored.', {
      'edge.test.ts': ['headers of sessions and resumed streams are ignored and never sent back'],
    }),
    shouldNot('HTTP-20', 'HTTP+SSE Transport (2024-11-05)', 'The transport of 2024 is not added.', {
      'edge.test.ts': [
        'every other path is 404 in plain text that names the endpoint',
        'every verb but POST is 405 with Allow and one sentence',
      ],
    }),
  ],
}
