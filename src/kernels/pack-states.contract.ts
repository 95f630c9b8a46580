import { describe, expect, test } from 'vitest';
import { normals } from '../../test/support/random-values.ts';
import { type KernelPackFactory, MAX_CONV_WIDTH, type StateRows } from './contract.ts';
import { EPSILON, expectClose, expectSameBits, type PackFixture, withSmallPack } from './pack-fixture.contract.ts';

const NUM_STATES = 6;

/** Rows of one sequence in a step: its state, the tokens before, and the rows after which the state is copied. */
interface Part {
  readonly state: number;
  readonly start: number;
  readonly numRows: number;
  readonly copyAfter?: number;
  readonly copy?: number;
}

/** An operation over rows of `width` values; `run` records it for these inputs. */
interface Case {
  readonly stateValues: number;
  readonly outWidth: number;
  /** Rows of input, by token of a sequence. */
  readonly tokens: readonly Float32Array[];
  run(fixture: PackFixture, rows: StateRows, tokens: readonly Float32Array[]): ReturnType<PackFixture['output']>;
  expected(token: number): Float64Array;
  tolerance(token: number): number;
}

const NUM_TOKENS = 23;

function convCase(channels: number, width: number, activation: 'none' | 'silu', hasBias: boolean): Case {
  const tokens = Array.from({ length: NUM_TOKENS }, (_, t) => normals(channels, 100 + t));
  const weight = normals(width * channels, 1);
  const bias = hasBias ? normals(channels, 2) : null;
  const sumOf = (t: number, c: number): number => {
    let sum = bias?.[c] ?? 0;
    for (let j = 0; j < width; j++) {
      const from = tokens[t - width + 1 + j];
      if (from !== undefined) sum += weight[j * channels + c]! * from[c]!;
    }
    return sum;
  };
  return {
    stateValues: (width - 1) * channels,
    outWidth: channels,
    tokens,
    run({ pack, put, output }, rows, inputs) {
      const out = output(inputs.length * channels);
      const x = put(inputs.flatMap((row) => [...row]));
      const offsets = { x, weight: put(weight), bias: bias === null ? null : put(bias), out: out.offset };
      pack.causalConv({ ...rows, ...offsets, channels, width, activation });
      return out;
    },
    expected: (t) =>
      Float64Array.from({ length: channels }, (_, c) => {
        const sum = sumOf(t, c);
        return activation === 'silu' ? sum / (1 + Math.exp(-sum)) : sum;
      }),
    tolerance: () => 32 * width * EPSILON * 8,
  };
}

interface ScanShape {
  readonly numHeads: number;
  readonly headDim: number;
  readonly numGroups: number;
  readonly stateDim: number;
}

function scanCase(shape: ScanShape): Case {
  const { numHeads, headDim, numGroups, stateDim } = shape;
  const dims = [numHeads * headDim, numHeads, numGroups * stateDim, numGroups * stateDim];
  const tokens = Array.from({ length: NUM_TOKENS }, (_, t) =>
    normals(
      dims.reduce((sum, dim) => sum + dim, 0),
      200 + t,
    ),
  );
  const split = (row: Float32Array): Float32Array[] => {
    let at = 0;
    return dims.map((dim) => row.subarray(at, (at += dim)));
  };
  const a = normals(numHeads, 3).map((value) => -Math.abs(value) - 0.1);
  const [d, dtBias] = [normals(numHeads, 4), normals(numHeads, 5)];
  const results: Float64Array[] = [];
  const state = new Float64Array(numHeads * headDim * stateDim);
  for (const token of tokens) {
    const [x, dt, b, c] = split(token) as [Float32Array, Float32Array, Float32Array, Float32Array];
    const out = new Float64Array(numHeads * headDim);
    for (let i = 0; i < out.length; i++) {
      const head = Math.floor(i / headDim);
      const group = Math.floor(head / (numHeads / numGroups)) * stateDim;
      const step = Math.log1p(Math.exp(dt[head]! + dtBias[head]!));
      for (let n = 0; n < stateDim; n++) {
        const at = i * stateDim + n;
        state[at] = state[at]! * Math.exp(step * a[head]!) + step * x[i]! * b[group + n]!;
        out[i]! += state[at]! * c[group + n]!;
      }
      out[i]! += d[head]! * x[i]!;
    }
    results.push(out);
  }
  return {
    stateValues: state.length,
    outWidth: numHeads * headDim,
    tokens,
    run({ pack, put, output }, rows, inputs) {
      const out = output(inputs.length * numHeads * headDim);
      const parts = inputs.map(split);
      const [x, dt, b, c] = dims.map((_, i) => put(parts.flatMap((row) => [...row[i]!]))) as [
        number,
        number,
        number,
        number,
      ];
      const offsets = { x, dt, b, c, a: put(a), d: put(d), dtBias: put(dtBias), out: out.offset };
      pack.selectiveScan({ ...rows, ...offsets, ...shape });
      return out;
    },
    expected: (t) => results[t]!,
    // Sums of stateDim products whose factors grow with the number of tokens.
    tolerance: (t) => 64 * EPSILON * stateDim * Math.sqrt(t + 1) * Math.max(1, ...results[t]!.map(Math.abs)),
  };
}

