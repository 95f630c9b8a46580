import { expect, test } from 'vitest';
import { createRandom } from '../../../core/random.ts';
import { createInference } from './inference.ts';
import { DEFAULT_SHAPE, initialParams, layoutOf } from './layout.ts';
import { lossOf, type Targets } from './loss.ts';
import { createNetwork } from './network.ts';
import { threshold } from './sparsity.ts';

const layout = layoutOf({ numInputs: 6, numHidden: 5, rank: 2, numCandidates: 3 });
const random = createRandom(3);
const segments = Array.from({ length: 4 }, () => Float64Array.from({ length: 6 }, () => random.next() * 4 - 2));
const targets: Targets = {
  choice: 1,
  choiceWeight: 1.7,
  qualities: [0.2, NaN, 0.9],
  qualityWeights: [1, 0, 3],
  contextBucket: 2,
  temperature: 1.8,
  topP: 0.3,
  confidence: 1,
};
const params = initialParams(layout, 5, new Float64Array(layout.numParams));
for (let i = 0; i < params.length; i++) params[i]! += 0.3 * (random.next() - 0.5);

function lossAt(at: Float64Array, mask: ReturnType<typeof threshold> | null = null): number {
  return lossOf(
    layout,
    createNetwork(layout, mask).forward(at, segments),
    targets,
    new Float64Array(layout.numOutputs),
  );
}

test('[R1] the gradient of every parameter is that of finite differences', () => {
  const network = createNetwork(layout);
  const outputGradient = new Float64Array(layout.numOutputs);
  lossOf(layout, network.forward(params, segments), targets, outputGradient);
  const gradient = new Float64Array(layout.numParams);
  network.backward(params, outputGradient, gradient);
  const step = 1e-5;
  for (let i = 0; i < params.length; i++) {
    const [up, down] = [params.slice(), params.slice()];
    up[i]! += step;
    down[i]! -= step;
    const numeric = (lossAt(up) - lossAt(down)) / (2 * step);
    expect(Math.abs(gradient[i]! - numeric), `parameter ${i}`).toBeLessThan(1e-7 * Math.max(1, Math.abs(numeric)));
  }
  // Each block must have been reached, or equal zeros would prove nothing.
  for (const at of [
    layout.normGain,
    layout.wz,
    layout.wh,
    layout.az,
    layout.bz,
    layout.ah,
    layout.bh,
    layout.zeta,
    layout.nu,
  ])
    expect(gradient[at]).not.toBe(0);
});

test('[R2] the cell is the one of the design, step by step', () => {
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
  const outputs = createNetwork(one).forward(p, [Float64Array.of(1, 3), Float64Array.of(4, -2)]);
  expect(outputs[0]).toBeCloseTo(h, 14);
});

test('[R3] thresholding keeps the largest tenth of each W, and the masked network gives the same as the dense one', () => {
  const sparse = params.slice();
  const mask = threshold(sparse, layout);
  for (const [at, kept] of [
    [layout.wz, mask.wz],
    [layout.wh, mask.wh],
  ] as const) {
    const values = [...params.subarray(at, at + 30)].map(Math.abs).sort((a, b) => b - a);
    expect(kept).toHaveLength(3);
    expect([...kept].map((i) => Math.abs(sparse[at + i]!)).sort((a, b) => b - a)).toEqual(values.slice(0, 3));
    expect([...sparse.subarray(at, at + 30)].filter((value) => value === 0)).toHaveLength(27);
  }
  expect(lossAt(sparse, mask)).toBeCloseTo(lossAt(sparse), 12);
});

test('a longer conversation than the scratch holds is read to its end', () => {
  const many = Array.from({ length: 20 }, (_, i) => segments[i % 4]!);
  const network = createNetwork(layout);
  const long = [...network.forward(params, many)];
  expect([...network.forward(params, many.slice(0, 19))]).not.toEqual(long);
  expect([...network.forward(params, many)]).toEqual(long);
});

test('[R3] what decides is the same function, with all that is fixed multiplied in', () => {
  const whole = layoutOf({ ...DEFAULT_SHAPE, numCandidates: 4 });
  const own = initialParams(whole, 9, new Float32Array(whole.numParams));
  for (let i = 0; i < own.length; i++) own[i]! += 0.3 * (random.next() - 0.5);
  const mask = threshold(own, whole);
  const network = createNetwork(whole, mask);
  const infer = createInference(whole, own, mask);
  const input = (): Float32Array => Float32Array.from({ length: 128 }, () => random.next() * 6 - 2);
  for (const count of [1, 5, 2]) {
    const given = Array.from({ length: count }, input);
    const expected = network.forward(own, given);
    infer(given).forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 10));
  }
});
