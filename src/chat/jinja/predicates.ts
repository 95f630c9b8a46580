import { isEqual, Namespace, templateError } from './values.ts';
import type { RenderContext, Value } from './values.ts';

/** A Jinja test (`x is name`); the second value is the argument of `select('name', argument)`. */
export type Predicate = (context: RenderContext, value: Value, other: Value) => boolean;

function remainderByTwo(value: Value): number {
  if (typeof value !== 'number') throw templateError('odd and even take a number');
  return Math.abs(value % 2);
}

const isMapping: Predicate = (_context, value) => value instanceof Map;
const isSequence: Predicate = (_context, value) =>
  typeof value === 'string' || Array.isArray(value) || value instanceof Map;
const equals: Predicate = (context, value, other) => isEqual(context.budget, value, other);

export const PREDICATES: ReadonlyMap<string, Predicate> = new Map<string, Predicate>([
  ['defined', (_context, value) => value !== undefined],
  ['undefined', (_context, value) => value === undefined],
  ['none', (_context, value) => value === null],
  ['true', (_context, value) => value === true],
  ['false', (_context, value) => value === false],
  ['boolean', (_context, value) => typeof value === 'boolean'],
  ['number', (_context, value) => typeof value === 'number'],
  ['integer', (_context, value) => Number.isInteger(value)],
  ['float', (_context, value) => typeof value === 'number' && !Number.isInteger(value)],
  ['string', (_context, value) => typeof value === 'string'],
  ['mapping', isMapping],
  ['sequence', isSequence],
  ['iterable', isSequence],
  ['callable', (_context, value) => typeof value === 'function'],
  ['namespace', (_context, value) => value instanceof Namespace],
  ['odd', (_context, value) => remainderByTwo(value) === 1],
  ['even', (_context, value) => remainderByTwo(value) === 0],
  ['lower', (_context, value) => typeof value === 'string' && value === value.toLowerCase()],
  ['upper', (_context, value) => typeof value === 'string' && value === value.toUpperCase()],
  ['equalto', equals],
  ['eq', equals],
  ['==', equals],
  ['ne', (context, value, other) => !isEqual(context.budget, value, other)],
]);

export function findPredicate(name: string): Predicate {
  const predicate = PREDICATES.get(name);
  if (predicate === undefined) throw templateError(`unknown test "${name}"`);
  return predicate;
}
