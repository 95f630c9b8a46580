import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { EngineStats } from '../../engine/types.ts';
import type { Feedback } from '../../learning/trajectories/feedback.ts';
import { didYouMean } from '../../core/nearest.ts';
import { layTable } from '../terminal/table.ts';
import type { ChatSession } from './session.ts';

/** Action for an input line. */
export type Action = { type: 'ask'; text: string } | { type: 'regenerate' } | { type: 'leave' } | { type: 'nothing' };

/** Sends feedback on an answer and returns a message about the outcome. */
export type SendFeedback = (feedback: Feedback) => Promise<string>;

export interface SlashContext {
  readonly session: ChatSession;
  say(text: string): void;
  /** null if learning is off. */
  readonly sendFeedback: SendFeedback | null;
  stats(): Promise<EngineStats>;
  contextUse(): { readonly numTokens: number; readonly maxContext: number };
}

interface SlashCommand {
  readonly usage: string;
  readonly description: string;
  run(context: SlashContext, text: string): Action | Promise<Action>;
}

const NOTHING: Action = { type: 'nothing' };
/** Rate limit reached, or the answer was not stored: no reason to end the chat. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['overloaded', 'not_found']);

async function rateLastAnswer(
  { sendFeedback, session, say }: SlashContext,
  feedback: Pick<Feedback, 'thumbs' | 'correction'>,
): Promise<Action> {
  if (sendFeedback === null) {
    throw new RuvLLMError('invalid_option', 'learning is off; start the chat with ruvllm chat --learn');
  }
  if (session.lastRequestId === null) throw new RuvLLMError('invalid_option', 'no answer to rate yet');
  try {
    say(await sendFeedback({ requestId: session.lastRequestId, ...feedback }));
  } catch (error) {
    if (!(error instanceof RuvLLMError) || !REFUSALS.has(error.code)) throw error;
    say(`not learned: ${error.message}`);
  }
  return NOTHING;
}

const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  '/help': {
    usage: '/help',
    description: 'list the commands',
    run({ say }) {
      const rows = Object.values(SLASH_COMMANDS).map(({ usage, description }) => [usage, description]);
      say(layTable(rows, null).join('\n'));
      say(
        'Multi-line input: end lines with \\, enclose them in """, or paste and press Enter. ↑ recalls earlier lines.',
      );
      say('Ctrl-C stops an answer; a second Ctrl-C or Ctrl-D exits.');
      return NOTHING;
    },
  },
  '/clear': {
    usage: '/clear',
    description: 'start a new conversation',
    run({ session, say }) {
      session.clear();
      say('conversation cleared');
      return NOTHING;
    },
  },
  '/system': {
    usage: '/system TEXT',
    description: 'set the system prompt; without TEXT, remove it',
    run({ session, say }, text) {
      session.setSystem(text === '' ? null : text);
      say(text === '' ? 'system prompt removed' : 'system prompt set');
      return NOTHING;
    },
  },
  '/regenerate': {
    usage: '/regenerate',
    description: 'generate the last answer again',
    run: () => ({ type: 'regenerate' }),
  },
  '/good': {
    usage: '/good',
    description: 'rate the last answer as good and learn from it (--learn)',
    run: (context) => rateLastAnswer(context, { thumbs: 'up' }),
  },
  '/bad': {
    usage: '/bad',
    description: 'rate the last answer as bad and learn from it (--learn)',
    run: (context) => rateLastAnswer(context, { thumbs: 'down' }),
  },
  '/correct': {
    usage: '/correct TEXT',
    description: 'correct the last answer and learn from it (--learn)',
    run(context, text) {
      if (text === '') throw new RuvLLMError('invalid_option', '/correct requires the correct answer as TEXT');
      return rateLastAnswer(context, { correction: text });
    },
  },
  '/stats': {
    usage: '/stats',
    description: 'show token counts',
    async run({ stats, contextUse, say, session }) {
      const engine = await stats();
      const { numTokens, maxContext } = contextUse();
      say(`${session.messages.length} messages, ${numTokens} of ${maxContext} context tokens`);
      say(
        `${engine.numGeneratedTokens} tokens generated, ${engine.numComputedTokens} computed in ${engine.numSteps} steps`,
      );
      return NOTHING;
    },
  },
  '/exit': { usage: '/exit', description: 'exit the chat', run: () => ({ type: 'leave' }) },
};

/** Runs a slash command or returns the line as a question. Rejects an unknown `/word`. */
export async function readAction(line: string, context: SlashContext): Promise<Action> {
  const text = line.trim();
  if (text === '') return NOTHING;
  const match = /^(\/[a-z]+)(?:\s+([\s\S]*))?$/.exec(text);
  if (match === null) return { type: 'ask', text: line };
  const command = Object.hasOwn(SLASH_COMMANDS, match[1]!) ? SLASH_COMMANDS[match[1]!]! : null;
  if (command !== null) return await command.run(context, match[2] ?? '');
  throw new RuvLLMError(
    'invalid_option',
    `unknown command ${match[1]!}${didYouMean(match[1]!, Object.keys(SLASH_COMMANDS))}; /help lists the commands`,
  );
}
