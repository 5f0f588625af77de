/**
 * Money in whole cents. Amounts are written with a decimal point and at most two digits after it;
 * nothing is ever rounded but the one product that makes an estimate.
 */

/** Millionths of a dollar, so that a unit price may be finer than a cent. */
export type UnitPrice = number

const AMOUNT = /^\d{1,9}(\.\d{1,2})?$/
const PRICE = /^(\d{1,6})(?:\.(\d{1,6}))?$/
const MICROS = 1_000_000

/** @returns whole cents, or undefined when the number has more than two decimals or is no amount. */
export function centsOf(dollars: number): number | undefined {
  return AMOUNT.test(String(dollars)) ? Math.round(dollars * 100) : undefined
}

/** @returns the price of one unit, or undefined when the text is no price, e.g. `32.40`. */
export function unitPrice(text: string): UnitPrice | undefined {
  const [, whole, fraction = ''] = PRICE.exec(text) ?? []
  return whole === undefined ? undefined : Number(whole) * MICROS + Number(fraction.padEnd(6, '0'))
}

/** @returns the cost of so many units, in whole cents, rounded once. */
export function costInCents(units: number, price: UnitPrice): number {
  return Math.round((units * price) / (MICROS / 100))
}

/** @returns cents as `$388.80`. */
export function dollars(cents: number): string {
  return `$${(cents / 100).toFixed(2)}`
}
