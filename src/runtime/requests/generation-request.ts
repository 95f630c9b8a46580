import type { ToolChoice } from '../../chat/tools/types.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { Prompt } from '../prompt.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';

/** Required format of an answer. */
export type OutputConstraint =
  | { readonly kind: 'json_object' }
  | { readonly kind: 'json_schema'; readonly name: string; readonly schema: object; readonly isStrict: boolean }
  | { readonly kind: 'grammar'; readonly grammar: string }
  | { readonly kind: 'regex'; readonly pattern: string };

/** A function the model may call. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments; null: there are none. */
  readonly parameters: object | null;
  readonly isStrict: boolean;
}

export type { ToolChoice };

/** One request to generate, in the form every wire format is read into. */
export interface GenerationRequest {
  /** As the client named it. */
  readonly model: string;
  /** One for a chat; completions may have several. */
  readonly prompts: readonly Prompt[];
  /** Answers for each prompt. */
  readonly numChoices: number;
  /** The caller's part is added by the service: signal and tenant. */
  readonly options: Omit<GenerateOptions, 'signal' | 'tenant'>;
  /** File of a LoRA adapter of the model's definition, loaded where it is missing; an adapter in the options wins. Default: none. */
  readonly adapterPath?: string;
  readonly constraint: OutputConstraint | null;
  readonly tools: readonly ToolSpec[];
  readonly toolChoice: ToolChoice;
  readonly canCallInParallel: boolean;
  /** Whether temperature and top-p are the format's defaults: a router may choose others. Default: whether neither is in the options. */
  readonly isSamplingOpen?: boolean;
  /** Option names of the request's format, for error messages. */
  readonly fieldNames?: FieldNames;
}

/** A request that only says what to continue; formats fill in what they were asked for. */
export const PLAIN_REQUEST = {
  numChoices: 1,
  constraint: null,
  tools: [],
  toolChoice: 'auto',
  canCallInParallel: true,
} as const satisfies Partial<GenerationRequest>;

export function toGrammar(constraint: OutputConstraint): GrammarSource {
  switch (constraint.kind) {
    case 'json_object':
      return { type: 'json_object' };
    case 'json_schema':
      return {
        type: 'json_schema',
        schema: constraint.schema,
        strict: constraint.isStrict,
        assertFormats: 'where-possible',
      };
    case 'grammar':
      return { type: 'gbnf', text: constraint.grammar };
    case 'regex':
      return { type: 'regex', pattern: constraint.pattern };
  }
}

/** Names of library options in the caller's format, for error messages. */
export type FieldNames = Readonly<Partial<Record<'maxTokens' | 'reasoning' | 'grammar' | 'fill', string>>>;
