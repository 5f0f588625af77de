/** What a server asks of its client, and through it of a person or a model. */
import { FIXTURE_PASSES, may, must, mustNot, type Page, should, shouldNot } from './requirement.ts'

const ASKED = 'the first call asks one question in one form, hands out a state and does nothing'
const NO_TOOL_LOOP = 'No question here offers tools to a model.'
const NO_URL_MODE = 'release-ops asks by form only, and for nothing that is a secret.'

export const ELICITATION: Page = {
  path: 'specification/2026-07-28/client/elicitation',
  requirements: [
    mustNot('ELIC-05', 'User Interaction Model', 'No form asks for passwords, keys, tokens or cards.', {
      'gate.test.ts': [ASKED],
      'scale-service.test.ts': ['the form has one box to tick and nothing to fill in'],
    }),
    must('ELIC-14', 'User Interaction Model', 'What is secret is asked for by URL.', NO_URL_MODE),
    mustNot(
      'ELIC-01',
      'Capabilities',
      'No mode is used that the client didn’t declare; `{}` means forms.',
      {
        'gate.test.ts': [
          'a client that declares form elicitation, in any of three ways, is asked',
          'a client that declares none, or only other modes, is told what is needed: on every call',
        ],
        'boundary.test.ts': ['a question is asked only of a client that declared just that, to the mode'],
      },
    ),
    may('ELIC-15', 'Elicitation Requests', 'A question may be asked while a request is worked on.', {
      'gate.test.ts': [ASKED],
    }),
    must('ELIC-02', 'Elicitation Requests', 'A question has a message and a mode.', {
      'gate.test.ts': [ASKED],
    }),
    must('ELIC-03', 'Form Mode Elicitation Requests', 'A form has a flat schema of simple fields.', {
      'gate.test.ts': [
        ASKED,
        'a form that no client could show, or that has a confirm of its own, makes no tool',
      ],
    }),
    must(
      'ELIC-04',
      'URL Mode Elicitation Requests',
      'A URL question has its mode, message and URL.',
      NO_URL_MODE,
    ),
    must('ELIC-13', 'Statefulness', 'What is kept of a question belongs to one user.', {
      'scale-service.test.ts': [
        'a key means nothing to another person, and nothing to the same one at another client',
      ],
      'auth-jwt.test.ts': ['a state belongs to issuer, subject and client, and to no token'],
    }),
    must('ELIC-16', 'Statefulness', 'What is kept is protected against others.', {
      'redis-store.test.ts': [
        'what is kept is kept under the server’s name, so that two may share a Redis',
      ],
      'single-use.test.ts': [
        'an expired state is no way to the outcome for other arguments, another tool or a changed text',
      ],
      'encryption.test.ts': [
        'an encrypted state shows no field, name, argument or digest; a signed one shows them',
      ],
    }),
    must('ELIC-17', 'Statefulness', 'The user is whom the access token names.', {
      'auth-jwt.test.ts': [
        'a state belongs to issuer, subject and client, and to no token',
        'a user of another issuer with the same name is another user',
      ],
    }),
    mustNot(
      'ELIC-12',
      'URL Mode Elicitation for OAuth Flows',
      'No question by URL signs a user in to this server.',
      NO_URL_MODE,
    ),
    must('ELIC-06', 'Error Handling', 'Decline, cancel and failure are handled.', {
      'gate.test.ts': [
        'a no is final, is no error and does nothing, whatever else the answer says',
        'an answer that is neither yes nor no is asked again, in the same flow, and does nothing',
      ],
      'peers/official-client.test.ts': [
        'a person who declines is told that nothing changed, and nothing did',
        'a person who closes the form is told that nothing changed, and nothing did',
      ],
    }),
    must('ELIC-08', 'Security Considerations', 'A question belongs to a client and a user.', {
      'auth-jwt.test.ts': ['a state belongs to issuer, subject and client, and to no token'],
      'auth-tokens.test.ts': ["somebody else's state is refused, and so is one from before signing in"],
    }),
    mustNot(
      'ELIC-11',
      'Safe URL Handling',
      'No URL of a question holds data of a user or opens what is protected.',
      NO_URL_MODE,
    ),
    shouldNot('ELIC-10', 'Safe URL Handling', 'No field of a form holds a link.', {
      'gate.test.ts': [ASKED],
    }),
    mustNot('ELIC-09', 'Identifying the User', 'No user is believed to be whom the client says.', {
      'gate.test.ts': ['what else comes with a yes is ignored'],
      'auth-tokens.test.ts': ['a token in the query or in the body lets nobody in'],
    }),
    should('ELIC-07', 'Form Mode Security', 'An answer is checked against its form.', {
      'gate.test.ts': [
        'an answer that is neither yes nor no is asked again, in the same flow, and does nothing',
        'an action gets the fields of its form and nothing else that an answer holds',
      ],
    }),
    must('ELIC-18', 'Phishing', 'Whoever opens a URL is the user who was asked.', NO_URL_MODE),
  ],
}

export const SAMPLING: Page = {
  path: 'specification/2026-07-28/client/sampling',
  requirements: [
    mustNot('FIX-09', 'Capabilities', 'No sampling with tools goes to a client that didn’t declare it.', {
      'boundary.test.ts': ['a question is asked only of a client that declared just that, to the mode'],
      'peers/fixture.test.ts': [
        'a client is asked only what it declared, by prompts, resources and tools alike',
      ],
    }),
    must(
      'SAMP-01',
      'Message Content Constraints',
      'Uses and results of tools are balanced in their messages.',
      NO_TOOL_LOOP,
    ),
    must('SAMP-02', 'Messages', 'A message for a model has the role `user` or `assistant`.', {
      fixture: { 'peers/conformance.test.ts': [FIXTURE_PASSES] },
    }),
    shouldNot('SAMP-03', 'Capabilities', 'No context of other servers is asked for.', {
      untested: 'No question names `includeContext`.',
    }),
    must('SAMP-04', 'Security Considerations', 'Each use of a tool has its result.', NO_TOOL_LOOP),
  ],
}

export const ROOTS: Page = {
  path: 'specification/2026-07-28/client/roots',
  requirements: [
    should(
      'ROOT-01',
      'Implementation Guidelines',
      'Roots are asked of those clients only that have them.',
      {
        'boundary.test.ts': ['a question is asked only of a client that declared just that, to the mode'],
      },
    ),
    should(
      'ROOT-02',
      'Security Considerations',
      'Paths stay within the roots.',
      'No tool here opens a path.',
    ),
  ],
}

export const DEPRECATED: Page = {
  path: 'specification/2026-07-28/deprecated',
  requirements: [
    shouldNot('DEPR-01', '', 'No new server adopts roots, sampling, log messages or the old transport.', {
      'tool-definition.test.ts': ['server/discover says exactly what the contract says'],
      'gate.test.ts': [ASKED],
      'edge.test.ts': ['every other path is 404 in plain text that names the endpoint'],
    }),
  ],
}
