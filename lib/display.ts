/**
 * Text that came from somebody else, made harmless to look at. Arguments are written by a model and
 * answers by whoever holds the client: neither may rewrite a question, a result or a log line.
 */

/**
 * Control, format (bidi, zero-width, tags), line-separator, default-ignorable and surrogate code
 * points: everything that changes what a person sees without being seen itself.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu

/** Most texts are plain ASCII; this spares them the Unicode scan. */
const PLAIN = /^[\x20-\x7e]*$/

/** How much of a peer's text an error message repeats, in UTF-16 code units. */
const QUOTE_LENGTH = 80

/** @returns the text with each invisible code point written out, as `\u{202e}`. */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(INVISIBLE, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)
}

/** @returns whether anything of the text can be seen. */
export function isVisible(text: string): boolean {
  return text.replace(INVISIBLE, '').trim() !== ''
}

/** @returns the text as an error message may repeat it: visible, and cut to a bounded length. */
export function quote(text: string): string {
  const cut = text.length > QUOTE_LENGTH ? `${text.slice(0, QUOTE_LENGTH)}…` : text
  return visible(cut)
}

/** @returns a copy of a JSON value in which every string, keys included, is {@link visible}. */
export function visibleDeep<T>(value: T): T
export function visibleDeep(value: unknown): unknown {
  if (typeof value === 'string') return visible(value)
  if (Array.isArray(value)) return value.map((item) => visibleDeep(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [visible(k), visibleDeep(v)]))
}
