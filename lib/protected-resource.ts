/**
 * What an OAuth protected resource says of itself: RFC 9728 metadata, and challenges that point to it.
 * Every URL comes from the configured resource, never from a request's Host.
 *
 * Source: basic/authorization/authorization-server-discovery; RFC 9728, section 3.
 */
import type { Challenge } from './bearer.ts'
import type { Reply } from './reply.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

export type ProtectedResource = {
  readonly challenge: Challenge
  /** The metadata, by path: with the resource's own path, and for a client that only knows the host. */
  readonly documents: ReadonlyMap<string, Reply>
}

/** @param resource an absolute URL without fragment; it is this server's audience. */
export function protectedResource(resource: string, issuer: string, scope: string): ProtectedResource {
  const { origin, pathname } = new URL(resource)
  const path = pathname === '/' ? WELL_KNOWN : WELL_KNOWN + pathname
  const metadata = {
    resource,
    authorization_servers: [issuer],
    scopes_supported: [scope],
    bearer_methods_supported: ['header'],
  }
  const headers = { 'Content-Type': 'application/json' }
  const document: Reply = { status: 200, headers, body: JSON.stringify(metadata) }
  const fields = [`resource_metadata="${origin}${path}"`, `scope="${scope}"`]
  return {
    challenge: { fields, explains: true },
    documents: new Map([
      [path, document],
      [`${WELL_KNOWN}/mcp`, document],
      [WELL_KNOWN, document],
    ]),
  }
}
