import type { GrpoSettings } from '../../../src/learning/training/grpo-run.ts';
import { importBuilt } from '../../support/dist.ts';
import { createRandom } from '../../support/recall/random.ts';
import { makeTasks, type Task } from './training-data.ts';

const { openTrainer } = await importBuilt<typeof import('../../../src/node/training/open-trainer.ts')>('node/training/open-trainer'); // prettier-ignore
const { createRollouts } = await importBuilt<typeof import('../../../src/node/training/rollouts.ts')>('node/training/rollouts'); // prettier-ignore
const { METHODS } = await importBuilt<typeof import('../../../src/learning/training/methods.ts')>('learning/training/methods'); // prettier-ignore
const { runTraining } = await importBuilt<typeof import('../../../src/learning/training/training-run.ts')>('learning/training/training-run'); // prettier-ignore
const { runGrpo } = await importBuilt<typeof import('../../../src/learning/training/grpo-run.ts')>('learning/training/grpo-run'); // prettier-ignore
const { rewardOf } = await importBuilt<typeof import('../../../src/learning/training/tool-reward.ts')>('learning/training/tool-reward'); // prettier-ignore
const { createSchemaCheck } = await importBuilt<typeof import('../../../src/runtime/reflection/schema-check.ts')>('runtime/reflection/schema-check'); // prettier-ignore
const { readDataLines } = await importBuilt<typeof import('../../../src/learning/training/data/read-lines.ts')>('learning/training/data/read-lines'); // prettier-ignore
const { reportHeldOut } = await importBuilt<typeof import('../../../src/learning/training/report.ts')>('learning/training/report'); // prettier-ignore
const { loadModel } = await importBuilt<typeof import('../../../src/index.ts')>('index');

/** Few steps: the model knows the form, and the right arguments in part. */
const WARM_UP = { numEpochs: 1, batchSize: 4, learningRate: 0.004, schedule: 'constant', numWarmupSteps: 0, seed: 1, evaluateEvery: null, patience: 0 } as const; // prettier-ignore
const NUM_WARM_UP = 60;
const NUM_HELD_OUT = 40;
const NUM_SAMPLES = 8;
const OPTIONS = { beta: 0.1, divergence: 'forward' } as const;
const SETTINGS: GrpoSettings = { numRounds: 24, numPrompts: 8, groupSize: 8, stepsPerRound: 2, clip: 0.2, klWeight: 0.02, learningRate: 0.001, temperature: 1, seed: 2 }; // prettier-ignore

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = createRandom(seed);
  const order = [...items];
  for (let i = order.length - 1; i > 0; i--) {
    const k = random(i + 1);
    [order[i], order[k]] = [order[k]!, order[i]!];
  }
  return order;
}

/**
 * Mean reward of held-out tool calls after SFT on a few calls, and after GRPO from there. Control: the same rounds, with random
 * rewards.
 */
export async function measureGrpo(path: string, isDevelopment: boolean): Promise<Record<string, number>> {
  const trainer = openTrainer(path, { rank: 4, numLayers: 2 });
  const model = await loadModel(path);
  const order = shuffled(makeTasks(), 11);
  const taskLines = (some: readonly Task[]) => readDataLines(some.map(({ prompt, schema, expected }) => JSON.stringify({ prompt, schema, expected })).join('\n'), 'bench') as never[]; // prettier-ignore
  const heldOut = taskLines(order.slice(0, NUM_HELD_OUT));
  const tasks = taskLines(order.slice(NUM_HELD_OUT));
  const warmUp = order.slice(NUM_HELD_OUT, NUM_HELD_OUT + NUM_WARM_UP);
  const warmLines = readDataLines(warmUp.map(({ prompt, answer }) => JSON.stringify({ prompt, completion: answer })).join('\n'), 'bench'); // prettier-ignore
  const { items } = await METHODS.sft.prepare({ ...trainer, options: OPTIONS }, warmLines, 'train');
  const signal = new AbortController().signal;
  const hooks = { evaluate: null, save: () => {}, saveEveryMs: Infinity, onStep: () => {}, signal, now: () => 0 };
  const warm = await runTraining(trainer.work, { plan: trainer.plan, objective: { kind: 'sft' }, items, settings: WARM_UP }, hooks); // prettier-ignore
  const sample = createRollouts({ trainer, model, maxTokens: 32 });
  const check = createSchemaCheck(makeTasks()[0]!.schema).problemsOf;
  const reward = (text: string, task: { readonly expected: Readonly<Record<string, unknown>> }): number =>
    rewardOf(text, task, check).value;
  const measured = async (parameters: Float32Array): Promise<number[]> => {
    const groups = await sample(parameters, heldOut, { numSamples: NUM_SAMPLES, seed: 99, temperature: 1 });
    return groups.map((group, i) => group.reduce((sum, { text }) => sum + reward(text, heldOut[i]!), 0) / group.length);
  };
  const before = await measured(warm.parameters);
  const settings = { ...SETTINGS, numRounds: isDevelopment ? 8 : SETTINGS.numRounds };
  async function train(isShuffled: boolean): Promise<number[]> {
    const random = createRandom(17);
    const job = { plan: trainer.plan, tasks, start: warm.parameters, settings };
    const { parameters, rewards } = await runGrpo(trainer.work, job, {
      sample,
      // A random reward has nothing to do with the answer.
      rewardOf: (text, task) => (isShuffled ? random(2) : reward(text, task)),
      onRound: () => {},
      signal,
    });
    console.error(`${isShuffled ? 'random' : 'true'} rewards by round: ${rewards.map((value) => value.toFixed(2)).join(' ')}`); // prettier-ignore
    return measured(parameters);
  }
  const [after, control] = [await train(false), await train(true)];
  await model.dispose();
  await trainer.close();
  const groups = order.slice(0, NUM_HELD_OUT).map(({ prompt }) => prompt);
  const change = reportHeldOut('reward', before, after, groups);
  const random = reportHeldOut('reward', before, control, groups);
  return {
    grpo_reward_before: change.before,
    grpo_reward_after: change.after,
    grpo_reward_gain: change.change,
    grpo_reward_gain_low: change.low!,
    grpo_reward_gain_high: change.high!,
    grpo_control_gain: random.change,
    grpo_control_gain_low: random.low!,
    grpo_control_gain_high: random.high!,
  };
}
