import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { floatToHalf } from '../core/half.ts';
import { openGguf } from '../gguf/index.ts';
import { type KernelPackFactory, type PackedKvPrecision, PAGE_TOKENS } from '../kernels/contract.ts';
import { createNativePackFactory } from '../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { loadNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { buildRandomModel, type RandomArchitecture, type RandomShape } from '../../test/support/random-model.ts';
import { normals } from '../../test/support/random-values.ts';
import { runParts, testLimits, loadRandom } from '../../test/support/run-model.ts';
import { kvPageBytes, numPagesWithin } from './kv-layout.ts';
import { loadModel } from './load-model.ts';
import type { LoadedModel, ModelLimits } from './types.ts';

// Each differs in its attention; others compute the same operations.
const names: RandomArchitecture[] = [
  'llama',
  'qwen2',
  'qwen3',
  'phi3',
  'gemma2',
  'gemma3',
  'gemma4',
  'olmo2',
  'cohere2',
];
const reference = createReferencePackFactory();
const builds = loadNativeBuilds();
if (builds.length === 0) console.log('skipped native kernels: not built here (npm run build:native)');
const packs: (readonly [string, KernelPackFactory])[] = [
  ['reference', reference],
  ['wasm relaxed-simd', createWasmPackFactory(createNodeWasmPlatform(['relaxed-simd']))],
  ...builds.slice(0, 1).map((build) => [`native ${build.build}`, createNativePackFactory(build)] as const),
];

function load(
  factory: KernelPackFactory,
  packedPrecision: PackedKvPrecision | null,
  { architecture = 'llama', limits }: { architecture?: RandomArchitecture; limits?: Partial<ModelLimits> } = {},
): Promise<LoadedModel> {
  // The first layers of these see only the last pages.
  const numLayers = { gemma3: 6, gemma4: 9, olmo2: 4, cohere2: 4 }[architecture as string] ?? 2;
  // Not in 8 bits: rounding of activations would amplify the difference of packed pages.
  const bytes = buildRandomModel({ architecture, type: 'F32', seed: 5, shape: { numLayers, contextLength: 512 } });
  const all: ModelLimits = { ...testLimits, ...limits, packedPrecision };
  return loadModel(openGguf(createMemorySource(bytes)), factory, { limits: all });
}

const ids = (length: number, seed: number): number[] => Array.from({ length }, (_, i) => 3 + ((seed + i * 37) % 300));
const context = ids(56, 1);
const tail = ids(4, 9);

/** Runs `context` and returns its pages. */
async function runContext(model: LoadedModel): Promise<number[]> {
  const pageIds = [7, 3, 10, 5];
  for (let start = 0; start < context.length; start += 28)
    await runParts(model, [{ tokenIds: context.slice(start, start + 28), start, pageIds }]);
  return pageIds;
}

/** Logits of `tail` behind `context` in these pages. Its own places, in the last page, are written anew each time. */
const logitsBehind = (model: LoadedModel, pageIds: readonly number[]): Promise<Float32Array[]> =>
  runParts(model, [{ tokenIds: tail, start: context.length, pageIds }]);

/** Packs some pages to places where no float page starts, and overwrites their old memory. */
async function packSome(
  { pages }: LoadedModel,
  pageIds: readonly number[],
  which: readonly (0 | 1 | 2)[],
): Promise<number[]> {
  const { pageBytes, unitBytes } = pages.packed!;
  const first = (11 * pages.pageBytes) / unitBytes + 1;
  const moves = which.map((i) => ({ from: pageIds[i]!, to: first + i * (pageBytes / unitBytes + 1) }));
  await pages.packPages(moves);
  for (const { from } of moves) pages.bytesOf('float', from).fill(0xff);
  return pageIds.map((id) => moves.find(({ from }) => from === id)).map((move, i) => (move ? ~move.to : pageIds[i]!));
}

/** The mean KL divergence between the distributions of the logits. */
function divergence(expected: readonly Float32Array[], actual: readonly Float32Array[]): number {
  const logs = (logits: Float32Array): number[] => {
    const max = logits.reduce((a, b) => Math.max(a, b));
    const sum = logits.reduce((a, logit) => a + Math.exp(logit - max), 0);
    return Array.from(logits, (logit) => logit - max - Math.log(sum));
  };
  const rows = expected.map((row, i) => {
    const [p, q] = [logs(row), logs(actual[i]!)];
    return p.reduce((sum, value, id) => sum + Math.exp(value) * (value - q[id]!), 0);
  });
  return rows.reduce((sum, value) => sum + value, 0) / rows.length;
}

