/**
 * The method table: `server/discover`, and whatever the features of this server add.
 * Source: server/discover; server/tools, "Listing Tools"; server/utilities/caching.
 */
import { type Implementation, type JsonObject, SUPPORTED_VERSIONS } from './protocol.ts'
import { invalidParams } from './refusal.ts'
import type { Feature, Method, Methods, Serve } from './request.ts'
import { cacheable, resultWriter } from './result.ts'
import { offered, type Tools } from './tool-definition.ts'
import { type CallServices, toolsCall } from './tools-call.ts'

/** How long clients may keep the answer to server/discover and to tools/list, in milliseconds. */
const DISCOVER_TTL_MS = 3_600_000
const LIST_TTL_MS = 300_000

/**
 * @param instructions one sentence for the model that will use this server.
 * @throws Error when two features serve one method.
 */
export function methodTable(
  server: Implementation,
  instructions: string,
  features: readonly Feature[],
): Methods {
  const capabilities: JsonObject = Object.assign({}, ...features.map((feature) => feature.capabilities))
  const fields = { supportedVersions: SUPPORTED_VERSIONS, capabilities, instructions }
  const discover = cacheable(fields, DISCOVER_TTL_MS)
  const own: Feature = { capabilities: {}, methods: { 'server/discover': () => discover } }
  const write = resultWriter(server)
  const table = new Map<string, Serve>()
  for (const [name, method] of [own, ...features].flatMap(({ methods }) => Object.entries(methods))) {
    if (table.has(name)) throw new Error(`Two features serve ${name}: leave one of them out.`)
    table.set(name, async (request) => write(await method(request)))
  }
  return table
}

/** @returns the tools as a feature: `tools/list` and `tools/call`. */
export function toolsFeature(tools: Tools, services: CallServices): Feature {
  const served = offered(tools, services.singleUse !== undefined)
  const page = cacheable({ tools: [...served.values()].map((tool) => tool.definition) }, LIST_TTL_MS)
  const list: Method = ({ params }) => {
    if (!Object.hasOwn(params, 'cursor')) return page
    throw invalidParams('Unknown cursor: the list has one page') // so none was ever given out
  }
  return {
    capabilities: { tools: {} },
    methods: { 'tools/list': list, 'tools/call': toolsCall(served, services) },
  }
}
