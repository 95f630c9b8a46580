import type { TrainingExample } from '../lora-training/types.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import type { ExaminedAnswers } from './examined.ts';
import type { LearningModel } from './types.ts';

/** A question of everyday use with a plain answer; neither is ever rated. */
export interface Probe {
  readonly question: string;
  readonly answer: string;
}

export const PROBES: readonly Probe[] = [
  { question: 'What is the capital of France?', answer: 'The capital of France is Paris.' },
  { question: 'How many days are in a week?', answer: 'There are seven days in a week.' },
  { question: 'Write a sentence about the sea.', answer: 'The sea was calm and blue, and the waves' },
  { question: 'Who wrote Romeo and Juliet?', answer: 'Romeo and Juliet was written by William' },
  { question: 'Give me a tip for better sleep.', answer: 'Go to bed at the same time every' },
  { question: 'What does a plant need to grow?', answer: 'A plant needs water, sunlight and soil' },
  { question: 'Say hello to a new colleague.', answer: 'Hello, and welcome to the team! I' },
  { question: 'How do I boil an egg?', answer: 'Bring a pot of water to a boil, then' },
];

/** A model that finds plain English hardly likelier than random tokens has no answers to keep. */
const FLUENT_SHARE = 0.8;

/**
 * Answers that have nothing to do with any feedback, with the token that the model of the file would say at each position. The texts are
 * given, because generating them would take the time of as many answers.
 */
export function createProbes(examined: ExaminedAnswers, probes: readonly Probe[] = PROBES) {
  const cache = new Map<string, Promise<readonly TrainingExample[]>>();

  const encode = async (model: LearningModel, isChat: boolean): Promise<readonly TrainingExample[]> => {
    const examples = await Promise.all(
      probes.map(({ question, answer }) =>
        model.encodeExample(
          { query: question, prompt: isChat ? [{ role: 'user', content: question }] : question },
          answer,
        ),
      ),
    );
    return examples.filter((example) => example !== null);
  };

  async function examine(tenant: string, model: LearningModel, isChat: boolean): Promise<readonly TrainingExample[]> {
    const examples = await encode(model, isChat);
    // All at once: the engine computes them in one batch.
    const answers = await Promise.all(
      examples.map(async (example) => ({ ...example, samples: await examined.of(tenant, model, example) })),
    );
    const isFluent = meanLoss(answers.flatMap(({ samples }) => samples)) < FLUENT_SHARE * Math.log(model.vocabSize);
    return isFluent ? answers.map(sayLikeliest) : [];
  }

  return {
    /** Without hidden states. */
    encode,
    /** `isChat`: as turns of a chat. Computed once for each model. */
    of(tenant: string, model: LearningModel, isChat: boolean): Promise<readonly TrainingExample[]> {
      const key = JSON.stringify([model.id, model.path, isChat]);
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const examining = examine(tenant, model, isChat);
      cache.set(key, examining);
      examining.catch(() => cache.delete(key));
      return examining;
    },
  };
}
export type Probes = ReturnType<typeof createProbes>;

/** Infinite for samples without the sum over the vocabulary. */
const meanLoss = (samples: readonly TokenSample[]): number =>
  samples.reduce(
    (sum, { labelLogit = null, logSumExp = null }) => sum + ((logSumExp ?? Infinity) - (labelLogit ?? 0)),
    0,
  ) / samples.length;

/** The example with the model's own choice as the label of each position. */
export const sayLikeliest = ({ samples, ...example }: TrainingExample): TrainingExample => ({
  ...example,
  samples: samples!.map((sample) => ({
    ...sample,
    label: sample.ids[0] ?? sample.label,
    labelLogit: sample.logits[0] ?? sample.labelLogit ?? null,
  })),
});
