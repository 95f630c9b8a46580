import { trimEndOf } from '../../../core/trim.ts';
import type { Fuel } from '../limits.ts';
import type { Decimal } from './decimal.ts';
import { compareDecimals, decimal, negate, parseDecimal, tenTo, unitsAt } from './decimal.ts';
import type { NumberSet } from './number-set.ts';
import { LARGEST, SMALLEST, hasNumber, hasNumberBetween, mirror } from './number-set.ts';

// Bounds endless digits. They fit every double in every serialized form: up to 21 digits before the point, 6 zeros and 17
// digits after it, exponents of three digits.
const MAX_WHOLE_DIGITS = 40;
const MAX_FRACTION_DIGITS = 40;
const MAX_LEADING_ZEROS = 20;
const MAX_EXPONENT_DIGITS = 3;
const MAX_DOUBLE_EXPONENT = 308;
const LEAST_EXPONENT = -324;
// Constrained numbers allow an exponent only where serializers print one: one digit before the point, and a value from 10^21
// up or below 10^-6. Otherwise "10" could start an integer up to 5, as "10e-1".
const FIRST_LARGE_EXPONENT = 21;
const LAST_SMALL_EXPONENT = -7;
// Decimal digits that every double preserves, and the most that distinguish two doubles.
const SAFE_DIGITS = 15;
const MAX_DIGITS = 17;
// Up to here there is space for two more digits that a double preserves.
const FREE_DIGITS = 13;
// Serializers fill up to 21 digits before the point with zeros.
const MAX_ZEROS = 7;
// Steps of parsing and comparing a text: about a microsecond.
const CHECK_STEPS = 10;
// Finer than any double: a grid on which every bound and step of a schema lies.
const FINEST_EXPONENT = -400;

const SHAPE = /^(-?)(0|[1-9]\d*)?(\.(\d*))?([eE]([+-]?)(\d*))?$/;

interface Parts {
  readonly isNegative: boolean;
  readonly whole: string;
  readonly fraction: string | null;
  readonly exponentSign: string | null;
  readonly exponentDigits: string;
}

function split(text: string): Parts | null {
  const match = SHAPE.exec(text);
  if (match === null) return null;
  const [, sign, whole = '', point, fraction = '', tail, exponentSign = '', exponentDigits = ''] = match;
  if (whole === '' && (point !== undefined || tail !== undefined)) return null;
  if (tail !== undefined && point !== undefined && fraction === '') return null;
  if (whole.length > MAX_WHOLE_DIGITS || fraction.length > MAX_FRACTION_DIGITS) return null;
  if (exponentDigits.length > MAX_EXPONENT_DIGITS) return null;
  if (whole === '0' && /^0*/.exec(fraction)![0].length > MAX_LEADING_ZEROS) return null;
  return {
    isNegative: sign === '-',
    whole,
    fraction: point === undefined ? null : fraction,
    exponentSign: tail === undefined ? null : exponentSign,
    exponentDigits,
  };
}

function isWhole(parts: Parts): boolean {
  return parts.whole !== '' && parts.fraction !== '' && (parts.exponentSign === null || parts.exponentDigits !== '');
}

/** Whether a double distinguishes the text from Infinity and, unless it is zero, from 0. */
function fitsDouble(text: string, value: Decimal): boolean {
  const read = Number(text);
  return Number.isFinite(read) && (read !== 0 || value.units === 0n);
}

/** A mantissa without zeros at its end, and without the point before them. */
function withoutTrailingZeros(text: string): string {
  const short = trimEndOf(text, '0');
  return short.length < text.length && short.endsWith('.') ? short.slice(0, -1) : short;
}

/** Digits without leading and trailing zeros. */
function countDigits({ whole, fraction }: Parts): number {
  return trimEndOf((whole + (fraction ?? '')).replace(/^0+/, ''), '0').length;
}

/** Digits without leading zeros; trailing ones count as long as more digits may follow. */
function countSignificant({ whole, fraction }: Parts): number {
  return (whole + (fraction ?? '')).replace(/^0+/, '').length;
}

/** Whether a double holds exactly this value: with more digits a reader would judge another one. */
function isFaithful(text: string, parts: Parts): boolean {
  const numDigits = countDigits(parts);
  if (numDigits <= SAFE_DIGITS) return true;
  if (numDigits > MAX_DIGITS) return false;
  const printed = String(Number(text));
  if (printed === 'Infinity' || printed === '-Infinity') return false;
  return printed === text || compareDecimals(parseDecimal(printed), parseDecimal(text)) === 0;
}

function isUnconstrained(set: NumberSet): boolean {
  return set.min === null && set.max === null && set.step === null && set.notSteps.length + set.excluded.length === 0;
}

