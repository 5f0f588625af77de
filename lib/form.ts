/**
 * The form of the gate: one yes or no, and beside it what else the tool wants to know. Reading an
 * answer decides whether a risky action runs, so only one shape of it is a yes.
 *
 * Source: client/elicitation, "Requested Schema" and "Response Actions".
 */
import { isObject, type JsonObject, own } from './protocol.ts'
import { compileSchema, type Infer, type JsonSchema } from './schema.ts'

/** Flat properties of primitive type: all that a form may have. */
export type Fields = { readonly [field: string]: JsonSchema }

/** What was typed into the fields; a field that is not required may be missing. */
export type FieldAnswers<F extends Fields> = { readonly [field in keyof F]?: Infer<F[field]> }

export type Answered<F extends Fields> =
  | { readonly kind: 'yes'; readonly fields: FieldAnswers<F> }
  | { readonly kind: 'no'; readonly decision: 'declined' | 'cancelled' }

/** An unclear one is missing, malformed, or neither yes nor no. */
export type Answer<F extends Fields> = Answered<F> | { readonly kind: 'unclear' }

export type Form<F extends Fields> = {
  readonly requestedSchema: JsonSchema
  /** @param answer one entry of `inputResponses`, as hostile as the rest. */
  readonly read: (answer: unknown) => Answer<F>
}

/** Never an empty form: some hosts accept those unseen. */
const CONFIRM = { type: 'boolean', title: 'Confirm', description: 'Yes, do this.' }
const PRIMITIVE: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])

/** @throws Error for a field that no form can show, naming it. */
export function yesNoForm<F extends Fields>(name: string, fields: F): Form<F> {
  for (const [field, { type }] of Object.entries(fields)) {
    if (field === 'confirm' || !PRIMITIVE.has(type)) {
      const rule = 'give it another name than confirm, and type string, number, integer or boolean.'
      throw new Error(`Tool ${name}: form field ${field}: ${rule}`)
    }
  }
  const properties = { confirm: CONFIRM, ...fields }
  const requestedSchema = { type: 'object', properties, required: ['confirm'] }
  const { check, project } = compileSchema(requestedSchema, `Tool ${name}: form`)

  function read(answer: unknown): Answer<F> {
    if (!isObject(answer)) return { kind: 'unclear' }
    const action = own(answer, 'action')
    const content = own(answer, 'content')
    if (action === 'decline') return { kind: 'no', decision: 'declined' }
    if (action === 'cancel') return { kind: 'no', decision: 'cancelled' }
    if (action !== 'accept' || !isObject(content) || check(content)) return { kind: 'unclear' }
    if (own(content, 'confirm') !== true) return { kind: 'no', decision: 'declined' }
    const { confirm: _, ...answers } = project(content) as JsonObject
    return { kind: 'yes', fields: answers as FieldAnswers<F> } // as the schema has just checked
  }

  return { requestedSchema, read }
}
