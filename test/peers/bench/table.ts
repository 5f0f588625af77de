/** Markdown tables and the numbers in them. */
import { type Spread, spread } from './statistics.ts'

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** At most two decimals, and none that would be a fourth digit: no figure here is known better. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value) || 1)))
  return value.toFixed(Math.min(digits, 2))
}

/** The median, and between which values all others are. */
export function range({ median, min, max }: Spread): string {
  return min < max ? `${number(median)} (${number(min)}–${number(max)})` : number(median)
}

/** The median of one figure of each row. */
export function medianOf<Row>(rows: readonly Row[], figure: (row: Row) => number): string {
  return number(spread(rows.map(figure)).median)
}

export function rangeOf<Row>(rows: readonly Row[], figure: (row: Row) => number): string {
  return range(spread(rows.map(figure)))
}
