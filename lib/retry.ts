/**
 * What a client adds to a request when it tries again: part of row 20 of the admission table.
 * Source: schema, "InputResponseRequestParams".
 */
import { isObject, type JsonObject, own } from './protocol.ts'
import { invalidParams } from './refusal.ts'

export type Retry = { readonly requestState: string | undefined; readonly answers: JsonObject }

/** @throws Refusal -32602 when a member is there and has the wrong type; null is a wrong type. */
export function readRetry(params: JsonObject): Retry {
  const requestState = own(params, 'requestState')
  const answers = Object.hasOwn(params, 'inputResponses') ? params.inputResponses : {}
  if (requestState !== undefined && typeof requestState !== 'string') {
    throw invalidParams('requestState must be a string')
  }
  if (isObject(answers)) return { requestState, answers }
  throw invalidParams('inputResponses must be an object')
}
