import { LIST_METHODS, MAP_METHODS } from './collection-methods.ts';
import { STRING_METHODS } from './string-methods.ts';
import { Namespace, templateError, typeName } from './values.ts';
import type { RenderContext, Value } from './values.ts';

/** A method bound to `object`, or undefined. Only the tables are searched, never JavaScript properties. */
function methodOf({ budget }: RenderContext, object: Value, name: string): Value {
  if (typeof object === 'string') {
    const method = STRING_METHODS.get(name);
    return method && ((args) => (budget.text(object.length), method(budget, object, args)));
  }
  if (Array.isArray(object)) {
    const method = LIST_METHODS.get(name);
    return method && ((args) => (budget.work(object.length), method(budget, object, args)));
  }
  if (object instanceof Map) {
    const method = MAP_METHODS.get(name);
    return method && ((args) => method(budget, object, args));
  }
  return undefined;
}

/** `object.name`: a method takes precedence over a mapping's key, as in Jinja. */
export function readAttribute(context: RenderContext, object: Value, name: string): Value {
  if (object instanceof Namespace) return object.entries.get(name);
  return methodOf(context, object, name) ?? (object instanceof Map ? object.get(name) : undefined);
}

/** `object[key]`: a mapping's key takes precedence over a method. */
export function readItem(context: RenderContext, object: Value, key: Value): Value {
  if (typeof key === 'string') {
    if (object instanceof Map && object.has(key)) return object.get(key);
    return readAttribute(context, object, key);
  }
  if (typeof key === 'number' && object instanceof Map) return object.get(key);
  if (typeof key === 'number' && (typeof object === 'string' || Array.isArray(object))) return object.at(key);
  if (object === undefined || object instanceof Map || object instanceof Namespace) return undefined;
  throw templateError(`${typeName(object)} cannot be indexed by ${typeName(key)}`);
}

/** Python's `object[start:stop:step]`. */
export function readSlice({ budget }: RenderContext, object: Value, bounds: readonly Value[]): Value {
  if (typeof object !== 'string' && !Array.isArray(object)) throw templateError(`${typeName(object)} cannot be sliced`);
  for (const bound of bounds) {
    if (bound !== undefined && bound !== null && !Number.isSafeInteger(bound)) {
      throw templateError(`slice bounds must be integers, got ${typeName(bound)}`);
    }
  }
  const [start, stop, step] = bounds as (number | undefined | null)[];
  const stride = step ?? 1;
  if (stride === 0) throw templateError('slice step is 0');
  const size = object.length;
  budget.work(size);
  if (stride === 1) return object.slice(start ?? 0, stop ?? size);
  const [low, high] = stride > 0 ? [0, size] : [-1, size - 1];
  const clamp = (bound: number): number => Math.min(high, Math.max(low, bound < 0 ? bound + size : bound));
  const from = boundOr(start, stride > 0 ? 0 : size - 1, clamp);
  const to = boundOr(stop, stride > 0 ? size : -1, clamp);
  budget.items(Math.max(0, Math.ceil((to - from) / stride)));
  const picked: Value[] = [];
  for (let i = from; stride > 0 ? i < to : i > to; i += stride) picked.push(object[i]);
  return typeof object === 'string' ? picked.join('') : picked;
}

function boundOr(bound: number | undefined | null, missing: number, clamp: (bound: number) => number): number {
  return bound === undefined || bound === null ? missing : clamp(bound);
}