describe.each(packs)('%s', (_, factory) => {
  test.each(names)('%s: copied pages give the same bits', async (architecture) => {
    const model = await load(factory, null, { architecture });
    const { pages } = model;
    const [first, second, ...others] = await runContext(model);
    const plain = await logitsBehind(model, [first!, second!, ...others]);
    for (const [from, to] of [
      [first!, 1],
      [second!, 12],
    ] as const) {
      pages.bytesOf('float', to).set(pages.bytesOf('float', from));
      pages.bytesOf('float', from).fill(0xff);
    }
    expect(await logitsBehind(model, [1, 12, ...others])).toEqual(plain);
    await model.dispose();
  });

  test.each(names)(
    '%s: packed pages give nearly the same logits, closer with 8 bits than with 4',
    async (architecture) => {
      const divergences: Record<PackedKvPrecision, number> = { q8: NaN, q4: NaN };
      for (const precision of ['q8', 'q4'] as const) {
        const model = await load(factory, precision, { architecture });
        const pageIds = await runContext(model);
        const plain = await logitsBehind(model, pageIds);
        const alternating = await packSome(model, pageIds, [1]);
        const limit = precision === 'q8' ? 1e-3 : 0.1;
        expect(divergence(plain, await logitsBehind(model, alternating))).toBeLessThan(limit);
        const packed = await packSome(model, alternating, [0, 2]);
        divergences[precision] = divergence(plain, await logitsBehind(model, packed));
        await model.dispose();
      }
      expect(divergences.q8).toBeGreaterThan(0);
      expect(divergences.q8).toBeLessThan(1e-3);
      expect(divergences.q4).toBeLessThan(0.1);
      expect(divergences.q4).toBeGreaterThan(divergences.q8 * 3);
    },
  );

  test.each(['q8', 'q4'] as const)(
    'packs more pages than fit into one operation like the reference: %s',
    async (to) => {
      const limits = { numPages: 220 };
      const moves = Array.from({ length: 300 }, (_, i) => ({ from: i % 7, to: i }));
      const [ours, theirs] = await Promise.all([load(factory, to, { limits }), load(reference, to, { limits })]);
      const { pageBytes, unitBytes } = ours.pages.packed!;
      const first = (7 * ours.pages.pageBytes) / unitBytes;
      for (const move of moves) move.to = first + (move.to * pageBytes) / unitBytes;
      for (const { pages } of [ours, theirs]) {
        for (let page = 0; page < 7; page++) {
          const bytes = pages.bytesOf('float', page);
          const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
          halves.set(Array.from(normals(halves.length, page), floatToHalf));
        }
        await pages.packPages(moves);
      }
      const bytesOf = ({ pages }: LoadedModel, i: number): Buffer => Buffer.from(pages.bytesOf('packed', moves[i]!.to));
      for (let i = 0; i < moves.length; i++) {
        expect(bytesOf(ours, i).equals(bytesOf(theirs, i % 7)), `move ${i}`).toBe(true);
        if (i % 7 !== 6) expect(bytesOf(ours, i).equals(bytesOf(ours, 6)), `move ${i}`).toBe(false);
      }
      await Promise.all([ours.dispose(), theirs.dispose()]);
    },
  );
});

test.skipIf(builds.length === 0)('packed pages beyond 2 GiB, with ids beyond 2^25', async () => {
  // The system allocates memory on first use, so only the used pages count. Node 20 allows 4 GiB per buffer.
  const model = await load(createNativePackFactory(builds[0]!), 'q8', { limits: { numPages: 800_000 } });
  const { pages } = model;
  expect(pages.pageBytes * 800_000).toBeGreaterThan(2 ** 31 + 2 ** 30);
  const plain = await logitsBehind(model, await packSome(model, await runContext(model), [0, 1]));
  const pageIds = await runContext(model);
  const { pageBytes, unitBytes } = pages.packed!;
  const end = (pages.pageBytes * 800_000) / unitBytes;
  const places = [end - pageBytes / unitBytes, end - (3 * pageBytes) / unitBytes];
  await pages.packPages(places.map((to, i) => ({ from: pageIds[i]!, to })));
  const far = await logitsBehind(model, [~places[0]!, ~places[1]!, ...pageIds.slice(2)]);
  expect(far).toEqual(plain);
  await model.dispose();
});

test('rejects a step with a missing packed page, or with rows written to a packed page', async () => {
  const model = await load(reference, 'q8');
  const { pageBytes, unitBytes } = model.pages.packed!;
  const end = (16 * model.pages.pageBytes - pageBytes) / unitBytes;
  const run = (pageIds: readonly number[], start = 16): Promise<unknown> =>
    runParts(model, [{ tokenIds: [5], start, pageIds }]);
  const batch = (pageIds: readonly number[]) => ({
    tokenIds: [5],
    positions: [16],
    slots: [5 * PAGE_TOKENS],
    sequences: [{ firstRow: 0, numRows: 1, contextTokens: 17, pageIds }],
    logitRows: [0],
  });
  await model.pages.packPages([{ from: 0, to: end }]);
  await run([~end, 1]);
  await expect(run([~(end + 1), 1])).rejects.toThrowError(`packed page ${end + 1} of ${end + 1}`);
  await expect(run([NaN, 1])).rejects.toThrowError('packed page');
  await expect(run([16, 1])).rejects.toThrowError('page 16 of 16');
  await expect(model.forward(batch([~0, ~end]))).rejects.toThrowError(/packed page \d+ is read-only/);
  await model.forward(batch([~0, 5]));
  const floatOnly = await load(reference, null);
  await expect(floatOnly.forward(batch([~0, 5]))).rejects.toThrowError('packed page 0 of 0');
});