interface DeltaShape {
  readonly numHeads: number;
  readonly numKeyHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly sharing: 'neighbours' | 'every';
}

function deltaCase(shape: DeltaShape): Case {
  const { numHeads, numKeyHeads, keyDim, valueDim, sharing } = shape;
  const dims = [numKeyHeads * keyDim, numKeyHeads * keyDim, numHeads * valueDim, numHeads, numHeads];
  const cuts = dims.map((_, i) => dims.slice(0, i + 1).reduce((sum, dim) => sum + dim, 0));
  const split = (row: Float32Array): Float32Array[] => cuts.map((end, i) => row.subarray(end - dims[i]!, end));
  const tokens = Array.from({ length: NUM_TOKENS }, (_, t) => normals(cuts.at(-1)!, 300 + t));
  const a = normals(numHeads, 3).map((value) => -Math.abs(value) - 0.1);
  const dtBias = normals(numHeads, 5);
  const epsilon = 1e-6;
  const unit = (vector: Float32Array): Float64Array => {
    const length = Math.max(epsilon, Math.hypot(...vector));
    return Float64Array.from(vector, (value) => value / length);
  };
  const state = new Float64Array(numHeads * valueDim * keyDim);
  const results = tokens.map((token) => {
    const [q, k, v, dt, beta] = split(token) as [Float32Array, Float32Array, Float32Array, Float32Array, Float32Array];
    return Float64Array.from({ length: numHeads * valueDim }, (_, i) => {
      const head = Math.floor(i / valueDim);
      const from = (sharing === 'every' ? head % numKeyHeads : Math.floor((head * numKeyHeads) / numHeads)) * keyDim;
      const [key, query] = [unit(k.subarray(from, from + keyDim)), unit(q.subarray(from, from + keyDim))];
      const row = state.subarray(i * keyDim, (i + 1) * keyDim);
      const decay = Math.exp(Math.log1p(Math.exp(dt[head]! + dtBias[head]!)) * a[head]!);
      for (let n = 0; n < keyDim; n++) row[n]! *= decay;
      const error = v[i]! - row.reduce((sum, value, n) => sum + value * key[n]!, 0);
      for (let n = 0; n < keyDim; n++) row[n]! += (key[n]! * error) / (1 + Math.exp(-beta[head]!));
      return row.reduce((sum, value, n) => sum + value * query[n]!, 0) / Math.sqrt(keyDim);
    });
  });
  return {
    stateValues: numHeads * valueDim * keyDim,
    outWidth: numHeads * valueDim,
    tokens,
    run({ pack, put, output }, rows, inputs) {
      const out = output(inputs.length * numHeads * valueDim);
      const parts = inputs.map(split);
      const [q, k, v, dt, beta] = dims.map((_, i) => put(parts.flatMap((part) => [...part[i]!])));
      const offsets = { q: q!, k: k!, v: v!, dt: dt!, beta: beta!, dtBias: put(dtBias), a: put(a), out: out.offset };
      pack.deltaScan({ ...rows, ...offsets, ...shape, epsilon });
      return out;
    },
    expected: (t) => results[t]!,
    tolerance: (t) => 64 * EPSILON * keyDim * Math.max(1, ...results[t]!.map(Math.abs)),
  };
}

