import { SCHEDULES, type ScheduleName } from '../../learning/training/schedule.ts';
import type { RunSettings } from '../../learning/training/training-run.ts';
import { defineFlags, type Flag, type FlagValues } from '../flags.ts';
import { TYPE_DESCRIPTION } from '../save-adapter.ts';
import { requireRange, usageError } from '../usage-error.ts';

/** How a data set is deduplicated and split. */
export const DATA_FLAGS = defineFlags({
  '--held-out <x>': 'share of prompts kept from training for the report; default 0.2',
  '--validation <x>': 'share of prompts that decide when to stop; default 0.1; 0: none',
  '--near-duplicates <x>':
    'similarity (Jaccard index of word trigrams) from which a line repeats an earlier one; default 0.8',
});

export const RUN_FLAGS: readonly Flag[] = [
  ...defineFlags({
    '--model <model>': 'base model: a file or reference',
    '--output <file.gguf>': 'adapter to write; its checkpoint is beside it until training ends',
    '--rank <n>': 'rank of the adapter; default 4',
    '--layers <n>': 'number of last layers to train; default 2',
    '--epochs <n>': 'passes over the data; default 3',
    '--batch-size <n>': 'examples per step; default 4',
    '--learning-rate <x>': 'highest learning rate; default 0.001',
    [`--schedule <${Object.keys(SCHEDULES).join('|')}>`]: 'learning rate after the warm-up; default constant',
    '--warmup <n>': 'steps in which the learning rate rises; default 0',
    '--evaluate-every <n>': 'steps between evaluations of the validation part; default: once per epoch',
    '--patience <n>': 'evaluations without a new best after which training stops; default 3; 0: it runs to the end',
    '--seed <n>': 'seed of the initial adapter and of the order of examples; default 1',
    '--resume': 'continue a stopped run from its checkpoint',
    '--type <F32|F16>': TYPE_DESCRIPTION,
    '--name <name>': 'name stored in the file',
  }),
  ...DATA_FLAGS,
];

export interface DataSettings {
  readonly heldOut: number;
  readonly validation: number;
  readonly nearDuplicates: number;
}

export interface ModelSettings {
  readonly rank: number;
  readonly numLayers: number;
}

const reader =
  (values: FlagValues) =>
  (flag: string, fallback: number, min: number, max: number): number =>
    requireRange(flag, (values[flag] as number | undefined) ?? fallback, min, max);

export function readDataSettings(values: FlagValues): DataSettings {
  const within = reader(values);
  const settings = {
    heldOut: within('--held-out', 0.2, 0.01, 0.9),
    validation: within('--validation', 0.1, 0, 0.9),
    nearDuplicates: within('--near-duplicates', 0.8, 0.5, 1),
  };
  if (settings.heldOut + settings.validation > 0.95) {
    const parts = `${settings.heldOut} and ${settings.validation}`;
    throw usageError(`--held-out and --validation are ${parts}: at most 0.95 together`, '--validation');
  }
  return settings;
}

export function readModelSettings(values: FlagValues): ModelSettings {
  const within = reader(values);
  return { rank: within('--rank', 4, 1, 16), numLayers: within('--layers', 2, 1, 1024) };
}

function readSchedule(values: FlagValues): ScheduleName {
  const name = (values['--schedule'] as string | undefined) ?? 'constant';
  if (Object.hasOwn(SCHEDULES, name)) return name as ScheduleName;
  throw usageError(`--schedule must be one of ${Object.keys(SCHEDULES).join(', ')}; got "${name}"`, '--schedule');
}

export function readRunSettings(values: FlagValues): RunSettings {
  const within = reader(values);
  return {
    numEpochs: within('--epochs', 3, 1, 10_000),
    batchSize: within('--batch-size', 4, 1, 1024),
    learningRate: within('--learning-rate', 1e-3, 1e-9, 1),
    schedule: readSchedule(values),
    numWarmupSteps: within('--warmup', 0, 0, 1e6),
    seed: within('--seed', 1, 0, 2 ** 31),
    evaluateEvery: values['--evaluate-every'] === undefined ? null : within('--evaluate-every', 1, 1, 1e6),
    patience: within('--patience', 3, 0, 1e6),
  };
}
