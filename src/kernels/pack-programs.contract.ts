import { describe, expect, test } from 'vitest';
import { createRandom, type Random } from '../core/random.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { campaign } from '../../test/support/campaign.ts';
import { normals } from '../../test/support/random-values.ts';
import {
  expertScratchBytes,
  type InputNorm,
  type KernelPack,
  type KernelPackFactory,
  kvLayerBytes,
  type KvRegion,
  type Offset,
  PAGE_TOKENS,
  type WeightMatrix,
} from './contract.ts';
import {
  expectSameBits,
  expectSameBytes,
  type PackFixture,
  randomMatrix,
  withSmallPack,
} from './pack-fixture.contract.ts';

const DIM = 256;
const HEADS = { numHeads: 4, headDim: 32 };
const NUM_KV_HEADS = 2;
const Q_DIM = 128;
const KV_DIM = 64;
const NUM_PAGES = 6;
const MAX_TOKENS = 40;
const EPSILON_OF_NORM = 1e-5;
const NUM_EXPERTS = 4;
const EXPERTS = { numExperts: NUM_EXPERTS, numUsed: 2, dim: DIM, feedForwardDim: 64 };

type Expert = 'router' | 'expertGate' | 'expertUp' | 'expertDown';

/** The buffers of a model in one pack. */
interface Machine {
  readonly pack: KernelPack;
  readonly weights: Readonly<Record<'q' | 'k' | 'v' | 'o' | 'gate' | 'up' | 'down' | 'table' | Expert, WeightMatrix>>;
  readonly at: Readonly<Record<keyof typeof LENGTHS, Offset>>;
  readonly kv: KvRegion;
  readonly ints: Readonly<Record<'slots' | 'rows' | 'sequences' | 'pageTable', Offset>>;
}

const LENGTHS = {
  x: MAX_TOKENS * DIM,
  y: MAX_TOKENS * DIM,
  h: MAX_TOKENS * DIM,
  q: MAX_TOKENS * Q_DIM,
  k: MAX_TOKENS * KV_DIM,
  v: MAX_TOKENS * KV_DIM,
  attended: MAX_TOKENS * Q_DIM,
  hidden: MAX_TOKENS * DIM,
  scratch: MAX_TOKENS * DIM,
  norm: DIM,
  headNorm: HEADS.headDim,
  bias: DIM,
  expertLogits: MAX_TOKENS * NUM_EXPERTS,
  expertScratch: expertScratchBytes(EXPERTS, MAX_TOKENS) / 4,
  cosSin: MAX_TOKENS * HEADS.headDim,
};

const initialValues = Object.values(LENGTHS).map((length, i) => normals(length, i + 1));

/** `shift`: offset of every buffer from the arena's alignment, in floats. */
function createMachine({ pack, putInts, matrix }: PackFixture, shift: number): Machine {
  const weight = (type: TensorTypeName, numRows: number, numCols: number): WeightMatrix =>
    matrix(type, numRows, numCols, randomMatrix(type, numRows, numCols, numRows + numCols).bytes);
  const at = {} as Record<keyof typeof LENGTHS, Offset>;
  for (const [i, name] of (Object.keys(LENGTHS) as (keyof typeof LENGTHS)[]).entries()) {
    at[name] = pack.arena.allocate((LENGTHS[name] + shift) * 4, name) + shift * 4;
    pack.arena.f32(at[name], LENGTHS[name]).set(initialValues[i]!);
  }
  const layerBytes = kvLayerBytes(NUM_KV_HEADS, HEADS.headDim, 'f16');
  const base = pack.arena.allocate(NUM_PAGES * layerBytes, 'pages');
  const pages = { base, pageBytes: layerBytes, layerBytes, numPages: NUM_PAGES, precision: 'f16' as const };
  const count = Array.from({ length: NUM_PAGES * PAGE_TOKENS }, (_, i) => i);
  return {
    pack,
    weights: {
      q: weight('Q4_0', Q_DIM, DIM),
      k: weight('Q6_K', KV_DIM, DIM),
      v: weight('F16', KV_DIM, DIM),
      o: weight('Q8_0', DIM, Q_DIM),
      gate: weight('Q4_K', DIM, DIM),
      up: weight('Q4_0', DIM, DIM),
      down: weight('Q5_1', DIM, DIM),
      table: weight('IQ4_NL', MAX_TOKENS, DIM),
      router: weight('F32', NUM_EXPERTS, DIM),
      expertGate: weight('Q4_0', NUM_EXPERTS * 64, DIM),
      expertUp: weight('Q4_0', NUM_EXPERTS * 64, DIM),
      expertDown: weight('Q8_0', NUM_EXPERTS * DIM, 64),
    },
    at,
    kv: { ...pages, numKvHeads: NUM_KV_HEADS, headDim: HEADS.headDim },
    ints: {
      slots: putInts(count),
      rows: putInts(count.map((i) => (i * 7) % MAX_TOKENS)),
      // For each number of rows, the last ones of all pages: mostly zeros until written.
      sequences: putInts(count.flatMap((n) => [0, n, NUM_PAGES * PAGE_TOKENS, 0])),
      pageTable: putInts(count.slice(0, NUM_PAGES).toReversed()),
    },
  };
}

