import { createRandom } from '../../core/random.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { TrainingState } from '../lora-training/training-state.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { AdapterPlan, LearningWork } from '../sona/types.ts';
import type { TaskLine } from './data/records.ts';
import { groupAdvantages, type PolicyItem } from './policy-gradient.ts';
import { NO_LIMIT_MS } from './training-run.ts';

/** A sampled answer, with its tokens. */
export interface Rollout {
  readonly example: TrainingExample;
  readonly text: string;
}

/** Samples answers with these parameters (null: the model of the file): `numSamples` for each task, in order. */
export type SampleAnswers = (
  parameters: Float32Array | null,
  tasks: readonly TaskLine[],
  options: { readonly numSamples: number; readonly seed: number; readonly temperature: number },
) => Promise<readonly (readonly Rollout[])[]>;

export interface GrpoSettings {
  readonly numRounds: number;
  /** Prompts of a round. */
  readonly numPrompts: number;
  /** Answers of each prompt that are compared with each other. */
  readonly groupSize: number;
  /** Optimizer steps with the answers of one round. */
  readonly stepsPerRound: number;
  readonly clip: number;
  readonly klWeight: number;
  readonly learningRate: number;
  readonly temperature: number;
  readonly seed: number;
}

export interface GrpoJob {
  readonly plan: AdapterPlan;
  readonly tasks: readonly TaskLine[];
  /** Parameters to start from, which are also the reference of the divergence; null: the model of the file. */
  readonly start: Float32Array | null;
  readonly settings: GrpoSettings;
}

export interface GrpoHooks {
  readonly sample: SampleAnswers;
  rewardOf(text: string, task: TaskLine): number;
  onRound(round: { readonly round: number; readonly meanReward: number; readonly numUseful: number }): void;
  readonly signal: AbortSignal;
}

export interface GrpoResult {
  readonly parameters: Float32Array;
  /** Mean reward of the sampled answers of each round. */
  readonly rewards: readonly number[];
  readonly numSteps: number;
}

/** Samples groups of answers, and makes those with more reward than their group likelier. */
export async function runGrpo(
  work: Pick<LearningWork, 'train' | 'logps'>,
  { plan, tasks, start, settings }: GrpoJob,
  { sample, rewardOf, onRound, signal }: GrpoHooks,
): Promise<GrpoResult> {
  const { numRounds, groupSize, stepsPerRound, clip, klWeight, learningRate, temperature, seed } = settings;
  const numPrompts = Math.min(settings.numPrompts, tasks.length);
  const numItems = numPrompts * groupSize;
  const random = createRandom(seed);
  const rewards: number[] = [];
  let state: TrainingState | null = null;
  let parameters = start;
  for (let round = 0; round < numRounds; round++) {
    if (signal.aborted) throw new RuvLLMError('aborted', `stopped after ${round} of ${numRounds} rounds`);
    const chosen = drawSome(tasks, numPrompts, random.next);
    const groups = await sample(parameters, chosen, { numSamples: groupSize, seed: seed * 7919 + round, temperature });
    const values = groups.map((group, i) => group.map(({ text }) => rewardOf(text, chosen[i]!)));
    const advantages = values.map(groupAdvantages);
    const examples = groups.flat().map(({ example }) => example);
    const sampledLogps = await work.logps(plan, examples, parameters);
    const referenceLogps = await work.logps(plan, examples, start);
    const items = examples.map((example, i): PolicyItem => ({
      example,
      advantage: advantages.flat()[i]!,
      sampledLogps: sampledLogps[i]!,
      referenceLogps: referenceLogps[i]!,
    }));
    const meanReward = values.flat().reduce((sum, value) => sum + value, 0) / numItems;
    rewards.push(meanReward);
    onRound({ round: round + 1, meanReward, numUseful: items.filter(({ advantage }) => advantage !== 0).length });
    // Each round is one epoch over its own items: the moments of the optimizer continue.
    const outcome = await work.train({
      plan,
      objective: { kind: 'grpo', clip, klWeight },
      train: items,
      parameters: start,
      tasks: [],
      lambda: 0,
      avoid: [],
      state,
      timeLimitMs: NO_LIMIT_MS,
      numEpochs: round + 1,
      batchSize: Math.ceil(numItems / stepsPerRound),
      learningRate,
      seed,
    });
    ({ state, parameters } = outcome);
  }
  return { parameters: parameters!, rewards, numSteps: state?.numSteps ?? 0 };
}

/** Some items in random order, without repetition. */
function drawSome<T>(items: readonly T[], count: number, next: () => number): T[] {
  const pool = [...items];
  return Array.from({ length: count }, () => pool.splice(Math.floor(next() * pool.length), 1)[0]!);
}
