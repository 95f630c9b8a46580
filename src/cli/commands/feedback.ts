import type { JudgementReport } from '../../runtime/learning/operations/index.ts';
import type { CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { LEARN_FLAGS, learnAction } from '../learning/client.ts';
import { conflictError, usageError } from '../usage-error.ts';

const readIds = (text: string): string[] => text.split(',').map((id) => id.trim()).filter((id) => id !== ''); // prettier-ignore

export const help: HelpParts = {
  notes:
    'Every answer contains its request id, also in the header x-request-id. Without --url, the command opens the ' +
    'memory of this machine; the model learns immediately with --model, otherwise in the next learning loop.',
};

/** Enough for a learning step on a busy machine; a longer step continues anyway. */
const WAIT_MS = 10_000;

const STATES: Readonly<Record<JudgementReport['learned']['state'], string>> = {
  applied: 'learned',
  refused: 'not learned',
  nothing: 'stored',
  pending: 'stored; learning is in progress',
};

const { run: rate, flags: RATING_FLAGS = [] } = learnAction<JudgementReport>('feedback', {
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
  },
  needsModel: ({ values }) => values['--model'] !== undefined && values['--url'] === undefined,
  input: () => ({ source: 'cli', waitMs: WAIT_MS }),
  show: ({ learned: { state, reason } }, { output }) =>
    output.lines(`${STATES[state]}${reason === null ? '' : `: ${reason}`}`),
});

export const flags: readonly Flag[] = [...LEARN_FLAGS, ...RATING_FLAGS];

/** Rates or corrects an answer. */
export const run: CommandRunner = async (context) => {
  const { values, args } = context;
  if (!RATING_FLAGS.some(({ name }) => values[name] !== undefined)) {
    throw usageError('feedback requires --score, --thumbs, --correction, --used or --comment', '--score');
  }
  if (values['--score'] !== undefined && values['--thumbs'] !== undefined) throw conflictError('--thumbs', '--score');
  await rate(context, args);
};