type Step = (machine: Machine, numTokens: number, choice: number) => void;

const normOf = ({ at }: Machine): InputNorm => ({ weight: at.norm, epsilon: EPSILON_OF_NORM, scratch: at.scratch });
const toOutput = (weight: WeightMatrix, out: Offset, bias: Offset | null = null, accumulate = false) =>
  ({ weight, out, bias, accumulate }) as const;
const turnOf = ({ at, ints, kv }: Machine, choice: number) => ({
  ...HEADS,
  cosSin: at.cosSin,
  rotaryDim: HEADS.headDim,
  pairing: choice % 2 === 0 ? ('halves' as const) : ('adjacent' as const),
  kv,
  layer: 0,
  k: at.k,
  v: at.v,
  slots: ints.slots + 4 * (choice % (NUM_PAGES * PAGE_TOKENS - MAX_TOKENS)),
});

/** Each reads what others write, so that an operation that starts too early or a missing row changes the bits. */
const steps: readonly Step[] = [
  ({ pack, at }, numRows) =>
    pack.rmsNorm({ x: at.x, weight: at.norm, out: at.h, numRows, dim: DIM, epsilon: EPSILON_OF_NORM }),
  (machine, numTokens, choice) => {
    const { pack, at, weights } = machine;
    const outputs = [toOutput(weights.q, at.q, at.bias), toOutput(weights.k, at.k), toOutput(weights.v, at.v)];
    const norm = choice % 2 === 0 ? normOf(machine) : null;
    pack.matmul({ x: norm === null ? at.h : at.x, norm, numTokens, outputs });
  },
  (machine, numTokens, choice) => {
    const { pack, at } = machine;
    const [qNorm, kNorm] = [choice % 3 === 0 ? null : at.headNorm, choice % 5 === 0 ? null : at.headNorm];
    const turn = turnOf(machine, choice);
    pack.rotateAndStore({ ...turn, numTokens, q: at.q, qNorm, kNorm, epsilon: EPSILON_OF_NORM });
  },
  (machine, numTokens, choice) => {
    const { pack, at } = machine;
    const turn = turnOf(machine, choice);
    pack.rope({ ...turn, x: at.k, numHeads: NUM_KV_HEADS, numTokens });
    pack.writeKv({ ...turn, numTokens });
    pack.rope({ ...turn, x: at.q, numTokens });
  },
  ({ pack, at, kv, ints }, numRows, choice) =>
    pack.attention({
      kv,
      layer: 0,
      q: at.q,
      out: at.attended,
      numHeads: HEADS.numHeads,
      sequences: ints.sequences + 16 * numRows,
      numSequences: 1,
      pageTables: ints.pageTable,
      scale: 0.05,
      window: choice % 3 === 0 ? 0 : choice,
      softcap: choice % 4 === 0 ? 5 : 0,
    }),
  ({ pack, at, weights }, numTokens) =>
    pack.matmul({ x: at.attended, numTokens, outputs: [toOutput(weights.o, at.x, null, true)] }),
  (machine, numTokens, choice) => {
    const { pack, at, weights } = machine;
    const gate = { weight: weights.gate, bias: choice % 3 === 0 ? at.bias : null };
    const up = { weight: weights.up, bias: choice % 5 === 0 ? at.bias : null };
    const activation = choice % 4 < 2 ? 'silu' : 'gelu';
    const norm = choice % 2 === 0 ? normOf(machine) : null;
    const x = norm === null ? at.h : at.x;
    pack.gatedMatmul({ x, norm, numTokens, gate, up, out: at.hidden, scratch: at.y, activation });
    // The pack may leave anything there.
    pack.copyRows({ x: at.h, rows: machine.ints.rows, out: at.y, numRows: MAX_TOKENS, dim: DIM });
    pack.rmsNorm({ ...hidden(machine), numRows: numTokens });
    pack.matmul({ x: at.hidden, numTokens, outputs: [toOutput(weights.down, at.x, at.bias, true)] });
  },
  (machine, numTokens, choice) => {
    const { pack, at, weights } = machine;
    const scores = choice % 3 === 0 ? 'sigmoid' : choice % 3 === 1 ? 'softmax' : 'chosen-softmax';
    pack.matmul({ x: at.h, numTokens, outputs: [toOutput(weights.router, at.expertLogits)] });
    pack.experts({
      x: at.h,
      numTokens,
      logits: at.expertLogits,
      routing: {
        ...EXPERTS,
        ...ALL_GROUPS,
        scores,
        choiceBias: choice % 2 === 0 ? at.bias : null,
        expertScales: choice % 7 === 0 ? at.norm : null,
      },
      gate: { weight: weights.expertGate, bias: choice % 5 === 0 ? at.bias : null },
      up: { weight: weights.expertUp, bias: null },
      down: { weight: weights.expertDown, bias: null },
      activation: choice % 4 < 2 ? 'silu' : 'clamped-swiglu',
      out: at.x,
      scratch: at.expertScratch,
    });
    pack.rmsNorm({ x: at.x, weight: at.norm, out: at.x, numRows: numTokens, dim: DIM, epsilon: EPSILON_OF_NORM });
  },
  ({ pack, at }, numTokens) => {
    pack.add({ x: at.x, y: at.y, out: at.x, count: numTokens * DIM - 3 });
    pack.scale({ x: at.x, count: numTokens * DIM - 1, factor: 0.5 });
    pack.softcap({ x: at.x, count: numTokens * DIM, cap: 20 });
  },
  ({ pack, at, ints }, numRows, choice) => {
    const rows = ints.rows + 4 * (choice % 8);
    pack.copyRows({ x: at.x, rows, out: at.y, numRows, dim: DIM });
  },
  ({ pack, at, weights, ints }, numRows, choice) => {
    const ids = ints.rows + 4 * (choice % 8);
    pack.gatherRows({ table: weights.table, ids, out: at.y, numRows, scale: 0.7 });
  },
  (machine, numTokens) => {
    const { pack, at } = machine;
    const op = { gate: at.h, up: at.y, out: at.h, count: numTokens * DIM - 5 };
    pack.gatedActivation({ ...op, activation: numTokens % 2 === 0 ? 'silu' : 'gelu' });
    pack.rmsNorm({ x: at.h, weight: at.norm, out: at.h, numRows: numTokens, dim: DIM, epsilon: EPSILON_OF_NORM });
  },
];
const ALL_GROUPS = { numGroups: 1, numUsedGroups: 1, isNormalized: true, scale: 0.5 } as const;
const hidden = ({ at }: Machine) =>
  ({ x: at.hidden, weight: at.norm, out: at.hidden, dim: DIM, epsilon: EPSILON_OF_NORM }) as const;

