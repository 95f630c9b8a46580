import type { FieldDeclaration, FieldRegistry } from '../fields.ts';
import {
  ANSWER_KINDS,
  type EdgeQuery,
  type FieldCondition,
  type FieldValue,
  type FindQuery,
  type MatchQuery,
  type MemoryEdge,
  type NearestQuery,
  type RecordFilter,
  type RecordKind,
} from '../types.ts';
import { checkFieldValue, checkId, checkIds } from './check-put.ts';
import { checkChoice, checkBoolean, checkInteger, checkKeys, refuse } from '../../core/options.ts';
import { showValue } from '../../core/show-value.ts';
import { checkKinds, checkList, checkText, checkTime, checkVector } from './checks.ts';
import { parseCursor, type Cursor } from './cursor.ts';
import { STORE_LIMITS } from './limits.ts';

export interface CheckedCondition {
  readonly field: string;
  readonly is: FieldCondition['is'];
  readonly values: readonly FieldValue[];
  readonly type: FieldDeclaration['type'];
  readonly isIndexed: boolean;
}

export interface CheckedFilter {
  readonly kinds: readonly RecordKind[];
  readonly createdFromMs: number | null;
  readonly createdToMs: number | null;
  readonly conditions: readonly CheckedCondition[];
  /** Whether unrated answers of the model are excluded; false where no kind has any. */
  readonly onlyTrusted: boolean;
}

export interface CheckedFind {
  readonly filter: CheckedFilter;
  readonly order: 'newest' | 'oldest';
  readonly limit: number;
  readonly after: Cursor | null;
}

export interface CheckedNearest {
  readonly filter: CheckedFilter;
  readonly vector: Float32Array;
  readonly space: string;
  readonly k: number;
  readonly ef: number;
  readonly withVectors: boolean;
}

export interface CheckedMatch {
  readonly filter: CheckedFilter;
  readonly text: string;
  readonly context: string;
  readonly k: number;
  readonly withVectors: boolean;
}

const DEFAULT_EF = 64;
const COMPARISONS: readonly string[] = ['<', '<=', '>', '>='];
const OPERATORS = ['=', '!=', '<', '<=', '>', '>=', 'in'] as const;

export function checkFind(query: FindQuery, registry: FieldRegistry): CheckedFind {
  checkKeys(query, 'query', ['kinds', 'filter', 'order', 'limit', 'after']);
  return {
    filter: checkFilter(query.kinds, query.filter, registry),
    order: checkChoice(query.order, 'order', ['newest', 'oldest']),
    limit: checkInteger(query.limit, 'limit', 1, STORE_LIMITS.pageRecords),
    after: query.after === undefined ? null : parseCursor(query.after),
  };
}

export function checkCount(query: Pick<FindQuery, 'kinds' | 'filter'>, registry: FieldRegistry): CheckedFilter {
  checkKeys(query, 'query', ['kinds', 'filter']);
  return checkFilter(query.kinds, query.filter, registry);
}

export function checkNearest(query: NearestQuery, registry: FieldRegistry): CheckedNearest {
  checkKeys(query, 'query', ['vector', 'space', 'kinds', 'k', 'filter', 'ef', 'withVectors']);
  return {
    filter: checkFilter(query.kinds, query.filter, registry),
    vector: checkVector(query.vector, 'vector'),
    space: checkText(query.space, 'space', STORE_LIMITS.spaceBytes),
    k: checkInteger(query.k, 'k', 1, STORE_LIMITS.k),
    ef: query.ef === undefined ? DEFAULT_EF : checkInteger(query.ef, 'ef', 1, STORE_LIMITS.ef),
    withVectors: query.withVectors === undefined ? true : checkBoolean(query.withVectors, 'withVectors'),
  };
}

export function checkMatch(query: MatchQuery, registry: FieldRegistry): CheckedMatch {
  checkKeys(query, 'query', ['text', 'context', 'kinds', 'k', 'filter', 'withVectors']);
  return {
    filter: checkFilter(query.kinds, query.filter, registry),
    text: checkText(query.text, 'text', STORE_LIMITS.queryBytes),
    context: query.context === undefined ? '' : checkText(query.context, 'context', STORE_LIMITS.queryBytes),
    k: checkInteger(query.k, 'k', 1, STORE_LIMITS.k),
    withVectors: query.withVectors === undefined ? true : checkBoolean(query.withVectors, 'withVectors'),
  };
}

