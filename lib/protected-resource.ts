/**
 * What an OAuth protected resource says of itself: RFC 9728 metadata, and challenges that point to it.
 * Every URL comes from the configured resource, never from a request's Host.
 *
 * Source: basic/authorization/authorization-server-discovery; RFC 9728, section 3.
 */
import type { Hints } from './bearer.ts'
import type { Reply } from './reply.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

export type ProtectedResource = {
  readonly hints: Hints
  /** The metadata, by path: with the resource's own path, and for a client that only knows the host. */
  readonly documents: ReadonlyMap<string, Reply>
}

/** @param resource an absolute URL without query and fragment; it is this server's audience. */
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
  return {
    hints: { resource_metadata: `${origin}${path}`, scope },
    documents: new Map([path, `${WELL_KNOWN}/mcp`, WELL_KNOWN].map((one) => [one, document])),
  }
}
