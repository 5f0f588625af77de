/** What a tool does in the world, once a person has approved it. */
import type { Principal } from './principal.ts'

/** What an action works with. */
export type Values = { readonly [name: string]: string | number }

export type Action = {
  /** @returns what keeps these values from being acted on, before anybody is asked. */
  readonly faultOf: (values: Values) => string | undefined
  /** Acts. @returns undefined when it is done, else what went wrong, in one line. */
  readonly run: (values: Values, reason: string, principal: Principal) => Promise<string | undefined>
}

/** Changes nothing and succeeds: what the tutorial and the tests stand on. */
export const SIMULATED: Action = {
  faultOf: () => undefined,
  run: async () => undefined,
}
