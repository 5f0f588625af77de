/**
 * The method table. Every result that leaves it says which server it came from.
 * Source: server/discover; server/tools, "Listing Tools"; server/utilities/caching.
 */
import { type Implementation, type JsonObject, META, SUPPORTED_VERSIONS } from './protocol.ts'
import { invalidParams } from './refusal.ts'
import type { Method, Methods, Result } from './request.ts'
import { offered, type Tools } from './tool-definition.ts'
import { type CallServices, toolsCall } from './tools-call.ts'

/** How long clients may keep the answer to server/discover and to tools/list, in milliseconds. */
const DISCOVER_TTL_MS = 3_600_000
const LIST_TTL_MS = 300_000

/** @param instructions one sentence for the model that will use this server. */
export function toolMethods(
  instructions: string,
  tools: Tools,
  services: CallServices,
): Map<string, Method> {
  const capabilities = { tools: {} }
  const discover = { supportedVersions: SUPPORTED_VERSIONS, capabilities, instructions }
  const served = offered(tools, services.singleUse !== undefined)
  const list = { tools: [...served.values()].map(({ definition }) => definition) }
  return new Map<string, Method>([
    ['server/discover', () => cacheable(discover, DISCOVER_TTL_MS)],
    ['tools/list', ({ params }) => cacheable(firstPage(params, list), LIST_TTL_MS)],
    ['tools/call', toolsCall(served, services)],
  ])
}

/** The same for every caller, so anybody may keep it ("Cache Scope Field"). */
function cacheable(fields: JsonObject, ttlMs: number): Result {
  return { resultType: 'complete', ...fields, ttlMs, cacheScope: 'public' }
}

/**
 * @returns the same methods, whose results carry the server's name and version: "Servers SHOULD
 *   include `io.modelcontextprotocol/serverInfo` in every result's `_meta`" (basic/index).
 */
export function identified(serverInfo: Implementation, methods: Methods): Methods {
  const _meta = { [META.serverInfo]: serverInfo }
  const identify = (method: Method): Method => {
    return async (request) => ({ ...(await method(request)), _meta })
  }
  return new Map([...methods].map(([name, method]) => [name, identify(method)]))
}

/** The list has one page, so no cursor was ever given out and none can be valid. */
function firstPage(params: JsonObject, page: JsonObject): JsonObject {
  if (Object.hasOwn(params, 'cursor')) throw invalidParams('Unknown cursor: the list has one page')
  return page
}
