import { argument, integerArgument, textArgument } from './arguments.ts';
import type { Budget } from './budget.ts';
import { entriesOf } from './collection-methods.ts';
import { compareValues } from './operators.ts';
import { findPredicate } from './predicates.ts';
import { capitalize, titleCase } from './string-methods.ts';
import { replaceText } from './text-search.ts';
import { joinText, toJson, toText } from './to-text.ts';
import { isEqual, isTruthy, Namespace, templateError, typeName } from './values.ts';
import type { CallArguments, RenderContext, Value } from './values.ts';

export type Filter = (context: RenderContext, input: Value, args: CallArguments) => Value;

const NO_ARGUMENTS: CallArguments = { positional: [], named: new Map() };

/**
 * The elements of a value that Python could iterate. Undefined has none, as in Jinja; neither does null, because tool
 * templates loop over `tools` without checking it.
 */
export function iterate(budget: Budget, value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (value === undefined || value === null) return [];
  if (value instanceof Map) {
    budget.items(value.size);
    return [...value.keys()];
  }
  if (typeof value === 'string') {
    budget.items(value.length);
    return [...value];
  }
  throw templateError(`${typeName(value)} cannot be iterated`);
}

function lengthOf(value: Value): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  if (value instanceof Map) return value.size;
  if (value === undefined) return 0;
  throw templateError(`${typeName(value)} has no length`);
}

/** A dotted path (`function.name`) into mappings and lists. */
function attributeOf(value: Value, path: string): Value {
  let current = value;
  for (const part of path.split('.')) {
    if (current instanceof Map) current = current.get(part);
    else if (current instanceof Namespace) current = current.entries.get(part);
    else if (Array.isArray(current) && /^\d{1,9}$/.test(part)) current = current[Number(part)];
    else return undefined;
  }
  return current;
}

/** A filter from text to text, such as `upper`, that reads its input once. */
function textFilter(change: (text: string) => string): Filter {
  return ({ budget }, input) => {
    const text = toText(budget, input);
    budget.text(text.length);
    return change(text);
  };
}

/** `select`, `reject`, `selectattr`, `rejectattr`. */
function selection(byAttribute: boolean, keep: boolean): Filter {
  return (context, input, args) => {
    const [attribute, testName, other] = byAttribute ? args.positional : [undefined, ...args.positional];
    if (byAttribute && typeof attribute !== 'string') throw templateError('selectattr takes the name of an attribute');
    if (testName !== undefined && typeof testName !== 'string')
      throw templateError(`the name of a test must be a string, got ${typeName(testName)}`);
    const predicate = testName === undefined ? null : findPredicate(testName);
    return iterate(context.budget, input).filter((item) => {
      context.budget.step();
      const value = byAttribute ? attributeOf(item, attribute as string) : item;
      return (predicate === null ? isTruthy(value) : predicate(context, value, other)) === keep;
    });
  };
}

function sorted(budget: Budget, items: readonly Value[], args: CallArguments, keyOf: (item: Value) => Value): Value[] {
  const isCaseSensitive = isTruthy(args.named.get('case_sensitive'));
  const keyed = items.map((item) => {
    const key = keyOf(item);
    if (typeof key !== 'string' || isCaseSensitive) return { item, key };
    budget.text(key.length);
    return { item, key: key.toLowerCase() };
  });
  budget.items(items.length);
  const direction = isTruthy(args.named.get('reverse')) ? -1 : 1;
  keyed.sort((a, b) => {
    budget.step();
    return direction * compareValues(budget, a.key, b.key);
  });
  return keyed.map(({ item }) => item);
}

const map: Filter = (context, input, args) => {
  const items = iterate(context.budget, input);
  context.budget.items(items.length);
  const attribute = args.named.get('attribute');
  if (typeof attribute === 'string') {
    return items.map((item) => {
      context.budget.step();
      return attributeOf(item, attribute) ?? args.named.get('default');
    });
  }
  const filter = findFilter(textArgument(args, 0, 'filter'));
  const otherArguments = { positional: args.positional.slice(1), named: args.named };
  return items.map((item) => {
    context.budget.step();
    return filter(context, item, otherArguments);
  });
};

const indent: Filter = ({ budget }, input, args) => {
  const lines = toText(budget, input).split('\n');
  const width = argument(args, 0, 'width') ?? 4;
  if (typeof width === 'number') budget.text(width);
  const padding = typeof width === 'string' ? width : ' '.repeat(Math.max(0, integerArgument(args, 0, 'width', 4)));
  const isFirstIndented = isTruthy(argument(args, 1, 'first'));
  const isBlankIndented = isTruthy(argument(args, 2, 'blank'));
  let length = 0;
  for (const line of lines) length += line.length + padding.length + 1;
  budget.text(length);
  return lines
    .map((line, i) => ((i === 0 && !isFirstIndented) || (line === '' && !isBlankIndented) ? line : padding + line))
    .join('\n');
};

