import type { StructureNode } from '../../core/structure-node.ts';
import type { CallGrammar } from './types.ts';

/** What a matcher enforces of a call grammar. */
export function toStructure(grammar: CallGrammar): StructureNode {
  return { kind: 'text', text: grammar.begin };
}
