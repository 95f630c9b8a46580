import { createAdapter } from '../../adapters/index.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { PARTS, type Part } from '../../learning/training/data/split.ts';
import { type MethodName, type MethodOptions, METHODS, type PreparedPart } from '../../learning/training/methods.ts';
import { reportHeldOut } from '../../learning/training/report.ts';
import { runTraining, type TrainingJob } from '../../learning/training/training-run.ts';
import type { Trainer } from '../../node/training/open-trainer.ts';
import { MAX_EXAMPLE_TOKENS } from '../../runtime/learning/encode-example.ts';
import type { CommandContext } from '../command.ts';
import { checkOutputName, saveAdapter } from '../save-adapter.ts';
import { openCheckpoint } from './checkpoint.ts';
import { openCliTrainer, requireFlag } from './open-trainer.ts';
import { type DataFile, readDataFile } from './read-data-file.ts';
import { noteReport } from './show-report.ts';
import { readDataSettings, readModelSettings, readRunSettings } from './training-flags.ts';

/** A crash costs no more training than this. */
const SAVE_EVERY_MS = 15_000;
const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Trains an adapter by one of the methods with fixed answers, and reports its held-out part. */
export async function trainByMethod(
  context: CommandContext,
  name: MethodName,
  dataPath: string,
  options: MethodOptions,
): Promise<void> {
  const { io, values } = context;
  const reference = requireFlag(context, name, '--model', 'MODEL');
  const out = requireFlag(context, name, '--output', 'FILE.gguf');
  checkOutputName(out);
  const [settings, model] = [readRunSettings(values), readModelSettings(values)];
  const data = await readDataFile(dataPath, context, readDataSettings(values));
  const trainer = await openCliTrainer(context, reference, model);
  try {
    const startMs = io.now();
    const objective = METHODS[name].objective(options);
    const parts = await prepareParts(context, name, trainer, data, options);
    const job: TrainingJob = { plan: trainer.plan, objective, items: parts.train.items, settings };
    const identity = {
      method: name,
      model: trainer.modelHash,
      data: data.provenance.sha256,
      ...data.provenance.shares,
      nearDuplicates: data.provenance.nearDuplicates,
      ...model,
      ...options,
      ...settings,
      evaluateEvery: settings.evaluateEvery ?? 'epoch',
    };
    const checkpoint = openCheckpoint(out, identity, values['--resume'] === true);
    const { parameters, ...run } = await runWithProgress(context, trainer, job, parts.validation, checkpoint);
    const before = await parts.heldOut.losses(null);
    const after = await parts.heldOut.losses(parameters);
    const heldOut = reportHeldOut(METHODS[name].measure, before, after, parts.heldOut.groups);
    const numItems = Object.fromEntries(PARTS.map((part) => [part, parts[part].items.length]));
    const numTooLong = PARTS.reduce((sum, part) => sum + parts[part].numTooLong, 0);
    const report = { method: name, modelHash: trainer.modelHash, data: data.provenance, numItems, numTooLong, settings: { ...settings, ...model, ...options }, ...run, heldOut }; // prettier-ignore
    const adapter = await createAdapter(trainer.architecture, await trainer.work.factorsOf(trainer.plan, parameters));
    saveAdapter(context, out, adapter, { ...report, elapsedMs: io.now() - startMs }, JSON.stringify(report));
    checkpoint.remove();
    noteReport(context, report);
  } finally {
    await trainer.close();
  }
}

async function prepareParts(
  { output }: CommandContext,
  name: MethodName,
  { work, plan, encode }: Trainer,
  { parts: lines, provenance }: DataFile,
  options: MethodOptions,
): Promise<Readonly<Record<Part, PreparedPart>>> {
  const method = METHODS[name];
  const progress = output.progress();
  const parts: Partial<Record<Part, PreparedPart>> = {};
  try {
    for (const part of PARTS) {
      progress.update({ label: `reading the ${part} part`, doneBytes: 0, totalBytes: null });
      parts[part] = await method.prepare({ work, plan, encode, options }, lines[part], part);
    }
  } finally {
    progress.finish();
  }
  const { train, heldOut } = parts as Record<Part, PreparedPart>;
  if (train.items.length === 0 || heldOut.items.length === 0) {
    const { numLines } = provenance;
    const numTooLong = PARTS.reduce((sum, part) => sum + parts[part]!.numTooLong, 0);
    throw new RuvLLMError(
      'invalid_option',
      `${train.items.length} training and ${heldOut.items.length} held-out examples for ${name} in ${numLines} lines; at least one of each is required. ` +
        `A line needs ${method.needs}; ${numTooLong} are longer than ${MAX_EXAMPLE_TOKENS} tokens. Parts follow from the hash of the prompt: more lines or another --held-out help`,
      { data: { numTrained: train.items.length, numHeldOut: heldOut.items.length, numLines, numTooLong } },
    );
  }
  return parts as Record<Part, PreparedPart>;
}

async function runWithProgress(
  { io, output }: CommandContext,
  { work }: Trainer,
  job: TrainingJob,
  validation: PreparedPart,
  checkpoint: ReturnType<typeof openCheckpoint>,
) {
  const progress = output.progress();
  let evaluated = '';
  try {
    const hooks = {
      evaluate:
        validation.items.length === 0
          ? null
          : async (parameters: Float32Array) => {
              const loss = meanOf(await validation.losses(parameters));
              evaluated = `, validation ${loss.toFixed(3)}`;
              return loss;
            },
      save: (saved: Parameters<typeof checkpoint.save>[0]) => checkpoint.save(saved),
      saveEveryMs: SAVE_EVERY_MS,
      onStep({ step, numSteps, loss }: { step: number; numSteps: number; loss: number | null }) {
        const lossText = loss === null ? '' : `, loss ${loss.toFixed(3)}`;
        progress.update({ label: `training: step ${step} of ${numSteps}${lossText}${evaluated}`, doneBytes: 0, totalBytes: null }); // prettier-ignore
      },
      signal: io.signal,
      now: io.now,
    };
    return await runTraining(work, job, hooks, checkpoint.progress);
  } finally {
    progress.finish();
  }
}
