import { checkRegistry, MEMORY_FIELDS } from '../../memory/fields.ts';
import type { FieldCondition } from '../../memory/types.ts';
import { usageError } from '../usage-error.ts';
import type { ValueReader } from '../values.ts';

export const TIME_ROWS = {
  '--from <time> fromMs': 'start time, such as 2026-11-15 or 7d (ago)',
  '--to <time> toMs': 'end time, exclusive',
};

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
