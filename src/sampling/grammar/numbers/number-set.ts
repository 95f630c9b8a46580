import type { Fuel } from '../limits.ts';
import type { Decimal } from './decimal.ts';
import {
  canonicalDecimal,
  compareDecimals,
  decimal,
  isMultiple,
  leastCommonMultiple,
  negate,
  parseDecimal,
  unitsAt,
} from './decimal.ts';

/** An end of a range; open: excludes the value itself. */
export interface Bound {
  readonly value: Decimal;
  readonly isOpen: boolean;
}

/** Numbers within two bounds that are multiples of `step`, of none of `notSteps`, and not in `excluded`. */
export interface NumberSet {
  readonly min: Bound | null;
  readonly max: Bound | null;
  readonly step: Decimal | null;
  readonly notSteps: readonly Decimal[];
  readonly excluded: readonly Decimal[];
}

export const ALL_NUMBERS: NumberSet = { min: null, max: null, step: null, notSteps: [], excluded: [] };

/** The range of doubles: beyond it a reader would see Infinity or 0. */
export const LARGEST = parseDecimal(String(Number.MAX_VALUE));
export const SMALLEST = parseDecimal(String(Number.MIN_VALUE));

// Values tried one by one while searching for one without an exclusion. A few other steps leave gaps far shorter than this.
const MAX_SKIPPED = 256;
// Steps of a lookup between two bounds: it divides large integers.
const BETWEEN_STEPS = 10;

function tighter(a: Bound | null, b: Bound | null, sign: 1 | -1): Bound | null {
  if (a === null || b === null) return a ?? b;
  const order = compareDecimals(a.value, b.value) * sign;
  if (order === 0) return a.isOpen ? a : b;
  return order > 0 ? a : b;
}

export function intersectNumbers(a: NumberSet, b: NumberSet): NumberSet {
  return {
    min: tighter(a.min, b.min, 1),
    max: tighter(a.max, b.max, -1),
    step: a.step === null || b.step === null ? (a.step ?? b.step) : leastCommonMultiple(a.step, b.step),
    notSteps: [...a.notSteps, ...b.notSteps],
    excluded: [...a.excluded, ...b.excluded],
  };
}

export function hasNumber(set: NumberSet, value: Decimal): boolean {
  if (set.min !== null) {
    const order = compareDecimals(value, set.min.value);
    if (order < 0 || (order === 0 && set.min.isOpen)) return false;
  }
  if (set.max !== null) {
    const order = compareDecimals(value, set.max.value);
    if (order > 0 || (order === 0 && set.max.isOpen)) return false;
  }
  if (set.step !== null && !isMultiple(value, set.step)) return false;
  for (const step of set.notSteps) if (isMultiple(value, step)) return false;
  for (const other of set.excluded) if (compareDecimals(value, other) === 0) return false;
  return true;
}

export function mirror(set: NumberSet): NumberSet {
  const flip = (bound: Bound | null): Bound | null =>
    bound === null ? null : { value: negate(bound.value), isOpen: bound.isOpen };
  return { ...set, min: flip(set.max), max: flip(set.min), excluded: set.excluded.map(negate) };
}

/** Whether the set has a multiple of 10^gridExponent in [from, to]. */
export function hasNumberBetween(
  set: NumberSet,
  from: Decimal,
  to: Decimal,
  gridExponent: number,
  fuel: Fuel,
): boolean {
  fuel.burn(BETWEEN_STEPS, 'numbers');
  let low: Bound = { value: from, isOpen: false };
  let high: Bound = { value: to, isOpen: false };
  low = tighter(low, set.min, 1)!;
  high = tighter(high, set.max, -1)!;
  if (compareDecimals(low.value, high.value) > 0) return false;
  const grid = decimal(1n, gridExponent);
  const step = set.step === null ? grid : leastCommonMultiple(set.step, grid);
  const exponent = Math.min(step.exponent, low.value.exponent, high.value.exponent);
  const size = unitsAt(step, exponent);
  const start = unitsAt(low.value, exponent);
  const end = unitsAt(high.value, exponent);
  let at = start - (start % size);
  if (at < start) at += size;
  if (at === start && low.isOpen) at += size;
  const hasExclusions = set.notSteps.length + set.excluded.length > 0;
  const skippable = MAX_SKIPPED + set.excluded.length;
  for (let skipped = 0; at < end || (at === end && !high.isOpen); at += size) {
    if (!hasExclusions || hasNumber(set, decimal(at, exponent))) return true;
    fuel.burn(1 + set.excluded.length + set.notSteps.length, 'numbers');
    if (++skipped > skippable) return false;
  }
  return false;
}

/** The members in order, or null if there may be more than `limit`. */
export function listNumbers(set: NumberSet, limit: number, fuel: Fuel): Decimal[] | null {
  if (set.min === null || set.max === null) return null;
  if (compareDecimals(set.max.value, set.min.value) === 0) {
    return hasNumber(set, set.min.value) ? [set.min.value] : [];
  }
  if (set.step === null) return null;
  const exponent = Math.min(set.step.exponent, set.min.value.exponent, set.max.value.exponent);
  const size = unitsAt(set.step, exponent);
  const start = unitsAt(set.min.value, exponent);
  const end = unitsAt(set.max.value, exponent);
  if ((end - start) / size > BigInt(limit)) return null;
  const members: Decimal[] = [];
  for (let at = start - (start % size) - size; at <= end; at += size) {
    fuel.burn(2 + set.excluded.length + set.notSteps.length, 'numbers');
    if (at >= start && hasNumber(set, decimal(at, exponent))) members.push(decimal(at, exponent));
  }
  return members;
}

export function numberSetKey(set: NumberSet): string {
  const bound = (b: Bound | null): string => (b === null ? '' : `${b.isOpen ? '(' : '['}${canonicalDecimal(b.value)}`);
  const list = (values: readonly Decimal[]): string => values.map(canonicalDecimal).sort().join();
  return `${bound(set.min)}:${bound(set.max)}:${set.step === null ? '' : canonicalDecimal(set.step)}:${list(set.notSteps)}:${list(set.excluded)}`;
}
