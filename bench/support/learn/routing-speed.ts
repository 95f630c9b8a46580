// What a decision costs: reading the text, then the network.
import { importBuilt } from '../dist.ts';
import { median } from '../report.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { candidatesOf, encodeAll, FREE } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

export interface SpeedResult {
  readonly encodeUs: number;
  readonly networkUs: number;
}

/** Medians over requests of the suite, after they have all been seen once. */
export function measureSpeed(data: readonly ModelOutcomes[]): SpeedResult {
  const some = data.filter((_, i) => i % 20 === 0);
  const { encoder, train } = encodeAll(some, []);
  const candidates = candidatesOf(['small', 'large']);
  const trained = router.trainFastGrnn({ candidates, weights: FREE, train, validation: [], options: { maxEpochs: 4 } });
  const network = router.createFastGrnn({ ...trained, numCandidates: 2 });
  const time = (work: (index: number) => void): number => {
    const REPEATS = 20;
    train.forEach((_, i) => work(i));
    const times = train.map((_, i) => {
      const began = performance.now();
      for (let repeat = 0; repeat < REPEATS; repeat++) work(i);
      return ((performance.now() - began) / REPEATS) * 1000;
    });
    return median(times);
  };
  return {
    encodeUs: time((i) => encoder.encode({ turns: [some[i]!.text] })),
    networkUs: time((i) => network.estimate(train[i]!.input)),
  };
}
