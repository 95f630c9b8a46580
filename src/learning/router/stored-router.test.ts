import { expect, test } from 'vitest';
import { createConstant } from './baselines/constant.ts';
import { contestantsOf } from './contestants.ts';
import type { DecisionRule } from './decision-rule.ts';
import { explainDecision } from './explain.ts';
import type { Contestant } from './select-best.ts';
import { createRouter, loadRouter, saveRouter } from './stored-router.ts';
import { learnable, sha256, SMALL_AND_LARGE } from './test-examples.contract.ts';

const { encoder, examples } = learnable(60, 3);
const rule: DecisionRule = {
  candidates: SMALL_AND_LARGE,
  weights: { perSecond: 0.1, perCost: 1e-4 },
  shrinkage: { means: Float32Array.of(0.4, 0.9), slopes: Float32Array.of(1, 0.5) },
  platt: { slope: 1.25, intercept: -0.125 },
  safeDefault: 1,
  minConfidence: 0.7,
};
const constant: Contestant = { name: 'always large', train: () => createConstant('always large', 1, 2) };
const contestants = [constant, ...contestantsOf({ numCandidates: 2, numBuckets: 512 })];
const routers = contestants.map(({ train }) => createRouter(encoder, train(examples, []), rule));

/** With a changed part and a checksum that is right for it. */
function forge(text: string, change: (stored: any) => void): string {
  const { checksum: _, ...stored } = JSON.parse(text);
  change(stored);
  const probe = JSON.stringify({ ...stored, checksum: '' });
  try {
    loadRouter(probe, sha256);
  } catch (error) {
    const actual = /checksum ([0-9a-f]{64})/.exec((error as Error).message)?.[1];
    if (actual !== undefined) return JSON.stringify({ ...stored, checksum: actual });
  }
  return probe;
}

test.each(routers.map((router) => [router.policy.name, router] as const))(
  '[R13] %s decides the same after it was stored',
  (_, router) => {
    const loaded = loadRouter(saveRouter(router, sha256), sha256);
    expect(loaded.policy.name).toBe(router.policy.name);
    for (const turns of [['what is 12 minus 45'], ['hello friend', 'write a letter about spring']]) {
      const [before, after] = [router.encoder.encode({ turns }), loaded.encoder.encode({ turns })];
      expect(after).toEqual(before);
      expect(loaded.policy.decide(after)).toEqual(router.policy.decide(before));
    }
  },
);

const ridge = routers.find(({ policy }) => policy.name === 'ridge')!;
const stored = saveRouter(ridge, sha256);