/** Besides kinds and trust. */
export function hasConditions(filter: CheckedFilter): boolean {
  return filter.conditions.length > 0 || filter.createdFromMs !== null || filter.createdToMs !== null;
}

function checkFilter(
  kinds: readonly RecordKind[],
  filter: RecordFilter | undefined,
  registry: FieldRegistry,
): CheckedFilter {
  checkKinds(kinds);
  checkKeys(filter ?? {}, 'filter', ['createdFromMs', 'createdToMs', 'fields', 'onlyTrusted']);
  const { createdFromMs, createdToMs, fields = [], onlyTrusted = false } = filter ?? {};
  return {
    kinds,
    onlyTrusted: checkBoolean(onlyTrusted, 'onlyTrusted') && kinds.some((kind) => ANSWER_KINDS.includes(kind)),
    createdFromMs: createdFromMs === undefined ? null : checkTime(createdFromMs, 'createdFromMs'),
    createdToMs: createdToMs === undefined ? null : checkTime(createdToMs, 'createdToMs'),
    conditions: checkList(fields, 'fields', 0, STORE_LIMITS.conditions).map((condition) =>
      checkCondition(condition, kinds, registry),
    ),
  };
}

function checkCondition(
  condition: FieldCondition,
  kinds: readonly RecordKind[],
  registry: FieldRegistry,
): CheckedCondition {
  checkKeys(condition, 'condition', ['field', 'is', 'value', 'values']);
  const { field } = condition;
  const kind = kinds.find((name) => Object.hasOwn(registry[name], field));
  if (kind === undefined) {
    const known = [...new Set(kinds.flatMap((name) => Object.keys(registry[name])))].sort();
    refuse(`unknown field ${showValue(field)} of ${kinds.join(', ')} (known: ${known.join(', ')})`, 'field');
  }
  const { type, isIndexed } = registry[kind][field]!;
  const is = checkChoice(condition.is, 'is', OPERATORS);
  const given = condition as { readonly value?: FieldValue; readonly values?: readonly FieldValue[] };
  if (is === 'in' ? given.values === undefined || 'value' in given : given.value === undefined || 'values' in given) {
    refuse(`"${field}" ${is} requires ${is === 'in' ? '"values" and no "value"' : '"value" and no "values"'}`, 'value');
  }
  const list = is === 'in' ? checkList(given.values!, 'values', 1, STORE_LIMITS.valuesPerCondition) : [given.value!];
  if (COMPARISONS.includes(is) && (type !== 'number' || list[0] === null)) {
    refuse(`the field "${field}" is a ${type}: ${is} compares numbers`, 'is');
  }
  return { field, is, type, isIndexed, values: list.map((value) => checkFieldValue(value, field, type)) };
}

export function checkEdges(edges: readonly Omit<MemoryEdge, 'updatedMs'>[]): readonly Omit<MemoryEdge, 'updatedMs'>[] {
  return checkList(edges, 'edges', 1, STORE_LIMITS.itemsPerCall).map((edge) => {
    checkKeys(edge, 'edge', ['from', 'to', 'relation', 'weight', 'confidence', 'updatedMs']);
    const { weight, confidence } = edge;
    if (typeof weight !== 'number' || !Number.isFinite(weight)) refuse('weight must be a finite number', 'weight');
    if (typeof confidence !== 'number' || !(confidence >= 0 && confidence <= 1)) {
      refuse('confidence must be a number from 0 to 1', 'confidence');
    }
    // JSON has no -0, and the sealed edge must open again.
    return { ...checkEdgeKey(edge), weight: weight + 0, confidence: confidence + 0 };
  });
}

export type EdgeKey = Pick<MemoryEdge, 'from' | 'to' | 'relation'>;

export function checkEdgeKey({ from, to, relation }: EdgeKey): EdgeKey {
  return { from: checkId(from), to: checkId(to), relation: checkRelation(relation) };
}

const checkRelation = (text: string): string => checkText(text, 'relation', STORE_LIMITS.relationBytes);

export function checkEdgeQuery(query: EdgeQuery): EdgeQuery {
  checkKeys(query, 'query', ['ids', 'direction', 'relations', 'limit']);
  checkIds(query.ids);
  checkChoice(query.direction, 'direction', ['out', 'in', 'both']);
  checkInteger(query.limit, 'limit', 1, STORE_LIMITS.edgesPerQuery);
  if (query.relations !== undefined) {
    checkList(query.relations, 'relations', 0, STORE_LIMITS.valuesPerCondition).forEach(checkRelation);
  }
  return query;
}
