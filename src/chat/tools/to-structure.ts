import type { StructureNode } from '../../core/structure-node.ts';
import { pointerTo, readTextRule, unsupportedSchema } from './parameter-schema.ts';
import type { ArgumentsGrammar, CallGrammar, ParameterGrammar } from './types.ts';

const NOTHING: StructureNode = { kind: 'text', text: '' };
const text = (value: string): StructureNode => ({ kind: 'text', text: value });

function sequence(...items: readonly StructureNode[]): StructureNode {
  const filled = items.filter((item) => item.kind !== 'text' || item.text !== '');
  return filled.length === 1 ? filled[0]! : { kind: 'sequence', items: filled };
}

function choice(items: readonly StructureNode[]): StructureNode {
  return items.length === 1 ? items[0]! : { kind: 'choice', items };
}

const maybe = (...items: readonly StructureNode[]): StructureNode => choice([sequence(...items), NOTHING]);

/** The structure a matcher enforces: calls as the whole text, or after each trigger. */
export function toStructure(grammar: CallGrammar): StructureNode {
  if (grammar.isRequired) return callsNode(grammar, '', grammar.begin);
  const branches = grammar.triggers.map((trigger) => ({ trigger, node: afterTrigger(grammar, trigger) }));
  return { kind: 'free', branches, endsAfterBranch: grammar.separator === null };
}

/** After a trigger: the remainder of `begin`. */
function afterTrigger(grammar: CallGrammar, trigger: string): StructureNode {
  const { begin, calls } = grammar;
  const at = begin.indexOf(trigger);
  if (at >= 0) return callsNode(grammar, '', begin.slice(at + trigger.length));
  if (trigger.startsWith(begin)) {
    const head = trigger.slice(begin.length);
    if (calls.every(({ prefix }) => prefix.startsWith(head))) return callsNode(grammar, head, '');
  }
  return callsNode(grammar, '', begin);
}

/** The calls after `begin`; each starts with `head`, which is written before the first. */
function callsNode({ calls, separator, end }: CallGrammar, head: string, begin: string): StructureNode {
  const item = choice(
    calls.map((call) =>
      sequence(text(call.prefix.slice(head.length)), argumentsNode(call.arguments), text(call.suffix)),
    ),
  );
  const all: StructureNode =
    separator === null ? item : { kind: 'repeat', item, separator: separator + head, min: 1, max: null };
  return sequence(text(begin), all, text(end));
}

function argumentsNode(grammar: ArgumentsGrammar): StructureNode {
  if (grammar.kind === 'json') return { kind: 'json', schema: grammar.schema };
  const { parameters, separator, schema } = grammar;
  const list = parameters.map((parameter) => ({
    isRequired: parameter.isRequired,
    node: parameterNode(parameter, schema),
  }));
  return listNode(list, separator);
}

interface ListItem {
  readonly isRequired: boolean;
  readonly node: StructureNode;
}

/** The items in order, with separators; optional ones may be missing. */
function listNode(list: readonly ListItem[], separator: string): StructureNode {
  const between = text(separator);
  const first = separator === '' ? 0 : list.findIndex(({ isRequired }) => isRequired);
  if (first < 0) return list.length === 0 ? NOTHING : choice([someOf(list, between), NOTHING]);
  return sequence(
    ...list.map(({ isRequired, node }, i) => {
      if (i < first) return maybe(node, between);
      const behind = i === first ? node : sequence(between, node);
      return isRequired ? behind : maybe(behind);
    }),
  );
}

/** At least one of the optional items: some of the first half and any of the second, or some of the second. */
function someOf(list: readonly ListItem[], between: StructureNode): StructureNode {
  if (list.length === 1) return list[0]!.node;
  const half = list.length >> 1;
  const [left, right] = [list.slice(0, half), list.slice(half)];
  const optionalTail = right.map(({ node }) => maybe(between, node));
  return choice([sequence(someOf(left, between), ...optionalTail), someOf(right, between)]);
}

function parameterNode(parameter: ParameterGrammar, whole: Readonly<Record<string, unknown>>): StructureNode {
  const { begin, end, stop, isRaw } = parameter;
  if (isRaw) return sequence(text(begin), rawNode(parameter));
  return sequence(text(begin), { kind: 'json', schema: withDefinitions(parameter, whole), without: stop }, text(end));
}

function rawNode({ tool, name, schema, end, stop }: ParameterGrammar): StructureNode {
  const { values, minLength, maxLength } = readTextRule(tool, pointerTo(name), schema);
  if (values !== null) {
    // A value that contains its end marker cannot be written unquoted.
    const writable = values.filter((value) => !value.includes(stop) && !value.includes(end) && value.isWellFormed());
    if (writable.length > 0) return choice(writable.map((value) => text(value + end)));
    const keyword = 'const' in schema ? 'const' : 'enum';
    throw unsupportedSchema(
      tool,
      keyword,
      pointerTo(name),
      "the model's tool-call format can write none of the values",
    );
  }
  const at = end.indexOf(stop);
  if (minLength > 0 || maxLength < Infinity) {
    const lengths = { minLength, ...(maxLength < Infinity ? { maxLength } : {}) };
    if (at < 0) return { kind: 'raw', until: end, without: stop, ...lengths };
    // The end marker on a separate line is mandatory and does not count.
    const until = end.slice(0, at + stop.length);
    return sequence(
      { kind: 'raw', until, ...(at > 0 ? { without: stop } : {}), ...lengths },
      text(end.slice(until.length)),
    );
  }
  if (at < 0) return { kind: 'raw', until: end, without: stop };
  // The line break that ends such a value is the last character of the raw text.
  return sequence({ kind: 'raw', until: stop }, text(end.slice(at + stop.length)));
}

/** Adds the definitions of the whole schema that a parameter's schema refers to. */
function withDefinitions(
  { schema }: ParameterGrammar,
  whole: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const shared = ['$schema', '$defs', 'definitions'].filter((key) => whole[key] !== undefined);
  if (shared.length === 0) return schema;
  // References mean the definitions of the root, not those of the parameter.
  return { ...schema, ...Object.fromEntries(shared.map((key) => [key, whole[key]])) };
}
