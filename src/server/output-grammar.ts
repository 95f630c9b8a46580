import type { GrammarSource } from '../sampling/grammar/index.ts';
import type { OutputConstraint } from './generate-job.ts';

/** A constraint of the wire formats as the sampler enforces it. */
export function toGrammar(constraint: OutputConstraint): GrammarSource {
  switch (constraint.kind) {
    case 'json_object':
      return { type: 'json_object' };
    case 'json_schema':
      return { type: 'json_schema', schema: constraint.schema, strict: constraint.isStrict };
    case 'grammar':
      return { type: 'gbnf', text: constraint.grammar };
    case 'regex':
      return { type: 'regex', pattern: constraint.pattern };
  }
}
