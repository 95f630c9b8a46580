import { expect } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from '../quant/index.ts';
import { campaign } from '../../test/support/campaign.ts';
import { randomBlocks } from '../../test/support/random-blocks.ts';
import type { KernelPack, KernelPackFactory, KernelPackOptions, Offset, WeightMatrix } from './contract.ts';

/** Unit in the last place of 1 in f32: all tolerances are multiples of it times the norms of the inputs. */
export const EPSILON = 2 ** -23;

export const allTypes = Object.keys(quantFormats) as TensorTypeName[];

const CANARY = 12345.678;
const CANARY_COUNT = 16;

/** A pack with helpers for input and results; outputs are filled with NaN and followed by canaries. */
export interface PackFixture {
  readonly pack: KernelPack;
  put(values: ArrayLike<number>): Offset;
  putInts(values: ArrayLike<number>): Offset;
  /** An output of `length` floats, filled with NaN or `initial`. */
  output(length: number, initial?: Float32Array): { offset: Offset; read(): Promise<Float32Array> };
  matrix(type: TensorTypeName, numRows: number, numCols: number, bytes: Uint8Array): WeightMatrix;
}

/** Runs `body` with a new pack. */
export async function withPack(
  factory: KernelPackFactory,
  body: (fixture: PackFixture) => Promise<void>,
  options: Partial<KernelPackOptions> = {},
): Promise<void> {
  const pack = await factory.create({ arenaBytes: 2 ** 25, numThreads: 2, maxTokens: 64, maxCols: 4096, ...options });
  try {
    await body(createFixture(pack));
  } finally {
    await pack.dispose();
  }
}

/**
 * The same with a small arena, which is cheaper to create and to collect. In the short form, tests without options share
 * one pack until its arena is full, because creating a pack takes longer than most bodies. It has one thread, because
 * starting threads takes longer still; programs of all operations have the same bits on 1 to 8.
 */
export async function withSmallPack(
  factory: KernelPackFactory,
  body: (fixture: PackFixture) => Promise<void>,
  options: Partial<KernelPackOptions> = {},
): Promise<void> {
  const isShared = campaign({ short: Object.keys(options).length === 0, long: false });
  if (isShared) return withSharedPack(factory, body);
  const numThreads = campaign({ short: 1, long: 2 });
  return withPack(factory, body, { arenaBytes: SMALL_ARENA, numThreads, ...options });
}

const SMALL_ARENA = 2 ** 24;
/** Untouched memory costs nothing. */
const SHARED_ARENA = 2 ** 27;

let shared: { readonly factory: KernelPackFactory; readonly pack: KernelPack } | null = null;

async function withSharedPack(
  factory: KernelPackFactory,
  body: (fixture: PackFixture) => Promise<void>,
): Promise<void> {
  if (shared?.factory !== factory) {
    await disposeSharedPack();
    const options = { arenaBytes: SHARED_ARENA, numThreads: 1, maxTokens: 64, maxCols: 4096 };
    shared = { factory, pack: await factory.create(options) };
  }
  const { pack } = shared;
  let isReusable = false;
  try {
    await body(createFixture(pack));
    await pack.sync(); // the next test must not run operations of this one
    isReusable = pack.arena.sizeBytes - pack.arena.usedBytes >= SMALL_ARENA;
  } finally {
    if (!isReusable) await disposeSharedPack();
  }
}

/** Call after the last test of a pack. */
export async function disposeSharedPack(): Promise<void> {
  const pack = shared?.pack;
  shared = null;
  await pack?.dispose();
}

function createFixture(pack: KernelPack): PackFixture {
  const { arena } = pack;
  return {
    pack,
    put(values) {
      const offset = arena.allocate(values.length * 4, 'input');
      arena.f32(offset, values.length).set(values);
      return offset;
    },
    putInts(values) {
      const offset = arena.allocate(values.length * 4, 'input');
      arena.i32(offset, values.length).set(values);
      return offset;
    },
    output(length, initial) {
      const offset = arena.allocate((length + CANARY_COUNT) * 4, 'output');
      const floats = arena.f32(offset, length + CANARY_COUNT).fill(CANARY);
      if (initial === undefined) floats.fill(NaN, 0, length);
      else floats.set(initial);
      return {
        offset,
        async read() {
          await pack.sync();
          const result = arena.f32(offset, length + CANARY_COUNT);
          expectSameBits(result.slice(length), new Float32Array(CANARY_COUNT).fill(CANARY), 'written past the end');
          return result.slice(0, length);
        },
      };
    },
    matrix(type, numRows, numCols, bytes) {
      const source = createMemorySource(bytes);
      return pack.loadMatrix({
        name: `${type} ${numRows}x${numCols}`,
        type,
        numRows,
        numCols,
        readInto: (target, byteOffset) => source.readInto(target, byteOffset),
      });
    },
  };
}

interface RandomMatrix {
  readonly bytes: Uint8Array;
  readonly values: Float32Array;
  readonly rowBytes: number;
}

const randomMatrices = new Map<string, RandomMatrix>();

/** A random matrix as bytes and as decoded values; cached for all packs, so do not write to it. */
export function randomMatrix(type: TensorTypeName, numRows: number, numCols: number, seed: number): RandomMatrix {
  const key = `${type} ${numRows} ${numCols} ${seed}`;
  let matrix = randomMatrices.get(key);
  if (matrix === undefined) randomMatrices.set(key, (matrix = makeRandomMatrix(type, numRows, numCols, seed)));
  return matrix;
}

function makeRandomMatrix(type: TensorTypeName, numRows: number, numCols: number, seed: number): RandomMatrix {
  const format = quantFormats[type];
  const bytes = randomBlocks(type, numRows * numCols, seed);
  const values = new Float32Array(numRows * numCols);
  format.dequantize(bytes, 0, values, 0, values.length / format.blockSize);
  return { bytes, values, rowBytes: (numCols / format.blockSize) * format.blockBytes };
}

/** Fails with the worst position if any value is off by more than its tolerance (NaN included). */
export function expectClose(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: (index: number) => number,
  what: string,
): void {
  expectSameLength(actual, expected, what);
  for (let i = 0; i < expected.length; i++) {
    const error = Math.abs(actual[i]! - expected[i]!);
    if (!(error <= tolerance(i))) {
      expect.fail(`${what}: [${i}] is ${actual[i]}, expected ${expected[i]} ± ${tolerance(i)}`);
    }
  }
}

/** Fails at the first value with different bits. */
export function expectSameBits(actual: Float32Array, expected: Float32Array, what: string): void {
  expectSameLength(actual, expected, what);
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(actual[i], expected[i])) expect.fail(`${what}: [${i}] is ${actual[i]}, expected ${expected[i]}`);
  }
}

/** The same for bytes. */
export function expectSameBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  expectSameLength(actual, expected, what);
  const at = actual.findIndex((byte, i) => byte !== expected[i]);
  if (at >= 0) expect.fail(`${what}: [${at}] is ${actual[at]}, expected ${expected[at]}`);
}

/** Cheaper than `expect(…).toBe(…)` for hundreds of thousands of rows. */
function expectSameLength(actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  if (actual.length !== expected.length) {
    expect.fail(`${what}: ${actual.length} values, expected ${expected.length}`);
  }
}

export function norm(values: ArrayLike<number>, start = 0, end = values.length): number {
  let sum = 0;
  for (let i = start; i < end; i++) sum += values[i]! * values[i]!;
  return Math.sqrt(sum);
}
