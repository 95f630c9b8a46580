import { expect, test } from 'vitest';
import { createFuel, DEFAULT_LIMITS } from '../limits.ts';
import {
  canonicalDecimal,
  compareDecimals,
  decimal,
  isMultiple,
  leastCommonMultiple,
  parseDecimal,
  tenTo,
  unitsAt,
} from './decimal.ts';
import type { NumberSet } from './number-set.ts';
import {
  ALL_NUMBERS,
  hasNumber,
  hasNumberBetween,
  intersectNumbers,
  listNumbers,
  mirror,
  numberSetKey,
} from './number-set.ts';
import { completeNumber, isNumberPrefix, isNumberText } from './number-text.ts';

interface Shape {
  readonly min?: string;
  readonly max?: string;
  readonly above?: string;
  readonly below?: string;
  readonly step?: string;
  readonly notSteps?: readonly string[];
  readonly excluded?: readonly string[];
}

const fuel = () => createFuel(DEFAULT_LIMITS);
const bound = (closed: string | undefined, open: string | undefined) =>
  closed !== undefined
    ? { value: parseDecimal(closed), isOpen: false }
    : open !== undefined
      ? { value: parseDecimal(open), isOpen: true }
      : null;
const setOf = ({ min, max, above, below, step, notSteps = [], excluded = [] }: Shape): NumberSet => ({
  min: bound(min, above),
  max: bound(max, below),
  step: step === undefined ? null : parseDecimal(step),
  notSteps: notSteps.map(parseDecimal),
  excluded: excluded.map(parseDecimal),
});

test('reads, compares and prints exact decimals', () => {
  expect(parseDecimal('-12.50')).toEqual({ units: -1250n, exponent: -2 });
  expect(parseDecimal('1.5E+3')).toEqual({ units: 15n, exponent: 2 });
  expect(parseDecimal('-0.5e-3')).toEqual({ units: -5n, exponent: -4 });
  expect([tenTo(0), tenTo(3), unitsAt(decimal(5n, 2), -1)]).toEqual([1n, 1000n, 5000n]);
  const order = (a: string, b: string): number => compareDecimals(parseDecimal(a), parseDecimal(b));
  expect([order('1', '1.0'), order('0.9', '1'), order('1e2', '99.9'), order('-1', '1')]).toEqual([0, -1, 1, -1]);
  const multiple = (a: string, b: string): boolean => isMultiple(parseDecimal(a), parseDecimal(b));
  expect([multiple('4.35', '0.01'), multiple('4.355', '0.01'), multiple('0', '7'), multiple('-14', '7')]).toEqual([true, false, true, true]); // prettier-ignore
  expect(canonicalDecimal(leastCommonMultiple(parseDecimal('0.4'), parseDecimal('0.6')))).toBe('12e-1');
  expect(['0.00', '1200', '-0.50', '7'].map((text) => canonicalDecimal(parseDecimal(text)))).toEqual(['0', '12e2', '-5e-1', '7e0']); // prettier-ignore
});

test('a set has its closed bounds and not its open ones', () => {
  const has = (shape: Shape, text: string): boolean => hasNumber(setOf(shape), parseDecimal(text));
  for (const shape of [
    { min: '2', max: '4' },
    { above: '2', below: '4' },
  ]) {
    // prettier-ignore
    const isClosed = 'min' in shape;
    expect(['1.9', '2', '2.1', '3.9', '4', '4.1'].map((text) => has(shape, text))).toEqual([false, isClosed, true, true, isClosed, false]); // prettier-ignore
  }
  const odd: Shape = { step: '0.5', notSteps: ['1'], excluded: ['2.5', '-0.5'] };
  expect(['0.5', '1', '1.5', '2.5', '-0.5', '-1.5', '0.25'].map((text) => has(odd, text))).toEqual([true, false, true, false, false, true, false]); // prettier-ignore
  expect(hasNumber(mirror(setOf({ above: '2', max: '4', excluded: ['3'] })), parseDecimal('-4'))).toBe(true);
  expect(numberSetKey(mirror(setOf({ above: '2', max: '40', excluded: ['3'] })))).toBe('[-4e1:(-2e0:::-3e0');
  expect(mirror(ALL_NUMBERS)).toEqual(ALL_NUMBERS);
});

test('the intersection has the tighter bounds, an open one before a closed one', () => {
  const key = (a: Shape, b: Shape): string => numberSetKey(intersectNumbers(setOf(a), setOf(b)));
  expect(key({ min: '1', max: '9' }, { min: '2', max: '8' })).toBe('[2e0:[8e0:::');
  expect(key({ min: '2', max: '8' }, { min: '1', max: '9' })).toBe('[2e0:[8e0:::');
  expect(key({ min: '1', max: '9' }, { above: '1', below: '9' })).toBe('(1e0:(9e0:::');
  expect(key({ above: '1', below: '9' }, { min: '1', max: '9' })).toBe('(1e0:(9e0:::');
  expect(key({}, { min: '1', step: '2' })).toBe('[1e0::2e0::');
  expect(key({ max: '1', step: '4' }, { step: '6', notSteps: ['5'] })).toBe(':[1e0:12e0:5e0:');
  expect(key({ step: '4', excluded: ['8'] }, { excluded: ['4'] })).toBe('::4e0::4e0,8e0');
});

