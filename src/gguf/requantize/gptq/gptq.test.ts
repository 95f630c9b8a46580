import { expect, test } from 'vitest';
import { createRandom, drawNormal } from '../../../core/random.ts';
import type { TensorTypeName } from '../../../core/tensor-type.ts';
import { dequantizeRow, quantFormats, quantizeRow } from '../../../quant/index.ts';
import { type ErrorFactor, factorInPlace } from './factor.ts';
import { addInputs, columnStart, createInputProducts, hasInputs } from './input-products.ts';
import { createLevelTable } from './level-table.ts';
import { hasLevels, roundRows } from './round-rows.ts';

const types = (Object.keys(quantFormats) as TensorTypeName[]).filter(hasLevels);
/** More rows than a tile, and not a multiple of four. */
const [NUM_COLS, NUM_ROWS, NUM_INPUTS] = [512, 18, 96];
const random = createRandom(7);
const normals = (count: number): Float32Array => Float32Array.from({ length: count }, () => drawNormal(random));
const weights = normals(NUM_ROWS * NUM_COLS);
/** Each input is a mix of 24 directions and some noise: columns are correlated. */
const inputs = correlatedInputs();

function correlatedInputs(): Float32Array {
  const directions = normals(24 * NUM_COLS);
  const rows = normals(NUM_INPUTS * NUM_COLS).map((value) => 0.3 * value);
  for (let row = 0; row < NUM_INPUTS; row++) {
    for (const [d, share] of normals(24).entries()) {
      for (let col = 0; col < NUM_COLS; col++) rows[row * NUM_COLS + col]! += share * directions[d * NUM_COLS + col]!;
    }
  }
  return rows;
}

function factorOf(rows: Float32Array, numCols = NUM_COLS): ErrorFactor {
  const products = createInputProducts(numCols);
  addInputs(products, rows);
  return factorInPlace(products, 'test');
}

function decode(type: TensorTypeName, bytes: Uint8Array): Float32Array {
  const values = new Float32Array(weights.length);
  dequantizeRow(type, bytes, values, values.length);
  return values;
}

/** |(W - Ŵ) X|² */
function outputError(stored: Float32Array): number {
  let error = 0;
  for (let row = 0; row < NUM_ROWS; row++) {
    for (let input = 0; input < NUM_INPUTS; input++) {
      let sum = 0;
      for (let col = 0; col < NUM_COLS; col++) {
        const i = row * NUM_COLS + col;
        sum += (weights[i]! - stored[i]!) * inputs[input * NUM_COLS + col]!;
      }
      error += sum * sum;
    }
  }
  return error;
}

const factor = factorOf(inputs);
/** The same inputs with their columns in another order. */
const shuffled = factorOf(shuffleColumns());

function shuffleColumns(): Float32Array {
  const order = Array.from({ length: NUM_COLS }, (_, col) => col);
  for (let col = NUM_COLS - 1; col > 0; col--) {
    const other = Math.floor(random.next() * (col + 1));
    [order[col], order[other]] = [order[other]!, order[col]!];
  }
  return inputs.map((_, i) => inputs[i - (i % NUM_COLS) + order[i % NUM_COLS]!]!);
}

test('formats with levels are those of two to eight bits with scales', () => {
  const expected = 'Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS'.split(' ');
  expect(types.toSorted()).toEqual(expected.toSorted());
});

test.each(types)(
  '%s: the outputs have less than half of the error of single rounding, unless the inputs are of other columns',
  (type) => {
    const plain = outputError(decode(type, quantizeRow(type, weights)));
    expect(outputError(decode(type, roundRows(type, weights, factor)))).toBeLessThan(0.5 * plain);
    // Q8_0 has the same scales either way; the others gain from fitted ones.
    expect(outputError(decode(type, roundRows(type, weights, shuffled)))).toBeGreaterThan(0.75 * plain);
  },
);

test.each(types)(
  '%s: each decoded value is nearest to its weight plus the corrections for decoded errors before it',
  (type) => {
    const bytes = roundRows(type, weights, factor);
    const stored = decode(type, bytes);
    const { blockSize, blockBytes } = quantFormats[type];
    const table = createLevelTable(quantFormats[type]);
    const { entries } = factor;
    for (const row of [0, 5, 17]) {
      for (let col = 0; col < NUM_COLS; col++) {
        const at = row * NUM_COLS + col;
        if (col % blockSize === 0) table.read(bytes, (at / blockSize) * blockBytes);
        let target = weights[at]!;
        for (let i = 0; i < col; i++) {
          const error = weights[row * NUM_COLS + i]! - stored[row * NUM_COLS + i]!;
          target += (error * entries[columnStart(col) + i]!) / entries[columnStart(col) + col]!;
        }
        const index = col % blockSize;
        const nearest = Math.abs(table.valueOf(index, table.nearest(index, target)) - target);
        if (Math.abs(stored[at]! - target) > nearest + 1e-9)
          expect.fail(`row ${row}, column ${col}: ${stored[at]} for ${target}`);
      }
    }
  },
);

