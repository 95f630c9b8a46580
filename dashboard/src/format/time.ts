import { language } from './language.ts';
import { formatNumber } from './numbers.ts';

/** `820 µs`, `12.3 ms`, `4.56 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1) return `${formatNumber(ms * 1000)} µs`;
  if (ms < 1000) return `${formatNumber(ms)} ms`;
  if (ms < 60_000) return `${formatNumber(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Formatters are slow to make: a table would make hundreds per frame while it scrolls. */
const DATE_AND_TIME = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' });
const RELATIVE_TIME = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });

/** Date and time of day in the page's language. */
export function formatTime(ms: number): string {
  return Number.isFinite(ms) ? DATE_AND_TIME.format(ms) : '–';
}

const TICK_SECONDS = new Intl.DateTimeFormat(language, { timeStyle: 'medium' });
const TICK_MINUTES = new Intl.DateTimeFormat(language, { timeStyle: 'short' });
const TICK_DAYS = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric' });
const TICK_MONTHS = new Intl.DateTimeFormat(language, { month: 'short', year: 'numeric' });

/** The label of a time axis whose labels are `stepSeconds` apart. */
export function formatTick(ms: number, stepSeconds: number): string {
  const format =
    stepSeconds < 60
      ? TICK_SECONDS
      : stepSeconds < 86_400
        ? TICK_MINUTES
        : stepSeconds < 28 * 86_400
          ? TICK_DAYS
          : TICK_MONTHS;
  return format.format(ms);
}

const STEPS = [
  [60, 'second'],
  [60, 'minute'],
  [24, 'hour'],
  [30, 'day'],
  [12, 'month'],
  [Infinity, 'year'],
] as const;

/** `3 min. ago`. */
export function formatAgo(ms: number, nowMs: number = Date.now()): string {
  let value = (ms - nowMs) / 1000;
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size) {
      return RELATIVE_TIME.format(Math.round(value), unit);
    }
    value /= size;
  }
  return '';
}
