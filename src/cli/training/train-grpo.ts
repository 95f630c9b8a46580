import { createAdapter } from '../../adapters/index.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { tasksOf } from '../../learning/training/data/method-lines.ts';
import { promptText } from '../../learning/training/data/near-duplicates.ts';
import type { TaskLine } from '../../learning/training/data/records.ts';
import { type GrpoSettings, runGrpo, type SampleAnswers } from '../../learning/training/grpo-run.ts';
import { reportHeldOut } from '../../learning/training/report.ts';
import { rewardOf, type SchemaProblems } from '../../learning/training/tool-reward.ts';
import { loadModel } from '../../node/load-model.ts';
import { createRollouts } from '../../node/training/rollouts.ts';
import { MAX_EXAMPLE_TOKENS } from '../../runtime/learning/encode-example.ts';
import { createSchemaCheck } from '../../runtime/reflection/schema-check.ts';
import type { CommandContext } from '../command.ts';
import { defineFlags, type Flag, type FlagValues } from '../flags.ts';
import { checkOutputName, saveAdapter } from '../save-adapter.ts';
import { requireRange } from '../usage-error.ts';
import { openCliTrainer, requireFlag } from './open-trainer.ts';
import { readDataFile } from './read-data-file.ts';
import { readStart } from './start-parameters.ts';
import { readDataSettings, readModelSettings, RUN_FLAGS } from './training-flags.ts';

const SHARED = ['--model', '--output', '--rank', '--layers', '--learning-rate', '--seed', '--type', '--name', '--held-out', '--near-duplicates']; // prettier-ignore
export const GRPO_FLAGS: readonly Flag[] = [
  ...RUN_FLAGS.filter(({ name }) => SHARED.includes(name)),
  ...defineFlags({
    '--from <adapter.gguf>': 'grpo: adapter to start from, such as one of train sft; default: the model as in its file',
    '--rounds <n>': 'grpo: rounds of sampling and training; default 20',
    '--prompts <n>': 'grpo: prompts per round; default 4',
    '--group-size <n>': 'grpo: answers per prompt that are compared with each other; default 8',
    '--steps-per-round <n>': 'grpo: optimizer steps with the answers of a round; default 2',
    '--clip <x>': 'grpo: largest change of a token’s probability that is rewarded, as a share; default 0.2',
    '--kl <x>': 'grpo: weight of the divergence from the starting point; default 0.02',
    '--temperature <x>': 'grpo: temperature of sampling; default 1',
    '--max-tokens <n>': 'grpo: longest answer; default 64',
  }),
];

function readSettings(values: FlagValues): GrpoSettings & { readonly maxTokens: number } {
  const within = (flag: string, fallback: number, min: number, max: number): number =>
    requireRange(flag, (values[flag] as number | undefined) ?? fallback, min, max);
  return {
    numRounds: within('--rounds', 20, 1, 1e6),
    numPrompts: within('--prompts', 4, 1, 1024),
    groupSize: within('--group-size', 8, 2, 256),
    stepsPerRound: within('--steps-per-round', 2, 1, 64),
    clip: within('--clip', 0.2, 0.001, 10),
    klWeight: within('--kl', 0.02, 0, 100),
    learningRate: within('--learning-rate', 1e-3, 1e-9, 1),
    temperature: within('--temperature', 1, 0.1, 10),
    seed: within('--seed', 1, 0, 2 ** 31),
    maxTokens: within('--max-tokens', 64, 1, MAX_EXAMPLE_TOKENS / 2),
  };
}

/** Checks of schemas, compiled once per schema. */
function createRewards(): (text: string, task: TaskLine) => number {
  const checks = new Map<string, SchemaProblems>();
  return (text, task) => {
    const key = JSON.stringify(task.schema);
    const check = checks.get(key) ?? createSchemaCheck(task.schema).problemsOf;
    checks.set(key, check);
    return rewardOf(text, task, check).value;
  };
}

/** Answers per held-out task: their mean estimates its expected reward. */
const NUM_HELD_OUT_SAMPLES = 8;
/** The same random numbers before and after training. */
const HELD_OUT_SEED = 0x5eed;

