import { RuvLLMError } from '../../core/errors.ts';
import { type KernelChoice, PAGE_TOKENS } from '../../kernels/contract.ts';
import { observeInputs, type ObservedInput } from '../../kernels/observed-pack.ts';
import { loadModel } from '../../models/index.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import { createTokenizer } from '../../tokenizers/tokenizer.ts';

/** Rows per step. */
const CHUNK = 32;

/** How a model is run. */
export interface TextModelOptions {
  readonly kernels: KernelChoice;
  readonly numThreads: number;
}

/** A model that runs texts from their first token. */
export interface TextModel {
  /** Calls `onRow` with the logits after each token. */
  run(tokens: readonly number[], onRow: (logits: Float32Array) => void): Promise<void>;
}

/** The tokens of a text for a model, with its special tokens, at most `maxTokens`. */
export function textTokens(path: string, text: string, maxTokens: number): number[] {
  const gguf = openModelFile(path);
  try {
    const ids = createTokenizer(gguf.metadata).encode(text, { addSpecial: true }).slice(0, maxTokens);
    if (ids.length >= 2) return ids;
    throw new RuvLLMError('invalid_option', `the text has ${ids.length} tokens, at least 2 are needed`);
  } finally {
    gguf.source.close();
  }
}

/** Loads a model for texts of at most `maxTokens` and calls `use` with it; `onInput` sees the inputs of its matrices. */
export async function withTextModel(
  path: string,
  maxTokens: number,
  { kernels, numThreads }: TextModelOptions,
  use: (model: TextModel) => Promise<void>,
  onInput?: (input: ObservedInput) => void,
): Promise<void> {
  const gguf = openModelFile(path);
  try {
    const types = [...new Set([...gguf.tensors.values()].map(({ type }) => type))];
    const plain = await createKernelFactory(kernels, { types, numThreads, warn: () => {} });
    const factory = onInput === undefined ? plain : observeInputs(plain, onInput);
    const numPages = Math.ceil(maxTokens / PAGE_TOKENS);
    const limits = {
      maxBatchTokens: CHUNK,
      maxSequences: 1,
      maxLogitRows: CHUNK,
      numPages,
      kvPrecision: 'f32',
      numStates: 2,
    } as const;
    const model = await loadModel(gguf, factory, { limits, numThreads, maxContextTokens: maxTokens });
    const pageIds = Array.from({ length: numPages }, (_, page) => page);
    const { vocabSize } = model.shape;
    try {
      await use({
        async run(tokens, onRow) {
          for (let start = 0; start < tokens.length; start += CHUNK) {
            const tokenIds = tokens.slice(start, start + CHUNK);
            const positions = tokenIds.map((_, i) => start + i);
            const contextTokens = start + tokenIds.length;
            const state = model.states === null ? {} : { state: { index: 0, copy: null } };
            const logits = await model.forward({
              tokenIds,
              positions,
              slots: positions,
              sequences: [{ firstRow: 0, numRows: tokenIds.length, contextTokens, pageIds, ...state }],
              logitRows: tokenIds.map((_, i) => i),
              adapters: [],
            });
            for (let i = 0; i < tokenIds.length; i++) onRow(logits.subarray(i * vocabSize, (i + 1) * vocabSize));
          }
        },
      });
    } finally {
      await model.dispose();
    }
  } finally {
    gguf.source.close();
  }
}
