/**
 * A tool as its author writes it. A handler gets validated arguments and returns either an outcome
 * or a question; it never sees HTTP, JSON-RPC or a sealed state.
 */
import { visible, visibleDeep } from './display.ts'
import type { Principal } from './principal.ts'
import type { InputRequests, Json, JsonObject, ToolResult } from './protocol.ts'
import type { Decision, Peer } from './request.ts'
import type { Infer, JsonSchema } from './schema.ts'
import type { Flow } from './state.ts'

/** Hints for the host's display; nothing here depends on a client honouring them. */
export type ToolAnnotations = {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** What `tools/list` shows of a tool. */
export type ToolDefinition = {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations?: ToolAnnotations
}

/** One call, as a handler sees it. */
export type Call<Args = JsonObject> = {
  /** Exactly what was validated and digested: undeclared arguments are gone. */
  readonly arguments: Args
  readonly principal: Principal
  readonly client: Peer
  /** `_meta` of the request, e.g. its `progressToken`. */
  readonly meta: JsonObject
  readonly capabilities: JsonObject
  /** Writes a line of the trail. */
  readonly decided: (decision: Decision) => void
  /** The opened state; undefined on a first call. */
  readonly flow: Flow | undefined
  /** `inputResponses`, as hostile as everything else a client sends. */
  readonly answers: JsonObject
}

/** "I need to know more": the boundary seals `data` and the client brings it back. */
export type Ask = {
  readonly inputRequests: InputRequests
  /** What the answer is bound to; `inputRequests` itself unless given. */
  readonly question?: unknown
  readonly data?: Json
}

export function isAsk(outcome: Ask | JsonObject): outcome is Ask {
  return Object.hasOwn(outcome, 'inputRequests')
}

/** What a tool did, in one text and, where it has an outputSchema, as data. */
export type Done = {
  readonly text: string
  readonly structured?: JsonObject
  readonly isError?: boolean
}

export type Outcome = Ask | ToolResult

export type Tool = ToolDefinition & {
  /** `once` is there for tools that are single use. */
  readonly handle: (call: Call, once?: SingleUse) => Outcome | Promise<Outcome>
  /** Needed to call it where callers are authenticated. */
  readonly scope?: string
  /** An approval counts once; such a tool is offered only where outcomes are kept. */
  readonly singleUse?: boolean
  /** What a refused state gets: this tool error, or JSON-RPC -32602 where it is absent. */
  readonly refusedState?: string
}

/** Once only: of any number of calls that bring the same key, one acts and all get its outcome. */
export type SingleUse = {
  /**
   * Acts if nobody did, else gives the outcome of whoever did.
   * @throws Refusal 503 when outcomes can't be kept; then nothing was done.
   */
  readonly once: (key: string, act: () => Promise<ToolResult>, keep: Keep) => Promise<ToolResult>
  /** @returns the outcome, or undefined when the key was never used. @throws Refusal 503 */
  readonly recall: (key: string, about?: string) => Promise<ToolResult | undefined>
}

export type Keep = {
  /** In milliseconds since 1970. */
  readonly until: number
  /** What the key stands for: the same key about something else is an error. */
  readonly about?: string
  /** Whether a failed action may be tried again under the same key. */
  readonly retryFailed?: boolean
}

/** What an approval that counts once is kept under: its flow, whatever state of it is brought. */
export function onceKey(tool: string, { id }: Flow): string {
  return `${tool}/${id}`
}

/** A tool without a gate. The arguments' type follows from the schema. */
export function plainTool<const S extends JsonSchema>(
  definition: ToolDefinition & { readonly inputSchema: S },
  handle: (call: Call<Infer<S>>) => Outcome | Promise<Outcome>,
): Tool {
  // The boundary calls a handler only with arguments that passed this very schema.
  return { ...definition, handle: (call) => handle(call as Call<Infer<S>>) }
}

/**
 * A tool result whose texts are safe to show; structured data is repeated as a text block, for
 * clients that read no `structuredContent` (server/tools, "Structured Content").
 */
export function toolResult(done: Done | ToolResult): ToolResult {
  if ('content' in done) return done
  const { text, structured, isError } = done
  const content = [{ type: 'text' as const, text: visible(text) }]
  if (isError === true) return { content, isError }
  if (structured === undefined) return { content }
  const structuredContent = visibleDeep(structured as Json)
  content.push({ type: 'text', text: JSON.stringify(structuredContent) })
  return { content, structuredContent }
}
