/** What an OAuth protected resource owes, and the guide to security. */
import { must, mustNot, type Page, should, shouldNot } from './requirement.ts'

const UNIDENTIFIED = 'without a good token every request is 401 with a bare Bearer, before it is read'
const CHALLENGE = 'without a token the challenge says where to ask and for what, and names no error'
const NO_SCOPE = 'a token without the scope is 403, and the challenge names the scope'
const METADATA = 'the metadata is public and comes from the configuration, whatever Host says'
const METADATA_PLACES = 'the metadata stands where the resource says, and under the two usual paths'
const OTHERS_AUDIENCE = 'a token for somebody else, or for nobody, is refused'
const INSECURE = 'half a configuration, or an insecure one, stops the start'
const UNTOLD = 'no token is ever in a state, an answer or the log'
const FOR_OAUTH_CLIENTS = 'For clients that fetch tokens: client.ts is given one.'
const FOR_CLIENTS = 'For clients. client.ts reads it from MCP_TOKEN and prints it nowhere.'
const NO_PROXY = 'The server is no OAuth proxy and passes no token on.'

export const AUTHORIZATION: Page = {
  path: 'specification/2026-07-28/basic/authorization/index',
  requirements: [
    must('AUTH-02', 'Overview', 'A server publishes protected-resource metadata (RFC 9728).', {
      'auth-jwt.test.ts': [METADATA, METADATA_PLACES],
    }),
    must(
      'AUTHC-06',
      'Overview',
      'A client finds its authorization server by protected-resource metadata.',
      FOR_OAUTH_CLIENTS,
    ),
    must('AUTHC-12', 'Client Registration', 'A client obtains a client id.', FOR_OAUTH_CLIENTS),
    should('AUTH-12', 'Scope Selection Strategy', 'A challenge names the scopes that are needed.', {
      'auth-jwt.test.ts': [CHALLENGE, NO_SCOPE],
    }),
    should('AUTH-18', 'Scope Selection Strategy', 'Scopes are named in one way throughout.', {
      'auth-jwt.test.ts': [CHALLENGE, NO_SCOPE, METADATA],
    }),
    should(
      'AUTHC-14',
      'Scope Selection Strategy',
      'A client asks for the scopes of the challenge.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTHC-10',
      'Authorization Response Validation',
      'A client checks who answered it.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTHC-08',
      'Resource Parameter Implementation',
      'A client names the resource it wants a token for.',
      FOR_OAUTH_CLIENTS,
    ),
    must('AUTH-04', 'Canonical Server URI', 'The server has one URI, without a fragment (RFC 9728, 3.3).', {
      'auth-jwt.test.ts': [METADATA, METADATA_PLACES, INSECURE],
    }),
    should('AUTH-27', 'Canonical Server URI', 'Scheme and host count in any case.', {
      'auth-jwt.test.ts': ['an audience may be one of several, and its scheme and host in any case'],
    }),
    must('AUTH-11', 'Token Requirements', 'Each request brings its token.', {
      'auth-tokens.test.ts': [
        'a token lets in the request that brings it, and no other on its connection',
        'a token is judged on each request, not on each connection or first call',
      ],
    }),
    must(
      'AUTH-24',
      'Token Requirements',
      'A token comes in the header, under a scheme without case (RFC 9110, 11.1).',
      {
        'auth-tokens.test.ts': ['a token from the file is let in, whatever the case of the scheme'],
      },
    ),
    must('AUTHC-01', 'Token Requirements', 'A client sends its token with every request.', FOR_CLIENTS),
    mustNot('AUTH-10', 'Token Requirements', 'No token comes in the query of a URL.', {
      'auth-tokens.test.ts': ['a token in the query or in the body lets nobody in'],
    }),
    must('AUTH-07', 'Token Handling', 'Tokens are validated: signature, issuer, times.', {
      'auth-jwt.test.ts': [
        'a token of another issuer is refused',
        'a token that has expired, or says no time, is refused',
        'a token from the future is refused',
        'a token that nobody here trusts signed is refused, also when it brings its own key',
        'a token changed in any place is refused',
        'none, HMAC and any other algorithm are refused before a key is looked for',
      ],
      'peers/jose.test.ts': [
        'every malformed variant that jose can make is refused, and nothing is performed',
      ],
    }),
    must('AUTH-08', 'Token Handling', 'A token was issued for this server.', {
      'auth-jwt.test.ts': [
        OTHERS_AUDIENCE,
        'an audience may be one of several, and its scheme and host in any case',
      ],
    }),
    must('AUTH-06', 'Token Handling', 'An invalid or expired token gets 401.', {
      'auth-jwt.test.ts': ['a token that has expired, or says no time, is refused', CHALLENGE],
      'auth-tokens.test.ts': [UNIDENTIFIED],
    }),
    mustNot('AUTHC-02', 'Token Handling', 'No client sends a token of another issuer.', FOR_OAUTH_CLIENTS),
    mustNot('AUTH-09', 'Token Handling', 'The server takes no other token and passes none on.', {
      'auth-jwt.test.ts': [OTHERS_AUDIENCE, 'a token of another issuer is refused'],
      'auth-tokens.test.ts': ['no action learns the token of its caller'],
    }),
    must(
      'AUTHC-15',
      'Refresh Tokens',
      'A client keeps refresh tokens secret and does without.',
      FOR_OAUTH_CLIENTS,
    ),
    shouldNot('AUTH-17', 'Refresh Tokens', 'No server asks for `offline_access`.', {
      'auth-jwt.test.ts': [METADATA, CHALLENGE, NO_SCOPE],
    }),
    must('AUTH-16', 'Error Handling', '400, 401 and 403 are told apart.', {
      'auth-jwt.test.ts': [
        'an Authorization header that is malformed or repeated is 400, and the challenge says so',
        CHALLENGE,
        NO_SCOPE,
      ],
      'auth-tokens.test.ts': [
        'an Authorization header that is malformed or repeated is 400',
        UNIDENTIFIED,
        'a caller without the scope gets 403, on the first call and on the retry',
      ],
    }),
    shouldNot('AUTH-23', 'Error Handling', 'The challenge to no token names no error (RFC 6750, 3.1).', {
      'auth-jwt.test.ts': [CHALLENGE],
      'auth-tokens.test.ts': [UNIDENTIFIED],
    }),
    should(
      'AUTH-13',
      'Runtime Insufficient Scope Errors',
      'Too few scopes: 403, `insufficient_scope`, what lacks.',
      {
        'auth-jwt.test.ts': [NO_SCOPE],
      },
    ),
    should(
      'AUTH-14',
      'Runtime Insufficient Scope Errors',
      'One challenge names all scopes, the same each time.',
      {
        'auth-jwt.test.ts': [NO_SCOPE],
      },
    ),
    must(
      'AUTH-15',
      'Step-Up Authorization Flow',
      'A broad scope counts for the narrow ones it implies.',
      'The server knows one scope, `releases:write`, and none that implies it.',
    ),
    should(
      'AUTHC-04',
      'Step-Up Authorization Flow',
      'A client asks for more, a few times at most.',
      FOR_OAUTH_CLIENTS,
    ),
  ],
}

