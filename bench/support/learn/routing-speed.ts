// Cost of a decision: reading the text, then the policy; the sentence embedding is counted separately.
import type { Contestant } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { candidatesOf, encodeAll, FREE } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

export interface SpeedRow {
  readonly name: string;
  readonly p50Us: number;
  readonly p99Us: number;
}

const NUM_ROUNDS = 20;

function timeEach(name: string, count: number, work: (index: number) => void): SpeedRow {
  for (let i = 0; i < count; i++) work(i);
  const times: number[] = [];
  for (let round = 0; round < NUM_ROUNDS; round++)
    for (let i = 0; i < count; i++) {
      const began = performance.now();
      work(i);
      times.push((performance.now() - began) * 1000);
    }
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(share * (times.length - 1))]!;
  return { name, p50Us: at(0.5), p99Us: at(0.99) };
}

/** One after the other, each decision timed separately. */
export function measureSpeed(contestants: readonly Contestant[], data: readonly ModelOutcomes[]): SpeedRow[] {
  const some = data.filter((_, i) => i % 20 === 0);
  const { encoder, train } = encodeAll(some, []);
  const rule = { candidates: candidatesOf(['small', 'large']), weights: FREE, shrinkage: null, platt: { slope: 1, intercept: 0 }, safeDefault: 0, minConfidence: 0.7 }; // prettier-ignore
  const request = (i: number) => ({ turns: [some[i]!.text], ...(some[i]!.vector && { vector: some[i]!.vector }) });
  return [
    timeEach('reading the text', some.length, (i) => encoder.encode(request(i))),
    ...contestants.map(({ name, train: fit }) => {
      const policy = router.createPolicy(fit(...router.splitValidation(train, 2)), rule);
      return timeEach(`decision, ${name}`, train.length, (i) => policy.decide(train[i]!.input));
    }),
  ];
}