/** Whether an exponent may follow the mantissa, as a serializer would print it. */
function isScientific({ whole, fraction }: Parts): boolean {
  return whole.length === 1 && whole !== '0' && fraction !== '';
}

function isPrintedExponent(parts: Parts): boolean {
  const exponent = Number(`${parts.exponentSign}${parts.exponentDigits}`);
  if (parts.exponentDigits.startsWith('0')) return false;
  return exponent >= FIRST_LARGE_EXPONENT || exponent <= LAST_SMALL_EXPONENT;
}

/** Whether the text is a number of the set. */
export function isNumberText(set: NumberSet, text: string, fuel: Fuel): boolean {
  fuel.burn(CHECK_STEPS + set.excluded.length + set.notSteps.length, 'numbers');
  const parts = split(text);
  if (parts === null || !isWhole(parts)) return false;
  // Cheap checks first: most candidates fail here.
  const isFree = isUnconstrained(set);
  if (!isFree && parts.exponentSign !== null && !(isScientific(parts) && isPrintedExponent(parts))) return false;
  if (!isFree && !isFaithful(text, parts)) return false;
  const value = parseDecimal(text);
  return (parts.exponentSign === null || fitsDouble(text, value)) && hasNumber(set, value);
}

const factors = new WeakMap<Decimal, bigint>();

/** The factor of the step without twos and fives, which digits must be a multiple of for any power of ten. */
function factorOf({ step }: NumberSet): bigint {
  if (step === null) return 1n;
  let factor = factors.get(step);
  if (factor === undefined) {
    factor = step.units;
    while (factor % 2n === 0n) factor /= 2n;
    while (factor % 5n === 0n) factor /= 5n;
    factors.set(step, factor);
  }
  return factor;
}

/** Near the limit of a double's digits only few continuations exist: they are tried one by one. */
function hasLongText(set: NumberSet, text: string, parts: Parts, fuel: Fuel): boolean {
  const isInWhole = parts.fraction === null;
  const room = Math.min(2, MAX_DIGITS - countSignificant(parts));
  const factor = factorOf(set);
  const units = BigInt(parts.whole + (parts.fraction ?? ''));
  for (let size = 0; size === 0 || size <= room; size++) {
    for (let tail = 0; tail < 10 ** size; tail++) {
      fuel.burn(1, 'numbers');
      if (factor > 1n && (units * tenTo(size) + BigInt(tail)) % factor !== 0n) continue;
      const digits = size === 0 ? '' : String(tail).padStart(size, '0');
      for (let zeros = 0; zeros <= (isInWhole ? MAX_ZEROS : 0); zeros++) {
        if (isNumberText(set, text + digits + '0'.repeat(zeros), fuel)) return true;
      }
      if (isInWhole && size > 0 && isNumberText(set, `${text}.${digits}`, fuel)) return true;
    }
  }
  return false;
}

interface WholeRange {
  readonly min: number;
  readonly max: number;
}

const wholeRanges = new WeakMap<NumberSet, WholeRange | null>();
// Far below the exponents that serializers print, and exact as doubles.
const MAX_PLAIN_BOUND = 1e15;

/** The bounds of a set of all integers between them; null for other sets and large bounds. */
function wholeRangeOf(set: NumberSet): WholeRange | null {
  let range = wholeRanges.get(set);
  if (range === undefined) {
    const { step, notSteps, excluded } = set;
    const numberOf = ({ units, exponent }: Decimal): number => Number(`${units}e${exponent}`);
    const isEveryInteger = step !== null && numberOf(step) === 1 && notSteps.length + excluded.length === 0;
    const low = set.min === null ? -Infinity : numberOf(set.min.value);
    const high = set.max === null ? Infinity : numberOf(set.max.value);
    const isPlain = (bound: number): boolean => !Number.isFinite(bound) || Math.abs(bound) < MAX_PLAIN_BOUND;
    const min = set.min?.isOpen === true ? Math.floor(low) + 1 : Math.ceil(low);
    const max = set.max?.isOpen === true ? Math.ceil(high) - 1 : Math.floor(high);
    range = isEveryInteger && isPlain(low) && isPlain(high) ? { min, max } : null;
    wholeRanges.set(set, range);
  }
  return range;
}

/** Whether digits may follow these so that the result is in the range. */
function hasWholeBetween({ min, max }: WholeRange, value: number): boolean {
  if (max === Infinity) return true; // with enough digits
  for (let [low, high] = [value, value]; low <= max; [low, high] = [10 * low, 10 * high + 9])
    if (high >= min) return true;
  return false;
}

const SHORT_WHOLE = /^[1-9]\d{0,8}$/;

