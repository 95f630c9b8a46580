import { importBuilt } from '../../support/dist.ts';
import { createRandom } from '../../support/recall/random.ts';
import { HELD_OUT_ENDINGS, HELD_OUT_NAMES, topicPrompt, TRAINED_ENDINGS, TRAINED_NAMES } from './training-data.ts';
import { runHooks } from './training-progress.ts';

const { openTrainer } = await importBuilt<typeof import('../../../src/node/training/open-trainer.ts')>('node/training/open-trainer'); // prettier-ignore
const { METHODS } = await importBuilt<typeof import('../../../src/learning/training/methods.ts')>('learning/training/methods'); // prettier-ignore
const { runTraining } = await importBuilt<typeof import('../../../src/learning/training/training-run.ts')>('learning/training/training-run'); // prettier-ignore
const { readDataLines } = await importBuilt<typeof import('../../../src/learning/training/data/read-lines.ts')>('learning/training/data/read-lines'); // prettier-ignore

const SETTINGS = { numEpochs: 1, batchSize: 4, learningRate: 0.001, schedule: 'constant', numWarmupSteps: 0, seed: 1, evaluateEvery: null, patience: 0 } as const; // prettier-ignore
const OPTIONS = { beta: 0.1, divergence: 'forward' } as const;
/** Endings of each name, in turn. */
const PAIRS_PER_NAME = 3;
/** Draws of the control. */
const NUM_SHUFFLES = 6;

/** Prompts with a liked and a disliked ending. */
const pairsOf = (names: readonly string[], endings: typeof TRAINED_ENDINGS) =>
  names.flatMap((name, n) =>
    Array.from({ length: PAIRS_PER_NAME }, (_, i) => {
      const [chosen, rejected] = endings[(n * PAIRS_PER_NAME + i) % endings.length]!;
      return { prompt: topicPrompt(name), chosen, rejected };
    }),
  );
type Pair = ReturnType<typeof pairsOf>[number];

/** 95 % Wilson interval of a share. */
function wilson(share: number, count: number): readonly [low: number, high: number] {
  const z = 1.96;
  const centre = (share + (z * z) / (2 * count)) / (1 + (z * z) / count);
  const half = (z * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count))) / (1 + (z * z) / count);
  return [centre - half, centre + half];
}

/**
 * Share of held-out pairs, of other subjects and endings, in which DPO made the liked ending gain on the disliked one. The interval counts
 * endings. Control: labels drawn by lot.
 */
export async function measurePreference(path: string): Promise<Record<string, number>> {
  const trainer = openTrainer(path, { rank: 4, numLayers: 2 });
  const context = { ...trainer, options: OPTIONS };
  const prepare = (pairs: readonly Pair[], part: 'train' | 'heldOut') =>
    METHODS.dpo.prepare(context, readDataLines(pairs.map((pair) => JSON.stringify(pair)).join('\n'), 'bench'), part);
  const [trainedPairs, heldOutPairs] = [pairsOf(TRAINED_NAMES, TRAINED_ENDINGS), pairsOf(HELD_OUT_NAMES, HELD_OUT_ENDINGS)]; // prettier-ignore
  const heldOut = await prepare(heldOutPairs, 'heldOut');
  // Exactly half of them: a surplus of true or false labels would teach its direction.
  const swapped = (seed: number): Pair[] => {
    const random = createRandom(seed);
    const order = trainedPairs.map((pair) => ({ pair, key: random(2 ** 30) })).sort((a, b) => a.key - b.key);
    return order.map(({ pair }, i) => (i % 2 === 0 ? pair : { ...pair, chosen: pair.rejected, rejected: pair.chosen }));
  };
  async function measured(name: string, pairs: readonly Pair[]) {
    const { items } = await prepare(pairs, 'train');
    const job = { plan: trainer.plan, objective: METHODS.dpo.objective(OPTIONS), items, settings: SETTINGS };
    const { parameters } = await runTraining(trainer.work, job, runHooks(`DPO, ${name}`));
    const losses = await heldOut.losses(parameters);
    // The untrained model prefers neither: each of its losses is log 2.
    const share = losses.filter((loss) => loss < Math.LN2).length / losses.length;
    const loss = losses.reduce((sum, one) => sum + one, 0) / losses.length;
    console.error(`DPO, ${name}: right in ${share.toFixed(3)} of ${losses.length} held-out pairs, loss ${loss.toFixed(4)}`); // prettier-ignore
    return { share, loss };
  }
  const real = await measured('true labels', trainedPairs);
  const shuffled: (typeof real)[] = [];
  for (let seed = 0; seed < NUM_SHUFFLES; seed++) shuffled.push(await measured('shuffled labels', swapped(5 + seed)));
  const [low, high] = wilson(real.share, HELD_OUT_ENDINGS.length);
  await trainer.close();
  const mean = (of: 'share' | 'loss'): number => shuffled.reduce((sum, one) => sum + one[of], 0) / NUM_SHUFFLES;
  return {
    dpo_accuracy: real.share,
    dpo_accuracy_low: low,
    dpo_accuracy_high: high,
    dpo_loss: real.loss,
    dpo_shuffled_accuracy: mean('share'),
    dpo_shuffled_accuracy_highest: Math.max(...shuffled.map(({ share }) => share)),
    dpo_shuffled_loss: mean('loss'),
  };
}
