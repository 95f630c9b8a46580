import { MAX_JSON_DEPTH } from './limits.ts';

/** `done`: the value ended with this unit; `after`: it ended before it (numbers end at the next character). */
export type ScanResult = 'more' | 'done' | 'after' | 'bad';

type State =
  | 'value'
  | 'firstItem'
  | 'firstKey'
  | 'key'
  | 'colon'
  | 'afterItem'
  | 'string'
  | 'escape'
  | 'hex'
  | 'word'
  | 'minus'
  | 'zero'
  | 'digits'
  | 'point'
  | 'fraction'
  | 'exponent'
  | 'exponentSign'
  | 'exponentDigits';

const WORDS: Readonly<Record<string, string>> = { t: 'rue', f: 'alse', n: 'ull' };
const isBlank = (unit: string): boolean => unit === ' ' || unit === '\n' || unit === '\r' || unit === '\t';
const isDigit = (unit: string): boolean => unit >= '0' && unit <= '9';
/** States in which a number may end. */
const NUMBER_ENDS: ReadonlySet<State> = new Set<State>(['zero', 'digits', 'fraction', 'exponentDigits']);

/** Checks one JSON value unit by unit (strict RFC 8259); leading blanks are allowed. */
export function createJsonScanner(): (unit: string) => ScanResult {
  const open: ('{' | '[')[] = [];
  let state: State = 'value';
  let isKey = false;
  let pending = '';

  const close = (): ScanResult => {
    open.pop();
    return endValue();
  };
  const endValue = (): ScanResult => {
    if (open.length === 0) return 'done';
    state = 'afterItem';
    return 'more';
  };
  const go = (next: State): ScanResult => {
    state = next;
    return 'more';
  };
  const beginValue = (unit: string): ScanResult => {
    if (unit === '{' || unit === '[') {
      if (open.length >= MAX_JSON_DEPTH) return 'bad';
      open.push(unit);
      return go(unit === '{' ? 'firstKey' : 'firstItem');
    }
    if (unit === '"') {
      isKey = false;
      return go('string');
    }
    if (unit === '-') return go('minus');
    if (unit === '0') return go('zero');
    if (isDigit(unit)) return go('digits');
    pending = WORDS[unit] ?? '';
    return pending === '' ? 'bad' : go('word');
  };
  const afterItem = (unit: string): ScanResult => {
    const bracket = open.at(-1);
    if (unit === ',') return go(bracket === '{' ? 'key' : 'value');
    return unit === (bracket === '{' ? '}' : ']') ? close() : 'bad';
  };
  const beginKey = (unit: string): ScanResult => {
    if (unit !== '"') return 'bad';
    isKey = true;
    return go('string');
  };
  const endNumber = (unit: string): ScanResult => {
    if (open.length === 0) return 'after';
    return isBlank(unit) ? go('afterItem') : afterItem(unit);
  };
  const inNumber = (unit: string): ScanResult | null => {
    const isExponent = unit === 'e' || unit === 'E';
    if (state === 'minus') return unit === '0' ? go('zero') : isDigit(unit) ? go('digits') : 'bad';
    if (state === 'point') return isDigit(unit) ? go('fraction') : 'bad';
    if (state === 'exponent') return unit === '+' || unit === '-' ? go('exponentSign') : digitOf(unit);
    if (state === 'exponentSign') return digitOf(unit);
    if (!NUMBER_ENDS.has(state)) return null;
    if (isDigit(unit) && state !== 'zero') return 'more';
    if (unit === '.' && (state === 'zero' || state === 'digits')) return go('point');
    if (isExponent && state !== 'exponentDigits') return go('exponent');
    return endNumber(unit);
  };
  const digitOf = (unit: string): ScanResult => (isDigit(unit) ? go('exponentDigits') : 'bad');
  const inString = (unit: string): ScanResult | null => {
    if (state === 'string') {
      if (unit === '\\') return go('escape');
      if (unit !== '"') return unit < ' ' ? 'bad' : 'more';
      return isKey ? go('colon') : endValue();
    }
    if (state === 'escape') {
      pending = '';
      return unit === 'u' ? go('hex') : '"\\/bfnrt'.includes(unit) ? go('string') : 'bad';
    }
    if (state !== 'hex') return null;
    if (!/^[0-9a-fA-F]$/.test(unit)) return 'bad';
    pending += unit;
    return pending.length === 4 ? go('string') : 'more';
  };

  return (unit) => {
    const within = inString(unit) ?? inNumber(unit);
    if (within !== null) return within;
    if (state === 'word') {
      if (unit !== pending[0]) return 'bad';
      pending = pending.slice(1);
      return pending === '' ? endValue() : 'more';
    }
    if (isBlank(unit)) return 'more';
    if (state === 'value') return beginValue(unit);
    if (state === 'firstItem') return unit === ']' ? close() : beginValue(unit);
    if (state === 'firstKey') return unit === '}' ? close() : beginKey(unit);
    if (state === 'key') return beginKey(unit);
    if (state === 'colon') return unit === ':' ? go('value') : 'bad';
    return afterItem(unit);
  };
}
