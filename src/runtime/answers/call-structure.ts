import type { ToolDialect } from '../../chat/tools/dialect.ts';
import { toStructure } from '../../chat/tools/to-structure.ts';
import type { CallGrammar, GrammarRequest } from '../../chat/tools/types.ts';
import type { StructureNode } from '../../core/structure-node.ts';

export interface CallStructureOptions extends GrammarRequest {
  readonly dialect: ToolDialect;
  /** The prompt ended inside the thinking. */
  readonly isReasoning: boolean;
  /** Schema of an answer without tool calls; null: any text. */
  readonly contentSchema: object | null;
  /** Spellings of the tokens that end an answer. */
  readonly endSpellings: readonly string[];
}

/** Structure of an answer that may call tools. */
export function createCallStructure(options: CallStructureOptions): StructureNode {
  const { dialect, contentSchema, endSpellings } = options;
  const grammar = leaveEndsOut(dialect.format.grammar(options), endSpellings);
  if (options.choice === 'auto' && contentSchema === null) return toStructure(grammar);
  const calls = toStructure({ ...grammar, isRequired: true });
  const isCallOnly = options.choice !== 'auto' || contentSchema === null;
  const answer: StructureNode = isCallOnly
    ? calls
    : { kind: 'choice', items: [{ kind: 'json', schema: contentSchema }, calls] };
  const thoughts = reasoningBefore(options);
  return thoughts === null ? answer : { kind: 'sequence', items: [thoughts, answer] };
}

/** A token that ends the answer is no text in it: the text is whole without, and the token may follow. */
function leaveEndsOut(grammar: CallGrammar, endSpellings: readonly string[]): CallGrammar {
  const strip = (text: string): string => {
    const end = endSpellings.find((spelling) => spelling !== '' && text.endsWith(spelling));
    return end === undefined ? text : text.slice(0, -end.length);
  };
  if (grammar.end !== '') return { ...grammar, end: strip(grammar.end) };
  if (grammar.separator !== null) return grammar;
  return { ...grammar, calls: grammar.calls.map((call) => ({ ...call, suffix: strip(call.suffix) })) };
}

const text = (value: string): StructureNode => ({ kind: 'text', text: value });

/** A model that thinks before it calls would call at random if it might not. */
function reasoningBefore({ dialect: { reasoning }, isReasoning }: CallStructureOptions): StructureNode | null {
  if (reasoning === null) return null;
  const [open] = reasoning.opens;
  const thought: StructureNode[] = [
    { kind: 'raw', until: reasoning.closes[0]! },
    reasoning.next === undefined ? { kind: 'choice', items: ['', '\n', '\n\n'].map(text) } : text(reasoning.next),
  ];
  if (isReasoning) return { kind: 'sequence', items: thought };
  return { kind: 'choice', items: [text(''), { kind: 'sequence', items: [text(open!), ...thought] }] };
}
