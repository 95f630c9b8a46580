import { createOutputParser } from '../../chat/tools/output-parser.ts';
import { startsInReasoning } from '../../chat/tools/reasoning.ts';
import { toToolSpecs } from '../../chat/tools/tool-specs.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import { createStopMatcher } from '../../sampling/stop-matcher.ts';
import type { ResolvedGenerateOptions } from '../generate-options.ts';
import type { PreparedPrompt, PromptContext } from '../prompt.ts';
import { type AnswerReader, createPlainReader } from './answer-reader.ts';
import { createCallStructure } from './call-structure.ts';
import { createDialectDecoder } from './dialect-decoder.ts';
import { createParsedReader } from './parsed-reader.ts';

/** How one answer is made and read. */
export interface AnswerPlan {
  readonly promptIds: readonly number[];
  readonly grammar: GrammarSource | null;
  /** Plan used if the grammar is `unsupported`; null: the request fails. */
  readonly fallback: AnswerPlan | null;
  createReader(): AnswerReader;
}

export interface PlanContext extends PromptContext {
  /** Ids after which the model has nothing more to say. */
  readonly endIds: readonly number[];
}

/** Decides what the model may answer to a prompt, and what is looked for in the answer. */
export function planAnswer(
  context: PlanContext,
  { ids: promptIds, tail }: PreparedPrompt,
  options: ResolvedGenerateOptions,
): AnswerPlan {
  const { tokenizer, chatTemplate } = context;
  const { params, grammar, tools, toolChoice, parallelToolCalls } = options;
  const isPlain = tools.length === 0 && (chatTemplate.reasoning === null || grammar !== null);
  if (tail === null || isPlain) {
    const createReader = (): AnswerReader =>
      createPlainReader(
        tokenizer.createStreamDecoder({ keepLeadingSpace: tail === null || options.continueFinalMessage }),
        createStopMatcher(params.stop),
      );
    return { promptIds, grammar, fallback: null, createReader };
  }
  const { dialect } = chatTemplate;
  const isReasoning = startsInReasoning(dialect.reasoning, tail);
  const specs = toToolSpecs(tools);
  const createReader = (delivery: 'whole' | 'stream') => (): AnswerReader =>
    createParsedReader({
      decode: createDialectDecoder(tokenizer, dialect, { keepLeadingSpace: options.continueFinalMessage }),
      parser: createOutputParser({
        format: dialect.format,
        tools: specs,
        reasoning: dialect.reasoning,
        isReasoning,
        delivery,
      }),
      stops: params.stop,
      isOneCall: !parallelToolCalls,
    });
  const loose = { promptIds, grammar: null, fallback: null, createReader: createReader('whole') };
  if (tools.length === 0 || toolChoice === 'none') return loose;
  const contentSchema = grammar === null ? null : readContentSchema(grammar);
  const isFree = toolChoice === 'auto' && contentSchema === null;
  if (isFree && params.ignoreEos) return loose; // a bound text ends; this one shall not
  const isStrict = tools.some((tool) => tool.function.strict === true);
  const fallback = isFree && !isStrict ? loose : null;
  const structure = {
    dialect,
    tools: specs,
    choice: toolChoice,
    allowsParallel: parallelToolCalls,
    isReasoning,
    contentSchema,
    endSpellings: context.endIds.map((id) => tokenizer.piece(id)),
  };
  try {
    const root = createCallStructure(structure);
    return { promptIds, grammar: { type: 'structure', root }, fallback, createReader: createReader('stream') };
  } catch (error) {
    // A schema that the dialect cannot spell is as one that the grammar cannot enforce.
    if (fallback === null || !(error instanceof RuvLLMError) || error.code !== 'unsupported') throw error;
    return fallback;
  }
}

/** A user's own grammar beside tools: JSON can be told from a call, other texts cannot. */
function readContentSchema(grammar: GrammarSource): object {
  if (grammar.type === 'json_object') return { type: 'object' };
  if (grammar.type === 'json_schema' && typeof grammar.schema === 'object' && grammar.schema !== null) {
    return grammar.schema;
  }
  throw new RuvLLMError(
    'invalid_option',
    `options "grammar" (${grammar.type}) and "tools" cannot be combined, unless toolChoice is 'none'`,
    { data: { option: 'grammar', grammar: grammar.type } },
  );
}
