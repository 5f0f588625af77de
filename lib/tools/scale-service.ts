/**
 * A tool that costs money: set the number of replicas of a service. What a person approves is the
 * estimate, so the estimate travels in the sealed state and is what is enforced; and since paying
 * twice is not the same as paying once, an approval counts once.
 */
import { hash } from 'node:crypto'
import type { Action } from '../action.ts'
import type { Environment } from '../environment.ts'
import { gatedTool, type Question } from '../gate.ts'
import { centsOf, costInCents, dollars, type UnitPrice, unitPrice } from '../money.ts'
import { type Principal, principalParts } from '../principal.ts'
import { isObject, type Json, type JsonObject, own } from '../protocol.ts'
import { digest } from '../state.ts'
import { type Done, type SingleUse, type Tool, toolResult } from '../tool.ts'
import { invisibleFault, VISIBLE_TEXT } from './visible-text.ts'

/** How long a repeat of a performed call gets its outcome again, in milliseconds. */
const IDEMPOTENCY_MS = 24 * 60 * 60_000
const DEFAULT_PRICE = '32.40'
const TOOL = 'scale_service'

const INPUT = {
  type: 'object',
  properties: {
    service: {
      ...VISIBLE_TEXT,
      title: 'Service',
      description: 'The service to scale, e.g. checkout.',
      'x-mcp-header': 'Service',
    },
    replicas: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      title: 'Replicas',
      description: 'How many instances it is to have.',
      'x-mcp-header': 'Replicas',
    },
    idempotency_key: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      title: 'Idempotency key',
      description: 'The same for every repeat of one call; a new one for every new intent.',
    },
    max_spend_usd: {
      type: 'number',
      minimum: 0,
      maximum: 999_999_999,
      title: 'Highest monthly cost',
      description: 'In US dollars, at most two decimals. A higher estimate is an error.',
    },
    dry_run: {
      type: 'boolean',
      title: 'Dry run',
      description: 'Only estimate: nothing is asked and nothing changes.',
    },
  },
  required: ['service', 'replicas', 'idempotency_key'],
} as const

const OUTPUT = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['estimated', 'performed', 'cancelled'] },
    service: { type: 'string' },
    replicas: { type: 'integer' },
    estimated_usd_per_month: { type: 'number' },
  },
  required: ['status', 'service', 'replicas', 'estimated_usd_per_month'],
} as const

export type Scaling = { readonly service: string; readonly replicas: number }

/**
 * Reads REPLICA_USD_PER_MONTH.
 * @returns undefined when that is no price, which is then a problem of the start.
 */
export function scaleServiceFrom(
  env: Environment,
  action: Action,
  single: SingleUse,
  now: () => number,
): Tool | undefined {
  const price = unitPrice(env.text('REPLICA_USD_PER_MONTH') ?? DEFAULT_PRICE)
  if (price !== undefined) return scaleService(action, () => price, single, now)
  env.problem('REPLICA_USD_PER_MONTH must be a price in US dollars, such as 32.40.')
  return undefined
}

/** @param price what one replica costs a month, now. */
export function scaleService(
  action: Action,
  price: () => UnitPrice,
  single: SingleUse,
  now: () => number,
): Tool {
  const keyOf = (idempotencyKey: string, principal: Principal) =>
    `${TOOL} idempotency/${hash('sha256', principalParts(principal) + idempotencyKey, 'base64url')}`

  return gatedTool({
    name: TOOL,
    title: 'Scale a service',
    description: 'Set the number of replicas of a service. Estimates the cost and asks the user first.',
    inputSchema: INPUT,
    outputSchema: OUTPUT,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    scope: 'releases:write',
    singleUse: true,
    fields: {},

    ask: async (args, principal) => {
      const { max_spend_usd: limit, dry_run: dryRun = false, idempotency_key: key } = args
      const limitCents = limit === undefined ? Number.POSITIVE_INFINITY : centsOf(limit)
      if (limitCents === undefined) return argumentFault('max_spend_usd must have at most two decimals')
      const scaling = { service: args.service, replicas: args.replicas }
      const fault = invisibleFault(scaling) ?? action.faultOf(scaling)
      if (fault !== undefined) return argumentFault(fault)

      const cents = costInCents(args.replicas, price())
      if (dryRun) return estimated(args, cents)
      const earlier = await single.recall(keyOf(key, principal), digest(args))
      if (earlier !== undefined) return earlier
      return cents > limitCents ? tooExpensive(cents, limitCents) : question(args, cents)
    },

    cancelled: (args) => ({
      text: 'Scaling cancelled. Nothing changed.',
      structured: structured('cancelled', args, costInCents(args.replicas, price())),
    }),

    act: ({ arguments: args, terms, principal }) => {
      const perform = async () => {
        const { service, replicas } = args
        const failure = await action.run({ service, replicas }, '', principal)
        return toolResult(
          failure === undefined ? scaled(args, approvedCents(terms)) : failed(args, failure),
        )
      }
      const keep = { until: now() + IDEMPOTENCY_MS, about: digest(args), retryFailed: true }
      return single.once(keyOf(args.idempotency_key, principal), perform, keep)
    },
  })
}

function question({ service, replicas }: Scaling, cents: number): Question {
  const about = `Scale ${service} to ${countOf(replicas)}?`
  return {
    question: `${about} Estimated cost: ${dollars(cents)} a month.`,
    about,
    terms: { cents },
    changedSince: (approved) => {
      const before = approvedCents(approved)
      if (cents <= before) return undefined
      return `The estimate rose from ${dollars(before)} to ${dollars(cents)} since you were asked.`
    },
  }
}

/** What the person said yes to; a state without it covers nothing. */
function approvedCents(terms: Json): number {
  const cents = isObject(terms) ? own(terms, 'cents') : undefined
  return typeof cents === 'number' ? cents : 0
}

function estimated(scaling: Scaling, cents: number): Done {
  const { service, replicas } = scaling
  return {
    text: `Scaling ${service} to ${countOf(replicas)} would cost an estimated ${dollars(cents)} a month. Nothing changed.`,
    structured: structured('estimated', scaling, cents),
  }
}

function scaled(scaling: Scaling, cents: number): Done {
  const { service, replicas } = scaling
  return {
    text: `Scaled ${service} to ${countOf(replicas)}. Estimated cost: ${dollars(cents)} a month.`,
    structured: structured('performed', scaling, cents),
  }
}

function failed({ service, replicas }: Scaling, failure: string): Done {
  return { text: `Scaling ${service} to ${countOf(replicas)} failed: ${failure}`, isError: true }
}

function tooExpensive(cents: number, limit: number): Done {
  const text = `The estimated cost of ${dollars(cents)} a month is above max_spend_usd, ${dollars(limit)}.`
  return { text: `${text} Nothing changed.`, isError: true }
}

function argumentFault(fault: string): Done {
  return { text: `Invalid arguments: ${fault}.`, isError: true }
}

function structured(status: string, { service, replicas }: Scaling, cents: number): JsonObject {
  return { status, service, replicas, estimated_usd_per_month: cents / 100 }
}

function countOf(replicas: number): string {
  return replicas === 1 ? '1 replica' : `${replicas} replicas`
}
