/** What a requirement is, and how a page's requirements are written down. */
import type { PagePath } from './pages.ts'

export type Level = 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT' | 'MAY'

/** Names of tests by their file in `test/`. */
export type Tests = { readonly [file: `${string}.test.ts`]: readonly string[] }

/** Why it doesn't apply, or what shows it: tests of release-ops, or of the fixture server in `test/peers/`. */
export type Evidence = string | Tests | { readonly fixture: Tests } | { readonly untested: string }

export type Requirement = {
  readonly id: string
  readonly level: Level
  readonly section: string
  /** In our words: the page has the words that count. */
  readonly asks: string
  readonly evidence: Evidence
}

export type Page = { readonly path: PagePath; readonly requirements: readonly Requirement[] }

type Entry = (id: string, section: string, asks: string, evidence: Evidence) => Requirement

const at =
  (level: Level): Entry =>
  (id, section, asks, evidence) => ({ id, level, section, asks, evidence })

export const must = at('MUST')
export const mustNot = at('MUST NOT')
export const should = at('SHOULD')
export const shouldNot = at('SHOULD NOT')
export const may = at('MAY')

/** What the official suite checks of the fixture: 40 scenarios at once. */
export const FIXTURE_PASSES =
  'the fixture passes every check that 2026-07-28 requires, and of the pending scenarios'
