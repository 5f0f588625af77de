/** Questions and retries, cancellation, progress, subscriptions. */
import { FIXTURE_PASSES, may, must, mustNot, type Page, should } from './requirement.ts'

const ASKED = 'the first call asks one question in one form, hands out a state and does nothing'
const BY_MODE = 'a question is asked only of a client that declared just that, to the mode'

export const MRTR: Page = {
  path: 'specification/2026-07-28/basic/patterns/mrtr',
  requirements: [
    must('MRTR-01', '', 'A server asks its client only within a result.', {
      'gate.test.ts': [ASKED],
      'statelessness.test.ts': [
        'a connection carries one answer to each request and nothing else, whatever was asked for',
      ],
    }),
    may('MRTR-21', 'Supported Requests', 'Calls, prompts and reads may ask before they answer.', {
      'gate.test.ts': [ASKED],
      'boundary.test.ts': ['a handler that asks is called again with the answer and with what it kept'],
      'peers/fixture.test.ts': [
        'a prompt that asks is answered when its state and its answer come back',
        'a resource that asks is read when the user allowed it, and by nobody else',
      ],
    }),
    mustNot('MRTR-02', 'Supported Requests', 'No method but calls, prompts and reads asks.', {
      'admission.test.ts': ['what a retry brings has its type, and is ignored where nothing is retried'],
    }),
    must('MRTR-04', 'Server Requirements (Basic Workflow)', 'Each question has a key of its own.', {
      'boundary.test.ts': ['each question stands under a key of its own in the text that is sent'],
    }),
    must(
      'MRTR-05',
      'Server Requirements (Basic Workflow)',
      'A question is an elicitation, a sampling or a roots request.',
      {
        'boundary.test.ts': [
          BY_MODE,
          'a handler that asks nothing, or what no client knows, hands out nothing',
        ],
        'gate.test.ts': [ASKED],
      },
    ),
    must(
      'MRTR-22',
      'Server Requirements (Basic Workflow)',
      'A `requestState` that comes in is taken as hostile.',
      {
        'state.test.ts': [
          'under a good seal, every member is there, once, in its place, and no other',
          'every refusal is the same to the last byte, whatever the reason, and only the log knows it',
        ],
        'boundary.test.ts': ['a bad state stops a call before its handler, whether or not that ever asks'],
        'gate.test.ts': ['a state that is no string is refused, and an empty one is a bad one'],
        'hostile.test.ts': ['the server withstands every case'],
      },
    ),
    must(
      'MRTR-07',
      'Server Requirements (Basic Workflow)',
      'State that decides anything is sealed; a broken seal is refused.',
      {
        'seal.test.ts': [
          'a token with any other character at any position is refused',
          'a token with any one bit changed is refused',
          'a token that was cut anywhere is refused',
        ],
        'encryption.test.ts': [
          'an encrypted state that was changed in any place is refused, and nothing is done',
        ],
        'state.test.ts': [
          'every refusal is the same to the last byte, whatever the reason, and only the log knows it',
          'an instance that shares secret and audience takes over a flow, one that does not refuses it',
        ],
        'peers/official-client.test.ts': [
          'a state whose middle character changes on the way is worth nothing',
          'a state whose last character changes on the way is worth nothing',
        ],
      },
    ),
    should(
      'MRTR-08',
      'Server Requirements (Basic Workflow)',
      'The state names its caller and is refused from another.',
      {
        'auth-tokens.test.ts': ["somebody else's state is refused, and so is one from before signing in"],
        'auth-jwt.test.ts': ['a state belongs to issuer, subject and client, and to no token'],
        'state.test.ts': [
          'a caller’s state is refused from another subject, another client and another issuer',
        ],
      },
    ),
    should('MRTR-09', 'Server Requirements (Basic Workflow)', 'The state expires soon.', {
      'state.test.ts': [
        'a state is good until one millisecond before its expiry',
        'asking again never moves the end of a flow, and no state outlives it',
      ],
    }),
    should(
      'MRTR-10',
      'Server Requirements (Basic Workflow)',
      'The state names its request and is refused with another.',
      {
        'state.test.ts': [
          'a state is refused as soon as any argument differs',
          'a state of one method is refused by the others, whatever their target is called',
          'neither of two gated tools takes the other’s state, even for the same arguments and question',
          'the order of members, white space and escapes make no difference',
        ],
      },
    ),
    must(
      'MRTR-11',
      'Server Requirements (Basic Workflow)',
      'What may count once only is held to that by the server.',
      {
        'single-use.test.ts': [
          'a yes that is sent again gets the first outcome whole, and nothing acts',
          'of 50 yeses at once to two instances one acts, and all get its outcome',
          'asking again makes more states of one flow, and of all of them one acts once',
        ],
        'scale-service.test.ts': [
          'an approval counts once, on whatever instance and however often it is sent',
        ],
        'peers/redis.test.ts': ['of 50 retries at once to two instances one acts, and all get its outcome'],
      },
    ),
    must(
      'MRTR-03',
      'Server Requirements (Basic Workflow)',
      'A result that asks has a question or a state.',
      {
        'gate.test.ts': [ASKED],
        'boundary.test.ts': ['a handler that asks nothing, or what no client knows, hands out nothing'],
      },
    ),
    mustNot(
      'MRTR-06',
      'Server Requirements (Basic Workflow)',
      'No question goes to a client that didn’t declare its kind.',
      {
        'boundary.test.ts': [BY_MODE, 'of several questions each needs its capability'],
        'gate.test.ts': [
          'a client that declares none, or only other modes, is told what is needed: on every call',
        ],
      },
    ),
    mustNot('MRTR-12', 'Server Requirements (Basic Workflow)', 'The server doesn’t count on an answer.', {
      'statelessness.test.ts': ['a question that nobody answers leaves nothing running'],
      'process.test.ts': ['what one instance asked, another with the same secret and audience accepts'],
    }),
    may('MRTR-14', 'Server Requirements (Basic Workflow)', 'The server may ask more than once.', {
      'gate.test.ts': [
        'an answer that is neither yes nor no is asked again, in the same flow, and does nothing',
      ],
      'boundary.test.ts': [
        'a handler of two questions keeps the first answer in its state, where no retry can change it',
      ],
    }),
    must(
      'MRTR-23',
      'Client Requirements (Basic Workflow)',
      'A retry brings its answers and the exact state, under a new id.',
      'For clients. client.ts does; a retry under an old id is served all the same (MRTR-19).',
    ),
    should('MRTR-19', 'Client Requirements (Basic Workflow)', 'A retry is a request of its own.', {
      'gate.test.ts': ['a retry may have the id of the first call, or of any other one'],
    }),
    should('MRTR-15', 'Error Handling', 'Answers are checked for their shape.', {
      'gate.test.ts': [
        'an answer that is neither yes nor no is asked again, in the same flow, and does nothing',
        'answers that are no object are a mistake of the program, not of a person',
      ],
      'admission.test.ts': ['what a retry brings has its type, and is ignored where nothing is retried'],
    }),
    should('MRTR-18', 'Error Handling', 'A protocol fault is a JSON-RPC error.', {
      'gate.test.ts': ['a state that is no string is refused, and an empty one is a bad one'],
    }),
    should('MRTR-16', 'Error Handling', 'What nobody asked for is ignored.', {
      'gate.test.ts': ['what else comes with a yes is ignored'],
    }),
    should('MRTR-17', 'Error Handling', 'A missing answer is asked for again.', {
      'gate.test.ts': [
        'a state that comes without answers is asked again, with a fresh state of the same flow',
        'an answer that is neither yes nor no is asked again, in the same flow, and does nothing',
      ],
    }),
    must(
      'MRTR-24',
      'Security Considerations',
      'State is checked so that no client can alter what happens.',
      {
        'state.test.ts': [
          'a state is refused as soon as any argument differs',
          'under a good seal, every member is there, once, in its place, and no other',
        ],
        'boundary.test.ts': [
          'the state of a handler without a gate opens no gate, and the state of a gate no such handler',
        ],
      },
    ),
  ],
}

