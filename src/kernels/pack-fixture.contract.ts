import { expect } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from '../quant/index.ts';
import { campaign } from '../../test/support/campaign.ts';
import { randomBlocks } from '../../test/support/random-blocks.ts';
import type { KernelPack, KernelPackFactory, KernelPackOptions, Offset, WeightMatrix } from './contract.ts';

/** Unit in the last place of 1 in f32: all tolerances are multiples of it times the norms of what went in. */
export const EPSILON = 2 ** -23;

export const allTypes = Object.keys(quantFormats) as TensorTypeName[];

const CANARY = 12345.678;
const CANARY_COUNT = 16;

/** A pack with helpers that put data in and look at results; outputs are poisoned and fenced by canaries. */
export interface PackFixture {
  readonly pack: KernelPack;
  put(values: ArrayLike<number>): Offset;
  putInts(values: ArrayLike<number>): Offset;
  /** An output of `length` floats, NaN unless `initial` is given. */
  output(length: number, initial?: Float32Array): { offset: Offset; read(): Promise<Float32Array> };
  matrix(type: TensorTypeName, numRows: number, numCols: number, bytes: Uint8Array): WeightMatrix;
}

/** Runs `body` with a pack of its own. */
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
 * The same with a small arena, which is cheaper to make and to collect. Starting a thread takes longer than most bodies:
 * the short form has one, unless the test names a number. Programs of all operations have the same bits on 1 to 8.
 */
export function withSmallPack(
  factory: KernelPackFactory,
  body: (fixture: PackFixture) => Promise<void>,
  options: Partial<KernelPackOptions> = {},
): Promise<void> {
  return withPack(factory, body, { arenaBytes: 2 ** 23, numThreads: campaign({ short: 1, long: 2 }), ...options });
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
      const whole = arena.f32(offset, length + CANARY_COUNT).fill(CANARY);
      if (initial === undefined) whole.fill(NaN, 0, length);
      else whole.set(initial);
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

/** A random matrix as bytes and as the numbers they mean. */
export function randomMatrix(
  type: TensorTypeName,
  numRows: number,
  numCols: number,
  seed: number,
): { bytes: Uint8Array; values: Float32Array; rowBytes: number } {
  const format = quantFormats[type];
  const bytes = randomBlocks(type, numRows * numCols, seed);
  const values = new Float32Array(numRows * numCols);
  format.dequantize(bytes, 0, values, 0, values.length / format.blockSize);
  return { bytes, values, rowBytes: (numCols / format.blockSize) * format.blockBytes };
}

/** Fails with the worst place when any value is off by more than its tolerance (NaN included). */
export function expectClose(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: (index: number) => number,
  what: string,
): void {
  expect(actual.length, what).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) {
    const error = Math.abs(actual[i]! - expected[i]!);
    if (!(error <= tolerance(i))) {
      expect.fail(`${what}: [${i}] is ${actual[i]}, expected ${expected[i]} ± ${tolerance(i)}`);
    }
  }
}

/** Fails at the first value that is not the same to the last bit. */
export function expectSameBits(actual: Float32Array, expected: Float32Array, what: string): void {
  expect(actual.length, what).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(actual[i], expected[i])) expect.fail(`${what}: [${i}] is ${actual[i]}, expected ${expected[i]}`);
  }
}

export function norm(values: ArrayLike<number>, start = 0, end = values.length): number {
  let sum = 0;
  for (let i = start; i < end; i++) sum += values[i]! * values[i]!;
  return Math.sqrt(sum);
}