/** Whether a number of the set starts with this text. */
export function isNumberPrefix(set: NumberSet, text: string, fuel: Fuel): boolean {
  const range = wholeRangeOf(set);
  if (range !== null && SHORT_WHOLE.test(text)) {
    fuel.burn(1, 'numbers');
    return hasWholeBetween(range, Number(text));
  }
  const parts = split(text);
  if (parts === null) return false;
  if (isUnconstrained(set)) return parts.exponentDigits === '' || fitsDouble(text, parseDecimal(text));
  if (isWhole(parts) && isNumberText(set, text, fuel)) return true;
  if (parts.exponentSign !== null) return isScientific(parts) && hasExponent(set, text, parts, fuel);
  if (parts.whole === '') {
    return hasNumberBetween(set, negate(LARGEST), parts.isNegative ? decimal(0n, 0) : LARGEST, FINEST_EXPONENT, fuel);
  }
  const positive = parts.isNegative ? mirror(set) : set;
  const numDigits = countSignificant(parts);
  if (numDigits <= FREE_DIGITS) return hasPlain(positive, parts, fuel) || hasScientific(positive, parts, fuel);
  // Trying is most expensive where nothing matches, as after the point of an integer.
  if (hasPlain(positive, parts, fuel) && hasLongText(set, text, parts, fuel)) return true;
  if (numDigits > MAX_DIGITS || !hasScientific(positive, parts, fuel)) return false;
  return numDigits <= SAFE_DIGITS || hasLongMantissa(set, text, parts, MAX_DIGITS - numDigits, fuel);
}

/** Whether more digits, before or after the point, make the (positive) text a member. */
function hasPlain(set: NumberSet, { whole, fraction }: Parts, fuel: Fuel): boolean {
  const units = BigInt(whole + (fraction ?? ''));
  const digits = fraction?.length ?? 0;
  const most = fraction === null && whole !== '0' ? MAX_WHOLE_DIGITS - whole.length : 0;
  const isZero = units === 0n;
  const grid = -(isZero ? Math.min(MAX_FRACTION_DIGITS, MAX_LEADING_ZEROS + 18) : MAX_FRACTION_DIGITS);
  for (let shift = 0; shift <= most; shift++) {
    const from = decimal(units, shift - digits);
    if (set.max !== null && compareDecimals(from, set.max.value) > 0) return false;
    const unit = unitsAt(decimal(1n, shift - digits), grid);
    if (hasNumberBetween(set, from, decimal(units * unit + unit - 1n, grid), grid, fuel)) return true;
  }
  return false;
}

/** Serializer exponents of possible (positive) members, those likely after a long mantissa first. */
function exponentsOf(set: NumberSet): number[] {
  const exponents: number[] = [];
  if (set.max !== null && set.max.value.units <= 0n) return exponents;
  const high = set.max === null ? MAX_DOUBLE_EXPONENT : Math.min(MAX_DOUBLE_EXPONENT, magnitude(set.max.value));
  const low = set.min === null || set.min.value.units <= 0n ? -Infinity : magnitude(set.min.value) - 1;
  for (let exponent = Math.max(FIRST_LARGE_EXPONENT, low); exponent <= high; exponent++) exponents.push(exponent);
  // Below 10^-6, a larger step has no multiple but zero.
  const least = Math.max(LEAST_EXPONENT, low, set.step === null ? -Infinity : magnitude(set.step) - 1);
  for (let exponent = Math.min(LAST_SMALL_EXPONENT, high); exponent >= least; exponent--) exponents.push(exponent);
  return exponents;
}

/**
 * Whether an exponent, after up to `room` more digits, makes the text a number that a double preserves. Only some texts
 * of 17 digits are printed by a double, so that is checked first.
 */
function hasLongMantissa(set: NumberSet, text: string, parts: Parts, room: number, fuel: Fuel): boolean {
  if (!isScientific(parts)) return false;
  const positive = parts.isNegative ? mirror(set) : set;
  const factor = factorOf(set);
  const mantissas = [text];
  if (room > 0) for (let digit = 1; digit < 10; digit++) mantissas.push(`${text}${digit}`);
  for (const long of mantissas) {
    const mantissa = withoutTrailingZeros(long);
    if (factor > 1n && parseDecimal(mantissa).units % factor !== 0n) continue;
    const isExact = countDigits(split(mantissa)!) <= SAFE_DIGITS;
    for (const exponent of exponentsOf(positive)) {
      fuel.burn(1, 'numbers');
      const printed = `${mantissa}e${exponent > 0 ? '+' : ''}${exponent}`;
      if ((isExact || String(Number(printed)) === printed) && isNumberText(set, printed, fuel)) return true;
    }
  }
  return false;
}

