import { type FieldValue, isTrusted, type MemoryRecord } from '../types.ts';
import type { CheckedCondition, CheckedFilter } from './check-query.ts';

type Test = (value: FieldValue, values: readonly FieldValue[]) => boolean;
const compare =
  (holds: (a: number, b: number) => boolean): Test =>
  (value, values) =>
    typeof value === 'number' && holds(value, values[0] as number);

/** A missing field is null: equal to null, different from other values, neither larger nor smaller. */
const TESTS: Readonly<Record<CheckedCondition['is'], Test>> = {
  '=': (value, values) => value === values[0],
  '!=': (value, values) => value !== values[0],
  in: (value, values) => values.includes(value),
  '<': compare((a, b) => a < b),
  '<=': compare((a, b) => a <= b),
  '>': compare((a, b) => a > b),
  '>=': compare((a, b) => a >= b),
};

/** The counterpart of the SQL conditions. */
export function passesFilter(
  record: Pick<MemoryRecord, 'kind' | 'createdMs' | 'fields'>,
  { kinds, createdFromMs, createdToMs, conditions, onlyTrusted }: CheckedFilter,
): boolean {
  if (!kinds.includes(record.kind)) return false;
  if (onlyTrusted && !isTrusted(record)) return false;
  if (createdFromMs !== null && record.createdMs < createdFromMs) return false;
  if (createdToMs !== null && record.createdMs >= createdToMs) return false;
  return conditions.every(({ field, is, values }) => TESTS[is](record.fields[field] ?? null, values));
}
