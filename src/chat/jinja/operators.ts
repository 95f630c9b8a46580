import type { Budget } from './budget.ts';
import { chargeSearch } from './text-search.ts';
import { toText } from './to-text.ts';
import { isEqual, templateError, typeName } from './values.ts';
import type { Value } from './values.ts';

export type BinaryOperator = (budget: Budget, left: Value, right: Value) => Value;

function mismatch(operator: string, left: Value, right: Value): never {
  throw templateError(`operator "${operator}" does not take ${typeName(left)} and ${typeName(right)}`);
}

function isNumeric(value: Value): value is number | boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

function arithmetic(operator: string, compute: (a: number, b: number) => number): BinaryOperator {
  return (_budget, left, right) => {
    if (!isNumeric(left) || !isNumeric(right)) mismatch(operator, left, right);
    const result = compute(Number(left), Number(right));
    if (!Number.isFinite(result)) throw templateError(`${left} ${operator} ${right} is not a finite number`);
    return result;
  };
}

function comparison(operator: string, test: (order: number) => boolean): BinaryOperator {
  return (budget, left, right) => test(compareValues(budget, left, right, operator));
}

/** Negative, zero or positive; only two numbers or two strings can be compared. */
export function compareValues(budget: Budget, left: Value, right: Value, operator = 'sort'): number {
  if (isNumeric(left) && isNumeric(right)) return Number(left) - Number(right);
  if (typeof left !== 'string' || typeof right !== 'string') mismatch(operator, left, right);
  budget.work(Math.min(left.length, right.length) / 8);
  return left < right ? -1 : Number(left > right);
}

function concatenate(budget: Budget, left: string, right: string): string {
  budget.text(left.length + right.length);
  return left + right;
}

function repeat(budget: Budget, value: string | Value[], times: number): Value {
  const count = Math.max(0, Math.trunc(times));
  if (typeof value === 'string') {
    budget.text(value.length * count);
    return value.repeat(count);
  }
  budget.items(value.length * count);
  return Array.from({ length: value.length * count }, (_, i) => value[i % value.length]);
}

const multiply = arithmetic('*', (a, b) => a * b);
const add = arithmetic('+', (a, b) => a + b);

/** Whether `item` is in a string, list or mapping. */
export function contains(budget: Budget, container: Value, item: Value): boolean {
  if (container === undefined) return false;
  if (typeof container === 'string') {
    if (typeof item !== 'string') mismatch('in', item, container);
    chargeSearch(budget, container, item);
    return container.includes(item);
  }
  if (container instanceof Map) return (typeof item === 'string' || typeof item === 'number') && container.has(item);
  if (!Array.isArray(container)) mismatch('in', item, container);
  budget.work(container.length);
  return container.some((member) => isEqual(budget, member, item));
}

/** Python's operators; `and`, `or` and `not` are in the evaluator because they may skip an operand. */
export const BINARY_OPERATORS: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ['==', isEqual],
  ['!=', (budget, left, right) => !isEqual(budget, left, right)],
  ['<', comparison('<', (order) => order < 0)],
  ['<=', comparison('<=', (order) => order <= 0)],
  ['>', comparison('>', (order) => order > 0)],
  ['>=', comparison('>=', (order) => order >= 0)],
  ['in', (budget, left, right) => contains(budget, right, left)],
  ['not in', (budget, left, right) => !contains(budget, right, left)],
  ['~', (budget, left, right) => concatenate(budget, toText(budget, left), toText(budget, right))],
  [
    '+',
    (budget, left, right) => {
      if (typeof left === 'string' && typeof right === 'string') return concatenate(budget, left, right);
      if (!Array.isArray(left) || !Array.isArray(right)) return add(budget, left, right);
      budget.items(left.length + right.length);
      return [...left, ...right];
    },
  ],
  [
    '*',
    (budget, left, right) => {
      if (typeof right === 'number' && (typeof left === 'string' || Array.isArray(left))) {
        return repeat(budget, left, right);
      }
      if (typeof left === 'number' && (typeof right === 'string' || Array.isArray(right))) {
        return repeat(budget, right, left);
      }
      return multiply(budget, left, right);
    },
  ],
  ['-', arithmetic('-', (a, b) => a - b)],
  ['/', arithmetic('/', (a, b) => a / b)],
  ['//', arithmetic('//', (a, b) => Math.floor(a / b))],
  ['%', arithmetic('%', (a, b) => a - b * Math.floor(a / b))],
  ['**', arithmetic('**', (a, b) => a ** b)],
]);
