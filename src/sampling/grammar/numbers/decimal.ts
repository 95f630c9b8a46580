import { trimEndOf } from '../../../core/trim.ts';

/** The exact number units × 10^exponent. */
export interface Decimal {
  readonly units: bigint;
  readonly exponent: number;
}

const powers: bigint[] = [1n];

/** 10^n; exponents are bounded by what a double can hold. */
export function tenTo(n: number): bigint {
  while (powers.length <= n) powers.push(powers.at(-1)! * 10n);
  return powers[n]!;
}

export function decimal(units: bigint, exponent: number): Decimal {
  return { units, exponent };
}

/** Parses a JSON number or the output of `String(number)`. */
export function parseDecimal(text: string): Decimal {
  const [mantissa, exponent] = text.toLowerCase().split('e') as [string, string | undefined];
  const [whole, fraction] = mantissa.split('.') as [string, string | undefined];
  const digits = (fraction ?? '').length;
  const units = BigInt(`${whole}${fraction ?? ''}`.replace('-', '')) * (whole.startsWith('-') ? -1n : 1n);
  return { units, exponent: Number(exponent ?? 0) - digits };
}

/** `value` in units of 10^exponent, which must not be coarser than the value. */
export function unitsAt(value: Decimal, exponent: number): bigint {
  return value.units * tenTo(value.exponent - exponent);
}

export function compareDecimals(a: Decimal, b: Decimal): number {
  const exponent = Math.min(a.exponent, b.exponent);
  const left = unitsAt(a, exponent);
  const right = unitsAt(b, exponent);
  return left < right ? -1 : left > right ? 1 : 0;
}

export function negate(value: Decimal): Decimal {
  return { units: -value.units, exponent: value.exponent };
}

export function isMultiple(value: Decimal, step: Decimal): boolean {
  const exponent = Math.min(value.exponent, step.exponent);
  return unitsAt(value, exponent) % unitsAt(step, exponent) === 0n;
}

function gcd(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

export function leastCommonMultiple(a: Decimal, b: Decimal): Decimal {
  const exponent = Math.min(a.exponent, b.exponent);
  const left = unitsAt(a, exponent);
  const right = unitsAt(b, exponent);
  return { units: (left / gcd(left, right)) * right, exponent };
}

/** One spelling per value, whatever form it was written in. */
export function canonicalDecimal({ units, exponent }: Decimal): string {
  if (units === 0n) return '0';
  const text = units.toString();
  const trimmed = trimEndOf(text, '0');
  return `${trimmed}e${exponent + text.length - trimmed.length}`;
}
