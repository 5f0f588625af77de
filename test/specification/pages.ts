/** The pages of the 2026-07-28 revision, and the guide that they point at, as they stand on the site. */
export const SITE = 'https://modelcontextprotocol.io/'

export const PAGES = [
  'docs/2026-07-28/tutorials/security/security_best_practices',
  'specification/2026-07-28/architecture/index',
  'specification/2026-07-28/basic/authorization/authorization-server-discovery',
  'specification/2026-07-28/basic/authorization/client-registration',
  'specification/2026-07-28/basic/authorization/index',
  'specification/2026-07-28/basic/authorization/security-considerations',
  'specification/2026-07-28/basic/index',
  'specification/2026-07-28/basic/patterns/cancellation',
  'specification/2026-07-28/basic/patterns/index',
  'specification/2026-07-28/basic/patterns/mrtr',
  'specification/2026-07-28/basic/patterns/progress',
  'specification/2026-07-28/basic/patterns/subscriptions',
  'specification/2026-07-28/basic/transports/index',
  'specification/2026-07-28/basic/transports/stdio',
  'specification/2026-07-28/basic/transports/streamable-http',
  'specification/2026-07-28/basic/versioning',
  'specification/2026-07-28/changelog',
  'specification/2026-07-28/client/elicitation',
  'specification/2026-07-28/client/roots',
  'specification/2026-07-28/client/sampling',
  'specification/2026-07-28/deprecated',
  'specification/2026-07-28/index',
  'specification/2026-07-28/schema',
  'specification/2026-07-28/server/discover',
  'specification/2026-07-28/server/index',
  'specification/2026-07-28/server/prompts',
  'specification/2026-07-28/server/resources',
  'specification/2026-07-28/server/tools',
  'specification/2026-07-28/server/utilities/caching',
  'specification/2026-07-28/server/utilities/completion',
  'specification/2026-07-28/server/utilities/logging',
  'specification/2026-07-28/server/utilities/pagination',
] as const

export type PagePath = (typeof PAGES)[number]
