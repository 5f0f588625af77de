/**
 * `npm run specification`: writes test/SPECIFICATION.md, which says for each requirement of the
 * specification which tests show it, or why it doesn't apply. The table is in test/specification/.
 */
import { realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  AUTHORIZATION,
  AUTHORIZATION_DISCOVERY,
  AUTHORIZATION_SECURITY,
  SECURITY,
} from './specification/authorization.ts'
import { BASE, PATTERNS, SCHEMA, TRANSPORTS, VERSIONING } from './specification/base.ts'
import { DEPRECATED, ELICITATION, ROOTS, SAMPLING } from './specification/client-features.ts'
import { SITE } from './specification/pages.ts'
import { CANCELLATION, MRTR, PROGRESS, SUBSCRIPTIONS } from './specification/patterns.ts'
import type { Evidence, Page, Requirement, Tests } from './specification/requirement.ts'
import {
  CACHING,
  COMPLETION,
  DISCOVER,
  LOGGING,
  PAGINATION,
  PROMPTS,
  RESOURCES,
  TOOLS,
} from './specification/server.ts'
import { STREAMABLE_HTTP } from './specification/streamable-http.ts'

export const TABLE: readonly Page[] = [
  BASE,
  VERSIONING,
  TRANSPORTS,
  STREAMABLE_HTTP,
  PATTERNS,
  MRTR,
  CANCELLATION,
  PROGRESS,
  SUBSCRIPTIONS,
  DISCOVER,
  TOOLS,
  PROMPTS,
  RESOURCES,
  CACHING,
  COMPLETION,
  LOGGING,
  PAGINATION,
  ELICITATION,
  SAMPLING,
  ROOTS,
  AUTHORIZATION,
  AUTHORIZATION_DISCOVERY,
  AUTHORIZATION_SECURITY,
  SECURITY,
  SCHEMA,
  DEPRECATED,
]

export const DOCUMENT = fileURLToPath(new URL('SPECIFICATION.md', import.meta.url))

const STANDINGS = ['shown', 'shown by the fixture', 'untested', 'does not apply'] as const
type Standing = (typeof STANDINGS)[number]

/** @returns the tests that show a requirement; none where it doesn't apply. */
export function testsOf(evidence: Evidence): Tests {
  if (typeof evidence === 'string' || 'untested' in evidence) return {}
  return 'fixture' in evidence ? evidence.fixture : evidence
}

function standingOf(evidence: Evidence): Standing {
  if (typeof evidence === 'string') return 'does not apply'
  if ('untested' in evidence) return 'untested'
  return 'fixture' in evidence ? 'shown by the fixture' : 'shown'
}

/** The whole of test/SPECIFICATION.md. */
export function written(): string {
  const all = TABLE.flatMap(({ requirements }) => requirements)
  return `${[INTRODUCTION, summaryOf(all), ...TABLE.map(chapterOf)].join('\n\n')}\n`
}

const INTRODUCTION = `# What the specification asks, and where it is shown

Written by \`npm run specification\` from the table in [specification/](specification/); \`specification.test.ts\` keeps it true.

It lists what revision 2026-07-28 of the Model Context Protocol asks of a server over Streamable HTTP, in our words; the page behind each heading and section has the words that count. What a page states as a fact, or \`schema.ts\` as a shape, counts as MUST. Beside a requirement stand the tests that show it, by their names. Left out is what only clients, authorization servers and other transports owe, unless it stands beside a duty of servers.

release-ops has tools alone, and answers in JSON. Prompts, resources, completion, subscriptions, progress and log messages are those of the fixture server in [peers/](peers/), on the same library.`

function summaryOf(all: readonly Requirement[]): string {
  const levels = ['MUST', 'MUST NOT', 'SHOULD', 'SHOULD NOT', 'MAY'] as const
  const count = (list: readonly Requirement[]) => [
    ...STANDINGS.map((standing) => list.filter(({ evidence }) => standingOf(evidence) === standing).length),
    list.length,
  ]
  return table(
    ['', ...STANDINGS, 'all'],
    [
      ...levels.map((level) => [level, ...count(all.filter((one) => one.level === level)).map(String)]),
      ['all', ...count(all).map(String)],
    ],
  )
}

function chapterOf({ path, requirements }: Page): string {
  const url = `${SITE}${path}`
  const rows = requirements.map(({ id, level, section, asks, evidence }) => [
    id,
    level,
    section === '' ? asks : `${asks} [${section}](${url}#${anchor(section)})`,
    cellOf(evidence),
  ])
  const title = path.replace('specification/2026-07-28/', '').replace(/^.*\/tutorials\//, '')
  return `## [${title}](${url})\n\n${table(['', 'level', 'what is asked', 'where it is shown'], rows)}`
}

function cellOf(evidence: Evidence): string {
  if (typeof evidence === 'string') return `Does not apply. ${evidence}`
  if ('untested' in evidence) return `No test. ${evidence.untested}`
  const files = Object.entries(testsOf(evidence))
  return files.map(([file, names]) => `[${file}](${file}): ${names.map(quoted).join('; ')}`).join('<br>')
}

/** As Markdown it reads as it is. */
const quoted = (name: string) => name.replace(/[\\`*_<|[\]]/g, '\\$&')

/** As the site names the place of a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-')

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  writeFileSync(DOCUMENT, written())
}
