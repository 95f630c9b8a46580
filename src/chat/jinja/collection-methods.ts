import { argument, integerArgument } from './arguments.ts';
import type { Budget } from './budget.ts';
import { isEqual, templateError, typeName } from './values.ts';
import type { CallArguments, Key, Value, ValueMap } from './values.ts';

export type ListMethod = (budget: Budget, self: Value[], args: CallArguments) => Value;
export type MapMethod = (budget: Budget, self: ValueMap, args: CallArguments) => Value;

/** Python's list methods that chat templates call. */
export const LIST_METHODS: ReadonlyMap<string, ListMethod> = new Map<string, ListMethod>([
  [
    'append',
    (budget, self, args) => {
      budget.items(self.length + 1);
      self.push(argument(args, 0, 'object'));
      return null;
    },
  ],
  [
    'extend',
    (budget, self, args) => {
      const items = argument(args, 0, 'iterable');
      if (!Array.isArray(items)) throw templateError(`extend() takes a list, got ${typeName(items)}`);
      budget.items(self.length + items.length);
      // Copies first: `x.extend(x)` would otherwise never end.
      for (const item of items.slice()) self.push(item);
      return null;
    },
  ],
  [
    'pop',
    (_budget, self, args) => {
      const index = integerArgument(args, 0, 'index', -1);
      const at = index < 0 ? index + self.length : index;
      if (at < 0 || at >= self.length) throw templateError(`pop(${index}): a list of ${self.length} has no such index`);
      return self.splice(at, 1)[0];
    },
  ],
  ['count', (budget, self, args) => self.filter((item) => isEqual(budget, item, argument(args, 0, 'value'))).length],
  ['index', (budget, self, args) => self.findIndex((item) => isEqual(budget, item, argument(args, 0, 'value')))],
]);

function keyArgument(args: CallArguments): Key {
  const key = argument(args, 0, 'key');
  if (typeof key === 'string' || typeof key === 'number') return key;
  throw templateError(`mapping keys must be strings or numbers, got ${typeName(key)}`);
}

/** Python's dict methods that chat templates call. */
export const MAP_METHODS: ReadonlyMap<string, MapMethod> = new Map<string, MapMethod>([
  [
    'get',
    (_budget, self, args) => {
      const key = keyArgument(args);
      return self.has(key) ? self.get(key) : (argument(args, 1, 'default') ?? null);
    },
  ],
  ['items', (budget, self) => entriesOf(budget, self)],
  ['keys', (budget, self) => (budget.items(self.size), [...self.keys()])],
  ['values', (budget, self) => (budget.items(self.size), [...self.values()])],
  [
    'pop',
    (_budget, self, args) => {
      const key = keyArgument(args);
      const value = self.has(key) ? self.get(key) : argument(args, 1, 'default');
      self.delete(key);
      return value;
    },
  ],
  [
    'update',
    (budget, self, args) => {
      const other = argument(args, 0, 'other');
      const entries: [Key, Value][] = [...(other instanceof Map ? other : []), ...args.named];
      budget.items(self.size + entries.length);
      for (const [key, value] of entries) self.set(key, value);
      return null;
    },
  ],
  ['copy', (budget, self) => (budget.items(self.size), new Map(self))],
]);

export function entriesOf(budget: Budget, map: ValueMap): Value[] {
  budget.items(map.size * 2);
  return Array.from(map, ([key, value]): Value => [key, value]);
}
