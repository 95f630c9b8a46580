import type { CheckedCondition, CheckedFilter } from '../check-query.ts';
import type { TenantSealer } from '../sealer.ts';
import { wordHash } from './record-row.ts';
import { fieldExpression } from './schema.ts';
import type { SqlValue } from './sql-database.ts';

/** Conditions for WHERE, each with AND in front, and the values they bind. */
export interface SqlCondition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

type Part = (expression: string, condition: CheckedCondition, sealer: TenantSealer) => SqlCondition;

/**
 * Numbers are bound as JSON texts: the same digits are then read by the same code as those of the row, and equality holds to the
 * last bit.
 */
function bind(
  { type, field }: CheckedCondition,
  value: CheckedCondition['values'][number],
  sealer: TenantSealer,
): { sql: string; value: SqlValue } {
  if (type === 'word') return { sql: '?', value: wordHash(sealer, field, value as string) };
  if (type === 'boolean') return { sql: '?', value: value === true ? 1 : 0 };
  return { sql: `json_extract(?, '$')`, value: JSON.stringify(value) };
}

const equals: Part = (expression, condition, sealer) => {
  const [first] = condition.values;
  if (first === null || first === undefined) return { sql: `${expression} IS NULL`, values: [] };
  const { sql, value } = bind(condition, first, sealer);
  return { sql: `${expression} = ${sql}`, values: [value] };
};

const differs: Part = (expression, condition, sealer) => {
  const [first] = condition.values;
  if (first === null || first === undefined) return { sql: `${expression} IS NOT NULL`, values: [] };
  const { sql, value } = bind(condition, first, sealer);
  return { sql: `${expression} IS NOT ${sql}`, values: [value] };
};

const isOneOf: Part = (expression, condition, sealer) => {
  const bound = condition.values.filter((value) => value !== null).map((value) => bind(condition, value, sealer));
  const parts = bound.length === 0 ? [] : [`${expression} IN (${bound.map(({ sql }) => sql).join(', ')})`];
  if (bound.length < condition.values.length) parts.push(`${expression} IS NULL`);
  return { sql: `(${parts.join(' OR ')})`, values: bound.map(({ value }) => value) };
};

const compare =
  (operator: string): Part =>
  (expression, condition, sealer) => {
    const { sql, value } = bind(condition, condition.values[0]!, sealer);
    return { sql: `${expression} ${operator} ${sql}`, values: [value] };
  };

const PARTS: Readonly<Record<CheckedCondition['is'], Part>> = {
  '=': equals,
  '!=': differs,
  in: isOneOf,
  '<': compare('<'),
  '<=': compare('<='),
  '>': compare('>'),
  '>=': compare('>='),
};

/** The twin of `passesFilter`, without the kinds: one statement is of one kind, so that an index serves its order. */
export function filterToSql(filter: CheckedFilter, sealer: TenantSealer): SqlCondition {
  const parts: SqlCondition[] = [];
  if (filter.createdFromMs !== null) parts.push({ sql: 'created_ms >= ?', values: [filter.createdFromMs] });
  if (filter.createdToMs !== null) parts.push({ sql: 'created_ms < ?', values: [filter.createdToMs] });
  for (const condition of filter.conditions) {
    parts.push(PARTS[condition.is](fieldExpression(condition.field), condition, sealer));
  }
  return {
    sql: parts.map(({ sql }) => ` AND ${sql}`).join(''),
    values: parts.flatMap(({ values }) => values),
  };
}
