import type { FeedbackReport } from '../../runtime/learning/operations/index.ts';
import { describeOutcome } from '../learning/describe-outcome.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { LEARN_FLAGS, learnAction } from '../learning/client.ts';
import { conflictError } from '../usage-error.ts';

const readIds = (text: string): string[] => text.split(',').map((id) => id.trim()).filter((id) => id !== ''); // prettier-ignore

export const help: HelpParts = {
  notes:
    'Every answer contains its request id, also in the header x-request-id. Without --url, the command opens the ' +
    'memory of this machine; the model learns immediately with --model, otherwise in the next learning loop. ' +
    'Without a rating, the command shows what became of the last one.',
};

/** Enough for a learning step on a busy machine; a longer step continues anyway. */
const WAIT_MS = 10_000;

interface Rated {
  /** Null: not rated. */
  readonly outcome: FeedbackReport['outcome'] | null;
}

const showOutcome = ({ outcome }: Rated, { output }: CommandContext): void =>
  output.lines(outcome === null ? 'no feedback on this answer yet' : describeOutcome(outcome).join('\n'));

const { run: showReceipt } = learnAction<Rated>('learn.receipt', {
  args: '<request-id>',
  keys: ['requestId'],
  description: '',
  show: showOutcome,
});

const { run: rate, flags: RATING_FLAGS = [] } = learnAction<FeedbackReport>('feedback', {
  args: '<request-id>',
  keys: ['requestId'],
  description: '',
  flags: {
    '--score score': 'rating from 0 (useless) to 1 (perfect)',
    '--thumbs thumbs': 'same as --score 1 or 0',
    '--correction correction': 'the correct answer',
    '--used <ids> usedSources': [
      'ids of the sources that the answer used, comma-separated; others count as unused',
      readIds,
    ],
    '--comment comment': 'free text; stored, not learned from',
    '--target target': 'what is rated: the answer, or the route, which only the router learns from',
  },
  needsModel: ({ values }) => values['--model'] !== undefined && values['--url'] === undefined,
  input: () => ({ source: 'cli', waitMs: WAIT_MS }),
  show: showOutcome,
});

export const flags: readonly Flag[] = [...LEARN_FLAGS, ...RATING_FLAGS];

/** Rates or corrects an answer. */
export const run: CommandRunner = async (context) => {
  const { values, args } = context;
  if (!RATING_FLAGS.some(({ name }) => values[name] !== undefined)) return showReceipt(context, args);
  if (values['--score'] !== undefined && values['--thumbs'] !== undefined) throw conflictError('--thumbs', '--score');
  await rate(context, args);
};
