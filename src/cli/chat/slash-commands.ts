import { splitFirstWord } from '../../core/trim.ts';
import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { EngineStats } from '../../engine/types.ts';
import type { Feedback } from '../../learning/trajectories/feedback.ts';
import { didYouMean } from '../../core/nearest.ts';
import { layTable } from '../terminal/table.ts';
import { readParameterValue } from '../../server/wire/ollama/modelfile.ts';
import { OPTION_NAMES, readOptions } from '../../server/wire/ollama/options.ts';
import type { ChatSession } from './session.ts';

/** Action for an input line. */
export type Action = { type: 'ask'; text: string } | { type: 'regenerate' } | { type: 'leave' } | { type: 'nothing' };

/** Sends feedback on an answer and returns a message about the outcome. */
export type SendFeedback = (feedback: Feedback) => Promise<string>;

/** Conversations that are kept under a name. */
export interface SavedChats {
  save(name: string, session: ChatSession): Promise<void>;
  /** Throws `not_found`, or `invalid_option` if it is of another model. */
  load(name: string, session: ChatSession): Promise<void>;
}

export interface SlashContext {
  readonly session: ChatSession;
  say(text: string): void;
  /** null if learning is off. */
  readonly sendFeedback: SendFeedback | null;
  /** null if conversations cannot be kept. */
  readonly saved: SavedChats | null;
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
    description: 'list the commands; also /?',
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
  '/set': {
    usage: '/set parameter NAME VALUE',
    description: 'set an option of the next answers, such as temperature; also /set system TEXT',
    run({ session, say }, text) {
      const [kind, rest] = splitFirstWord(text);
      if (kind === 'system') {
        session.setSystem(rest === '' ? null : rest);
        say(rest === '' ? 'system prompt removed' : 'system prompt set');
        return NOTHING;
      }
      const [name, value] = splitFirstWord(rest);
      if (kind !== 'parameter' || value === '') {
        throw new RuvLLMError('invalid_option', 'use /set parameter NAME VALUE or /set system TEXT');
      }
      const names = OPTION_NAMES.filter((one) => one !== 'num_ctx');
      if (!names.includes(name)) {
        const list = names.join(', ');
        throw new RuvLLMError(
          'invalid_option',
          `unknown parameter ${name}${didYouMean(name, names)}; there are ${list}`,
        );
      }
      const params = readOptions({ [name]: name === 'stop' ? [value] : readParameterValue(value!) });
      session.setParams(params);
      say(`${name} is ${value}`);
      return NOTHING;
    },
  },
  '/save': {
    usage: '/save NAME',
    description: 'save the conversation; ruvllm run NAME continues it',
    async run(context, name) {
      await requireSaved(context, name).save(name, context.session);
      context.say(`saved ${name}`);
      return NOTHING;
    },
  },
  '/load': {
    usage: '/load NAME',
    description: 'continue a saved conversation',
    async run(context, name) {
      await requireSaved(context, name).load(name, context.session);
      context.say(`loaded ${name}: ${context.session.messages.length} messages`);
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
  '/exit': { usage: '/exit', description: 'exit the chat; also /bye', run: () => ({ type: 'leave' }) },
};

/** Second names of commands, as other tools have them. */
const ALIASES: Readonly<Record<string, string>> = { '/bye': '/exit', '/?': '/help' };

function requireSaved({ saved }: SlashContext, name: string): SavedChats {
  if (name === '') throw new RuvLLMError('invalid_option', 'a name is required: /save NAME, /load NAME');
  if (saved === null) throw new RuvLLMError('invalid_option', 'conversations cannot be saved here');
  return saved;
}

/** Runs a slash command or returns the line as a question. Rejects an unknown `/word`. */
export async function readAction(line: string, context: SlashContext): Promise<Action> {
  const text = line.trim();
  if (text === '') return NOTHING;
  const [word, rest] = splitFirstWord(text);
  if (!/^\/(?:[a-z]+|\?)$/.test(word)) return { type: 'ask', text: line };
  const name = Object.hasOwn(ALIASES, word) ? ALIASES[word]! : word;
  const command = Object.hasOwn(SLASH_COMMANDS, name) ? SLASH_COMMANDS[name]! : null;
  if (command !== null) return await command.run(context, rest);
  throw new RuvLLMError(
    'invalid_option',
    `unknown command ${word}${didYouMean(word, Object.keys(SLASH_COMMANDS))}; /help lists the commands`,
  );
}
