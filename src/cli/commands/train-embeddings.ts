import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import type { ProjectionTrainingOptions } from '../../learning/embedding-training/train-projection.ts';
import { text } from '../../memory/schemas/primitives.ts';
import { trainEmbeddingProjection } from '../../node/train-embeddings.ts';
import type { Action } from '../actions.ts';
import { findEmbeddingModel } from '../bench/open-embedder.ts';
import { MAX_TEXT, readBenchData } from '../bench/read-data.ts';
import { collectFacts, noteFacts, showFigure } from '../bench/run-facts.ts';
import type { CommandContext } from '../command.ts';
import { collectOptions, defineFlags, withFlagNamesAsync } from '../flags.ts';
import { escapeLine } from '../safe-text.ts';
import { usageError } from '../usage-error.ts';

const SETTING_FLAGS = defineFlags({
  '--rank <n> rank': 'embeddings: rank of the projection; default 32',
  '--epochs <n> numEpochs': 'embeddings: passes over the data, at most; default 30',
  '--batch-size <n> batchSize': 'embeddings: pairs per step, which are negatives of each other; default 32',
  '--learning-rate <x> learningRate': 'embeddings: learning rate; default 0.001',
  '--temperature <x> temperature': 'embeddings: divisor of cosines; default 0.05',
  '--seed <n> seed': 'embeddings: seed of split, initialization and control; default 1',
});

const FLAGS = [
  ...defineFlags({
    '--model <model>': 'embeddings: model to train embeddings of; default the sentence encoder',
    '--output <file>': 'embeddings: output file, ending with .gguf',
  }),
  ...SETTING_FLAGS,
];

const line = text(MAX_TEXT, 1);
const pair = z.strictObject({
  anchor: line,
  positive: line,
  negative: line.optional(),
  negatives: z.array(line).max(64).optional(),
  group: line.optional(),
});

/** Trains a projection of embeddings and reports held-out recall before and after it. */
async function run(context: CommandContext, [path]: readonly string[]): Promise<void> {
  const { io, output, values } = context;
  const out = values['--output'] as string | undefined;
  if (out === undefined) throw usageError('train embeddings requires --output FILE.gguf', '--output');
  if (!/\.gguf$/i.test(out)) throw usageError(`${out} must end with .gguf`, '--output');
  const data = await readBenchData({ ...context, values: { ...values, '--data': path } }, 'embeddings', pair);
  const pairs = data.rows.map(({ anchor, positive, negative, negatives = [], group }) => ({
    anchor,
    positive,
    negatives: negative === undefined ? negatives : [negative, ...negatives],
    ...(group === undefined ? {} : { group }),
  }));
  const facts = collectFacts(context, 'embeddings', data);
  const model = await findEmbeddingModel(context);
  const progress = output.progress();
  const startMs = io.now();
  try {
    const { projection, report } = await withFlagNamesAsync(SETTING_FLAGS, values, () =>
      trainEmbeddingProjection({
        ...(collectOptions(SETTING_FLAGS, values) as ProjectionTrainingOptions),
        model: model.path,
        pairs,
        output: out,
        signal: io.signal,
        onProgress(step) {
          const label =
            step.phase === 'embedding'
              ? `embedding: ${step.numDone} of ${step.numTexts} texts`
              : `${step.phase}: pass ${step.epoch}, validation loss ${step.loss.toFixed(3)}`;
          progress.update({ label, doneBytes: 0, totalBytes: null });
        },
      }),
    );
    progress.finish();
    const { width, rank, contentHash } = projection;
    output.document({ ...facts, model: model.reference, path: out, width, rank, contentHash, ...report, elapsedMs: io.now() - startMs }); // prettier-ignore
    const measures = Object.keys(report.heldOut[0]!.figures);
    output.table(
      ['HELD OUT', ...measures.flatMap((measure) => [`${measure.toUpperCase()} [95 %]`, 'CHANGE [95 %]'])],
      report.heldOut.map(({ name, figures, gains }) => [
        name,
        ...measures.flatMap((measure) => [showFigure(figures[measure]!), gains === null ? '' : showFigure(gains[measure]!)]), // prettier-ignore
      ]),
    );
    output.note(`wrote ${escapeLine(out)}: rank ${rank}, ${width} values, hash ${contentHash.slice(0, 12)}`);
    output.note(`trained on ${report.numTrained} pairs, stopped by ${report.numValidation}; ${report.numHeldOut} held-out queries, ${report.numTexts} texts`); // prettier-ignore
    if (report.heldOut[1]!.gains!['MRR']!.low <= 0) output.note('no gain is shown on held-out pairs; use more pairs');
    noteFacts(context, facts);
  } catch (error) {
    progress.finish();
    if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled while training', { cause: error });
    throw error;
  }
}

/** `ruvllm train embeddings`. */
export const TRAIN_EMBEDDINGS: Action = {
  args: '<data.jsonl>',
  description:
    'train a projection of embeddings on {"anchor", "positive", "negative"?, "group"?} lines; requires --output',
  flags: FLAGS,
  run,
};
