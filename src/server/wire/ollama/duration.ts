import { invalid, type Field } from '../fields.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PARTS = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/gy;
/** The longest delay of a timer; longer ones mean forever. */
const MAX_MS = 2 ** 31 - 1;

/** Seconds, or a text such as `5m` or `1h30m`; null: forever, which negative values mean. */
export const keepAliveField: Field<{ readonly idleMs: number | null }> = {
  schema: { oneOf: [{ type: 'number' }, { type: 'string' }] },
  read(value, path) {
    const idleMs = typeof value === 'string' ? parseDuration(value) : typeof value === 'number' ? value * 1000 : null;
    if (idleMs === null || Number.isNaN(idleMs)) {
      throw invalid(path, 'a number of seconds, or a duration such as "5m"', value);
    }
    return { idleMs: idleMs < 0 || idleMs > MAX_MS ? null : idleMs };
  },
};

function parseDuration(text: string): number | null {
  if (/^-?\d+$/.test(text)) return Number(text) * 1000;
  const digits = text.startsWith('-') ? text.slice(1) : text;
  const parts = [...digits.matchAll(PARTS)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== digits) return null;
  const sum = parts.reduce((total, [, count, unit]) => total + Number(count) * UNIT_MS[unit!]!, 0);
  return digits === text ? sum : -sum;
}