const toJsonFilter: Filter = (context, input, args) => {
  const separators = args.named.get('separators');
  if (separators !== undefined && separators !== null) {
    if (!Array.isArray(separators) || separators.length !== 2 || separators.some((text) => typeof text !== 'string')) {
      throw templateError('tojson separators must be two strings');
    }
  }
  const indentWidth = argument(args, 0, 'indent') ?? null;
  if (indentWidth !== null && typeof indentWidth !== 'number') throw templateError('tojson indent must be a number');
  return toJson(context, input, {
    indent: indentWidth,
    ensureAscii: isTruthy(args.named.get('ensure_ascii')),
    sortKeys: isTruthy(args.named.get('sort_keys')),
    separators: (separators as [string, string] | null | undefined) ?? null,
  });
};

const join: Filter = ({ budget }, input, args) => {
  const attribute = argument(args, 1, 'attribute');
  const parts = iterate(budget, input).map((item) => {
    budget.step();
    return toText(budget, typeof attribute === 'string' ? attributeOf(item, attribute) : item);
  });
  return joinText(budget, parts, textArgument(args, 0, 'd', ''));
};

const unique: Filter = ({ budget }, input) => {
  const items: Value[] = [];
  for (const item of iterate(budget, input)) {
    budget.step();
    if (!items.some((other) => (budget.work(1), isEqual(budget, other, item)))) items.push(item);
  }
  return items;
};

const defaultFilter: Filter = (_context, input, args) => {
  const isMissing = input === undefined || (isTruthy(argument(args, 1, 'boolean')) && !isTruthy(input));
  return isMissing ? (argument(args, 0, 'default_value') ?? '') : input;
};

function toNumber(parse: (text: string) => number, round: (value: number) => number): Filter {
  return (_context, input, args) => {
    const value = typeof input === 'string' ? parse(input) : Number(input);
    return Number.isFinite(value) ? round(value) : (argument(args, 0, 'default') ?? 0);
  };
}

function extreme(sign: 1 | -1): Filter {
  return ({ budget }, input) =>
    iterate(budget, input).reduce<Value>(
      (best, item) => (best === undefined || sign * compareValues(budget, item, best) > 0 ? item : best),
      undefined,
    );
}

const length: Filter = (_context, input) => lengthOf(input);

const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ['safe', (_context, input) => input],
  ['string', ({ budget }, input) => toText(budget, input)],
  ['tojson', toJsonFilter],
  ['length', length],
  ['count', length],
  ['trim', textFilter((text) => text.trim())],
  ['upper', textFilter((text) => text.toUpperCase())],
  ['lower', textFilter((text) => text.toLowerCase())],
  ['title', textFilter(titleCase)],
  ['capitalize', textFilter(capitalize)],
  ['indent', indent],
  [
    'replace',
    ({ budget }, input, args) =>
      replaceText(
        budget,
        toText(budget, input),
        textArgument(args, 0, 'old'),
        textArgument(args, 1, 'new'),
        integerArgument(args, 2, 'count', -1),
      ),
  ],
  ['join', join],
  ['list', ({ budget }, input) => (budget.items(lengthOf(input)), [...iterate(budget, input)])],
  ['first', ({ budget }, input) => iterate(budget, input)[0]],
  ['last', ({ budget }, input) => iterate(budget, input).at(-1)],
  ['reverse', ({ budget }, input) => (budget.items(lengthOf(input)), iterate(budget, input).toReversed())],
  ['unique', unique],
  ['map', map],
  ['select', selection(false, true)],
  ['reject', selection(false, false)],
  ['selectattr', selection(true, true)],
  ['rejectattr', selection(true, false)],
  [
    'sort',
    ({ budget }, input, args) => {
      const attribute = args.named.get('attribute');
      const keyOf = (item: Value): Value => (typeof attribute === 'string' ? attributeOf(item, attribute) : item);
      return sorted(budget, iterate(budget, input), args, keyOf);
    },
  ],
  [
    'dictsort',
    ({ budget }, input, args) => {
      if (!(input instanceof Map)) throw templateError(`dictsort takes a mapping, got ${typeName(input)}`);
      const index = args.named.get('by') === 'value' ? 1 : 0;
      return sorted(budget, entriesOf(budget, input), args, (entry) => (entry as Value[])[index]);
    },
  ],
  ['items', ({ budget }, input) => (input instanceof Map ? entriesOf(budget, input) : [])],
  ['default', defaultFilter],
  ['d', defaultFilter],
  ['int', toNumber((text) => Number.parseInt(text, 10), Math.trunc)],
  ['float', toNumber(Number.parseFloat, (value) => value)],
  ['abs', (_context, input) => Math.abs(Number(input))],
  ['round', (_context, input, args) => roundTo(Number(input), integerArgument(args, 0, 'precision', 0))],
  ['min', extreme(-1)],
  ['max', extreme(1)],
  ['sum', ({ budget }, input) => iterate(budget, input).reduce<number>((total, item) => total + Number(item), 0)],
]);

function roundTo(value: number, precision: number): number {
  const scale = 10 ** Math.max(-15, Math.min(15, precision));
  return Math.round(value * scale) / scale;
}

export function findFilter(name: string): Filter {
  const filter = FILTERS.get(name);
  if (filter === undefined) throw templateError(`unknown filter "${name}"`);
  return filter;
}

export function applyFilter(context: RenderContext, name: string, input: Value, args = NO_ARGUMENTS): Value {
  return findFilter(name)(context, input, args);
}