test('[R14] rejects a changed byte, an unknown version and text that is not a router', () => {
  expect(() => loadRouter(stored.replace('"slope":1.25', '"slope":1.26'), sha256)).toThrow(
    expect.objectContaining({ code: 'hash_mismatch' }),
  );
  expect(() => loadRouter(stored.replace('"version":2', '"version":3'), sha256)).toThrow(
    /version 3, this reads 1 and 2/,
  );
  for (const text of ['', '[]', 'null', '{"version":2'])
    expect(() => loadRouter(text, sha256)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
});

test('[R14] rejects mismatched shapes even with a correct checksum', () => {
  const refused = (change: (stored: any) => void, message: RegExp): void =>
    expect(() => loadRouter(forge(stored, change), sha256)).toThrow(message);
  refused(({ rule: { candidates } }) => void candidates.pop(), /shrinkage of 2 and 2 values for 1 candidates/);
  refused((all) => {
    all.rule.candidates.push({ ...all.rule.candidates[0], id: 'third' });
    all.rule.shrinkage = null;
  }, /weights has 258 values, needs 387/);
  refused(({ estimator }) => (estimator.arrays.weights.base64 = ''), /weights has 0 values, needs 258/);
  refused(
    ({ estimator }) => (estimator.arrays.weights.base64 = estimator.arrays.weights.base64.replace(/^.{8}/, 'AADAfwAA')),
    /weights is not finite/,
  );
  refused(({ encoder: state }) => (state.arrays.mean.base64 = btoa('abcd')), /mean has 1 values, needs 48/);
  refused(({ estimator }) => (estimator.kind = 'toString'), /kind "toString"/);
  refused((all) => (all.rule.safeDefault = 2), /safe default 2 of 2/);
});

test.each(['ridge', 'cosine ridge'])(
  '[R14] %s of version 1, which had inputs that were always 0, decides the same',
  (name) => {
    const router = routers.find(({ policy }) => policy.name === name)!;
    const request = {
      turns: ['what is 12 minus 45'],
      retrieval: { similarities: [0.9, 0.5, 0.2] },
      system: { load: 0.5, latencyMs: [200, 4000] },
    };
    // The block of states as it was: hops behind the gaps, the machine behind the load, three numbers a candidate.
    const upTo = (length: number, values: readonly number[]): number[] =>
      [...values, ...Array.from({ length }, () => 0)].slice(0, length);
    const { features } = encoder.encode(request);
    const [retrieval, system] = [[...features.subarray(48, 96)], [...features.subarray(96)]];
    const before = Float32Array.from([
      ...upTo(48, [...retrieval.slice(0, 8), 0, 0, ...retrieval.slice(8)]),
      ...upTo(32, [system[0]!, 0, 0, 0, ...system.slice(1, 10).flatMap((latency) => [0, latency, 0])]),
    ]);
    const weights = Float32Array.from({ length: 2 * 129 }, (_, i) => Math.sin(i));
    const [first, middle] = name === 'ridge' ? [33, 113] : [49, 129];
    const old = forge(saveRouter(router, sha256), (all) => {
      all.version = 1;
      all.estimator.arrays.weights.base64 = Buffer.from(weights.buffer).toString('base64');
    });
    const now = loadRouter(old, sha256).estimator.estimate(encoder.encode(request)).qualities;
    const plain = forge(saveRouter(router, sha256), (all) => {
      all.estimator.arrays.weights.base64 = Buffer.from(weights.buffer).toString('base64');
    });
    // Everything but the states is where it was; what they add is the old weights by the old block.
    const noStates = { turns: request.turns };
    const rest = loadRouter(plain, sha256).estimator.estimate(encoder.encode(noStates)).qualities;
    for (const candidate of [0, 1]) {
      const own = weights.subarray(candidate * 129 + first, candidate * 129 + middle);
      const added = own.reduce((sum, weight, i) => sum + weight * before[i]!, 0);
      expect(now[candidate]).toBeCloseTo(rest[candidate]! + added, 5);
    }
  },
);

test('[R15] low confidence goes to the safe default and says so; an explanation is plain data', () => {
  const input = encoder.encode({ turns: ['write a letter about 12 sums'] });
  const unsure = createRouter(encoder, ridge.estimator, { ...rule, platt: { slope: 0, intercept: 0 }, weights: { perSecond: 0, perCost: 1 } }); // prettier-ignore
  const decision = unsure.policy.decide(input);
  expect(decision).toMatchObject({ candidate: 1, confidence: 0.5, why: { kind: 'safe-default' } });
  const sure = createRouter(encoder, ridge.estimator, { ...rule, platt: { slope: 0, intercept: 3 }, weights: { perSecond: 0, perCost: 1 } }); // prettier-ignore
  expect(sure.policy.decide(input)).toMatchObject({ candidate: 0, why: { kind: 'best' } });
  const explanation = explainDecision(unsure, input, decision);
  expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation);
  expect(explanation).toMatchObject({ candidate: 'large', policy: 'ridge', reason: 'safe-default' });
  expect(explanation.candidates.map(({ id, trust }) => [id, trust])).toEqual([['small', 1], ['large', 0.5]]); // prettier-ignore
});
