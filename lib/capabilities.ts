/**
 * What a client must have declared before it may be asked: a server "MUST NOT rely on capabilities
 * the client has not declared", and each request is judged by its own `_meta` (basic/index).
 */
import { CODE, type InputRequest, type InputRequests, isObject, type JsonObject, own } from './protocol.ts'
import { rpcRefusal } from './refusal.ts'

/** Capabilities in the form of `data.requiredCapabilities`, e.g. `{ elicitation: { form: {} } }`. */
type Capabilities = { readonly [capability: string]: JsonObject }

export const FORM: Capabilities = { elicitation: { form: {} } }

/** @returns the capability that one question needs, to the mode (client/elicitation, "Capabilities"). */
function neededFor({ method, params = {} }: InputRequest): Capabilities {
  if (method === 'elicitation/create')
    return own(params, 'mode') === 'url' ? { elicitation: { url: {} } } : FORM
  if (method === 'sampling/createMessage') {
    return { sampling: own(params, 'tools') === undefined ? {} : { tools: {} } }
  }
  if (method === 'roots/list') return { roots: {} }
  throw new TypeError(`No client can be asked ${method}: use elicitation, sampling or roots.`)
}

/** Row 25. @throws Refusal -32021 that names what the client lacks of `needed`. */
export function requireCapability(declared: JsonObject, needed: Capabilities): void {
  for (const [name, modes] of Object.entries(needed)) {
    const have = own(declared, name)
    if (isObject(have) && Object.keys(modes).every((mode) => covers(name, have, mode))) continue
    const message = `This tool needs a client that supports ${name}.`
    const data = { requiredCapabilities: { [name]: modes } }
    throw rpcRefusal(400, CODE.missingClientCapability, message, 'capability missing', data)
  }
}

/**
 * "Servers MUST NOT send an inputRequests that the client has not declared support for"
 * (basic/patterns/mrtr). @throws Refusal -32021
 */
export function requireAnswerable(declared: JsonObject, inputRequests: InputRequests): void {
  const asked = Object.values(inputRequests)
  if (asked.length === 0) throw new TypeError('A handler that asks must ask something.')
  for (const request of asked) requireCapability(declared, neededFor(request))
}

/** "An empty capabilities object is equivalent to declaring support for form mode only." */
function covers(name: string, have: JsonObject, mode: string): boolean {
  if (isObject(own(have, mode))) return true
  return name === 'elicitation' && mode === 'form' && Object.keys(have).length === 0
}
