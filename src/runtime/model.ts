import { RuvLLMError } from '../core/errors.ts';
import { booleanOption, resolveOptions } from '../core/options.ts';
import type { EngineStats } from '../engine/types.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import { type GenerateOptions, resolveGenerateOptions } from './generate-options.ts';
import { collectChunks, generateChunks, type GenerationContext } from './generation.ts';
import type { GenerateChunk, GenerateResult } from './generation-types.ts';
import type { ModelInfo } from './model-info.ts';
import { encodePrompt, type Prompt } from './prompt.ts';

/** A loaded model. Calls may overlap: they are computed side by side, each as if alone. */
export interface Model extends AsyncDisposable {
  readonly tokenizer: Tokenizer;
  /** The token ids the model reads for this prompt: chat template and BOS included. */
  encodePrompt(prompt: Prompt, options?: Pick<GenerateOptions, 'parseSpecial'>): readonly number[];
  /** The whole answer at once. */
  generate(prompt: Prompt, options?: GenerateOptions): Promise<GenerateResult>;
  /** The answer token by token; leaving the loop early aborts it. Starts with the first read. */
  generateStream(prompt: Prompt, options?: GenerateOptions): AsyncGenerator<GenerateChunk, void, undefined>;
  modelInfo(): ModelInfo;
  /** False after `dispose`, or when the engine was lost. */
  isLoaded(): boolean;
  /** What the engine does right now, and its totals. */
  stats(): Promise<EngineStats>;
  /** Ends the engine and frees the memory; calls in progress fail with `not_loaded`. May be called twice. */
  dispose(): Promise<void>;
}

/** Binds the parts of a loaded model together. */
export function createModel(context: GenerationContext, info: ModelInfo): Model {
  const { client, tokenizer } = context;

  const start = (prompt: Prompt, options: GenerateOptions | undefined) => {
    if (!client.isAlive) throw new RuvLLMError('not_loaded', `${info.path} is not loaded any more`);
    return generateChunks(context, prompt, resolveGenerateOptions(options));
  };

  return {
    tokenizer,
    encodePrompt: (prompt, options) =>
      encodePrompt(
        prompt,
        context,
        resolveOptions<{ parseSpecial: boolean }>('encodePrompt', options, { parseSpecial: booleanOption(false) }),
      ),
    generate: async (prompt, options) => collectChunks(start(prompt, options)),
    async *generateStream(prompt, options) {
      yield* start(prompt, options);
    },
    modelInfo() {
      if (!client.isAlive) throw new RuvLLMError('not_loaded', `${info.path} is not loaded any more`);
      return info;
    },
    isLoaded: () => client.isAlive,
    stats: () => client.stats(),
    dispose: () => client.dispose(),
    [Symbol.asyncDispose]: () => client.dispose(),
  };
}
