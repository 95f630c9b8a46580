import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { mergeIntoModel } from '../../test/support/merged-model.ts';
import { randomAdapter, type RandomAdapterOptions } from '../../test/support/random-adapter.ts';
import { buildRandomModel, type RandomArchitecture } from '../../test/support/random-model.ts';
import { runParts, testLimits } from '../../test/support/run-model.ts';
import { ADAPTER_TARGETS, type Adapter, checkAdapter, planPlacement, writePlacement } from '../adapters/index.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { PAGE_TOKENS } from '../kernels/contract.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { loadModel } from './load-model.ts';
import { architectures, isDecoder } from './registry.ts';
import type { LoadedModel } from './types.ts';

// Adapters of experts, latent attention and gated queries are refused (experts.test.ts, latent-attention.test.ts, delta-net.test.ts).
const names = [...architectures.values()]
  .filter(({ name, experts }) => isDecoder(name) && experts !== 'always' && !['deepseek2', 'qwen35'].includes(name))
  .map(({ name }) => name) as RandomArchitecture[];
const ids = (length: number, seed: number): number[] => Array.from({ length }, (_, i) => 3 + ((seed + i * 37) % 300));
/** Pages used by steps; adapters are placed after them. */
const USED_PAGES = 8;
const NUM_PAGES = 400;

/** Exact kernels: merged weights and an adapter add up in another order, and nothing else may differ. */
const load = (bytes: Uint8Array): Promise<LoadedModel> =>
  loadModel(openGguf(createMemorySource(bytes)), createReferencePackFactory(), {
    limits: { ...testLimits, numPages: NUM_PAGES, kvPrecision: 'f32' },
    maxContextTokens: 64,
  });

/** Places adapters in slots 0, 1, … of a model, in slabs of this many pages. */
function place(model: LoadedModel, adapters: readonly Adapter[], slabPages = 40): void {
  const { kv, pack } = model;
  let next = USED_PAGES;
  for (const [slot, adapter] of adapters.entries()) {
    const plan = planPlacement(adapter.factors, slabPages * kv.pageBytes);
    const slabs = Array.from({ length: plan.numSlabs }, (_, i) => kv.base + (next + i * slabPages) * kv.pageBytes);
    next += plan.numSlabs * slabPages;
    expect(next).toBeLessThanOrEqual(NUM_PAGES);
    model.setAdapter(slot, writePlacement(plan, pack.arena, slabs));
  }
}

const fileOf = (architecture: RandomArchitecture): Uint8Array =>
  buildRandomModel({ architecture, type: 'F32', seed: 5, shape: { numLayers: 2 } });

const whole = (tokenIds: readonly number[], ...slots: readonly number[]) => ({
  tokenIds,
  start: 0,
  pageIds: [4, 2],
  adapters: slots.map((slot) => ({ slot, scale: 1 })),
});

function expectClose(logitRows: readonly Float32Array[], expected: readonly Float32Array[]): void {
  expect(logitRows.length).toBe(expected.length);
  for (const [row, logits] of expected.entries()) {
    const size = Math.hypot(...logits) / Math.sqrt(logits.length);
    const difference = Math.max(...logits.map((value, i) => Math.abs(value - logitRows[row]![i]!)));
    // Both ways compute in f32 through two layers: a wrong factor shows in the first digits, rounding in the fifth.
    expect(difference / size).toBeLessThan(2e-4);
  }
}

test('rejects an adapter of attention in a layer that has none', async () => {
  const { shape, dispose } = await load(fileOf('lfm2'));
  const { recurrentLayers: _, ...base } = shape;
  const adapter = await randomAdapter(base, { seed: 3, targets: ['attn_q'], layers: [0] });
  expect(() => checkAdapter(adapter, shape)).toThrow('attn_q of layer 0, which has no attention');
  await dispose();
});

describe.each(names)('%s', (architecture) => {
  let bytes: Uint8Array;
  let model: LoadedModel;
  beforeAll(async () => {
    bytes = fileOf(architecture);
    model = await load(bytes);
  });
  afterEach(() => {
    for (const slot of [0, 1]) model.setAdapter(slot, null);
  });
  afterAll(() => model.dispose());

  async function compare(tokenIds: readonly number[], options: Omit<RandomAdapterOptions, 'seed'>): Promise<void> {
    const adapter = await randomAdapter(model.shape, { seed: 3, ...options });
    place(model, [adapter]);
    const merged = await load(mergeIntoModel(bytes, [{ adapter, scale: 1 }]));
    const expected = await runParts(merged, [whole(tokenIds)]);
    const without = await runParts(model, [whole(tokenIds)]);
    const logits = await runParts(model, [whole(tokenIds, 0)]);
    expectClose(logits, expected);
    expect(() => expectClose(without, expected)).toThrow();
    await merged.dispose();
  }

  // Two pages. Layer 0 of hybrids has no attention.
  test('an adapter of all matrices computes the same as merged weights', () =>
    compare(ids(20, 1), ['lfm2', 'granitehybrid'].includes(architecture) ? { layers: [1] } : {}));

  const isGateless = architecture === 'phi2' || architecture === 'starcoder2';
  const targets = ADAPTER_TARGETS.filter((target) => target !== 'ffn_gate' || !isGateless);
  test.each(targets)('an adapter of only %s computes the same as merged weights', (target) =>
    compare(ids(5, 1), { targets: [target], layers: [1] }),
  );

  test('rows with and without adapters share a step with the same bits as alone', async () => {
    const adapters = await Promise.all([1, 2].map((seed) => randomAdapter(model.shape, { seed, rank: 2 * seed })));
    place(model, adapters);
    const alone = [];
    for (const slots of [[], [0], [1]]) alone.push(await runParts(model, [whole(ids(9, 2), ...slots)]));
    const together = await runParts(model, [
      { ...whole(ids(9, 2), 1), pageIds: [0] },
      { ...whole(ids(9, 2)), pageIds: [1] },
      { ...whole(ids(9, 2), 0), pageIds: [3] },
    ]);
    expect(together.slice(0, 9)).toEqual(alone[2]);
    expect(together.slice(9, 18)).toEqual(alone[0]);
    expect(together.slice(18)).toEqual(alone[1]);
    expect(alone[1]).not.toEqual(alone[2]);
  });
});