/** Buffers with results; `scratch` belongs to the pack. */
const RESULTS = ['x', 'y', 'h', 'q', 'k', 'v', 'attended', 'hidden'] as const;

interface Run {
  readonly numSteps: number;
  readonly seed: number;
  readonly shift?: number;
  readonly mostTokens?: number;
  /** Steps between two calls of `sync`. */
  readonly stepsPerSync?: number;
}

const pick = (random: Random, count: number): number => Math.floor(random.next() * count);

/** Runs random steps on random numbers of tokens; returns all results. */
export async function runProgram(fixture: PackFixture, run: Run): Promise<Float32Array> {
  const { numSteps, seed, shift = 0, mostTokens = MAX_TOKENS, stepsPerSync = numSteps } = run;
  const machine = createMachine(fixture, shift);
  const { pack, at, kv } = machine;
  const random = createRandom(seed);
  for (let i = 0; i < numSteps; i++) {
    const numTokens = random.next() < 0.3 ? 1 : 1 + pick(random, mostTokens);
    steps[pick(random, steps.length)]!(machine, numTokens, pick(random, 60));
    if (i % stepsPerSync === stepsPerSync - 1) await pack.sync();
  }
  await pack.sync();
  const parts = [
    ...RESULTS.map((name) => pack.arena.f32(at[name], LENGTHS[name])),
    Float32Array.from(pack.arena.u16(kv.base, (NUM_PAGES * kv.pageBytes) / 2)),
  ];
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const values of parts) all.set(values, (end += values.length) - values.length);
  return all;
}