/** The negative mean reward of each held-out task: like a loss, lower is better. */
async function measureHeldOut(
  sample: SampleAnswers,
  parameters: Float32Array | null,
  tasks: readonly TaskLine[],
  reward: (text: string, task: TaskLine) => number,
  temperature: number,
): Promise<number[]> {
  const groups = await sample(parameters, tasks, {
    numSamples: NUM_HELD_OUT_SAMPLES,
    seed: HELD_OUT_SEED,
    temperature,
  });
  return groups.map((group, i) => group.reduce((sum, { text }) => sum - reward(text, tasks[i]!), 0) / group.length);
}

/** Trains an adapter by GRPO on tasks with verifiable answers. */
export async function trainGrpo(context: CommandContext, dataPath: string): Promise<void> {
  const { io, output, values } = context;
  const reference = requireFlag(context, 'grpo', '--model', 'MODEL');
  const out = requireFlag(context, 'grpo', '--output', 'FILE.gguf');
  checkOutputName(out);
  const { maxTokens, ...settings } = readSettings(values);
  const modelSettings = readModelSettings(values);
  // All steps are on sampled answers: nothing is left for validation to decide.
  const data = await readDataFile(dataPath, context, { ...readDataSettings(values), validation: 0 });
  const [tasks, heldOutTasks] = [tasksOf(data.parts.train), tasksOf(data.parts.heldOut)];
  if (tasks.length === 0 || heldOutTasks.length === 0) {
    throw new RuvLLMError(
      'invalid_option',
      `${tasks.length} training and ${heldOutTasks.length} held-out tasks in ${data.provenance.numLines} lines; at least one of each is required. A task is {"prompt", "schema", "expected"}`,
      { data: { numTrained: tasks.length, numHeldOut: heldOutTasks.length, numLines: data.provenance.numLines } },
    );
  }
  const trainer = await openCliTrainer(context, reference, modelSettings);
  const progress = output.progress();
  const model = await loadModel(trainer.plan.path, { signal: io.signal });
  try {
    const startMs = io.now();
    const from = values['--from'] as string | undefined;
    const start = from === undefined ? null : await readStart(from, trainer);
    const sample = createRollouts({ trainer, model, maxTokens });
    const reward = createRewards();
    const before = await measureHeldOut(sample, start, heldOutTasks, reward, settings.temperature);
    const { parameters, rewards, numSteps } = await runGrpo(
      trainer.work,
      { plan: trainer.plan, tasks, start, settings },
      {
        sample,
        rewardOf: reward,
        signal: io.signal,
        onRound: ({ round, meanReward }) =>
          progress.update({ label: `round ${round} of ${settings.numRounds}, reward ${meanReward.toFixed(3)}`, doneBytes: 0, totalBytes: null }), // prettier-ignore
      },
    );
    progress.finish();
    const after = await measureHeldOut(sample, parameters, heldOutTasks, reward, settings.temperature);
    const groups = heldOutTasks.map(({ prompt }) => promptText(prompt));
    const heldOut = reportHeldOut('negative reward', before, after, groups);
    const report = { method: 'grpo', modelHash: trainer.modelHash, data: data.provenance, numItems: { train: tasks.length, heldOut: heldOutTasks.length }, settings: { ...settings, ...modelSettings, maxTokens }, numSteps, rewards, heldOut }; // prettier-ignore
    const factors = await trainer.work.factorsOf(trainer.plan, parameters);
    const adapter = await createAdapter(trainer.architecture, factors);
    saveAdapter(context, out, adapter, { ...report, elapsedMs: io.now() - startMs }, JSON.stringify(report));
    const interval = heldOut.low === null || heldOut.high === null ? 'no interval' : `95 % ${(-heldOut.high).toFixed(3)} to ${(-heldOut.low).toFixed(3)}`; // prettier-ignore
    output.note(
      `mean reward of ${heldOutTasks.length} held-out tasks: ${(-heldOut.before).toFixed(3)} → ${(-heldOut.after).toFixed(3)}; change ${(-heldOut.change).toFixed(3)} (${interval})`,
    );
    if (rewards.every((value) => value === 0)) {
      output.note('no sampled answer earned a reward, so nothing could be learned; start from an adapter of train sft');
    }
  } finally {
    progress.finish();
    await model.dispose();
    await trainer.close();
  }
}