export const CANCELLATION: Page = {
  path: 'specification/2026-07-28/basic/patterns/cancellation',
  requirements: [
    must(
      'SUB-16',
      '',
      'A server that ends a subscription sends `notifications/cancelled` about it.',
      'The schema has it for stdio alone. Over HTTP the response ends the stream (SUB-07).',
    ),
    mustNot('CANC-04', '', 'A server sends `notifications/cancelled` about nothing else.', {
      'statelessness.test.ts': [
        'a connection carries one answer to each request and nothing else, whatever was asked for',
      ],
    }),
    must(
      'CANC-08',
      'Transport-Specific Cancellation',
      'A client that hangs up has cancelled its request.',
      {
        'edge.test.ts': ['a client that hangs up cancels the tool that runs for it'],
        'gate.test.ts': [
          'a client that hangs up before the action starts has changed its mind',
          'a client that hangs up with its request half sent has approved nothing',
        ],
      },
    ),
    should('CANC-09', 'Timeouts', 'Requests that are sent have a timeout, whatever progress says.', {
      'auth-jwt.test.ts': ['a key server that hangs is given up on, before and within its answer'],
      'redis-store.test.ts': [
        'a Redis that says nothing for 2 s has failed; what it says later changes nothing',
      ],
    }),
    should(
      'CANC-10',
      'Behavior Requirements',
      'On cancellation: stop, free what was held, answer nothing.',
      {
        'gate.test.ts': [
          'a client that hangs up before the action starts has changed its mind',
          'an action that runs when its client hangs up is finished and logged',
        ],
      },
    ),
    may('CANC-11', 'Behavior Requirements', 'A cancellation that can’t be honoured may be ignored.', {
      'admission.test.ts': ['a cancelled notification stops no call of anybody'],
      'gate.test.ts': ['an action that runs when its client hangs up is finished and logged'],
    }),
    must('CANC-05', 'Timing Considerations', 'A cancellation that races with the answer does no harm.', {
      'gate.test.ts': [
        'an action that runs when its client hangs up is finished and logged',
        'a client that hangs up with its request half sent has approved nothing',
      ],
      'command.test.ts': [
        'a client that leaves while the program runs changes nothing: it finishes and is logged',
      ],
      'single-use.test.ts': ['a client that loses the answer gets the outcome when it sends its yes again'],
    }),
    should('CANC-06', 'Implementation Notes', 'Why a request was cancelled is logged.', {
      'gate.test.ts': ['a client that hangs up before the action starts has changed its mind'],
    }),
    should(
      'CANC-03',
      'Error Handling',
      'A cancellation that is malformed, late or of nothing is ignored.',
      {
        'admission.test.ts': [
          'every notification is taken with 202 and nothing else',
          'a cancelled notification stops no call of anybody',
        ],
      },
    ),
  ],
}

