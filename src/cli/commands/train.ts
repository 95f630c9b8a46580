import type { MethodName } from '../../learning/training/methods.ts';
import { type Action, actionCommand } from '../actions.ts';
import { defineFlags, type Flag, type FlagValues } from '../flags.ts';
import { GRPO_FLAGS, trainGrpo } from '../training/train-grpo.ts';
import { trainByMethod } from '../training/train-method.ts';
import { DATA_FLAGS, RUN_FLAGS } from '../training/training-flags.ts';
import { writeParts } from '../training/write-parts.ts';
import { requireRange, usageError } from '../usage-error.ts';
import { TRAIN_EMBEDDINGS } from './train-embeddings.ts';

const BETA_FLAGS = defineFlags({ '--beta <x>': 'strength of the tie to the base model; default 0.1' });
const DIVERGENCE_FLAGS = defineFlags({
  '--divergence <forward|reverse>':
    'distill: KL of the teacher from the student (forward, default) or of the student from the teacher',
});

function readOptions(values: FlagValues) {
  const divergence = (values['--divergence'] as string | undefined) ?? 'forward';
  if (divergence !== 'forward' && divergence !== 'reverse') {
    throw usageError(`--divergence must be forward or reverse; got "${divergence}"`, '--divergence');
  }
  return { beta: requireRange('--beta', (values['--beta'] as number | undefined) ?? 0.1, 1e-4, 100), divergence } as const; // prettier-ignore
}

const methodAction = (method: MethodName, description: string, more: readonly Flag[] = []): Action => ({
  args: '<data.jsonl>',
  description,
  flags: [...RUN_FLAGS, ...more],
  run: (context, [path]) => trainByMethod(context, method, path!, readOptions(context.values)),
});

/** Trains adapters on data sets of JSON lines, and projections of embeddings on pairs of texts. */
export const { flags, help, run } = actionCommand(
  'train',
  {
    sft: methodAction('sft', 'learn the completions, corrections and chosen answers of the lines'),
    distill: methodAction(
      'distill',
      'learn from the model itself with the right answer in its prompt',
      DIVERGENCE_FLAGS,
    ),
    dpo: methodAction('dpo', 'prefer chosen answers over rejected ones, from pairs, corrections or thumbs', BETA_FLAGS),
    kto: methodAction('kto', 'make answers with a thumbs-up likelier than those with a thumbs-down', BETA_FLAGS),
    grpo: {
      args: '<tasks.jsonl>',
      description:
        'sample answers to tasks and make rewarded ones likelier: a reward needs a valid schema and the expected arguments',
      flags: GRPO_FLAGS,
      run: (context, [path]) => trainGrpo(context, path!),
    },
    embeddings: TRAIN_EMBEDDINGS,
    data: {
      args: '<data.jsonl> <folder>',
      description: 'check, deduplicate and split a data set; writes the parts as JSON lines, and their provenance',
      flags: DATA_FLAGS,
      run: (context, [path, folder]) => writeParts(context, path!, folder!),
    },
  },
  {
    notes:
      'A line is {"prompt", "completion"}, {"messages"}, {"prompt", "chosen", "rejected"} or, for grpo, {"prompt", "schema", "expected"}, optionally with "thumbs", "correction", "weight", "id" and "source". - reads stdin.',
  },
);
