/**
 * rollback_release on the official SDK, as its documentation says to serve over node:http: a factory
 * for each request, JSON answers, the Host and Origin guards, and its own state codec, bound to all
 * that it can be bound to. Schemas are JSON Schema, compiled once at start, which costs the SDK less
 * for each request than Zod schemas do.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node'
import {
  acceptedContent,
  type CallToolResult,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  McpServer,
} from '@modelcontextprotocol/server'

type Release = { readonly service: string; readonly version: string }
type Answer = { readonly confirm: boolean; readonly reason?: string }

const name = (title: string, description: string) =>
  ({ type: 'string', minLength: 1, maxLength: 200, pattern: '\\S', title, description }) as const

const MIRRORED = {
  ...name('Service', 'The service to roll back, e.g. checkout.'),
  'x-mcp-header': 'Service',
}
const INPUT = fromJsonSchema<Release>({
  type: 'object',
  properties: {
    service: MIRRORED,
    version: name('Version', 'The release to go back to, e.g. v1.41.2.'),
  },
  required: ['service', 'version'],
})

const OUTPUT = fromJsonSchema<Release & { status: string; reason?: string }>({
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['performed', 'cancelled'] },
    service: { type: 'string' },
    version: { type: 'string' },
    reason: { type: 'string' },
  },
  required: ['status', 'service', 'version'],
})

const FORM = {
  type: 'object' as const,
  properties: {
    confirm: { type: 'boolean' as const, title: 'Confirm', description: 'Yes, do this.' },
    reason: {
      type: 'string' as const,
      title: 'Reason',
      description: 'Why; it is told to the action and in the result.',
      maxLength: 500,
    },
  },
  required: ['confirm'],
}
const ANSWER = fromJsonSchema<Answer>(FORM)

const codec = createRequestStateCodec<Release>({
  key: process.env.STATE_SECRET ?? '',
  ttlSeconds: 900,
  bind: (ctx) => `${ctx.mcpReq.method}\0${ctx.http?.authInfo?.clientId ?? ''}`,
})

function result(
  text: string,
  structuredContent: Release & { status: string; reason?: string },
): CallToolResult {
  const content = [text, JSON.stringify(structuredContent)].map((text) => ({ type: 'text' as const, text }))
  return { content, structuredContent }
}

function buildServer(): McpServer {
  const server = new McpServer(
    { name: 'release-ops', version: '1.0.0' },
    {
      capabilities: { tools: {} },
      instructions: 'Release operations. rollback_release asks for confirmation.',
      requestState: { verify: codec.verify },
    },
  )
  server.registerTool(
    'rollback_release',
    {
      title: 'Roll back a release',
      description: 'Roll a service back to a previous release. Asks the user to confirm first.',
      inputSchema: INPUT,
      outputSchema: OUTPUT,
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: true,
        openWorldHint: false,
      },
    },
    async ({ service, version }, ctx): Promise<CallToolResult | InputRequiredResult> => {
      const asked = ctx.mcpReq.requestState<Release>()
      const ask = async () =>
        inputRequired({
          inputRequests: {
            confirm: inputRequired.elicit({
              message: `Roll ${service} back to ${version}? This restarts every instance.`,
              requestedSchema: FORM,
            }),
          },
          requestState: await codec.mint({ service, version }, ctx),
        })
      if (asked === undefined) return ask()
      if (asked.service !== service || asked.version !== version) {
        const text = 'Confirmation expired or was tampered with. Start again.'
        return { content: [{ type: 'text', text }], isError: true }
      }
      const view = inputResponse(ctx.mcpReq.inputResponses, 'confirm')
      if (view.kind !== 'elicit') return ask()
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', ANSWER)
      if (view.action === 'accept' && answer === undefined) return ask()
      if (answer?.confirm !== true) {
        return result('Rollback cancelled. Nothing changed.', { status: 'cancelled', service, version })
      }
      const reason = answer.reason?.trim() || '(none given)'
      const text = `Rolled ${service} back to ${version}. Reason: ${reason}`
      return result(text, { status: 'performed', service, version, reason })
    },
  )
  return server
}

const handler = createMcpHandler(buildServer, { legacy: 'reject', responseMode: 'json' })
// Its own type has no place for Node's IncomingMessage under exactOptionalPropertyTypes.
const handle = toNodeHandler(handler) as unknown as RequestListener
const validateHost = localhostHostValidation()
const validateOrigin = localhostOriginValidation()
const server = createServer((request, response) => {
  if (validateHost(request, response) && validateOrigin(request, response)) handle(request, response)
})
server.listen(0, '127.0.0.1', () => {
  console.log(`MCP on http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
})
