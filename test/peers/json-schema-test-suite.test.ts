/**
 * The official JSON-Schema-Test-Suite, draft 2020-12: every group whose schema keeps to the keywords
 * of this server must pass, and every other group's schema must be refused when it is compiled.
 *
 * No npm package ships this draft of it, so the folder beside this file is a copy, byte for byte, of
 * https://github.com/json-schema-org/JSON-Schema-Test-Suite at 44401e0c (MIT); left out is
 * `optional/format`, because `format` is an annotation here.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { compileSchema } from '../../lib/schema.ts'

type Case = { readonly description: string; readonly data: unknown; readonly valid: boolean }
type Group = { readonly description: string; readonly schema: unknown; readonly tests: Case[] }

const SUITE = join(import.meta.dirname, 'json-schema-test-suite', 'tests', 'draft2020-12')
const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

// Said again, not imported: a keyword that lib/schema.ts forgot must show here.
const ONE = words('items contains additionalProperties propertyNames not if then else contentSchema')
const LIST = words('prefixItems allOf anyOf oneOf')
const NAMED = words('properties patternProperties dependentSchemas $defs')
const PLAIN = words(`
  $schema $ref $anchor $comment title description default examples deprecated readOnly writeOnly
  format contentEncoding contentMediaType type enum const minLength maxLength pattern minimum maximum
  exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems minContains maxContains
  required minProperties maxProperties dependentRequired`)

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

/** Whether a schema stays within what this server says it implements. */
function isWithin(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  return Object.entries(schema).every(([keyword, value]) => {
    if (keyword === '$schema') return value === DIALECT
    if (keyword === '$ref') return String(value).startsWith('#')
    if (ONE.has(keyword)) return isWithin(value)
    if (LIST.has(keyword) || NAMED.has(keyword)) return Object.values(value).every(isWithin)
    return PLAIN.has(keyword)
  })
}

/** The required tests, and the optional ones that don't ask for another treatment of `format`. */
function groupsOf(suite: string): { readonly file: string; readonly group: Group }[] {
  const files = [suite, join(suite, 'optional')].flatMap((at) =>
    readdirSync(at)
      .filter((name) => name.endsWith('.json') && name !== 'format-assertion.json')
      .map((name) => join(at, name)),
  )
  return files.flatMap((file) => {
    const groups: Group[] = JSON.parse(readFileSync(file, 'utf8'))
    return groups.map((group) => ({ file, group }))
  })
}

test('every group within the implemented keywords passes, and every other one is refused', (t) => {
  const counts = { groups: 0, cases: 0, refused: 0 }
  const wrong: string[] = []
  for (const { file, group } of groupsOf(SUITE)) {
    const where = `${file}: ${group.description}`
    // A $ref to what is no schema (optional in the suite: core, 9.4.2 leaves it undefined).
    if (!isWithin(group.schema) || file.endsWith('refOfUnknownKeyword.json')) {
      try {
        compileSchema(group.schema, 'suite')
        wrong.push(`${where}: compiles`)
      } catch {
        counts.refused += 1
      }
      continue
    }
    counts.groups += 1
    try {
      const validator = compileSchema(group.schema, 'suite')
      for (const { description, data, valid } of group.tests) {
        counts.cases += 1
        if ((validator.check(data) === undefined) !== valid)
          wrong.push(`${where}: ${description}: not ${valid}`)
      }
    } catch (error) {
      wrong.push(`${where}: ${error}`)
    }
  }
  t.diagnostic(
    `${counts.groups} groups with ${counts.cases} cases checked, ${counts.refused} groups refused`,
  )
  assert.deepEqual(wrong, [])
  assert.deepEqual(counts, { groups: 276, cases: 1065, refused: 155 })
})