test('changes the LM head of the rows with logits, wherever they are in the step', async () => {
  const model = await load(fileOf('llama'));
  place(model, [await randomAdapter(model.shape, { seed: 1, targets: ['output'] })]);
  const tokenIds = ids(6, 1);
  const plain = await runParts(model, [whole(tokenIds)]);
  const changed = await runParts(model, [whole(tokenIds, 0)]);
  const positions = [0, 1, 2, 3, 4, 5];
  const logits = await model.forward({
    tokenIds,
    positions,
    slots: positions.map((at) => 4 * PAGE_TOKENS + at),
    sequences: [{ firstRow: 0, numRows: 6, contextTokens: 6, pageIds: [4] }],
    logitRows: [5, 1, 3],
    adapters: [{ slot: 0, scale: 1, rows: [0, 3, 5] }],
  });
  const { vocabSize } = model.shape;
  const rows = [0, 1, 2].map((row) => logits.slice(row * vocabSize, (row + 1) * vocabSize));
  expect(rows).toEqual([changed[5], plain[1], changed[3]]);
});

test('splits large ranks and matrices with the same result', async () => {
  const bytes = fileOf('llama');
  const model = await load(bytes);
  const adapter = await randomAdapter(model.shape, { seed: 3, rank: 70, targets: ['attn_q', 'ffn_down'] });
  place(model, [adapter]);
  const merged = await load(mergeIntoModel(bytes, [{ adapter, scale: 1 }]));
  const expected = await runParts(merged, [whole(ids(9, 1))]);
  expectClose(await runParts(model, [whole(ids(9, 1), 0)]), expected);
  const { pageBytes } = model.kv;
  const needed = 4 * model.shape.feedForwardDim;
  expect(planPlacement(adapter.factors, 40 * pageBytes).isSplit).toBe(false);
  const small = planPlacement(adapter.factors, pageBytes);
  expect(small.isSplit).toBe(true);
  place(model, [adapter], 1);
  expectClose(await runParts(model, [whole(ids(9, 1), 0)]), expected);
  expect(() => planPlacement(adapter.factors, needed - 64)).toThrow(/one rank of blk\.0\.ffn_down takes \d+ bytes/);
});

test('adds up several adapters on one row, each with its scale', async () => {
  const bytes = fileOf('qwen2');
  const model = await load(bytes);
  const adapters = await Promise.all([1, 2].map((seed) => randomAdapter(model.shape, { seed })));
  place(model, adapters);
  const scales = [0.5, -0.25];
  const merged = await load(
    mergeIntoModel(
      bytes,
      adapters.map((adapter, i) => ({ adapter, scale: scales[i]! })),
    ),
  );
  const stacked = { ...whole(ids(9, 1)), adapters: scales.map((scale, slot) => ({ slot, scale })) };
  expectClose(await runParts(model, [stacked]), await runParts(merged, [whole(ids(9, 1))]));
});

test('rejects an empty slot and rows beyond the step before computing anything', async () => {
  const model = await load(fileOf('llama'));
  place(model, [await randomAdapter(model.shape, { seed: 1, targets: ['output'] })]);
  await expect(runParts(model, [whole([3], 1)])).rejects.toThrow('no adapter in slot 1');
  await expect(runParts(model, [whole([3], 0, 0, 0, 0, 0)])).rejects.toThrow('more than 4 adapters for row 0');
  const step = { tokenIds: [3], positions: [0], slots: [0], logitRows: [0] };
  const sequences = [{ firstRow: 0, numRows: 1, contextTokens: 1, pageIds: [0] }];
  const forward = (rows: number[]) => model.forward({ ...step, sequences, adapters: [{ slot: 0, scale: 1, rows }] });
  await expect(forward([1])).rejects.toThrow('adapter 0 for row 1 of 1');
  await expect(forward([0, 0])).rejects.toThrow('adapter 0 twice for row 0');
  model.setAdapter(0, null);
  await expect(forward([0])).rejects.toThrow('no adapter in slot 0');
});