test('looks for a number between two others, on a grid', () => {
  const between = (shape: Shape, from: string, to: string, grid = 0): boolean =>
    hasNumberBetween(setOf(shape), parseDecimal(from), parseDecimal(to), grid, fuel());
  expect([between({}, '1', '1'), between({}, '2', '1'), between({}, '1.1', '1.9'), between({}, '1.1', '2')]).toEqual([true, false, false, true]); // prettier-ignore
  expect([between({}, '1.11', '1.19', -1), between({}, '1.11', '1.2', -1), between({}, '-1.9', '-1.1')]).toEqual([false, true, false]); // prettier-ignore
  expect([between({ above: '3' }, '1', '3'), between({ above: '3' }, '1', '4'), between({ min: '3' }, '1', '3')]).toEqual([false, true, true]); // prettier-ignore
  expect([between({ below: '3' }, '3', '9'), between({ below: '3' }, '2', '9'), between({ max: '3' }, '3', '9')]).toEqual([false, true, true]); // prettier-ignore
  expect([between({ above: '3', below: '4' }, '1', '9'), between({ above: '3', below: '5' }, '1', '9')]).toEqual([false, true]); // prettier-ignore
  expect([between({ step: '7' }, '8', '13'), between({ step: '7' }, '8', '14'), between({ step: '7' }, '-6', '-1'), between({ step: '7' }, '-7', '-1')]).toEqual([false, true, false, true]); // prettier-ignore
  expect([between({ excluded: ['4'] }, '4', '4'), between({ excluded: ['4'] }, '4', '5'), between({ notSteps: ['2'] }, '4', '4')]).toEqual([false, true, false]); // prettier-ignore
  // After 256 numbers and as many as are excluded, the search ends.
  const even = (numExcluded: number): Shape => ({
    step: '2',
    notSteps: ['2'],
    excluded: Array.from({ length: numExcluded }, (_, i) => `${i + 1}`),
  });
  const spent = (shape: Shape): number => {
    const counter = fuel();
    expect(hasNumberBetween(setOf(shape), parseDecimal('0'), parseDecimal('1e6'), 0, counter)).toBe(false);
    return counter.spent;
  };
  expect([spent(even(0)), spent(even(1))]).toEqual([10 + 257 * 2, 10 + 258 * 3]);
});

test('lists the members of a bounded set', () => {
  const list = (shape: Shape, limit = 5): string[] | null =>
    listNumbers(setOf(shape), limit, fuel())?.map(canonicalDecimal) ?? null;
  expect(list({ min: '1', max: '3', step: '1' })).toEqual(['1e0', '2e0', '3e0']);
  expect(list({ above: '1', below: '3', step: '0.5' })).toEqual(['15e-1', '2e0', '25e-1']);
  expect(list({ min: '-3', max: '4', step: '2' })).toEqual(['-2e0', '0', '2e0', '4e0']);
  expect(list({ min: '-4', max: '-2', step: '2' })).toEqual(['-4e0', '-2e0']);
  expect(list({ min: '0', max: '5', step: '1', excluded: ['3'], notSteps: ['2'] })).toEqual(['1e0', '5e0']);
  expect([list({ min: '0', max: '5', step: '1' })?.length, list({ min: '0', max: '6', step: '1' })]).toEqual([6, null]);
  expect([list({ min: '1', max: '2' }), list({ min: '1', step: '1' }), list({ max: '1', step: '1' })]).toEqual([null, null, null]); // prettier-ignore
  expect([list({ min: '1', max: '1' }), list({ min: '1', below: '1' }), list({ min: '1', max: '1', step: '2' })]).toEqual([['1e0'], [], []]); // prettier-ignore
});

const ANY: Shape = {};
const POSITIVE: Shape = { min: '0' };
const INTEGER: Shape = { step: '1' };

