import { usageError } from './usage-error.ts';

/** Decimal notation only: `0x10`, an empty string or `1,5` are probably mistakes. */
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Parses the value of the flag or variable `name`. */
export type ValueReader<T> = (text: string, name: string) => T;

export const readNumber: ValueReader<number> = (text, name) => {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw usageError(`${name} must be a number, got ${JSON.stringify(text)}`, name);
  return value;
};

export const readInteger: ValueReader<number> = (text, name) => {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) {
    throw usageError(`${name} must be an integer, got ${JSON.stringify(text)}`, name);
  }
  return value;
};

export const SIZE = /^(\d+(?:\.\d*)?|\.\d+) ?(?:([kmgt])(?:i?b)?|b)?$/i;
const SIZE_UNITS: Readonly<Record<string, number>> = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Bytes: `1000`, `512MiB`, `2G`, `1.5 GB`. All units are powers of 1024. */
export const readSize: ValueReader<number> = (text, name) => {
  const [, count, unit] = SIZE.exec(text) ?? [];
  const bytes = count === undefined ? Number.NaN : Number(count) * (unit ? SIZE_UNITS[unit.toLowerCase()]! : 1);
  // Fractions of a byte are a mistake without a unit, rounding with one.
  const whole = unit === undefined ? bytes : Math.floor(bytes);
  if (!Number.isSafeInteger(whole)) {
    throw usageError(`${name} must be a size such as 512MiB, 2G or 1.5GiB, got ${JSON.stringify(text)}`, name);
  }
  return whole;
};

/** The longest timer delay: 24.8 days. */
export const MAX_SECONDS = 2_147_483;

const secondsReader =
  (max: number): ValueReader<number> =>
  (text, name) => {
    const seconds = readNumber(text, name);
    if (seconds >= 0.001 && seconds <= max) return seconds * 1000;
    throw usageError(`${name} must be a number of seconds from 0.001 to ${max}, got ${text}`, name);
  };

/** Converts seconds to milliseconds. */
export const readSeconds = secondsReader(MAX_SECONDS);

const MAX_DAYS = 36_500;
/** The same for a stored time, which no timer limits. */
export const readLifetime = secondsReader(MAX_DAYS * 86_400);

/** `on` or `off` in an environment variable. */
export const readSwitch: ValueReader<boolean> = (text, name) => {
  if (text !== 'on' && text !== 'off') throw usageError(`${name} must be on or off, got ${JSON.stringify(text)}`, name);
  return text === 'on';
};

/** A list in an environment variable: a JSON array or a single item. */
export function readList(text: string, name: string, read: ValueReader<unknown>): readonly unknown[] {
  if (!text.startsWith('[')) return [read(text, name)];
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    items = null;
  }
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string')) {
    throw usageError(`${name} must be a string or a JSON array of strings such as ["a","b"]`, name);
  }
  return items.map((item) => read(item, name));
}

/** Layers for the GPU: a number or `auto`; the library checks it. */
export const readGpuLayers: ValueReader<number | 'auto'> = (text, name) => {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (text !== 'auto' && !Number.isSafeInteger(value)) {
    throw usageError(`${name} must be auto or a number of layers, got ${JSON.stringify(text)}`, name);
  }
  return text === 'auto' ? text : value;
};

/** A choice of kernels; the library checks it. */
export const readKernels: ValueReader<string> = (text, name) => readText(text, name);

export const readText: ValueReader<string> = (text) => text;

/** `ID=VALUE`: a token id and its logit bias. */
export const readBias: ValueReader<readonly [number, number]> = (text, name) => {
  const match = /^(\d{1,10})=(.+)$/.exec(text);
  if (match === null) throw usageError(`${name} must be ID=VALUE, got ${JSON.stringify(text)}`, name);
  return [Number(match[1]), readNumber(match[2]!, name)];
};

export const DURATION = /^(\d{1,6})(m|h|d|w)$/;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

function durationMs(text: string): number | null {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count === undefined ? null : Number(count) * UNIT_MS[unit!]!;
}

/** Milliseconds of `30m`, `12h`, `7d` or `2w`. */
export const readDuration: ValueReader<number> = (text, name) => {
  const ms = durationMs(text) ?? 0;
  if (ms > 0 && ms <= MAX_DAYS * UNIT_MS['d']!) return ms;
  throw usageError(`${name} must be from 1m to ${MAX_DAYS}d, such as 12h, 7d or 2w, got ${JSON.stringify(text)}`, name);
};
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** `2026-11-15`, `2026-11-15T10:00Z`, or a time before now: `30m`, `12h`, `7d`, `2w`. */
export const readTime: ValueReader<number> = (text, name) => {
  const agoMs = durationMs(text);
  const ms = agoMs !== null ? Date.now() - agoMs : DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (ms >= 0) return Math.floor(ms);
  throw usageError(
    `${name} must be a time such as 2026-11-15, 2026-11-15T10:00Z or 7d (ago), got ${JSON.stringify(text)}`,
    name,
  );
};
