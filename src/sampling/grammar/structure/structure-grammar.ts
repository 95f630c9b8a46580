import type { StructureNode } from '../../../core/structure-node.ts';
import type { Fuel } from '../limits.ts';
import { unsupported } from '../limits.ts';
import type { CompiledGrammar } from '../types.ts';

export function createStructureGrammar(
  root: StructureNode,
  _compileSchema: (schema: unknown) => CompiledGrammar,
  _fuel: Fuel,
): CompiledGrammar {
  throw unsupported(root.kind, null, 'not yet');
}
