import { assert } from '../../src/core/errors.ts';
import { createRandom } from '../../src/core/random.ts';
import type { KernelPack } from '../../src/kernels/contract.ts';
import type { LoadedModel, ModelLimits, StepBatch } from '../../src/models/types.ts';
import type { Sampler } from '../../src/sampling/types.ts';
import { topOfRow } from './top-logits.ts';
import { createToyPages } from './toy-pages.ts';
import { checkToyState, createToyStates, toyHash } from './toy-states.ts';

export const TOY_VOCAB = 61;

export interface ToyModel extends LoadedModel {
  /** Every batch, in order. */
  readonly batches: StepBatch[];
  readonly isDisposed: boolean;
}

export interface ToyModelOptions {
  limits?: Partial<ModelLimits>;
  contextLength?: number;
  /** Default true; false makes it an encoder, which requires whole sequences. */
  isCausal?: boolean;
  /** Default 16; simulations use fewer. */
  pageTokens?: number;
  /** Whether pages can be packed; default: whether the limits set a packed precision. */
  packed?: boolean;
  /** States of a recurrent layer; default 0: there is none. */
  numStates?: number;
  /** Called before each forward pass; may throw, or wait. */
  beforeForward?: (batch: StepBatch) => void | Promise<void>;
  changeLogits?: (logits: Float32Array, context: readonly number[]) => void;
}

/** The toy model's logits after `context`: noise seeded by all its tokens in order. */
export function toyLogits(context: readonly number[]): Float32Array {
  const random = createRandom(toyHash(context));
  return Float32Array.from({ length: TOY_VOCAB }, () => random.next() * 8 - 4);
}

/** The expected embedding, computed without engine, pages or batches. */
export function toyEmbedding(ids: readonly number[], pooling: 'mean' | 'last' | 'cls', isCausal = true): Float32Array {
  const states = ids.map((_, i) => toyHidden(isCausal ? ids.slice(0, i + 1) : ids, i));
  const used = { mean: states, last: states.slice(-1), cls: states.slice(0, 1) }[pooling];
  return Float32Array.from({ length: TOY_DIM }, (_, i) => used.reduce((sum, s) => sum + s[i]!, 0) / used.length);
}

export const TOY_DIM = 3;

/** The toy model's hidden state for the token at `position` that sees `context`. */
export function toyHidden(context: readonly number[], position: number): Float32Array {
  return toyLogits([...context, position]).slice(0, TOY_DIM);
}

/**
 * A model whose "KV cache" stores token id and position per slot and whose logits depend on what it reads through the page tables: a
 * wrong slot, page, tier, position or a stale page changes the output or throws. Both tiers are exact, so packing changes no output.
 */
