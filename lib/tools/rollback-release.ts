/**
 * The tool of this server: roll a service back to a previous release. Copy this file to make your
 * own; the gate does the rest.
 *
 * Its approval may be used again while the state lives. That is safe here, because rolling back to
 * the same release twice ends in the same place; README says where that line runs.
 */
import type { Action } from '../action.ts'
import { gatedTool } from '../gate.ts'
import type { Tool } from '../tool.ts'
import { invisibleFault, VISIBLE_TEXT } from './visible-text.ts'

const INPUT = {
  type: 'object',
  properties: {
    service: {
      ...VISIBLE_TEXT,
      title: 'Service',
      description: 'The service to roll back, e.g. checkout.',
      'x-mcp-header': 'Service',
    },
    version: {
      ...VISIBLE_TEXT,
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

export function rollbackRelease(action: Action): Tool {
  return gatedTool({
    name: 'rollback_release',
    title: 'Roll back a release',
    description: 'Roll a service back to a previous release. Asks the user to confirm first.',
    inputSchema: INPUT,
    outputSchema: OUTPUT,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    scope: 'releases:write',
    fields: {
      reason: {
        type: 'string',
        title: 'Reason',
        description: 'Why; it is told to the action and in the result.',
        maxLength: 500,
      },
    },

    ask: ({ service, version }) => {
      const fault = invisibleFault({ service, version }) ?? action.faultOf({ service, version })
      if (fault !== undefined) return { text: `Invalid arguments: ${fault}.`, isError: true }
      return { question: `Roll ${service} back to ${version}? This restarts every instance.` }
    },

    cancelled: ({ service, version }) => ({
      text: 'Rollback cancelled. Nothing changed.',
      structured: { status: 'cancelled', service, version },
    }),

    act: async ({ arguments: { service, version }, answers, principal }) => {
      const reason = answers.reason?.trim() || '(none given)'
      const failure = await action.run({ service, version }, reason, principal)
      if (failure !== undefined) {
        return { text: `Rolling ${service} back to ${version} failed: ${failure}`, isError: true }
      }
      return {
        text: `Rolled ${service} back to ${version}. Reason: ${reason}`,
        structured: { status: 'performed', service, version, reason },
      }
    },
  })
}