export const AUTHORIZATION_DISCOVERY: Page = {
  path: 'specification/2026-07-28/basic/authorization/authorization-server-discovery',
  requirements: [
    must(
      'AUTH-03',
      'Authorization Server Location',
      'The metadata name at least one authorization server.',
      {
        'auth-jwt.test.ts': [METADATA, INSECURE],
      },
    ),
    must(
      'AUTHC-13',
      'Authorization Server Location',
      'A client keeps each issuer’s registration apart.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTH-05',
      'Protected Resource Metadata Discovery Requirements',
      'The challenge, or a known path, leads to the metadata.',
      {
        'auth-jwt.test.ts': [CHALLENGE, METADATA_PLACES],
      },
    ),
    must('AUTH-22', 'Protected Resource Metadata Discovery Requirements', 'The challenge can be parsed.', {
      'auth-jwt.test.ts': ['a challenge can not be broken out of, whatever it names', CHALLENGE],
    }),
    must(
      'AUTHC-03',
      'Protected Resource Metadata Discovery Requirements',
      'A client reads the challenge.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTHC-07',
      'Authorization Server Metadata Discovery',
      'A client finds and checks the issuer’s metadata.',
      FOR_OAUTH_CLIENTS,
    ),
  ],
}

export const AUTHORIZATION_SECURITY: Page = {
  path: 'specification/2026-07-28/basic/authorization/security-considerations',
  requirements: [
    must('AUTH-28', '', 'OAuth’s own advice on security is followed (OAuth 2.1, 7).', {
      'auth-jwt.test.ts': [
        'none, HMAC and any other algorithm are refused before a key is looked for',
        'a key is used with its own algorithms only, whatever the token says',
        'a key that is too short, of another curve, or not for signatures opens nothing',
        'a redirect to a good key server is not followed',
        'a minute between two clocks is forgiven, in both directions',
      ],
    }),
    must('AUTH-30', 'Token Audience Binding and Validation', 'A token was issued for this server’s use.', {
      'auth-jwt.test.ts': [OTHERS_AUDIENCE],
    }),
    must('AUTH-19', 'Token Theft', 'Tokens are kept and logged nowhere in the clear.', {
      'auth-tokens.test.ts': [
        UNTOLD,
        'a file that is wrong stops the start, naming the line and not what is in it',
      ],
      'auth-jwt.test.ts': [UNTOLD],
      'trail.test.ts': [
        'no line of the log holds a state, a token, an argument, a reason, an answer or an outcome',
      ],
    }),
    must('AUTHC-05', 'Token Theft', 'A client keeps its token to itself.', FOR_CLIENTS),
    must('AUTH-26', 'Communication Security', 'An authorization server is reached over HTTPS.', {
      'auth-jwt.test.ts': [INSECURE],
    }),
    must(
      'AUTHC-11',
      'Open Redirection',
      'A client registers its redirects, on HTTPS or loopback.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTHC-09',
      'Authorization Code Protection',
      'A client uses PKCE with S256, or stops.',
      FOR_OAUTH_CLIENTS,
    ),
    must(
      'AUTH-29',
      'Confused Deputy Problem',
      'A proxy with one client id asks its users for consent.',
      NO_PROXY,
    ),
    must(
      'AUTH-31',
      'Access Token Privilege Restriction',
      'A token is validated before the request is worked on.',
      {
        'auth-tokens.test.ts': [UNIDENTIFIED],
        'auth-jwt.test.ts': [CHALLENGE, OTHERS_AUDIENCE],
      },
    ),
    mustNot('AUTH-32', 'Access Token Privilege Restriction', 'No token of a client is passed on.', {
      'auth-tokens.test.ts': ['no action learns the token of its caller'],
      'command.test.ts': ["the server's own secrets are not in the environment of the program"],
    }),
  ],
}