export function createToyModel(options: ToyModelOptions = {}): ToyModel {
  const limits: ModelLimits = {
    maxBatchTokens: 256,
    maxSequences: 8,
    maxLogitRows: 8,
    numPages: 64,
    ...options.limits,
  };
  const isPacked = options.packed ?? (limits.packedPrecision ?? null) !== null;
  const pages = createToyPages(limits.numPages, options.pageTokens ?? 16, isPacked);
  const { isCausal = true, numStates = 0 } = options;
  const states = numStates === 0 ? null : createToyStates(numStates);
  const batches: StepBatch[] = [];
  let lastLogits: Float32Array<ArrayBuffer> = new Float32Array();
  let isDisposed = false;
  let hidden: Float32Array<ArrayBuffer> = new Float32Array();

  function runStep(batch: StepBatch): Float32Array<ArrayBuffer> {
    const numRows = batch.tokenIds.length;
    assert(numRows > 0 && numRows <= limits.maxBatchTokens, `${numRows} rows`);
    assert(batch.sequences.length <= limits.maxSequences, `${batch.sequences.length} sequences`);
    assert(batch.logitRows.length <= limits.maxLogitRows, `${batch.logitRows.length} logit rows`);
    for (const { firstRow, numRows: length, pageIds } of batch.sequences) {
      for (let row = firstRow; row < firstRow + length; row++) {
        pages.write(batch.slots[row]!, batch.tokenIds[row]!, batch.positions[row]!, pageIds);
      }
    }
    states?.run(batch);
    for (const { state, pageIds, contextTokens } of batch.sequences) {
      if (states !== null) checkToyState(states, state!.index, pages.readBack(pageIds, contextTokens));
    }
    const contextOf = (row: number): number[] => {
      const sequence = batch.sequences.find((s) => row >= s.firstRow && row < s.firstRow + s.numRows)!;
      const numSeen = isCausal
        ? sequence.contextTokens - (sequence.firstRow + sequence.numRows - 1 - row)
        : sequence.contextTokens;
      assert(isCausal || sequence.numRows === numSeen, 'an encoder was given part of a sequence');
      return pages.readBack(sequence.pageIds, numSeen);
    };
    hidden = Float32Array.from(
      Array.from(batch.hiddenRows ?? [], (row) => [...toyHidden(contextOf(row), batch.positions[row]!)]).flat(),
    );
    const logits = new Float32Array(batch.logitRows.length * TOY_VOCAB);
    for (let i = 0; i < batch.logitRows.length; i++) {
      const context = contextOf(batch.logitRows[i]!);
      const rowLogits = toyLogits(context);
      options.changeLogits?.(rowLogits, context);
      logits.set(rowLogits, i * TOY_VOCAB);
    }
    return logits;
  }

  return {
    shape: {
      architecture: 'toy',
      isCausal,
      numLayers: 1,
      numKvLayers: 1,
      embeddingDim: TOY_DIM,
      numHeads: 1,
      numKvHeads: 1,
      headDim: 1,
      feedForwardDim: 1,
      vocabSize: TOY_VOCAB,
      contextLength: options.contextLength ?? 1024,
    },
    pack: { name: 'toy', numThreads: 1 } as KernelPack,
    kv: { base: 0, pageBytes: pages.store.pageBytes, numPages: limits.numPages },
    pages: pages.store,
    states,
    limits,
    memory: { weightBytes: 1, kvBytes: 2, activationBytes: 3 },
    batches,
    get isDisposed() {
      return isDisposed;
    },
    readLogits: null,
    async forward(batch) {
      batches.push(batch);
      assert(!isDisposed, 'forward after dispose');
      return pages.whileBusy('a step', async () => {
        await options.beforeForward?.(batch);
        return (lastLogits = runStep(batch));
      });
    },
    topOf(index) {
      const { numTop = 0 } = batches.at(-1)!;
      return topOfRow(lastLogits.slice(index * TOY_VOCAB, (index + 1) * TOY_VOCAB), numTop);
    },
    hiddenStates: () => hidden,
    setAdapter() {
      throw new Error('the toy model has no matrices');
    },
    async dispose() {
      isDisposed = true;
    },
  };
}

/** Softmax sampling with a separate random stream: detects a sampler call too many or with wrong history. */
export function createToySampler(seed: number): Sampler {
  const random = createRandom(seed);
  return {
    sample(logits, history) {
      const weights = Array.from(logits, (logit, id) => Math.exp(logit - (history.at(-1) === id ? 1 : 0)));
      let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0);
      let tokenId = 0;
      while (tokenId < weights.length - 1 && left >= weights[tokenId]!) left -= weights[tokenId++]!;
      return { tokenId, logprob: null, top: [] };
    },
  };
}

/** The expected tokens, computed without engine, pages or batches. */
export function toyContinuation(
  promptIds: readonly number[],
  options: { seed: number; maxTokens: number; stopIds?: ReadonlySet<number> },
): number[] {
  const sampler = createToySampler(options.seed);
  const history = [...promptIds];
  while (history.length < promptIds.length + options.maxTokens) {
    const { tokenId } = sampler.sample(toyLogits(history), history);
    if (options.stopIds?.has(tokenId)) break;
    history.push(tokenId);
  }
  return history.slice(promptIds.length);
}
