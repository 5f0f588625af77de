/**
 * `tools/call`: rows 20 to 25 of the admission table, in order, and then the tool.
 * Source: server/tools, "Calling Tools" and "Error Handling".
 */
import { run } from './boundary.ts'
import { ambiguity } from './canonical.ts'
import { quote } from './display.ts'
import { requireMirroredParams } from './headers.ts'
import { isObject, type JsonObject, own, type ToolResult } from './protocol.ts'
import { invalidParams } from './refusal.ts'
import type { AdmittedRequest, Method, Permit, Trail } from './request.ts'
import type { Result } from './result.ts'
import { readRetry } from './retry.ts'
import type { States } from './state.ts'
import { onceKey, type SingleUse, toolResult } from './tool.ts'
import { type CompiledTool, requireConforming, type Tools } from './tool-definition.ts'

/** What serving a call takes beside the tools. */
export type CallServices = {
  readonly states: States
  readonly trail?: Trail | undefined
  readonly permits: readonly Permit[]
  /** Needed for tools that are single use. */
  readonly singleUse?: SingleUse
}

/** @returns the method; it throws a Refusal for every row but 23, whose answer a model can act on. */
export function toolsCall(tools: Tools, services: CallServices): Method {
  const { permits, singleUse } = services
  return (request) => {
    const { tool, args, retry } = readCall(request.params, tools) //            row 20
    const { definition, handle, refusedState } = tool
    request.arrival.note.tool = definition.name
    for (const permit of permits) permit(request, tool.scope) //                row 21
    requireMirroredParams(request.arrival.headers, tool.paramHeaders, args) //  row 22
    const validated = validate(tool, args) //                                   row 23
    if (typeof validated === 'string') return argumentError(request, validated)
    const once = tool.singleUse ? singleUse : undefined
    return run<ToolResult>(services, {
      request, //                                                               rows 24, 25
      retry,
      target: definition.name,
      arguments: validated,
      async handle(call) {
        return requireConforming(tool, await handle(call, once))
      },
      refusedState,
      async recall(flow) {
        return once?.recall(onceKey(definition.name, flow))
      },
    })
  }
}

/** Row 20. Absent and null `arguments` are `{}`, so that the schema says what is missing. */
function readCall(params: JsonObject, tools: Tools) {
  const name = own(params, 'name')
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  const tool = tools.get(name)
  if (tool === undefined) throw invalidParams(`Unknown tool: ${quote(name)}`)
  const args = own(params, 'arguments') ?? {}
  if (!isObject(args)) throw invalidParams('arguments must be an object')
  return { tool, args, retry: readRetry(params) }
}

/**
 * Row 23. @returns the declared arguments, which are what is digested and acted on, or what is
 * wrong with them; also where two JSON parsers might read one differently.
 */
function validate({ input }: CompiledTool, args: JsonObject): JsonObject | string {
  const fault = input.check(args)
  if (fault !== undefined) return fault.message
  const declared = input.project(args)
  return ambiguity(declared)?.message ?? (isObject(declared) ? declared : {})
}

/** A result and no error: a model reads it, mends its arguments and calls again. */
function argumentError({ arrival }: AdmittedRequest, fault: string): Result {
  arrival.note.outcome = 'arguments refused'
  return {
    resultType: 'complete',
    ...toolResult({ text: `Invalid arguments: ${fault}.`, isError: true }),
  }
}
