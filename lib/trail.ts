/**
 * The trail: one line for each decision about a risky action, from the question to its outcome. It
 * says who, what tool and which arguments without repeating any of them.
 */
import { createHmac, hkdfSync } from 'node:crypto'
import { type Principal, principalParts } from './principal.ts'
import type { Trail } from './request.ts'

/** Length of a tag in base64url characters, 96 bits: enough to tell people apart in a log. */
const TAG_LENGTH = 16

/**
 * @param secret nobody can turn a tag back into a principal, or guess one, without it. Replicas with
 *   the same secret write the same tags.
 */
export function trail(secret: Uint8Array, write: (line: object) => void): Trail {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'release-ops principal tag v1', 32))
  const tags = new WeakMap<Principal, string>()
  function tagOf(principal: Principal): string {
    const tag = createHmac('sha256', key).update(principalParts(principal)).digest('base64url')
    return tag.slice(0, TAG_LENGTH)
  }
  return (decided) => {
    const { principal } = decided
    const tag = tags.get(principal) ?? tagOf(principal)
    tags.set(principal, tag)
    write(Object.assign({}, decided, { principal: tag }))
  }
}
