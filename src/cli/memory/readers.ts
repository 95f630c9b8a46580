import { checkRegistry, MEMORY_FIELDS } from '../../memory/fields.ts';
import type { FieldCondition } from '../../memory/types.ts';
import type { Flag } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import type { ValueReader } from '../values.ts';

const AGO = /^(\d{1,6})(m|h|d|w)$/;
const AGO_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };
const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** `2026-11-15`, `2026-11-15T10:00Z`, or a time before now: `30m`, `12h`, `7d`, `2w`. */
export const readTime: ValueReader<number> = (text, name) => {
  const [, count, unit] = AGO.exec(text) ?? [];
  const ms =
    count !== undefined ? Date.now() - Number(count) * AGO_MS[unit!]! : DATE.test(text) ? Date.parse(text) : NaN;
  if (ms >= 0) return Math.floor(ms);
  throw usageError(
    `${name} must be a time such as 2026-11-15, 2026-11-15T10:00Z or 7d (ago), got ${JSON.stringify(text)}`,
    name,
  );
};

/** `--from` and `--to`. */
export const TIME_FLAGS: readonly [Flag, Flag] = [
  { name: '--from', value: 'time', read: readTime, description: 'start time, such as 2026-11-15 or 7d (ago)' },
  { name: '--to', value: 'time', read: readTime, description: 'end time, exclusive' },
];

const CONDITION = /^([^=!<>]+)(!=|<=|>=|=|<|>)(.*)$/s;
const FIELDS = checkRegistry(MEMORY_FIELDS);

const VALUES: Readonly<Record<string, (text: string) => unknown>> = {
  number: (text) => (text.trim() === '' ? text : Number(text)),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  word: (text) => text,
};

/** `topic=cards`, `quality>=0.5`. The memory validates the field. */
export const readCondition: ValueReader<FieldCondition> = (text, name) => {
  const [, field, is, value] = CONDITION.exec(text) ?? [];
  if (field === undefined) {
    throw usageError(
      `${name} must be a condition such as topic=cards or quality>=0.5, got ${JSON.stringify(text)}`,
      name,
    );
  }
  const type = FIELDS.get(field)?.type ?? 'word';
  const parsed = VALUES[type]!(value!);
  if (Number.isNaN(parsed)) throw usageError(`${name} ${field} must be a number, got ${JSON.stringify(value)}`, name);
  return { field, is, value: parsed } as FieldCondition;
};

export const readObject: ValueReader<object> = (text, name) => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Rejected below.
  }
  throw usageError(`${name} must be a JSON object, got ${JSON.stringify(text.slice(0, 80))}`, name);
};
