import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import type { KernelPack } from '../contract.ts';
import { expectSameBits, type PackFixture, randomMatrix, withPack } from '../pack-fixture.contract.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

const factory = createWasmPackFactory(createNodeWasmPlatform());
const failed = expect.objectContaining({ code: 'kernel_failed' });

/** Records a copy of two rows: the first takes a while, the second is outside the memory and traps. */
function recordTrap(pack: KernelPack, rows: readonly number[]): void {
  const dim = 2 ** 20;
  const offset = pack.arena.allocate(8 + 3 * dim * 4, 'rows');
  pack.arena.i32(offset, 2).set(rows);
  pack.copyRows({ x: offset + 8, rows: offset, out: offset + 8 + dim * 4, numRows: 2, dim });
}

test('a trap in any thread fails the step and every later one', async () => {
  for (let round = 0; round < 12; round++) {
    await withPack(factory, async ({ pack }) => {
      recordTrap(pack, round % 2 === 0 ? [0, 1000] : [1000, 0]);
      await expect(pack.sync()).rejects.toThrow(failed);
      recordTrap(pack, [0, 0]);
      await expect(pack.sync()).rejects.toThrow(failed);
    });
  }
});

test('a disposed pack fails instead of waiting for its ended threads', async () => {
  const pack = await factory.create({ arenaBytes: 2 ** 24, numThreads: 2, maxTokens: 1, maxCols: 64 });
  recordTrap(pack, [0, 0]);
  await pack.dispose();
  await expect(pack.sync()).rejects.toThrow(failed);
  await pack.dispose();
});

test('rejects more tokens than the pack was created for', async () => {
  await withPack(factory, async ({ pack, put, output, matrix }) => {
    const weight = matrix('Q8_0', 4, 32, randomMatrix('Q8_0', 4, 32, 1).bytes);
    const outputs = [{ weight, out: output(4 * 65).offset, bias: null, accumulate: false }];
    const x = put(new Float32Array(32 * 65));
    expect(() => pack.matmul({ x, numTokens: 65, outputs })).toThrowError(/65 tokens.*for 64/);
  });
});

test.each([1, 5])('%d threads give the same bits as two', async (numThreads) => {
  const run = async (threads: number): Promise<Float32Array> => {
    const pack = await factory.create({ arenaBytes: 2 ** 22, numThreads: threads, maxTokens: 64, maxCols: 256 });
    const { bytes } = randomMatrix('Q4_0', 77, 256, 1);
    const readInto = (target: Uint8Array, at: number): void => target.set(bytes.subarray(at, at + target.length));
    const weight = pack.loadMatrix({ name: 'w', type: 'Q4_0', numRows: 77, numCols: 256, readInto });
    const x = pack.arena.allocate(256 * 7 * 4, 'x');
    pack.arena.f32(x, 256 * 7).forEach((_, i, all) => (all[i] = Math.sin(i)));
    const out = pack.arena.allocate(77 * 7 * 4, 'out');
    for (let i = 0; i < 50; i++) {
      pack.matmul({ x, numTokens: 7, outputs: [{ weight, out, bias: null, accumulate: i > 0 }] });
    }
    await pack.sync();
    const result = pack.arena.f32(out, 77 * 7).slice();
    await pack.dispose();
    return result;
  };
  expectSameBits(await run(numThreads), await run(2), `${numThreads} threads`);
});

/** One of each operation, in memory at the arena's current end. */
async function everyOperation({ pack, put, putInts, output, matrix }: PackFixture): Promise<Float32Array[]> {
  const [dim, numTokens, numRows] = [256, 5, 40];
  const results: Float32Array[] = [];
  const x = put(Float32Array.from({ length: dim * numTokens }, (_, i) => Math.sin(i)));
  for (const type of ['F32', 'F16', 'BF16', 'Q4_0', 'Q8_0', 'Q5_1', 'Q4_K', 'Q6_K', 'IQ4_XS'] as const) {
    const weight = matrix(type, numRows, dim, randomMatrix(type, numRows, dim, 1).bytes);
    const product = output(numRows * numTokens);
    const alone = output(numRows);
    const rows = output(2 * dim);
    const [bias, accumulate] = [put(new Float32Array(numRows).fill(1)), false];
    pack.matmul({ x, numTokens, outputs: [{ weight, out: product.offset, bias, accumulate }] });
    pack.matmul({ x, numTokens: 1, outputs: [{ weight, out: alone.offset, bias, accumulate }] });
    pack.gatherRows({ table: weight, ids: putInts([39, 2]), out: rows.offset, numRows: 2, scale: 2 });
    results.push(await product.read(), await alone.read(), await rows.read());
  }
  const out = output(dim * numTokens);
  pack.rmsNorm({ x, weight: x, out: out.offset, numRows: numTokens, dim, epsilon: 1e-6 });
  const rotation = { numTokens, numHeads: 4, headDim: 64, rotaryDim: 64, pairing: 'halves' } as const;
  pack.rope({ x: out.offset, cosSin: x, ...rotation });
  pack.gatedActivation({ gate: out.offset, up: x, out: out.offset, count: dim * numTokens, activation: 'silu' });
  pack.softcap({ x: out.offset, count: dim * numTokens, cap: 3 });
  const kvBytes = 2 * 16 * 4 * 64 * 2;
  const base = pack.arena.allocate(2 * kvBytes, 'pages');
  const region = { numPages: 2, numKvHeads: 4, headDim: 64, precision: 'f16' } as const;
  const kv = { base, pageBytes: kvBytes, layerBytes: kvBytes, ...region };
  pack.writeKv({ kv, layer: 0, k: out.offset, v: x, slots: putInts([16, 17, 18, 19, 20]), numTokens });
  const attended = output(dim * numTokens);
  const [sequences, pageTables] = [putInts([0, 5, 5, 0]), putInts([1])];
  const attention = { numHeads: 4, numSequences: 1, scale: 0.1, window: 0, softcap: 0 };
  pack.attention({ kv, layer: 0, q: x, out: attended.offset, sequences, pageTables, ...attention });
  const copied = output(dim * 2);
  pack.copyRows({ x: attended.offset, rows: putInts([4, 1]), out: copied.offset, numRows: 2, dim });
  results.push(await out.read(), await attended.read(), await copied.read());
  return results;
}

test('memory beyond 2 GiB gives the same bits', async () => {
  const low: Float32Array[] = [];
  await withPack(factory, async (fixture) => void low.push(...(await everyOperation(fixture))));
  const far = 2 ** 31 + 2 ** 30;
  const body = async (fixture: PackFixture): Promise<void> => {
    fixture.pack.arena.allocate(far, 'never touched'); // memory is committed on first use, so this is free
    const high = await everyOperation(fixture);
    high.forEach((values, i) => expectSameBits(values, low[i]!, `result ${i}`));
  };
  await withPack(factory, body, { arenaBytes: far + 2 ** 25 });
});