export const SECURITY: Page = {
  path: 'docs/2026-07-28/tutorials/security/security_best_practices',
  requirements: [
    must(
      'AUTH-33',
      'Confused Deputy Problem',
      'A proxy protects consent, redirects and `state`.',
      NO_PROXY,
    ),
    mustNot('SEC-02', 'Token Passthrough', 'No token is taken that wasn’t issued for this server.', {
      'auth-jwt.test.ts': [OTHERS_AUDIENCE, 'a token of another issuer is refused'],
    }),
    must(
      'AUTHC-17',
      'Server-Side Request Forgery (SSRF)',
      'A client on a server guards what it fetches.',
      FOR_OAUTH_CLIENTS,
    ),
    must('AUTH-20', 'State Handle Hijacking', 'Each request is verified.', {
      'auth-tokens.test.ts': [UNIDENTIFIED],
    }),
    mustNot('STATE-04', 'State Handle Hijacking', 'Having a handle proves nobody’s identity.', {
      'auth-tokens.test.ts': [
        'a token is judged on each request, not on each connection or first call',
        "somebody else's state is refused, and so is one from before signing in",
      ],
    }),
    should('STATE-05', 'State Handle Hijacking', 'Handles are random, and expire.', {
      'state.test.ts': [
        'two states for the same question have nothing in common that tells whose or what they are',
        'a state is good until one millisecond before its expiry',
      ],
    }),
    should('AUTH-21', 'State Handle Hijacking', 'Handles are bound to the verified user.', {
      'auth-jwt.test.ts': ['a state belongs to issuer, subject and client, and to no token'],
      'scale-service.test.ts': [
        'a key means nothing to another person, and nothing to the same one at another client',
      ],
    }),
    should('SEC-01', 'Local MCP Server Compromise', 'A server run locally over HTTP asks for a token.', {
      'auth-tokens.test.ts': [
        'a token from the file is let in, whatever the case of the scheme',
        UNIDENTIFIED,
      ],
    }),
    must(
      'AUTHC-16',
      'OAuth Authorization URL Validation',
      'A client opens no dangerous URL.',
      FOR_OAUTH_CLIENTS,
    ),
    should('AUTH-34', 'Scope Minimization', 'Scopes are few and narrow, without wildcards.', {
      'auth-jwt.test.ts': [METADATA, NO_SCOPE],
    }),
  ],
}