test('missing pages have no bytes and cannot be packed', async () => {
  const { pages } = await load(reference, 'q4');
  const { pageBytes, unitBytes } = pages.packed!;
  const end = (16 * pages.pageBytes - pageBytes) / unitBytes;
  expect(pages.bytesOf('float', 15)).toHaveLength(pages.pageBytes);
  expect(pages.bytesOf('packed', end)).toHaveLength(pageBytes);
  expect(pages.bytesOf('packed', end).byteOffset - pages.bytesOf('float', 0).byteOffset).toBe(end * unitBytes);
  for (const index of [-1, 16, 0.5])
    expect(() => pages.bytesOf('float', index)).toThrowError(`float page ${index} of 16`);
  for (const index of [-1, end + 1, NaN])
    expect(() => pages.bytesOf('packed', index)).toThrowError(`packed page ${index}`);
  await expect(pages.packPages([{ from: 16, to: 0 }])).rejects.toThrowError('float page 16 of 16');
  await expect(pages.packPages([{ from: 0, to: end + 1 }])).rejects.toThrowError(`packed page ${end + 1}`);
  const floatOnly = await load(reference, null);
  expect(floatOnly.pages.packed).toBeNull();
  await expect(floatOnly.pages.packPages([])).rejects.toMatchObject({ code: 'unsupported' });
});

test('rejects shapes that cannot be packed before loading', async () => {
  const create = () => expect.fail('allocated');
  const refuse = (shape: Partial<RandomShape>, limits: Partial<ModelLimits>) => {
    const gguf = openGguf(createMemorySource(buildRandomModel({ architecture: 'qwen3', type: 'F32', seed: 5, shape })));
    return loadModel(gguf, { ...reference, create }, { limits: { ...testLimits, packedPrecision: 'q8', ...limits } });
  };
  const shape = { numLayers: 1, headDim: 18 };
  await expect(refuse(shape, {})).rejects.toMatchObject({ code: 'unsupported', data: { headDim: 18 } });
  await expect(refuse(shape, { packedPrecision: null })).rejects.toThrowError('allocated');
  await expect(refuse({ numLayers: 1 }, { numPages: 2 ** 27 })).rejects.toMatchObject({
    code: 'unsupported',
    data: { kvBytes: 2 ** 27 * 4096, limitBytes: 2 ** 37 },
  });
  await expect(refuse({ numLayers: 1 }, { packedPrecision: 'q5' as 'q8' })).rejects.toMatchObject({
    code: 'invalid_option',
  });
});

test('counts a budget in whole pages', async () => {
  const shape = { numKvLayers: 22, numKvHeads: 4, headDim: 64 };
  expect(kvPageBytes(shape, 'f16')).toBe(22 * 16384);
  expect(kvPageBytes(shape, 'q8')).toBe(22 * 8832);
  expect(numPagesWithin(10 * 22 * 16384, shape)).toBe(10);
  expect(numPagesWithin(10 * 22 * 16384 - 1, shape)).toBe(9);
  expect(numPagesWithin(10 * 22 * 16384 - 1, shape, 'q8')).toBe(18);
  expect(numPagesWithin(100, shape)).toBe(0);
});

test('allows a context as long as all pages when packed', async () => {
  const limits = { numPages: 4 };
  const model = await load(reference, 'q4', { limits });
  const numPacked = Math.floor((4 * model.pages.pageBytes) / model.pages.packed!.pageBytes);
  expect(numPacked).toBeGreaterThan(8);
  const pageIds = [...Array.from({ length: 8 }, () => ~0), 3];
  await model.pages.packPages([{ from: 3, to: 0 }]);
  await runParts(model, [{ tokenIds: [5], start: 128, pageIds }]);
  await expect(
    runParts(model, [
      { tokenIds: [5], start: numPacked * 16, pageIds: [...Array.from({ length: numPacked }, () => ~0), 3] },
    ]),
  ).rejects.toMatchObject({ code: 'context_overflow' });
});

test('pages record the kernels and the rotation that computed them', async () => {
  const computedBy = async (maxContextTokens: number): Promise<string> => {
    const limits = { maxBatchTokens: 8, maxSequences: 1, maxLogitRows: 1, numPages: 64 };
    const model = await loadRandom({ architecture: 'phi3', type: 'F32', seed: 3 }, { limits, maxContextTokens });
    await model.dispose();
    return model.pages.computedBy;
  };
  const short = await computedBy(100);
  expect(short).toContain('wasm (simd128)');
  expect(await computedBy(120)).toBe(short);
  expect(await computedBy(200)).not.toBe(short); // Beyond the context of its first training.
});
