import { describe, expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { campaign } from '../../test/support/campaign.ts';
import { normals } from '../../test/support/random-values.ts';
import {
  EXPERT_PASS_TOKENS,
  expertScratchBytes,
  type ExpertRouting,
  type ExpertsOp,
  type ExpertStack,
  type KernelPackFactory,
} from './contract.ts';
import {
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  randomMatrix,
  withPack,
} from './pack-fixture.contract.ts';
import { createReferencePackFactory } from './reference/reference-pack.ts';

interface Layer {
  readonly routing: Omit<ExpertRouting, 'choiceBias' | 'expertScales'>;
  readonly types: readonly [gate: TensorTypeName, up: TensorTypeName, down: TensorTypeName];
  readonly dim: number;
  readonly feedForwardDim: number;
  readonly hasBiases?: boolean;
  readonly hasChoiceBias?: boolean;
  readonly hasScales?: boolean;
  readonly activation?: ExpertsOp['activation'];
}

const routing = (numExperts: number, numUsed: number): Layer['routing'] => ({
  numExperts,
  numUsed,
  scores: 'softmax',
  numGroups: 1,
  numUsedGroups: 1,
  isNormalized: true,
  scale: 1,
});

const Q4: Layer = { routing: routing(8, 3), types: ['Q4_0', 'Q4_0', 'Q4_0'], dim: 64, feedForwardDim: 96 };
const layers: Readonly<Record<string, Layer>> = {
  'Q4_0, normalized softmax': Q4,
  'float, all scaled sigmoids with a choice bias and groups': {
    routing: { ...routing(12, 4), scores: 'sigmoid', numGroups: 4, numUsedGroups: 2, isNormalized: true, scale: 2.5 },
    types: ['F32', 'F16', 'BF16'],
    dim: 32,
    feedForwardDim: 48,
    hasChoiceBias: true,
  },
  'float, softmax with groups: sums of scores, not of logits': {
    routing: { ...routing(12, 3), numGroups: 4, numUsedGroups: 1, isNormalized: false },
    types: ['F32', 'F32', 'F32'],
    dim: 32,
    feedForwardDim: 48,
  },
  'Q8_0, softmax of the chosen with biases and clamped gates': {
    routing: { ...routing(5, 2), scores: 'chosen-softmax', isNormalized: false },
    types: ['Q8_0', 'Q8_0', 'Q8_0'],
    dim: 96,
    feedForwardDim: 64,
    hasBiases: true,
    activation: 'clamped-swiglu',
  },
  'gate and up of different roundings, every expert used': {
    routing: { ...routing(4, 4), isNormalized: false, scale: 0.5 },
    types: ['Q4_K', 'Q8_0', 'Q6_K'],
    dim: 256,
    feedForwardDim: 256,
  },
  'a scale of each expert after the normalized choice, gated by gelu': {
    routing: { ...routing(6, 2), scale: 1.5 },
    types: ['F32', 'F32', 'F32'],
    dim: 32,
    feedForwardDim: 48,
    hasScales: true,
    activation: 'gelu',
  },
  'one expert with a sigmoid': {
    routing: { ...routing(1, 1), scores: 'sigmoid', isNormalized: false },
    types: ['Q5_1', 'Q5_1', 'IQ4_NL'],
    dim: 64,
    feedForwardDim: 32,
  },
};

interface Inputs {
  readonly x: Float32Array;
  readonly logits: Float32Array;
  readonly before: Float32Array;
}

const inputsOf = ({ dim, routing: { numExperts } }: Layer, numTokens: number, seed = 3): Inputs => ({
  x: normals(numTokens * dim, seed),
  logits: normals(numTokens * numExperts, seed + 1, 2),
  before: normals(numTokens * dim, seed + 2),
});

const rowsOf = ({ dim, routing: { numExperts } }: Layer, inputs: Inputs, from: number, to: number): Inputs => ({
  x: inputs.x.slice(from * dim, to * dim),
  logits: inputs.logits.slice(from * numExperts, to * numExperts),
  before: inputs.before.slice(from * dim, to * dim),
});

/** Experts with other weights than `randomMatrix`, by number. */
type Weights = Readonly<Record<number, Float32Array>>;

async function run(fixture: PackFixture, layer: Layer, inputs: Inputs, replaced: Weights = {}): Promise<Float32Array> {
  const { put, output, matrix } = fixture;
  const { dim, feedForwardDim, types, hasBiases = false, hasChoiceBias = false, activation = 'silu' } = layer;
  const { numExperts, numUsed } = layer.routing;
  const stack = (i: number, numRows: number, numCols: number): ExpertStack => {
    const { bytes } = randomMatrix(types[i]!, numExperts * numRows, numCols, i + 1);
    const own = bytes.slice();
    for (const [expert, values] of Object.entries(replaced)) {
      own.set(new Uint8Array(values.buffer, 0, numRows * numCols * 4), Number(expert) * numRows * numCols * 4);
    }
    const weight = matrix(types[i]!, numExperts * numRows, numCols, own);
    return { weight, bias: hasBiases ? put(normals(numExperts * numRows, i + 20)) : null };
  };
  const numTokens = inputs.x.length / dim;
  const out = output(inputs.before.length, inputs.before);
  const scratch = output(expertScratchBytes({ numExperts, numUsed, dim, feedForwardDim }, numTokens) / 4);
  fixture.pack.experts({
    x: put(inputs.x),
    numTokens,
    logits: put(inputs.logits),
    routing: {
      ...layer.routing,
      choiceBias: hasChoiceBias ? put(normals(numExperts, 9)) : null,
      expertScales: layer.hasScales === true ? put(normals(numExperts, 10)) : null,
    },
    gate: stack(0, feedForwardDim, dim),
    up: stack(1, feedForwardDim, dim),
    down: stack(2, dim, feedForwardDim),
    activation,
    out: out.offset,
    scratch: scratch.offset,
  });
  await scratch.read(); // checks its canaries
  return out.read();
}

const references = new Map<string, Float32Array>();

/** The results of the reference, cached for all packs, so do not write to it. */
const referenceOf = async (name: string, inputs: Inputs): Promise<Float32Array> => {
  const layer = layers[name]!;
  const key = `${name} ${inputs.before.length}`;
  const known = references.get(key);
  if (known !== undefined) return known;
  let expected: Float32Array = new Float32Array();
  const body = async (fixture: PackFixture): Promise<void> => void (expected = await run(fixture, layer, inputs));
  await withPack(createReferencePackFactory(), body);
  references.set(key, expected);
  return expected;
};

/** The routed experts, against the reference, which computes token by token. */
export function describeExperts(makeFactory: () => KernelPackFactory): void {
  describe('experts', () => {
    const withTwo = (body: (fixture: PackFixture) => Promise<void>): Promise<void> =>
      withPack(makeFactory(), body, { maxTokens: EXPERT_PASS_TOKENS, maxCols: 512 });

    test.each(Object.keys(layers))('match the reference: %s', async (name) => {
      const layer = layers[name]!;
      await withTwo(async (fixture) => {
        for (const numTokens of [1, 2, 5, 40]) {
          const inputs = inputsOf(layer, numTokens);
          const expected = await referenceOf(name, inputs);
          const size = norm(expected) / Math.sqrt(expected.length);
          // An activation near a rounding border may round to its neighbour after another order of sums.
          expectClose(await run(fixture, layer, inputs), expected, () => 2e-2 * size, `${numTokens} tokens`);
          const added = expected.map((value, i) => value - inputs.before[i]!);
          expect(norm(added) / norm(inputs.before)).toBeGreaterThan(0.1);
        }
      });
    });

    test.each(Object.keys(layers))('batched equals alone, bit for bit: %s', async (name) => {
      const layer = layers[name]!;
      await withTwo(async (fixture) => {
        const numTokens = 37;
        const inputs = inputsOf(layer, numTokens);
        // All tokens of one half choose the same experts: more rows than a tile.
        inputs.logits.fill(0.25, 0, 20 * layer.routing.numExperts);
        const all = await run(fixture, layer, inputs);
        for (const [from, to] of [[0, 1], [7, 8], [36, 37], [0, 17], [11, 30]] as const) {
          const some = await run(fixture, layer, rowsOf(layer, inputs, from, to));
          expectSameBits(some, all.slice(from * layer.dim, to * layer.dim), `rows ${from} to ${to}`);
        }
      });
    }); // prettier-ignore

    test('more tokens than a pass have the same bits as the parts', async () => {
      await withPack(
        makeFactory(),
        async (fixture) => {
          const numTokens = EXPERT_PASS_TOKENS + 9;
          const inputs = inputsOf(Q4, numTokens);
          const all = await run(fixture, Q4, inputs);
          for (const at of campaign({ short: [0, 511, 512, 520], long: [0, 1, 255, 510, 511, 512, 513, 520] })) {
            const alone = await run(fixture, Q4, rowsOf(Q4, inputs, at, at + 1));
            expectSameBits(alone, all.slice(at * Q4.dim, (at + 1) * Q4.dim), `token ${at}`);
          }
        },
        { maxTokens: EXPERT_PASS_TOKENS, maxCols: 512 },
      );
    });

    test('experts that no token chooses are not computed', async () => {
      const layer: Layer = { ...Q4, types: ['F32', 'F32', 'F32'] };
      const inputs = inputsOf(layer, 6);
      inputs.logits.forEach((value, i) => (inputs.logits[i] = i % 8 < 3 ? 10 + value : value));
      const nan = new Float32Array(layer.dim * layer.feedForwardDim).fill(NaN);
      await withTwo(async (fixture) => {
        const result = await run(fixture, layer, inputs, { 3: nan, 7: nan });
        expectSameBits(result, await run(fixture, layer, inputs), 'with NaN in the others');
      });
    });

    test('equal logits choose the experts with the lowest numbers; a NaN stays in its token', async () => {
      await withTwo(async (fixture) => {
        const inputs = inputsOf(Q4, 4);
        const first = inputs.logits.map((_, i) => (i % 8 < 3 ? 1 : -5));
        const expected = await run(fixture, Q4, { ...inputs, logits: first });
        const tied = inputs.logits.map((_, i) => (i % 8 < 3 ? 1 : i % 8 < 6 ? 1 : -5));
        const result = await run(fixture, Q4, { ...inputs, logits: tied });
        expectClose(result, expected, () => 1e-5, 'ties');
        const bad = inputs.logits.slice();
        bad[8] = NaN;
        const clean = await run(fixture, Q4, inputs);
        const marked = await run(fixture, Q4, { ...inputs, logits: bad });
        expectSameBits(marked.slice(0, Q4.dim), clean.slice(0, Q4.dim), 'the token before');
        expectSameBits(marked.slice(2 * Q4.dim), clean.slice(2 * Q4.dim), 'the tokens after');
        expect(marked.slice(Q4.dim, 2 * Q4.dim).every((value) => Number.isNaN(value))).toBe(true);
      });
    });

    test.each([
      [{ numUsed: 9 }, 'cannot choose 9 of 8 experts'],
      [{ numUsed: 0 }, 'cannot choose 0 of 8'],
      [{ numGroups: 3 }, '1 of 3 groups'],
      [{ numGroups: 4, numUsedGroups: 1 }, 'choose 3 of 8 experts from 1 of 4 groups'],
      [{ numExperts: 4 }, '4 experts need 4 times'],
    ] as const)('rejects an impossible choice: %o', async (change, message) => {
      await withTwo(async (fixture) => {
        const layer: Layer = { ...Q4, routing: { ...Q4.routing, ...change } };
        const inputs = inputsOf(Q4, 2);
        const { put, matrix } = fixture;
        const stack = (numRows: number, numCols: number): ExpertStack => ({
          weight: matrix('Q4_0', 8 * numRows, numCols, randomMatrix('Q4_0', 8 * numRows, numCols, 1).bytes),
          bias: null,
        });
        const op = { gate: stack(96, 64), up: stack(96, 64), down: stack(64, 96), activation: 'silu' as const };
        const offsets = { x: put(inputs.x), logits: put(inputs.logits), out: put(inputs.before), scratch: put([]) };
        expect(() =>
          fixture.pack.experts({ ...op, ...offsets, numTokens: 2, routing: { ...layer.routing, choiceBias: null } }),
        ).toThrowError(expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(message) }));
      });
    });
  });
}
