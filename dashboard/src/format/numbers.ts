import { language } from './language.ts';

/** Formatters are slow to make: a table would make hundreds per frame while it scrolls. */
const FORMATS = [0, 1, 2].map((maximumFractionDigits) => new Intl.NumberFormat(language, { maximumFractionDigits }));

const SIZES = [0, 1].map(
  (digits) =>
    new Intl.NumberFormat(language, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      useGrouping: false,
    }),
);

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `1.5 MiB`: powers of 1024, the same units as the command line. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  let [value, unit] = [bytes, 0];
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${SIZES[unit === 0 || value >= 100 ? 0 : 1]!.format(value)} ${BYTE_UNITS[unit]}`;
}

/** `1,234`, with the separators of the page's language. */
export function formatCount(value: number): string {
  return Number.isFinite(value) ? FORMATS[0]!.format(value) : '–';
}

/** `1 page`, `1,234 pages`. */
export function formatCountOf(value: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(value)} ${value === 1 ? noun : plural}`;
}

/** `12.3`: at most three significant digits, unless the integer part has more. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return FORMATS[digits]!.format(value);
}

/** Formats `0.42` as `42 %`. */
export function formatShare(share: number): string {
  return Number.isFinite(share) ? `${formatNumber(share * 100)} %` : '–';
}
