import type { LowRankFactors } from '../../../src/adapters/types.ts';
import type { TokenSample } from '../../../src/learning/micro-lora/types.ts';
import { importBuilt } from '../dist.ts';

/** The instant loop as it serves: its steps are judged, so some are shortened or refused. */
export interface Pupil {
  teach(samples: readonly TokenSample[], lesson: { readonly quality: number; readonly learningRate?: number | undefined; readonly name: string }): void; // prettier-ignore
  /** Null: nothing was learned. */
  factors(): LowRankFactors | null;
}

export async function openPupils(
  shape: { readonly hiddenDim: number; readonly vocabSize: number },
  probes: readonly TokenSample[],
): Promise<() => Pupil> {
  const { createInstantLearner } = await importBuilt<typeof import('../../../src/learning/sona/instant-step.ts')>('learning/sona/instant-step'); // prettier-ignore
  const { microConfig } = await importBuilt<typeof import('../../../src/learning/sona/micro-factors.ts')>('learning/sona/micro-factors'); // prettier-ignore
  const { INSTANT_LEARNING_RATE } = await importBuilt<typeof import('../../../src/learning/micro-lora/instant-learning-rate.ts')>('learning/micro-lora/instant-learning-rate'); // prettier-ignore
  const config = microConfig(shape);
  return () => {
    const learner = createInstantLearner(() => 0);
    let factors: LowRankFactors | null = null;
    return {
      teach(samples, { quality, learningRate = INSTANT_LEARNING_RATE, name }) {
        const job = { key: '', config, state: null, samples, quality, isPraise: false, question: name, answer: name, probes, praised: [], learningRate }; // prettier-ignore
        factors = learner.step(job).factors[0] ?? factors;
      },
      factors: () => factors,
    };
  };
}
