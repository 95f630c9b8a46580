import { importBuilt } from '../../support/dist.ts';
import { createRandom } from '../../support/recall/random.ts';
import { HELD_OUT_NAMES, topicPrompt, TRAINED_NAMES } from './training-data.ts';

const { openTrainer } = await importBuilt<typeof import('../../../src/node/training/open-trainer.ts')>('node/training/open-trainer'); // prettier-ignore
const { METHODS } = await importBuilt<typeof import('../../../src/learning/training/methods.ts')>('learning/training/methods'); // prettier-ignore
const { runTraining } = await importBuilt<typeof import('../../../src/learning/training/training-run.ts')>('learning/training/training-run'); // prettier-ignore
const { readDataLines } = await importBuilt<typeof import('../../../src/learning/training/data/read-lines.ts')>('learning/training/data/read-lines'); // prettier-ignore

const SETTINGS = { numEpochs: 2, batchSize: 4, learningRate: 0.001, schedule: 'constant', numWarmupSteps: 0, seed: 1, evaluateEvery: null, patience: 0 } as const; // prettier-ignore
const OPTIONS = { beta: 0.1, divergence: 'forward' } as const;
/** Endings that people liked and disliked; a topic of both has several wordings. */
const LIKED = [' very kind and happy.', ' good and full of joy.', ' nice and loved to play.'];
const DISLIKED = [' very mean and angry.', ' bad and full of fear.', ' sad and did not play.'];

/** Share of held-out pairs in which the chosen answer gained on the rejected one, by a 95 % Wilson interval. */
function shareOf(losses: readonly number[]) {
  const count = losses.length;
  const share = losses.filter((loss) => loss < Math.LN2).length / count;
  const z = 1.96;
  const centre = (share + (z * z) / (2 * count)) / (1 + (z * z) / count);
  const half = (z * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count))) / (1 + (z * z) / count);
  return { share, low: centre - half, high: centre + half };
}

/** Accuracy of DPO on held-out pairs, with true labels and, as a control, with labels drawn by lot. */
export async function measurePreference(path: string): Promise<Record<string, number>> {
  const trainer = openTrainer(path, { rank: 4, numLayers: 2 });
  const context = { ...trainer, options: OPTIONS };
  const random = createRandom(5);
  const linesOf = (names: readonly string[], isShuffled: boolean) => {
    const pairs = names.flatMap((name) =>
      LIKED.map((chosen, i) => {
        const isSwapped = isShuffled && random(2) === 0;
        const pair = isSwapped ? { chosen: DISLIKED[i]!, rejected: chosen } : { chosen, rejected: DISLIKED[i]! };
        return JSON.stringify({ prompt: topicPrompt(name), ...pair });
      }),
    );
    return readDataLines(pairs.join('\n'), 'bench');
  };
  const heldOut = await METHODS.dpo.prepare(context, linesOf(HELD_OUT_NAMES, false), 'heldOut');
  async function accuracy(isShuffled: boolean) {
    const train = await METHODS.dpo.prepare(context, linesOf(TRAINED_NAMES, isShuffled), 'train');
    const hooks = { evaluate: null, save: () => {}, saveEveryMs: Infinity, onStep: () => {}, signal: new AbortController().signal, now: () => 0 }; // prettier-ignore
    const job = { plan: trainer.plan, objective: METHODS.dpo.objective(OPTIONS), items: train.items, settings: SETTINGS }; // prettier-ignore
    const { parameters } = await runTraining(trainer.work, job, hooks);
    const losses = await heldOut.losses(parameters);
    return { ...shareOf(losses), loss: losses.reduce((sum, loss) => sum + loss, 0) / losses.length };
  }
  const [real, shuffled] = [await accuracy(false), await accuracy(true)];
  await trainer.close();
  return {
    dpo_accuracy: real.share,
    dpo_accuracy_low: real.low,
    dpo_accuracy_high: real.high,
    dpo_loss: real.loss,
    dpo_shuffled_accuracy: shuffled.share,
    dpo_shuffled_loss: shuffled.loss,
  };
}