/** Whether more digits after the point and an exponent make the (positive) text a member. */
function hasScientific(set: NumberSet, parts: Parts, fuel: Fuel): boolean {
  if (parts.whole.length !== 1 || parts.whole === '0') return false;
  const fraction = parts.fraction ?? '';
  const room = MAX_FRACTION_DIGITS - fraction.length;
  const units = BigInt(parts.whole + fraction) * tenTo(room);
  const last = units + tenTo(room) - 1n;
  return exponentsOf(set).some((exponent) => {
    const grid = exponent - MAX_FRACTION_DIGITS;
    const from = decimal(units, grid);
    const to = decimal(last, grid);
    const least = compareDecimals(from, SMALLEST) < 0 ? SMALLEST : from;
    return hasNumberBetween(set, least, compareDecimals(to, LARGEST) > 0 ? LARGEST : to, grid, fuel);
  });
}

function magnitude(value: Decimal): number {
  return value.units.toString().replace('-', '').length + value.exponent;
}

function hasExponent(set: NumberSet, text: string, parts: Parts, fuel: Fuel): boolean {
  const sign = parts.exponentSign === '' ? ['', '-'] : [''];
  const signs = parts.exponentDigits === '' ? sign : [''];
  for (const extra of signs) {
    for (
      let size = parts.exponentDigits.length === 0 ? 1 : 0;
      parts.exponentDigits.length + size <= MAX_EXPONENT_DIGITS;
      size++
    ) {
      for (let tail = 0; tail < 10 ** size; tail++) {
        const digits = size === 0 ? '' : String(tail).padStart(size, '0');
        if (isNumberText(set, text + extra + digits, fuel)) return true;
      }
    }
  }
  return false;
}

const CHARACTERS = [...'0123456789.e-'];
// The shortest exponents that serializers print.
const SHORT_EXPONENTS = [
  ...Array.from({ length: 100 - FIRST_LARGE_EXPONENT }, (_, i) => `e${FIRST_LARGE_EXPONENT + i}`),
  'e-7',
  'e-8',
  'e-9',
];
// Nodes searched for the shortest completion before accepting any.
const MAX_SEARCHED = 600;

/** The serialized form of a set's only number: no search needed. */
function onlyText(set: NumberSet, fuel: Fuel): string | null {
  if (set.min === null || set.max === null || compareDecimals(set.min.value, set.max.value) !== 0) return null;
  const { units, exponent } = set.min.value;
  const text = String(Number(`${units}e${exponent}`)).replace('+', '');
  return isNumberText(set, text, fuel) ? text : null;
}

/** Where digits cannot help, as after the point of an integer, an exponent is the shortest. */
function shortExponent(set: NumberSet, prefix: string, fuel: Fuel): string | null {
  const parts = split(prefix);
  if (parts === null || parts.exponentSign !== null || parts.whole.length !== 1 || isUnconstrained(set)) return null;
  if (hasPlain(parts.isNegative ? mirror(set) : set, parts, fuel)) return null;
  for (const digit of parts.fraction === '' ? '0123456789' : ['']) {
    const found = SHORT_EXPONENTS.find((exponent) => isNumberText(set, prefix + digit + exponent, fuel));
    if (found !== undefined) return digit + found;
  }
  return null;
}

/** The shortest continuation that makes this prefix a number of the set; null if there is none. */
export function completeNumber(set: NumberSet, prefix: string, fuel: Fuel): string | null {
  if (isNumberText(set, prefix, fuel)) return '';
  const only = prefix === '' ? onlyText(set, fuel) : null;
  if (only !== null) return only;
  const short = shortExponent(set, prefix, fuel);
  if (short !== null) return short;
  let level = isNumberPrefix(set, prefix, fuel) ? [''] : [];
  for (let searched = 0; level.length > 0 && searched < MAX_SEARCHED;) {
    const next: string[] = [];
    for (const suffix of level) {
      for (const character of CHARACTERS) {
        searched++;
        const longer = suffix + character;
        if (isNumberText(set, prefix + longer, fuel)) return longer;
        if (next.length < MAX_SEARCHED && isNumberPrefix(set, prefix + longer, fuel)) next.push(longer);
      }
    }
    level = next;
  }
  let suffix: string | null = level[0] ?? null;
  while (suffix !== null && !isNumberText(set, prefix + suffix, fuel)) {
    const next: string | undefined = CHARACTERS.find((character) =>
      isNumberPrefix(set, `${prefix}${suffix}${character}`, fuel),
    );
    suffix = next === undefined ? null : suffix + next;
  }
  return suffix;
}
