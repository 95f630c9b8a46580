import { expect, test } from 'vitest';
import { contestantsOf } from './contestants.ts';
import type { DecisionRule } from './decision-rule.ts';
import { explainDecision } from './explain.ts';
import { createRouter, loadRouter, saveRouter } from './stored-router.ts';
import { FREE, learnable, sha256, SMALL_AND_LARGE } from './test-examples.contract.ts';

const { encoder, examples } = learnable(60, 3);
const rule: DecisionRule = {
  candidates: SMALL_AND_LARGE,
  weights: { perSecond: 0.1, perCost: 1e-4 },
  shrinkage: { means: Float32Array.of(0.4, 0.9), slopes: Float32Array.of(1, 0.5) },
  platt: { slope: 1.25, intercept: -0.125 },
  safeDefault: 1,
  minConfidence: 0.7,
};
const contestants = contestantsOf({ candidates: SMALL_AND_LARGE, weights: FREE, costs: [1, 10], numBuckets: 512, fastGrnn: { maxEpochs: 4 } }); // prettier-ignore
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

const network = routers.at(-1)!;
const stored = saveRouter(network, sha256);

test('[R14] a changed byte, another version and what is no router are refused', () => {
  expect(() => loadRouter(stored.replace('"slope":1.25', '"slope":1.26'), sha256)).toThrow(
    expect.objectContaining({ code: 'hash_mismatch' }),
  );
  expect(() => loadRouter(stored.replace('"version":1', '"version":2'), sha256)).toThrow(/version 2, this reads 1/);
  for (const text of ['', '[]', 'null', '{"version":1'])
    expect(() => loadRouter(text, sha256)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
});

test('[R14] shapes that do not fit are refused even where the checksum is right', () => {
  const refused = (change: (stored: any) => void, message: RegExp): void =>
    expect(() => loadRouter(forge(stored, change), sha256)).toThrow(message);
  refused(({ rule: { candidates } }) => void candidates.pop(), /shrinkage of 2 and 2 values for 1 candidates/);
  refused((all) => {
    all.rule.candidates.push({ ...all.rule.candidates[0], id: 'third' });
    all.rule.shrinkage = null;
  }, /it is for 2 candidates, there are 3/);
  refused(({ estimator }) => (estimator.arrays.params.base64 = ''), /params has 0 values, needs \d+/);
  refused(({ estimator }) => (estimator.arrays.wz.base64 = btoa('\xff\xff\xff\xff')), /wz is out of range/);
  refused(({ encoder: state }) => (state.arrays.mean.base64 = btoa('abcd')), /mean has 1 values, needs 48/);
  refused(({ estimator }) => (estimator.kind = 'toString'), /kind "toString"/);
  refused((all) => (all.rule.safeDefault = 2), /safe default 2 of 2/);
});

test('[R15] low confidence goes to the safe default and says so; an explanation is plain data', () => {
  const input = encoder.encode({ turns: ['write a letter about 12 sums'] });
  const unsure = createRouter(encoder, network.estimator, { ...rule, platt: { slope: 0, intercept: 0 }, weights: { perSecond: 0, perCost: 1 } }); // prettier-ignore
  const decision = unsure.policy.decide(input);
  expect(decision).toMatchObject({ candidate: 1, confidence: 0.5, why: { kind: 'safe-default' } });
  const sure = createRouter(encoder, network.estimator, { ...rule, platt: { slope: 0, intercept: 3 }, weights: { perSecond: 0, perCost: 1 } }); // prettier-ignore
  expect(sure.policy.decide(input)).toMatchObject({ candidate: 0, why: { kind: 'best' } });
  const explanation = explainDecision(unsure, input, decision);
  expect(JSON.parse(JSON.stringify(explanation))).toEqual(explanation);
  expect(explanation).toMatchObject({ candidate: 'large', policy: 'FastGRNN', reason: 'safe-default' });
  expect(explanation.candidates.map(({ id, trust }) => [id, trust])).toEqual([['small', 1], ['large', 0.5]]); // prettier-ignore
  const { settings } = decision;
  expect(settings!.temperature > 0 && settings!.temperature < 2 && settings!.topP > 0 && settings!.topP < 1).toBe(true);
});
