import { readFileSync } from 'node:fs';
import { createMemorySource } from '../../src/core/byte-source.ts';
import type { KernelPackFactory } from '../../src/kernels/contract.ts';
import type { LoadedModel } from '../../src/models/types.ts';
import type { LlamaCpp } from './llama-cpp.ts';
import { importBuilt } from './dist.ts';

/** Logits after each prompt token and each generated token, and the greedy choice at each of the latter. */
export interface Trace {
  readonly rows: readonly Float32Array[];
  readonly greedy: readonly number[];
}

export interface TraceOptions {
  readonly path: string;
  readonly prompt: readonly number[];
  readonly contextSize: number;
  /** A LoRA to compute with, as a GGUF file; null: none. */
  readonly adapterPath: string | null;
}

const PAGE_TOKENS = 16;
/** Prompt rows per step: several steps of partial pages, so that the comparison includes chunking. */
const CHUNK = 23;

/** llama.cpp's own greedy continuation, or its choices along the tokens of `follow`. */
export async function traceLlamaCpp(
  llama: LlamaCpp,
  { path, prompt, contextSize, adapterPath }: TraceOptions,
  numTokens: number,
  follow: readonly number[] | null = null,
): Promise<Trace> {
  const model = await llama.loadModel({ modelPath: path });
  // With half-precision K and V llama.cpp also rounds queries and softmax weights to half, which we do not. One such
  // rounding flips int8 activations later, and its noise would hide real differences: both sides use f32 here.
  const f32 = { experimentalKvCacheKeyType: 'F32', experimentalKvCacheValueType: 'F32' };
  const exact = { flashAttention: false, swaFullCache: true, ...f32 };
  const lora = adapterPath === null ? {} : { lora: adapterPath };
  const context = await model.createContext({ contextSize, sequences: 1, ...exact, ...lora });
  const sequence = context.getSequence();
  const options = { generateNext: { logits: true, options: { temperature: 0 } } };
  const evaluate = async (tokens: readonly number[]): Promise<Float32Array[]> => {
    const results = await sequence.controlledEvaluate(tokens.map((token) => [token, options]));
    return results.map(({ next: { logits } }) => {
      const row = new Float32Array(logits.size).fill(NaN);
      for (const [token, logit] of logits) row[token] = logit;
      return row;
    });
  };
  const rows = await evaluate(prompt);
  const greedy: number[] = [];
  while (greedy.length < numTokens) {
    greedy.push(argmax(rows.at(-1)!));
    rows.push(...(await evaluate([follow?.[greedy.length - 1] ?? greedy.at(-1)!])));
  }
  await context.dispose();
  await model.dispose();
  return { rows, greedy };
}

/** Ours, fed with the tokens of the other side: one near-tie must not make all later rows incomparable. */
export async function traceOurs(
  factory: KernelPackFactory,
  { bytes, prompt, contextSize, adapterPath }: Omit<TraceOptions, 'path'> & { bytes: Uint8Array },
  follow: readonly number[],
  numThreads: number,
): Promise<Trace> {
  const { openGguf } = await importBuilt<typeof import('../../src/gguf/index.ts')>('gguf/index');
  const { loadModel } = await importBuilt<typeof import('../../src/models/index.ts')>('models/index');
  const numPages = contextSize / PAGE_TOKENS;
  const gguf = openGguf(createMemorySource(bytes));
  const load = (pages: number) =>
    loadModel(gguf, factory, {
      limits: {
        maxBatchTokens: CHUNK,
        maxSequences: 1,
        maxLogitRows: CHUNK,
        numPages: pages,
        kvPrecision: 'f32' as const,
        numStates: 2,
      },
      numThreads,
      maxContextTokens: contextSize,
    });
  const model = adapterPath === null ? await load(numPages) : await loadWithAdapter(load, numPages, adapterPath);
  const adapters = adapterPath === null ? [] : [{ slot: 0, scale: 1 }];
  const { vocabSize } = model.shape;
  // Pages out of order, as after some serving.
  const pageIds = Array.from({ length: numPages }, (_, i) => (i * 5 + 3) % numPages);
  const run = async (tokenIds: readonly number[], start: number): Promise<Float32Array[]> => {
    const positions = tokenIds.map((_, i) => start + i);
    const logits = await model.forward({
      tokenIds,
      positions,
      slots: positions.map((at) => pageIds[Math.floor(at / PAGE_TOKENS)]! * PAGE_TOKENS + (at % PAGE_TOKENS)),
      sequences: [
        {
          firstRow: 0,
          numRows: tokenIds.length,
          contextTokens: start + tokenIds.length,
          pageIds,
          ...(model.states === null ? {} : { state: { index: 1, copy: null } }),
        },
      ],
      logitRows: tokenIds.map((_, i) => i),
      adapters: adapters.map((adapter) => ({ ...adapter, rows: tokenIds.map((_, i) => i) })),
    });
    return tokenIds.map((_, i) => logits.slice(i * vocabSize, (i + 1) * vocabSize));
  };
  const rows: Float32Array[] = [];
  for (let at = 0; at < prompt.length; at += CHUNK) rows.push(...(await run(prompt.slice(at, at + CHUNK), at)));
  const greedy: number[] = [];
  for (const token of follow) {
    greedy.push(argmax(rows.at(-1)!));
    rows.push(...(await run([token], prompt.length + greedy.length - 1)));
  }
  await model.dispose();
  return { rows, greedy };
}

/** A model with an adapter in slot 0, placed after the pages. */
async function loadWithAdapter(
  load: (numPages: number) => Promise<LoadedModel>,
  numPages: number,
  adapterPath: string,
): Promise<LoadedModel> {
  const { openGguf } = await importBuilt<typeof import('../../src/gguf/index.ts')>('gguf/index');
  const adapters = await importBuilt<typeof import('../../src/adapters/index.ts')>('adapters/index');
  const bytes = readFileSync(adapterPath);
  const probe = await load(numPages);
  const { shape, kv } = probe;
  await probe.dispose();
  const { factors } = await adapters.readGgufAdapter(openGguf(createMemorySource(bytes)), shape);
  const numBehind = Math.ceil((2 * adapters.adapterBytes(factors)) / kv.pageBytes) + 1;
  const model = await load(numPages + numBehind);
  const plan = adapters.planPlacement(factors, numBehind * kv.pageBytes);
  const slab = model.kv.base + numPages * kv.pageBytes;
  model.setAdapter(0, adapters.writePlacement(plan, model.pack.arena, [slab]));
  return model;
}

export function argmax(row: Float32Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}
