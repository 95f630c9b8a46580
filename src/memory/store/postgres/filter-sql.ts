import type { CheckedCondition, CheckedFilter } from '../check-query.ts';
import type { TenantSealer } from '../sealer.ts';
import { ANSWER_KINDS, AUDIT_KIND, MIN_TRUSTED_QUALITY } from '../../types.ts';
import { kindNumber, wordHash } from '../sqlite/record-row.ts';
import { fieldExpression } from './schema.ts';
import type { Binder } from './sql-client.ts';

type Texts = readonly (string | null)[];
type Part = (expression: string, values: Texts, binder: Binder) => string;

/** Compares JSON with JSON: numbers as shortest decimals, so equality is exact. */
const compare =
  (operator: string): Part =>
  (expression, [value], { bind }) =>
    `${expression} ${operator} ${bind(value ?? null)}::jsonb`;

/** A missing field is NULL in SQL; JSON null is never stored. */
const PARTS: Readonly<Record<CheckedCondition['is'], Part>> = {
  '=': (expression, values, binder) =>
    values[0] === null ? `${expression} IS NULL` : compare('=')(expression, values, binder),
  '!=': (expression, values, binder) =>
    values[0] === null ? `${expression} IS NOT NULL` : compare('IS DISTINCT FROM')(expression, values, binder),
  in: (expression, values, { bind }) => {
    const present = values.filter((value) => value !== null);
    const isOne = `${expression} = ANY(${bind(present)}::jsonb[])`;
    return present.length < values.length ? `(${isOne} OR ${expression} IS NULL)` : isOne;
  },
  '<': compare('<'),
  '<=': compare('<='),
  '>': compare('>'),
  '>=': compare('>='),
};

const answers = ANSWER_KINDS.map(kindNumber).join(', ');
/** The counterpart of `isTrusted`. */
const TRUSTED = `(r.kind NOT IN (${answers}) OR (r.kind <> ${kindNumber(AUDIT_KIND)} AND ${fieldExpression('sessionId')} IS NULL)
  OR ${fieldExpression('quality')} >= '${MIN_TRUSTED_QUALITY}'::jsonb)`;

/** The counterpart of `passesFilter` for the table `r`, without kinds; each condition starts with AND. */
export function filterToSql(filter: CheckedFilter, sealer: TenantSealer, binder: Binder): string {
  const parts: string[] = [];
  if (filter.createdFromMs !== null) parts.push(`r.created_ms >= ${binder.bind(filter.createdFromMs)}`);
  if (filter.createdToMs !== null) parts.push(`r.created_ms < ${binder.bind(filter.createdToMs)}`);
  if (filter.onlyTrusted) parts.push(TRUSTED);
  for (const { field, is, values } of filter.conditions) {
    const texts = values.map((value) => {
      if (value === null) return null;
      return JSON.stringify(typeof value === 'string' ? wordHash(sealer, field, value) : value);
    });
    parts.push(PARTS[is](fieldExpression(field), texts, binder));
  }
  return parts.map((sql) => ` AND ${sql}`).join('');
}
