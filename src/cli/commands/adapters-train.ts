import { createAdapter } from '../../adapters/index.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { TrainingState } from '../../learning/lora-training/training-state.ts';
import type { LearningWork } from '../../learning/sona/types.ts';
import { openLearningWork } from '../../node/learning/open-learning.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import type { CommandContext } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { fetchModel } from '../load-model.ts';
import { type EncodedPairs, encodePairs, readPairs, splitPairs } from '../learning/pairs.ts';
import { checkOutputName, saveAdapter } from '../save-adapter.ts';
import { requireRange, usageError } from '../usage-error.ts';

export const TRAIN_FLAGS = defineFlags({
  '--data <file>': 'train: JSON lines of {"prompt", "answer", "weight"?}; - is stdin',
  '--output <file.gguf>': 'train: output file',
  '--epochs <n>': 'train: passes over the data; default 3',
  '--learning-rate <x>': 'train: learning rate; default 0.001',
  '--layers <n>': 'train: number of last layers to train; default 2',
});

/** Examples per step, as in the learning loops. */
const BATCH = 4;
/** Interval of progress updates. */
const SLICE_MS = 1000;
const MAX_EXAMPLE_TOKENS = 512;

interface Settings {
  readonly rank: number;
  readonly numLayers: number;
  readonly numEpochs: number;
  readonly learningRate: number;
  readonly seed: number;
}

function readSettings({ values }: CommandContext): Settings {
  const within = (flag: string, fallback: number, min: number, max: number): number =>
    requireRange(flag, (values[flag] as number | undefined) ?? fallback, min, max);
  return {
    rank: within('--rank', 4, 1, 16),
    numLayers: within('--layers', 2, 1, 1024),
    numEpochs: within('--epochs', 3, 1, 10_000),
    learningRate: within('--learning-rate', 1e-3, 1e-9, 1),
    seed: within('--seed', 1, 0, 2 ** 31),
  };
}

function requireFlag({ values }: CommandContext, flag: string, placeholder: string): string {
  const value = values[flag] as string | undefined;
  if (value === undefined) throw usageError(`adapters train requires ${flag} ${placeholder}`, flag);
  return value;
}

/** Trains a LoRA adapter on pairs of prompt and answer, and reports the loss of held-out pairs. */
export async function trainAdapter(context: CommandContext): Promise<void> {
  const { io, output } = context;
  const reference = requireFlag(context, '--model', 'MODEL');
  const data = requireFlag(context, '--data', 'FILE');
  const out = requireFlag(context, '--output', 'FILE.gguf');
  checkOutputName(out);
  const settings = readSettings(context);
  const split = splitPairs(await readPairs(data, context));
  const path = await fetchModel(context, reference);
  const gguf = openModelFile(path);
  const architecture = gguf.metadata.string('general.architecture');
  let train: EncodedPairs;
  let heldOut: EncodedPairs;
  try {
    const encode = encodePairs(gguf.metadata, MAX_EXAMPLE_TOKENS);
    [train, heldOut] = [await encode(split.train), await encode(split.heldOut)];
  } finally {
    // Not earlier: the vocabulary is read lazily.
    gguf.source.close();
  }
  if (train.examples.length === 0 || heldOut.examples.length === 0) {
    const numLong = train.numTooLong + heldOut.numTooLong;
    throw new RuvLLMError(
      'invalid_option',
      `${train.examples.length} training pairs and ${heldOut.examples.length} held-out pairs; at least one of each is required (${numLong} have more than ${MAX_EXAMPLE_TOKENS} tokens)`,
      { data: { option: '--data' } },
    );
  }
  const { rank, numLayers } = settings;
  const plan = { path, rank, numLayers, maxTokens: MAX_EXAMPLE_TOKENS };
  const { work, end } = openLearningWork();
  const stop = (): void => void work.cancel().catch(() => {});
  io.signal.addEventListener('abort', stop, { once: true });
  try {
    const startMs = io.now();
    const { parameters, numSteps } = await runTraining(context, work, { plan, train: train.examples, settings });
    const { losses: before } = await work.losses(plan, heldOut.examples, null, null);
    const { losses: after } = await work.losses(plan, heldOut.examples, parameters, null);
    const adapter = await createAdapter(architecture, await work.factorsOf(plan, parameters));
    const [lossBefore, lossAfter] = [meanOf(before), meanOf(after)];
    saveAdapter(context, out, adapter, {
      numTrained: train.examples.length,
      numHeldOut: heldOut.examples.length,
      numTooLong: train.numTooLong + heldOut.numTooLong,
      numSteps,
      lossBefore,
      lossAfter,
      elapsedMs: io.now() - startMs,
    });
    output.note(
      `trained on ${train.examples.length} pairs in ${numSteps} steps; loss of ${heldOut.examples.length} held-out pairs: ${lossBefore.toFixed(4)} → ${lossAfter.toFixed(4)}`,
    );
    if (lossAfter >= lossBefore) output.note('the held-out loss did not improve; use more pairs or fewer --epochs');
  } finally {
    io.signal.removeEventListener('abort', stop);
    await end();
  }
}

type Job = Pick<Parameters<LearningWork['train']>[0], 'plan' | 'train'> & { readonly settings: Settings };

async function runTraining(
  { io, output }: CommandContext,
  work: LearningWork,
  { plan, train, settings: { numEpochs, learningRate, seed } }: Job,
): Promise<{ parameters: Float32Array; numSteps: number }> {
  const numSteps = numEpochs * Math.ceil(train.length / BATCH);
  const progress = output.progress();
  let state: TrainingState | null = null;
  try {
    for (;;) {
      const outcome = await work.train({
        plan,
        train,
        parameters: null,
        tasks: [],
        lambda: 0,
        avoid: [],
        state,
        timeLimitMs: SLICE_MS,
        numEpochs,
        learningRate,
        seed,
      });
      if (io.signal.aborted) throw new RuvLLMError('aborted', `stopped after ${outcome.state.numSteps} of ${numSteps} steps`); // prettier-ignore
      if (outcome.isDone) return { parameters: outcome.parameters, numSteps: outcome.state.numSteps };
      state = outcome.state;
      const loss = outcome.losses.at(-1);
      const lossText = loss === undefined ? '' : `, loss ${loss.toFixed(3)}`;
      progress.update({ label: `training: step ${state.numSteps} of ${numSteps}${lossText}`, doneBytes: 0, totalBytes: null }); // prettier-ignore
    }
  } finally {
    progress.finish();
  }
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
