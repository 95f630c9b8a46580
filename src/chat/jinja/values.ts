import { RuvLLMError } from '../../core/errors.ts';
import type { Budget } from './budget.ts';

/**
 * A value of a template. Mappings are `Map`s and members are looked up only in tables, so no name in a template
 * (`__proto__`, `constructor`) reaches the properties of a JavaScript object.
 */
export type Value = null | undefined | boolean | number | string | Value[] | ValueMap | Namespace | Callable;

export type Key = string | number;
export type ValueMap = Map<Key, Value>;

/** Jinja's `namespace()`, the only target of `{% set ns.x = … %}`. */
export class Namespace {
  readonly entries: ValueMap;
  constructor(entries: ValueMap) {
    this.entries = entries;
  }
}

export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
  /** The body of a `{% call %}` block. */
  readonly caller?: Callable;
}

export type Callable = (args: CallArguments) => Value;

export interface RenderContext {
  readonly budget: Budget;
  /** Not escaped by `tojson(ensure_ascii=true)`, so that it can be removed again. */
  readonly guard: string;
}

export function templateError(message: string): RuvLLMError {
  return new RuvLLMError('template_error', `chat template failed: ${message}`);
}

const TYPE_NAMES: Record<string, string> = {
  undefined: 'undefined',
  boolean: 'boolean',
  number: 'number',
  string: 'string',
  function: 'function',
};

export function typeName(value: Value): string {
  if (value === null) return 'none';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Map) return 'mapping';
  return TYPE_NAMES[typeof value] ?? 'namespace';
}

/** Python's truth value: empty strings, lists and mappings are false. */
export function isTruthy(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  return Boolean(value);
}

/** Jinja's `==`: compares contents; `true == 1` as in Python. */
export function isEqual(budget: Budget, left: Value, right: Value): boolean {
  if (left === right) return true;
  if (typeof left === 'string') return typeof right === 'string' && compareText(budget, left, right);
  if (typeof left === 'boolean' || typeof left === 'number') {
    return (typeof right === 'boolean' || typeof right === 'number') && Number(left) === Number(right);
  }
  budget.step();
  budget.enter();
  let equal = false;
  if (Array.isArray(left)) {
    equal = Array.isArray(right) && left.length === right.length && left.every((x, i) => isEqual(budget, x, right[i]));
  } else if (left instanceof Map && right instanceof Map) {
    equal = left.size === right.size && [...left].every(([k, x]) => right.has(k) && isEqual(budget, x, right.get(k)));
  }
  budget.leave();
  return equal;
}

function compareText(budget: Budget, left: string, right: string): boolean {
  budget.work(Math.min(left.length, right.length) / 8);
  return left === right;
}

/** Changes a text of host data; `owner` is the object or list that has it as a value, null for a key. */
export type MapText = (text: string, owner: object | null) => string;

/** Host data (messages, tool definitions, variables) as template values; rejects functions and class instances. */
export function toValue(budget: Budget, input: unknown, mapText: MapText, owner: object | null = null): Value {
  budget.step();
  if (typeof input === 'string') return mapText(input, owner);
  if (input === null || input === undefined || typeof input === 'boolean') return input;
  if (typeof input === 'number' && Number.isFinite(input)) return input;
  if (typeof input !== 'object') throw templateError(`a ${typeof input} cannot be passed to a template`);
  budget.enter();
  let value: Value;
  if (Array.isArray(input)) {
    budget.items(input.length);
    value = input.map((item) => toValue(budget, item, mapText, input));
  } else {
    const entries = Object.entries(input);
    budget.items(entries.length);
    value = new Map(entries.map(([key, item]) => [mapText(key, null), toValue(budget, item, mapText, input)]));
  }
  budget.leave();
  return value;
}
