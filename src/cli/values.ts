import { usageError } from './usage-error.ts';

/** Decimal notation only: `0x10`, an empty word or `1,5` are more likely slips than wishes. */
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Reads the value of a flag or a variable; the error names both. */
export type ValueReader<T> = (text: string, name: string) => T;

export const readNumber: ValueReader<number> = (text, name) => {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw usageError(`${name} must be a number, got ${JSON.stringify(text)}`, name);
  return value;
};

export const readInteger: ValueReader<number> = (text, name) => {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    throw usageError(`${name} must be a whole number, got ${JSON.stringify(text)}`, name);
  }
  return value;
};

export const readText: ValueReader<string> = (text) => text;

/** `ID=VALUE`: a token id and what is added to its logit. */
export const readBias: ValueReader<readonly [number, number]> = (text, name) => {
  const match = /^(\d{1,10})=(.+)$/.exec(text);
  if (match === null) throw usageError(`${name} must be ID=VALUE, got ${JSON.stringify(text)}`, name);
  return [Number(match[1]), readNumber(match[2]!, name)];
};