/** Whole programs give the same bits for any number of threads, buffer offsets and syncs. */
export function describePrograms(makeFactory: () => KernelPackFactory): void {
  describe('programs of many operations', () => {
    const results = async (run: Run, numThreads: number): Promise<Float32Array> => {
      let values: Float32Array = new Float32Array();
      const body = async (fixture: PackFixture): Promise<void> => void (values = await runProgram(fixture, run));
      await withSmallPack(makeFactory(), body, { numThreads, maxCols: DIM, arenaBytes: 2 ** 22 });
      return values;
    };

    test('have the same bits for every number of threads from 1 to 8', async () => {
      const run = { numSteps: 100, seed: 1 };
      const expected = await results(run, 1);
      expect(expected.every((value) => Number.isFinite(value))).toBe(true);
      const probe = await makeFactory().create({ arenaBytes: 64, numThreads: 2, maxTokens: 1, maxCols: 32 });
      await probe.dispose();
      if (probe.numThreads === 1) return; // never has more threads
      for (const numThreads of campaign({ short: [2, 3, 8], long: [2, 3, 4, 5, 6, 7, 8] })) {
        expectSameBits(await results(run, numThreads), expected, `${numThreads} threads`);
      }
    });

    test('have the same bits for any offset of their buffers', async () => {
      const run = { numSteps: 60, seed: 2, mostTokens: 18 };
      const expected = await results(run, 1);
      expect(expected.every((value) => Number.isFinite(value))).toBe(true);
      for (const shift of [1, 2, 3, 4, 7, 8, 15]) {
        expectSameBits(await results({ ...run, shift }, 1), expected, `${shift} floats off`);
      }
    });

    test('have the same bits synced once and after every operation, even if longer than the record table', async () => {
      const run = { numSteps: 900, seed: 3, mostTokens: 3 };
      const expected = await results({ ...run, stepsPerSync: 1 }, 2);
      expect(expected.every((value) => Number.isFinite(value))).toBe(true);
      expectSameBits(await results(run, 2), expected, 'synced at the end');
    });

    // Five records each, and no power of two is a multiple of five: a full table splits them at each of the five.
    test('may be split anywhere in a fused operation by the end of the record table', async () => {
      const numTokens = 5;
      const repeat = async (numThreads: number, isSyncedEachStep: boolean) => {
        let [q, k, pages] = [new Float32Array(), new Float32Array(), new Uint8Array()];
        const body = async (fixture: PackFixture): Promise<void> => {
          const machine = createMachine(fixture, 0);
          const { pack, at, kv, weights } = machine;
          const slots = fixture.putInts([0, 1, 2, 3, 4]);
          const turn = { ...turnOf(machine, 0), slots, numTokens, epsilon: EPSILON_OF_NORM };
          const outputs = [toOutput(weights.q, at.q, null, true), toOutput(weights.k, at.k, null, true)];
          const numSteps = 1 + Math.ceil((4 * 2048) / 5);
          for (let i = 0; i < numSteps; i++) {
            if (i % 16 === 0) pack.matmul({ x: at.x, norm: normOf(machine), numTokens, outputs });
            else pack.rotateAndStore({ ...turn, q: at.q, qNorm: at.headNorm, kNorm: at.headNorm });
            if (isSyncedEachStep) await pack.sync();
          }
          await pack.sync();
          [q, k] = [pack.arena.f32(at.q, LENGTHS.q).slice(), pack.arena.f32(at.k, LENGTHS.k).slice()];
          pages = pack.arena.u8(kv.base, NUM_PAGES * kv.pageBytes).slice();
        };
        await withSmallPack(makeFactory(), body, { numThreads });
        return { q, k, pages };
      };
      // More threads than the machine may have: a missing wait leaves one of them behind.
      const together = await repeat(4, false);
      // One thread, because waking others for each step takes far longer than the steps.
      const apart = await repeat(1, true);
      for (const name of ['q', 'k'] as const) {
        expect(apart[name].every((value) => Number.isFinite(value))).toBe(true);
        expectSameBits(together[name], apart[name], name);
      }
      expectSameBytes(together.pages, apart.pages, 'pages');
    });
  });
}