export const PROGRESS: Page = {
  path: 'specification/2026-07-28/basic/patterns/progress',
  requirements: [
    must('PROG-07', 'Progress Flow', 'A progress token is a string or an integer.', {
      'admission.test.ts': ['every known key of _meta has its type; the message names the key'],
    }),
    must('PROG-03', 'Progress Flow', 'Progress grows with each notification.', {
      fixture: {
        'peers/fixture.test.ts': [
          'progress is reported to whoever gave a token, with that token, growing, and ends with the response',
        ],
      },
    }),
    must('PROG-02', 'Behavior Requirements', 'A notification has the token of an active request.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'progress is reported to whoever gave a token, with that token, growing, and ends with the response',
        ],
      },
    }),
    may('PROG-01', 'Behavior Requirements', 'A server may send no progress for a token.', {
      'statelessness.test.ts': [
        'a connection carries one answer to each request and nothing else, whatever was asked for',
      ],
    }),
    must('PROG-04', 'Implementation Notes', 'Progress ends with the request.', {
      'event-stream.test.ts': ['a notification that comes too late, after the response, is dropped'],
      'peers/fixture.test.ts': [
        'progress is reported to whoever gave a token, with that token, growing, and ends with the response',
      ],
    }),
    should('PROG-05', 'Implementation Notes', 'Progress is limited in rate.', {
      untested: 'The fixture reports three times in a call.',
    }),
  ],
}

export const SUBSCRIPTIONS: Page = {
  path: 'specification/2026-07-28/basic/patterns/subscriptions',
  requirements: [
    mustNot('SUB-02', 'Opening a Stream', 'No type of notification is sent that nobody asked for.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'a subscription gets each change of what it asked for, with its id, and nothing else',
        ],
      },
    }),
    must('SUB-03', 'Acknowledgment', 'The acknowledgment comes first, with the subscription’s id.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'an acknowledgment is the first message and names what was asked for and can be sent, no more',
        ],
      },
    }),
    mustNot('SUB-17', 'Acknowledgment', 'Nothing is sent on a subscription before its acknowledgment.', {
      fixture: {
        'peers/conformance.test.ts': [FIXTURE_PASSES],
        'peers/fixture.test.ts': [
          'an acknowledgment is the first message and names what was asked for and can be sent, no more',
        ],
      },
    }),
    must('SUB-04', 'Acknowledgment', 'The acknowledgment names what will be sent, and no more.', {
      fixture: {
        'peers/fixture.test.ts': [
          'an acknowledgment is the first message and names what was asked for and can be sent, no more',
        ],
      },
    }),
    may('SUB-06', 'Multiple Concurrent Subscriptions', 'A client may have several subscriptions at once.', {
      fixture: {
        'peers/fixture.test.ts': [
          'a client that hangs up has ended its subscription, and no other',
          'a subscription gets each change of what it asked for, with its id, and nothing else',
        ],
      },
    }),
    must('SUB-09', 'Cancellation', 'A client that closes the stream has ended its subscription.', {
      fixture: {
        'peers/fixture.test.ts': ['a client that hangs up has ended its subscription, and no other'],
      },
    }),
    should(
      'SUB-13',
      'Graceful Closure',
      'A client compares the acknowledgment with its filter, and takes an end without a result for a drop.',
      'For clients. client.ts subscribes to nothing.',
    ),
    should('SUB-07', 'Graceful Closure', 'A server that ends a subscription answers it first.', {
      fixture: {
        'peers/fixture.test.ts': ['a server that stops answers each subscription before it ends it'],
      },
    }),
  ],
}
