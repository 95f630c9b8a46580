import { createMemorySource } from '../../src/core/byte-source.ts';
import { openGguf } from '../../src/gguf/index.ts';
import { PAGE_TOKENS } from '../../src/kernels/contract.ts';
import { createWasmPackFactory } from '../../src/kernels/wasm/wasm-pack.ts';
import { type LoadedModel, loadModel, type LoadModelOptions, type ModelLimits } from '../../src/models/index.ts';
import { createNodeWasmPlatform } from '../../src/platform/node/kernels/wasm-platform.ts';
import { buildRandomModel, type RandomModelOptions } from './random-model.ts';

export const testLimits: ModelLimits = {
  maxBatchTokens: 32,
  maxSequences: 4,
  maxLogitRows: 32,
  numPages: 16,
  numStates: 16,
};

/** The same bits on every machine, in a fraction of the reference pack's time. */
const kernels = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

/** Loads a file's bytes into the portable kernels. */
export function loadBytes(bytes: Uint8Array, options: Partial<LoadModelOptions> = {}): Promise<LoadedModel> {
  const gguf = openGguf(createMemorySource(bytes));
  return loadModel(gguf, kernels, { limits: testLimits, ...options });
}

/** Loads a random model into the portable kernels. */
export function loadRandom(model: RandomModelOptions, options: Partial<LoadModelOptions> = {}): Promise<LoadedModel> {
  return loadBytes(buildRandomModel(model), options);
}

/** Tokens [start, start + tokenIds.length) of a sequence in some pages. */
export interface Part {
  readonly tokenIds: readonly number[];
  readonly start: number;
  readonly pageIds: readonly number[];
  readonly adapters?: readonly { readonly slot: number; readonly scale: number }[];
}

/** Runs the parts in one step and returns the logits of every row. */
export async function runParts(model: LoadedModel, parts: readonly Part[]): Promise<Float32Array[]> {
  const positions = parts.flatMap(({ tokenIds, start }) => tokenIds.map((_, i) => start + i));
  const slots = parts.flatMap(({ tokenIds, start, pageIds }) =>
    tokenIds.map((_, i) => pageIds[Math.floor((start + i) / PAGE_TOKENS)]! * PAGE_TOKENS + ((start + i) % PAGE_TOKENS)),
  );
  let firstRow = 0;
  const sequences = parts.map(({ tokenIds, start, pageIds }) => {
    const numRows = tokenIds.length;
    firstRow += numRows;
    // A sequence is known by its first page, and so is its state.
    const state = model.states === null ? {} : { state: { index: pageIds[0]!, copy: null } };
    return { firstRow: firstRow - numRows, numRows, contextTokens: start + numRows, pageIds, ...state };
  });
  const logitRows = positions.map((_, row) => row);
  const tokenIds = parts.flatMap((part) => part.tokenIds);
  const adapters = parts.flatMap((part, i) =>
    (part.adapters ?? []).map((adapter) => {
      return { ...adapter, rows: part.tokenIds.map((_, row) => sequences[i]!.firstRow + row) };
    }),
  );
  const logits = await model.forward({ tokenIds, positions, slots, sequences, logitRows, adapters });
  const { vocabSize } = model.shape;
  return logitRows.map((row) => logits.slice(row * vocabSize, (row + 1) * vocabSize));
}

/** The greedy continuation of a prompt that starts a sequence. */
export async function continueGreedily(
  model: LoadedModel,
  prompt: readonly number[],
  numTokens: number,
  pageIds: readonly number[],
): Promise<{ tokens: number[]; promptLogits: Float32Array[] }> {
  const promptLogits = await runParts(model, [{ tokenIds: prompt, start: 0, pageIds }]);
  const tokens: number[] = [];
  let last = promptLogits.at(-1)!;
  while (tokens.length < numTokens) {
    const token = last.indexOf(last.reduce((max, value) => Math.max(max, value)));
    [last] = (await runParts(model, [{ tokenIds: [token], start: prompt.length + tokens.length, pageIds }])) as [
      Float32Array,
    ];
    tokens.push(token);
  }
  return { tokens, promptLogits };
}