const cases: readonly (readonly [string, Case])[] = [
  ['a convolution over 2 tokens', convCase(1, 2, 'none', false)],
  ['a convolution over 3 tokens', convCase(65, 3, 'none', false)],
  ['a convolution over 4 tokens', convCase(130, 4, 'silu', true)],
  ['a convolution of the largest width', convCase(6, MAX_CONV_WIDTH, 'none', true)],
  ['a scan', scanCase({ numHeads: 4, headDim: 6, numGroups: 2, stateDim: 20 })],
  ['a scan with one group', scanCase({ numHeads: 3, headDim: 8, numGroups: 1, stateDim: 16 })],
  ['a delta net', deltaCase({ numHeads: 6, numKeyHeads: 3, keyDim: 20, valueDim: 7, sharing: 'neighbours' })],
  [
    'a delta net with distant heads',
    deltaCase({ numHeads: 4, numKeyHeads: 2, keyDim: 32, valueDim: 8, sharing: 'every' }),
  ],
];

export function describeStates(makeFactory: () => KernelPackFactory): void {
  describe('states of sequences', () => {
    test.each(cases)('%s equals its definition', async (_, sample) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const run = createRunner(fixture, sample);
        const whole = await run([{ state: 2, start: 0, numRows: NUM_TOKENS }]);
        for (let t = 0; t < NUM_TOKENS; t++) {
          const row = whole.slice(t * sample.outWidth, (t + 1) * sample.outWidth);
          expectClose(row, sample.expected(t), () => sample.tolerance(t), `token ${t}`);
        }
      });
    });

    test.each(cases)('%s has the same bits in steps, in batches and from a copied state', async (_, sample) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const run = createRunner(fixture, sample);
        const { outWidth } = sample;
        const whole = await run([{ state: 0, start: 0, numRows: NUM_TOKENS }]);
        const expectRows = (actual: Float32Array, start: number, numRows: number, what: string): void =>
          expectSameBits(actual, whole.slice(start * outWidth, (start + numRows) * outWidth), what);
        const steps = [
          { state: 1, start: 0, numRows: 1 },
          { state: 1, start: 1, numRows: 1 },
          { state: 1, start: 2, numRows: 14, copyAfter: 9, copy: 3 },
          { state: 1, start: 16, numRows: 7 },
        ];
        for (const step of steps) expectRows(await run([step]), step.start, step.numRows, `from ${step.start}`);
        // The copy was made after 11 tokens. Another sequence starts in a state that was used before.
        const both = await run([
          { state: 3, start: 11, numRows: 12, copyAfter: 12, copy: 4 },
          { state: 1, start: 0, numRows: 5, copyAfter: 1, copy: 5 },
        ]);
        expectRows(both.slice(0, 12 * outWidth), 11, 12, 'from a copy');
        expectRows(both.slice(12 * outWidth), 0, 5, 'a sequence that starts again');
        expectRows(await run([{ state: 5, start: 1, numRows: 3 }]), 1, 3, 'from the copy after one row');
      });
    });

    test.each(cases)('%s changes no other state, and a NaN stays in its sequence', async (_, sample) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const run = createRunner(fixture, sample, (token, sequence) =>
          sequence === 0 ? token.map(() => NaN) : Float32Array.from(token),
        );
        const before = run.states();
        const out = await run([
          { state: 0, start: 0, numRows: 2, copyAfter: 1, copy: 4 },
          { state: 2, start: 0, numRows: 3 },
        ]);
        expect(out.slice(2 * sample.outWidth).every(Number.isFinite)).toBe(true);
        expect(out.slice(0, 2 * sample.outWidth).some(Number.isNaN)).toBe(true);
        const after = run.states();
        for (const state of [1, 3, 5]) expectSameBits(after[state]!, before[state]!, `state ${state}`);
      });
    });

    test('multiply is exact at every length, also in place', async () => {
      await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
        for (const count of [0, 1, 3, 4, 5, 15, 16, 17, 33, 1030]) {
          const [x, y] = [normals(count, 1), normals(count, 2)];
          const [out, inPlace] = [output(count), output(count, x)];
          pack.multiply({ x: put(x), y: put(y), out: out.offset, count });
          pack.multiply({ x: inPlace.offset, y: put(y), out: inPlace.offset, count });
          const expected = x.map((value, i) => value * y[i]!);
          expectSameBits(await out.read(), expected, `${count} values`);
          expectSameBits(await inPlace.read(), expected, `${count} values in place`);
        }
      });
    });

    test('sigmoidGate equals its definition at every length, also in place', async () => {
      await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
        for (const count of [0, 1, 3, 4, 5, 17, 1030]) {
          const [x, y] = [normals(count, 1, 4), normals(count, 2)];
          const [out, inPlace] = [output(count), output(count, y)];
          pack.sigmoidGate({ x: put(x), y: put(y), out: out.offset, count });
          pack.sigmoidGate({ x: put(x), y: inPlace.offset, out: inPlace.offset, count });
          const expected = Float64Array.from(y, (value, i) => value / (1 + Math.exp(-x[i]!)));
          const result = await out.read();
          expectClose(result, expected, (i) => 16 * EPSILON * Math.abs(y[i]!), `${count} values`);
          expectSameBits(await inPlace.read(), result, `${count} values in place`);
        }
      });
    });

    test('rejects widths that packs do not have, and uneven groups', async () => {
      await withSmallPack(makeFactory(), async ({ pack }) => {
        const states = { base: 4096, stateBytes: 64, numStates: 1 };
        const rows = { states, partOffset: 0, sequences: 0, stateTable: 0, numSequences: 0 };
        const offsets = { x: 0, weight: 0, bias: null, out: 0, channels: 4, activation: 'none' as const };
        for (const width of [1, MAX_CONV_WIDTH + 1])
          expect(() => pack.causalConv({ ...rows, ...offsets, width })).toThrowError(`got ${width}`);
        const scan = { ...rows, x: 0, dt: 0, dtBias: 0, a: 0, d: 0, b: 0, c: 0, out: 0, headDim: 4, stateDim: 6 };
        expect(() => pack.selectiveScan({ ...scan, numHeads: 3, numGroups: 2 })).toThrowError('3 heads in 2 groups');
        const delta = { ...rows, q: 0, k: 0, v: 0, dt: 0, beta: 0, dtBias: 0, a: 0, out: 0, valueDim: 4, epsilon: 0 };
        expect(() =>
          pack.deltaScan({ ...delta, numHeads: 3, numKeyHeads: 2, keyDim: 4, sharing: 'every' }),
        ).toThrowError('3 heads over 2 key heads of 4 values');
      });
    });
  });
}

