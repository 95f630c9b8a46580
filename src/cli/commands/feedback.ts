import type { FeedbackReport } from '../../runtime/learning/operations/index.ts';
import type { CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { LEARN_CLIENT } from '../learning/client.ts';
import { pick } from '../memory/action.ts';
import { conflictError, usageError } from '../usage-error.ts';
import { readNumber, readText } from '../values.ts';

const readIds = (text: string): string[] => text.split(',').map((id) => id.trim()).filter((id) => id !== ''); // prettier-ignore

const RATING_FLAGS: readonly Flag[] = [
  { name: '--score', value: 'n', read: readNumber, description: 'rating from 0 (useless) to 1 (perfect)' },
  { name: '--thumbs', value: 'up|down', description: 'same as --score 1 or 0' },
  { name: '--correction', value: 'text', read: readText, description: 'the correct answer' },
  {
    name: '--used',
    value: 'ids',
    read: readIds,
    description: 'ids of the sources that the answer used, comma-separated; others count as unused',
  },
  { name: '--comment', value: 'text', read: readText, description: 'free text; stored, not learned from' },
];

export const FEEDBACK_FLAGS: readonly Flag[] = [...LEARN_CLIENT.flags, ...RATING_FLAGS];
export const FEEDBACK_HELP: HelpParts = {
  notes:
    'Every answer contains its request id, also in the header x-request-id. Without --url, the command opens the ' +
    'memory of this machine; the model learns immediately with --model, otherwise in the next learning loop.',
};

/** Enough for a learning step on a busy machine; a longer step continues anyway. */
const WAIT_MS = 10_000;

const STATES: Readonly<Record<FeedbackReport['learned']['state'], string>> = {
  applied: 'learned',
  refused: 'not learned',
  nothing: 'stored',
  pending: 'stored; learning is in progress',
};

/** Rates or corrects an answer. */
export const feedback: CommandRunner = async (context) => {
  const { output, values, args } = context;
  if (!RATING_FLAGS.some(({ name }) => values[name] !== undefined)) {
    throw usageError('feedback requires --score, --thumbs, --correction, --used or --comment', '--score');
  }
  if (values['--score'] !== undefined && values['--thumbs'] !== undefined) throw conflictError('--thumbs', '--score');
  const ratings = pick(context, {
    '--score': 'score',
    '--thumbs': 'thumbs',
    '--correction': 'correction',
    '--comment': 'comment',
    '--used': 'usedSources',
  });
  const client = await LEARN_CLIENT.open(context, {
    needsModel: values['--model'] !== undefined && values['--url'] === undefined,
    canCreate: false,
  });
  try {
    const input = { requestId: args[0]!, source: 'cli', waitMs: WAIT_MS, ...ratings };
    const report = await client.call<FeedbackReport>('feedback', input);
    output.document(report);
    const { state, reason } = report.learned;
    output.lines(`${STATES[state]}${reason === null ? '' : `: ${reason}`}`);
  } finally {
    await client.close();
  }
};