const identity = factorOf(
  new Float32Array(NUM_COLS * NUM_COLS).map((_, i) => (i % NUM_COLS === Math.floor(i / NUM_COLS) ? 1 : 0)),
);

test.each(types)('%s: uncorrelated inputs of equal size leave rounding to the nearest level', (type) => {
  const equal = new Float32Array(weights.length).fill(1);
  const [ours, single] = [roundRows(type, weights, identity), quantizeRow(type, weights, equal)];
  const error = (bytes: Uint8Array): number =>
    decode(type, bytes).reduce((sum, value, i) => sum + (value - weights[i]!) ** 2, 0);
  expect(error(ours)).toBeLessThanOrEqual(error(single) * 1.0001);
  expect(error(ours)).toBeGreaterThan(error(single) * 0.99);
});

test.each(types)('%s: the bytes decode to the value of each chosen level', (type) => {
  const format = quantFormats[type];
  const { blockSize } = format;
  const { numLevels, groupSize, write } = format.levelCoding!;
  expect(blockSize % groupSize).toBe(0);
  const values = weights.slice(0, blockSize);
  const bytes = quantizeRow(type, values);
  const table = createLevelTable(format);
  table.read(bytes, 0);
  const levels = Uint8Array.from(values, (_, i) => (i * 37 + 11) % numLevels);
  write(levels, bytes, 0);
  const decoded = new Float32Array(blockSize);
  format.dequantize(bytes, 0, decoded, 0, 1);
  expect([...decoded]).toEqual(Array.from(levels, (level, i) => table.valueOf(i, level)));
  // No other level is nearer.
  for (let i = 0; i < blockSize; i++) {
    for (const target of [values[i]!, -3 * values[i]!, 0]) {
      const distance = (level: number): number => Math.abs(table.valueOf(i, level) - target);
      const all = Array.from({ length: numLevels }, (_, level) => distance(level));
      if (distance(table.nearest(i, target)) > Math.min(...all)) expect.fail(`value ${i}: ${target}`);
    }
  }
});

test('the factor times its transpose is the damped sum of products', () => {
  const numCols = 70;
  const rows = normals(90 * numCols);
  const { entries } = factorOf(rows, numCols);
  const at = (i: number, j: number): number => (i <= j ? entries[columnStart(j) + i]! : 0);
  const products = (i: number, j: number): number => {
    let sum = 0;
    for (let row = 0; row < 90; row++) sum += rows[row * numCols + i]! * rows[row * numCols + j]!;
    return sum;
  };
  let trace = 0;
  for (let i = 0; i < numCols; i++) trace += products(i, i);
  for (let i = 0; i < numCols; i++) {
    for (let j = i; j < numCols; j++) {
      let sum = 0;
      for (let k = j; k < numCols; k++) sum += at(i, k) * at(j, k);
      expect(sum).toBeCloseTo(products(i, j) + (i === j ? (0.01 * trace) / numCols : 0), 8);
    }
  }
});

test('a single input, which spans no other direction, still rounds', () => {
  const single = inputs.slice(0, NUM_COLS).fill(0, 100, 300);
  const stored = decode('Q4_0', roundRows('Q4_0', weights, factorOf(single)));
  expect(stored.every(Number.isFinite)).toBe(true);
  const output = (values: Float32Array): number => single.reduce((sum, x, col) => sum + x * (values[col]! - weights[col]!), 0); // prettier-ignore
  expect(Math.abs(output(stored))).toBeLessThan(0.1 * Math.abs(output(decode('Q4_0', quantizeRow('Q4_0', weights)))));
});

test('refuses inputs that cannot be factored, values that cannot be stored and matrices that are too wide', () => {
  expect(hasInputs(createInputProducts(32))).toBe(false);
  expect(() => factorInPlace(createInputProducts(32), 'x.weight')).toThrow(
    /x\.weight: the squares of the inputs sum to 0/,
  );
  expect(() => factorOf(new Float32Array(32).fill(NaN), 32)).toThrow(/sum to NaN/);
  const broken = weights.slice();
  broken[700] = Infinity;
  expect(() => roundRows('Q4_0', broken, factor)).toThrow('value Infinity at index 700 cannot be stored as Q4_0');
  expect(() => roundRows('Q4_0', weights.map((value) => value * 1e6), factor)).toThrow(/cannot be stored as Q4_0/); // prettier-ignore
  expect(() => createInputProducts(14_592)).toThrow(/14592 columns need 813 MiB, at most 800 MiB are used/);
});
