import type { JudgementReport } from '../../runtime/learning/operations/index.ts';
import type { CommandRunner } from '../command.ts';
import type { Flag } from '../flags.ts';
import { LEARN_CLIENT } from '../learning/client.ts';
import { pick } from '../memory/action.ts';
import { usageError } from '../usage-error.ts';
import { readNumber, readText } from '../values.ts';

const readIds = (text: string): string[] => text.split(',').map((id) => id.trim()).filter((id) => id !== ''); // prettier-ignore

const OWN_FLAGS: readonly Flag[] = [
  { name: '--score', value: 'n', read: readNumber, description: '0 (useless) to 1 (just right)' },
  { name: '--thumbs', value: 'up|down', description: 'the same as 1 or 0' },
  { name: '--correction', value: 'text', read: readText, description: 'what the answer should have been' },
  { name: '--used', value: 'ids', read: readIds, description: 'sources the answer used, by id; the others were not' },
  { name: '--comment', value: 'text', read: readText, description: 'in your own words; kept, not learned from' },
];

export const FEEDBACK_FLAGS: readonly Flag[] = [...LEARN_CLIENT.flags, ...OWN_FLAGS];
export const FEEDBACK_HELP = `
Examples:
  ruvllm feedback chatcmpl-0199a0b4-7c00-7000-8000-000000000001 --thumbs up --url http://127.0.0.1:8080
  ruvllm feedback 0199a0b4-7c00-7000-8000-000000000001 --correction "It is Canberra." --model model.gguf

The id is in every answer, and in its header x-request-id. Without --url the memory of this machine is opened, and the
model learns at once only with --model; else the next loop learns from it.`;

/** Long enough for a step on a busy machine; it is under way either way. */
const WAIT_MS = 10_000;

const WORDS: Readonly<Record<JudgementReport['learned']['state'], string>> = {
  applied: 'learned',
  refused: 'not learned',
  nothing: 'kept',
  pending: 'kept; learning from it is under way',
};

/** Says what somebody thinks of an answer. */
export const feedback: CommandRunner = async (context) => {
  const { output, values, args } = context;
  if (!OWN_FLAGS.some(({ name }) => values[name] !== undefined)) {
    throw usageError('feedback needs --score, --thumbs, --correction, --used or --comment', '--score');
  }
  if (values['--score'] !== undefined && values['--thumbs'] !== undefined) {
    throw usageError('--score and --thumbs say the same: one of them', '--thumbs');
  }
  const given = pick(context, {
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
    const input = { requestId: args[0]!, source: 'cli', waitMs: WAIT_MS, ...given };
    const report = await client.call<JudgementReport>('feedback', input);
    output.document(report);
    const { state, reason } = report.learned;
    output.lines(`${WORDS[state]}${reason === null ? '' : `: ${reason}`}`);
  } finally {
    await client.close();
  }
};
