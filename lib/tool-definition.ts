/**
 * Tools checked and compiled once, at start: a definition that breaks a rule of the specification
 * stops the server with a sentence that says what to change, so that no client ever sees it.
 *
 * Source: server/tools, "Tool Names" and "x-mcp-header"; basic/transports/streamable-http, "Schema
 * Extension".
 */
import type { ParamHeader } from './headers.ts'
import { isObject, own, type ToolResult } from './protocol.ts'
import { compileSchema, type JsonSchema, type Validator } from './schema.ts'
import { type Outcome, type Tool, type ToolDefinition, toolResult } from './tool.ts'

export type CompiledTool = {
  readonly handle: Tool['handle']
  readonly scope: string | undefined
  readonly singleUse: boolean
  readonly refusedState: ToolResult | undefined
  /** What `tools/list` shows. */
  readonly definition: ToolDefinition
  readonly input: Validator
  readonly output: Validator | undefined
  readonly paramHeaders: readonly ParamHeader[]
}

/** A Map in the order of the list: `tools/list` is deterministic, and lookups are by a peer's name. */
export type Tools = ReadonlyMap<string, CompiledTool>

/** The specification allows 128; 64 is what the conformance suite and most hosts take. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,64}$/
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Keywords whose members are schemas under names of the author's, and those that hold plain data. */
const NAMED_SCHEMAS = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs'])
const DATA = new Set(['default', 'enum', 'const', 'examples'])

/** @throws Error with a sentence that names the tool and says what to change. */
export function compileTools(tools: readonly (Tool | undefined)[]): Tools {
  const compiled = new Map<string, CompiledTool>()
  for (const tool of tools) {
    if (tool === undefined) continue // its configuration was wrong, and that was reported
    if (compiled.has(tool.name)) throw new Error(`Two tools are named ${tool.name}: rename one.`)
    compiled.set(tool.name, compileTool(tool))
  }
  return compiled
}

/** @returns the tools that can be offered: a single-use one only where outcomes are kept. */
export function offered(tools: Tools, outcomesKept: boolean): Tools {
  return new Map([...tools].filter(([, { singleUse }]) => outcomesKept || !singleUse))
}

/** @returns the `Mcp-Param-*` names of all tools, for a browser's preflight. */
export function paramHeadersOf(tools: Tools): string[] {
  return [...new Set([...tools.values()].flatMap((tool) => tool.paramHeaders.map(({ header }) => header)))]
}

function compileTool(tool: Tool): CompiledTool {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  if (!TOOL_NAME.test(name)) {
    throw new Error(`Tool ${JSON.stringify(name)}: use 1 to 64 of A-Z a-z 0-9 _ - . in its name.`)
  }
  if (description === '') throw new Error(`Tool ${name}: give it a description.`)
  if (!isObject(inputSchema) || inputSchema.type !== 'object') {
    throw new Error(`Tool ${name}: inputSchema must be an object with type "object".`)
  }
  const { handle, scope, singleUse = false, refusedState } = tool
  return {
    handle,
    scope,
    singleUse,
    refusedState:
      refusedState === undefined ? undefined : toolResult({ text: refusedState, isError: true }),
    definition: {
      name,
      ...(title === undefined ? {} : { title }),
      description,
      inputSchema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    input: compileSchema(inputSchema, `Tool ${name}: inputSchema`),
    output: outputSchema && compileSchema(outputSchema, `Tool ${name}: outputSchema`),
    paramHeaders: mirroredParams(inputSchema, name),
  }
}

/**
 * "Servers MUST provide structured results that conform to this schema" (server/tools).
 * @returns the outcome. @throws TypeError when the tool broke its own promise.
 */
export function requireConforming({ definition, output }: CompiledTool, outcome: Outcome): Outcome {
  if (output === undefined || 'inputRequests' in outcome || outcome.isError === true) return outcome
  const fault = output.check(outcome.structuredContent)
  if (fault === undefined) return outcome
  throw new TypeError(`Tool ${definition.name} broke its outputSchema: ${fault.message}`)
}

/** The `x-mcp-header` annotations of a schema. @throws Error for any that breaks a rule. */
function mirroredParams(inputSchema: JsonSchema, tool: string): ParamHeader[] {
  const params: ParamHeader[] = []
  const reachable = new Set<unknown>()
  collect(inputSchema, [])
  const stray = annotated(inputSchema).find((schema) => !reachable.has(schema))
  if (stray !== undefined) {
    const value = JSON.stringify(stray['x-mcp-header'])
    const rule = 'belongs on a property that the root reaches through properties alone: move or delete it.'
    throw new Error(`Tool ${tool}: x-mcp-header ${value} ${rule}`)
  }
  return params

  function collect(schema: JsonSchema, path: readonly string[]): void {
    const properties = own(schema, 'properties')
    if (!isObject(properties)) return
    for (const [member, property] of Object.entries(properties)) {
      if (!isObject(property)) continue
      if (Object.hasOwn(property, 'x-mcp-header')) {
        reachable.add(property)
        params.push(mirrored(property, [...path, member]))
      }
      collect(property, [...path, member])
    }
  }

  function mirrored(property: JsonSchema, path: readonly string[]): ParamHeader {
    const annotation = property['x-mcp-header']
    const where = `Tool ${tool}: x-mcp-header of ${path.join('.')}`
    if (typeof annotation !== 'string' || !TOKEN.test(annotation)) {
      throw new Error(`${where} must be an HTTP token, such as Region.`)
    }
    const { type } = property // `number` is not among them: one number has many spellings
    if (type !== 'string' && type !== 'integer' && type !== 'boolean') {
      throw new Error(`${where} needs type string, integer or boolean, and only one of them.`)
    }
    const header = `Mcp-Param-${annotation}`
    if (params.some((other) => other.header.toLowerCase() === header.toLowerCase())) {
      throw new Error(`${where} repeats ${annotation}, whatever the case: choose another.`)
    }
    return { header, path, type }
  }
}

/** Every schema, however deep, that carries the annotation. */
function annotated(schema: unknown): JsonSchema[] {
  if (Array.isArray(schema)) return schema.flatMap(annotated)
  if (!isObject(schema)) return []
  const found = Object.hasOwn(schema, 'x-mcp-header') ? [schema] : []
  const below = Object.entries(schema).flatMap(([keyword, value]) => {
    if (DATA.has(keyword)) return []
    return NAMED_SCHEMAS.has(keyword) ? Object.values(value as object).flatMap(annotated) : annotated(value)
  })
  return [...found, ...below]
}
