/**
 * The tool of this server: roll a service back to a previous release. Copy this file to make your
 * own; the gate does the rest.
 *
 * Its approval may be used again while the state lives. That is safe here, because rolling back to
 * the same release twice ends in the same place; README says where that line runs.
 */
import { gatedTool } from '../gate.ts'
import type { Tool } from '../tool.ts'

/** One to 200 characters of any script, at least one of which can be seen. */
const NAME = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  pattern:
    '[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202f\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb]',
} as const

const INPUT = {
  type: 'object',
  properties: {
    service: {
      ...NAME,
      title: 'Service',
      description: 'The service to roll back, e.g. checkout.',
      'x-mcp-header': 'Service',
    },
    version: {
      ...NAME,
      title: 'Version',
      description: 'The release to go back to, e.g. v1.41.2.',
    },
  },
  required: ['service', 'version'],
} as const

const OUTPUT = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['performed', 'cancelled'] },
    service: { type: 'string' },
    version: { type: 'string' },
    reason: { type: 'string' },
  },
  required: ['status', 'service', 'version'],
} as const

export type Rollback = {
  readonly service: string
  readonly version: string
  readonly reason: string
}

/** @param roll performs the rollback; it runs after an approval, once for each call that brings one. */
export function rollbackRelease(roll: (rollback: Rollback) => void | Promise<void>): Tool {
  return gatedTool({
    name: 'rollback_release',
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
    fields: {
      reason: { type: 'string', title: 'Reason', description: 'For the log.', maxLength: 500 },
    },
    ask: ({ service, version }) =>
      `Roll ${service} back to ${version}? This restarts every instance.`,
    cancelled: ({ service, version }) => ({
      text: 'Rollback cancelled. Nothing changed.',
      structured: { status: 'cancelled', service, version },
    }),
    act: async ({ arguments: { service, version }, answers }) => {
      const reason = answers.reason?.trim() || '(none given)'
      await roll({ service, version, reason })
      return {
        text: `Rolled ${service} back to ${version}. Reason: ${reason}`,
        structured: { status: 'performed', service, version, reason },
      }
    },
  })
}