/** Runs steps of sequences that all have the tokens of the sample. */
function createRunner(
  fixture: PackFixture,
  sample: Case,
  change = (token: Float32Array, _sequence: number): Float32Array => token,
): { (parts: readonly Part[]): Promise<Float32Array>; states(): Float32Array[] } {
  const { pack, put, putInts } = fixture;
  const stateBytes = (sample.stateValues + 5) * 4;
  const partOffset = 8;
  const base = put(normals((stateBytes / 4) * NUM_STATES, 9));
  const run = async (parts: readonly Part[]): Promise<Float32Array> => {
    let firstRow = 0;
    const sequences = parts.flatMap(({ start, numRows }) => {
      const words = [firstRow, numRows, start + numRows, 0];
      firstRow += numRows;
      return words;
    });
    const table = parts.flatMap(({ state, copyAfter = 0, copy = 0 }) => [state, copyAfter, copy]);
    const tokens = parts.flatMap(({ start, numRows }, i) =>
      sample.tokens.slice(start, start + numRows).map((token) => change(token, i)),
    );
    const rows: StateRows = {
      states: { base, stateBytes, numStates: NUM_STATES },
      partOffset,
      sequences: putInts(sequences),
      stateTable: putInts(table),
      numSequences: parts.length,
    };
    return sample.run(fixture, rows, tokens).read();
  };
  const states = (): Float32Array[] =>
    Array.from({ length: NUM_STATES }, (_, i) => pack.arena.f32(base + i * stateBytes, stateBytes / 4).slice());
  return Object.assign(run, { states });
}