/** Texts, and whether they are numbers of the set. */
const TEXTS: [shape: Shape, members: string[], others: string[]][] = [
  [
    ANY,
    ['0', '-0', '7', '10', '-1.50', '1e5', '1E-5', '10e+05', '0.0', '1.0e0', '1e308', '1e-323', `0.${'0'.repeat(20)}1`, '0e999', `${'9'.repeat(40)}`, `1.${'9'.repeat(40)}`], // prettier-ignore
    ['', '-', '01', '1.', '.5', '-.5', '1e', '1e+', '+1', '1.e5', '1e309', '1e-330', '1e1000', '0x1', ' 1', '1 ', '--1', `0.${'0'.repeat(21)}1`, '9'.repeat(41), `1.${'9'.repeat(41)}`], // prettier-ignore
  ],
  [
    POSITIVE,
    ['0', '1e21', '1e+21', '9.5e300', '1e-7', '1.5e-7', '0.000001', '123456789012345', '0.1', '0.30000000000000004', '12345678901234567000', '100000000000000000000'], // prettier-ignore
    ['-1', '10e21', '1e20', '1e-6', '1e0', '0e0', '1e021', '1.e21', '0.1e-7', '1e309', '0.30000000000000001', '1234567890123456789', '123456789012345678'], // prettier-ignore
  ],
  [INTEGER, ['0', '-5', '1.0', '1e21', '2.50e21'], ['0.5', '1.5', '1e-7', '12.3']],
  [{ min: '2', below: '10' }, ['2', '2.0', '9.99'], ['1.99', '10', '10.0', '-2', '2e21']],
  [{ step: '0.01', excluded: ['1.5'] }, ['1.49', '1.51', '-1.5'], ['1.5', '1.50', '1.501']],
];

test.each(TEXTS)('numbers of %j', (shape, members, others) => {
  const set = setOf(shape);
  expect(members.filter((text) => !isNumberText(set, text, fuel()))).toEqual([]);
  expect(others.filter((text) => isNumberText(set, text, fuel()))).toEqual([]);
  // Every prefix of a member is the beginning of a member.
  const prefixes = members.flatMap((text) => Array.from(text, (_, i) => text.slice(0, i + 1)));
  expect(prefixes.filter((text) => !isNumberPrefix(set, text, fuel()))).toEqual([]);
});

/** Bounded sets without exponents, as all their members in thousandths. */
const RANGES: [shape: Shape, digits: number][] = [
  [{ min: '0', max: '9', step: '1' }, 0],
  [{ min: '5', max: '123', step: '1' }, 0],
  [{ above: '5', below: '12', step: '1' }, 0],
  [{ min: '-12', max: '-3', step: '1' }, 0],
  [{ min: '-101', max: '20', step: '1' }, 0],
  [{ min: '10', max: '99', step: '7' }, 0],
  [{ min: '8', max: '31', step: '1', excluded: ['9', '30'] }, 0],
  [{ min: '98', max: '112', step: '1', notSteps: ['2', '5'] }, 0],
  [{ min: '0.5', max: '2.3', step: '0.1' }, 1],
  [{ above: '0.5', below: '1.25', step: '0.05' }, 2],
  [{ min: '-1.5', max: '-0.2', step: '0.3' }, 1],
];

test.each(RANGES)('beginnings of the numbers of %j', (shape, digits) => {
  const set = setOf(shape);
  const scale = 10 ** digits;
  const texts: string[] = [];
  for (let i = -200 * scale; i <= 200 * scale; i++) {
    const text = String(i / scale);
    if (!hasNumber(set, parseDecimal(text))) continue;
    const spellings = text === '0' ? ['0', '-0'] : [text];
    for (const one of spellings) texts.push(one.includes('.') ? `${one}000` : `${one}.000`);
  }
  const beginnings = new Set(texts.flatMap((text) => Array.from(text, (_, i) => text.slice(0, i))));
  const candidates = [...'0123456789-'].flatMap((first) =>
    ['', ...'0123456789.'].flatMap((second) => ['', ...'0123456789.'].map((third) => `${first}${second}${third}`)),
  );
  const wrong = candidates.filter((text) => {
    if (text.endsWith('.') && digits === 0) return false; // an exponent may follow a point, which has no bound here
    return isNumberPrefix(set, text, fuel()) !== beginnings.has(text);
  });
  expect(wrong).toEqual([]);
});

const COMPLETIONS: [shape: Shape, prefix: string, completion: string | null][] = [
  [ANY, '', '0'],
  [ANY, '-', '0'],
  [ANY, '1.', '0'],
  [ANY, '1e', '0'],
  [ANY, '7', ''],
  [INTEGER, '1.5', 'e21'],
  [INTEGER, '0.', '0'],
  [{ min: '10', step: '1' }, '7', '0'],
  [{ min: '10', step: '1' }, '', '10'],
  [{ min: '250', max: '250' }, '', '250'],
  [{ min: '250', max: '250' }, '2', '50'],
  [{ min: '250', max: '250' }, '3', null],
  [{ min: '1e30', max: '1e30' }, '', '1e30'],
  [{ above: '0', below: '0.001' }, '0', '.0001'],
  [{ min: '5', max: '9', step: '1' }, '-', null],
  [{ min: '-9', max: '-5', step: '1' }, '', '-5'],
  [{ step: '7' }, '1', '4'],
  [{ step: '7' }, '-1', '4'],
  [{ min: '1000', max: '1005', step: '1' }, '1', '000'],
];

test.each(COMPLETIONS)('the shortest number of %j after "%s" ends with "%s"', (shape, prefix, completion) => {
  expect(completeNumber(setOf(shape), prefix, fuel())).toBe(completion);
});
