/** A name that a person can see: any script, one to 200 characters. */
import type { Values } from '../action.ts'
import { isVisible } from '../display.ts'

/**
 * At least one character that is no space, control, zero-width or other invisible one. Spelled out,
 * because `\p{…}` is not understood by every client's regular expressions.
 */
const ONE_VISIBLE =
  '[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f' +
  '\\u200b-\\u200f\\u2028-\\u202f\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb]'

/** @returns what is wrong with the first value that has nothing to see; a pattern can't say all of it. */
export function invisibleFault(values: Values): string | undefined {
  const [name] = Object.entries(values).find(([, value]) => !isVisible(String(value))) ?? []
  return name === undefined ? undefined : `${name} must have at least one visible character`
}

export const VISIBLE_TEXT = { type: 'string', minLength: 1, maxLength: 200, pattern: ONE_VISIBLE } as const
