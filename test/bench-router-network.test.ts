import { expect, test } from 'vitest';
import { createRandom } from '../src/core/random.ts';
import { createInference } from '../bench/support/learn/routers/fastgrnn/inference.ts';
import { DEFAULT_SHAPE, initialParams, layoutOf } from '../bench/support/learn/routers/fastgrnn/layout.ts';
import { lossOf, type Targets } from '../bench/support/learn/routers/fastgrnn/loss.ts';
import { createNetwork } from '../bench/support/learn/routers/fastgrnn/network.ts';
import { threshold } from '../bench/support/learn/routers/fastgrnn/sparsity.ts';

const layout = layoutOf({ numInputs: 6, numHidden: 5, rank: 2, numCandidates: 3 });
const random = createRandom(3);
/** Five, one more than are stored at once; the second without its last numbers, like parts of a text. */
const segments = Array.from({ length: 5 }, (_, t) => Float64Array.from({ length: 6 }, (_, i) => (t === 1 && i > 3 ? 0 : random.next() * 4 - 2))); // prettier-ignore
const targets: Targets = {
  choice: 1,
  choiceWeight: 1.7,
  qualities: [0.2, NaN, 0.9],
  qualityWeights: [1, 0, 3],
  confidence: 1,
};
const params = initialParams(layout, 5, new Float64Array(layout.numParams));
for (let i = 0; i < params.length; i++) params[i]! += 0.3 * (random.next() - 0.5);

function lossAt(at: Float64Array, mask: ReturnType<typeof threshold> | null = null): number {
  const network = createNetwork(layout, mask);
  network.load(at);
  return lossOf(layout, network.forward(segments), targets, new Float64Array(layout.numOutputs));
}

test.each(['dense', 'masked'])('[R1] the gradient of every parameter matches finite differences, %s', (kind) => {
  const at = params.slice();
  const mask = kind === 'masked' ? threshold(at, layout) : null;
  const network = createNetwork(layout, mask);
  const outputGradient = new Float64Array(layout.numOutputs);
  const gradient = new Float64Array(layout.numParams);
  network.load(at);
  // Two passes before collection count twice, and none of the third remains for the fourth.
  for (const numPasses of [2, 1, 1]) {
    gradient.fill(0);
    for (let pass = 0; pass < numPasses; pass++) {
      lossOf(layout, network.forward(segments), targets, outputGradient);
      network.backward(outputGradient.map((value) => value / numPasses));
    }
    network.collect(gradient);
  }
  const isCut = (i: number): boolean => i >= layout.wz && i < layout.az && at[i] === 0;
  const step = 1e-5;
  for (let i = 0; i < at.length; i++) {
    const [up, down] = [at.slice(), at.slice()];
    up[i]! += step;
    down[i]! -= step;
    const numeric = isCut(i) ? 0 : (lossAt(up, mask) - lossAt(down, mask)) / (2 * step);
    expect(Math.abs(gradient[i]! - numeric), `parameter ${i}`).toBeLessThan(1e-7 * Math.max(1, Math.abs(numeric)));
  }
  expect(at.filter((_, i) => isCut(i))).toHaveLength(mask === null ? 0 : 54);
  // Each block must have been reached, because equal zeros would prove nothing.
  for (const block of [
    layout.normGain + ((mask?.wz[0] ?? 0) % 6),
    layout.wz + (mask?.wz[0] ?? 0),
    layout.wh + (mask?.wh[0] ?? 0),
    layout.az,
    layout.bz,
    layout.ah,
    layout.bh,
    layout.zeta,
    layout.nu,
  ])
    expect(gradient[block]).not.toBe(0);
});

test('[R2] the cell matches the design step by step', () => {
  const one = layoutOf({ numInputs: 2, numHidden: 1, rank: 1, numCandidates: 1 });
  const p = new Float64Array(one.numParams);
  p.fill(1, one.normGain, one.normGain + 2);
  p.set([0.5, -0.25], one.wz);
  p.set([0.3, 0.7], one.wh);
  p[one.az] = 0.9;
  p[one.bz] = 0.8;
  p[one.ah] = -0.6;
  p[one.bh] = 0.4;
  p[one.biasZ] = 0.1;
  p[one.biasH] = -0.2;
  p[one.zeta] = 1;
  p[one.nu] = 0.5;
  p[one.heads] = 1;
  let h = 0;
  for (const [a, b] of [
    [1, 3],
    [4, -2],
  ] as const) {
    const deviation = Math.sqrt(((a - b) / 2) ** 2 + 1e-5);
    const [x, y] = [(a - b) / 2 / deviation, (b - a) / 2 / deviation];
    const z = 1 / (1 + Math.exp(-(0.5 * x - 0.25 * y + 0.9 * 0.8 * h + 0.1)));
    const c = Math.tanh(0.3 * x + 0.7 * y - 0.6 * 0.4 * h - 0.2);
    h = (1 * (1 - z) + 0.5) * c + z * h;
  }
  const network = createNetwork(one);
  network.load(p);
  const outputs = network.forward([Float64Array.of(1, 3), Float64Array.of(4, -2)]);
  expect(outputs[0]).toBeCloseTo(h, 14);
});

test('[R3] thresholding keeps the largest tenth of each W, and the masked network matches the dense one', () => {
  const sparse = params.slice();
  const mask = threshold(sparse, layout);
  for (const [at, entries] of [
    [layout.wz, mask.wz],
    [layout.wh, mask.wh],
  ] as const) {
    const values = [...params.subarray(at, at + 30)].map(Math.abs).sort((a, b) => b - a);
    expect(entries).toHaveLength(3);
    expect([...entries].map((i) => Math.abs(sparse[at + i]!)).sort((a, b) => b - a)).toEqual(values.slice(0, 3));
    expect([...sparse.subarray(at, at + 30)].filter((value) => value === 0)).toHaveLength(27);
  }
  expect(lossAt(sparse, mask)).toBeCloseTo(lossAt(sparse), 12);
});

test('reads a conversation longer than the scratch buffer to its end', () => {
  const many = Array.from({ length: 20 }, (_, i) => segments[i % 4]!);
  const network = createNetwork(layout);
  network.load(params);
  const long = [...network.forward(many)];
  expect([...network.forward(many.slice(0, 19))]).not.toEqual(long);
  expect([...network.forward(many)]).toEqual(long);
});

test('[R3] the inference function is the same, with all constants multiplied in', () => {
  const whole = layoutOf({ ...DEFAULT_SHAPE, numCandidates: 4 });
  const params = initialParams(whole, 9, new Float32Array(whole.numParams));
  for (let i = 0; i < params.length; i++) params[i]! += 0.3 * (random.next() - 0.5);
  const mask = threshold(params, whole);
  const network = createNetwork(whole, mask);
  network.load(params);
  const infer = createInference(whole, params, mask);
  // Parts of a text end in zeros: training skips them, inference does not.
  const input = (numUsed: number): Float32Array => Float32Array.from({ length: 128 }, (_, i) => (i < numUsed ? random.next() * 6 - 2 : 0)); // prettier-ignore
  for (const count of [1, 5, 2]) {
    const inputs = Array.from({ length: count }, (_, t) => input(t % 2 === 0 ? 128 : 32));
    const expected = network.forward(inputs);
    infer(inputs).forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 10));
  }
});
