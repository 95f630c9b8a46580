import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { EngineStats } from '../../engine/types.ts';
import { didYouMean } from '../nearest.ts';
import { layTable } from '../terminal/table.ts';
import type { ChatSession } from './session.ts';

/** What a line means. */
export type Action = { type: 'ask'; text: string } | { type: 'regenerate' } | { type: 'leave' } | { type: 'nothing' };

/** What somebody says of an answer. */
export type Judge = (requestId: string, said: { thumbs?: 'up' | 'down'; correction?: string }) => Promise<string>;

export interface SlashContext {
  readonly session: ChatSession;
  say(text: string): void;
  /** Tells learning of the last answer, and what came of it; null: learning is off. */
  readonly judge: Judge | null;
  stats(): Promise<EngineStats>;
  /** Tokens of the conversation so far, and the most there may be. */
  contextUse(): { readonly numTokens: number; readonly maxContext: number };
}

interface SlashCommand {
  readonly usage: string;
  readonly description: string;
  run(context: SlashContext, rest: string): Action | Promise<Action>;
}

const NOTHING: Action = { type: 'nothing' };
const UNHEARD: ReadonlySet<ErrorCode> = new Set(['overloaded', 'not_found']);

async function judgeLast(
  { judge, session, say }: SlashContext,
  said: { thumbs?: 'up' | 'down'; correction?: string },
): Promise<Action> {
  if (judge === null) throw new RuvLLMError('invalid_option', 'learning is off; ruvllm chat --learn turns it on');
  if (session.lastRequestId === null) throw new RuvLLMError('invalid_option', 'there is no answer yet to judge');
  try {
    say(await judge(session.lastRequestId, said));
  } catch (error) {
    // Too many words in a minute, or an answer that was not kept: no reason to end a chat.
    if (!(error instanceof RuvLLMError) || !UNHEARD.has(error.code)) throw error;
    say(`not learned: ${error.message}`);
  }
  return NOTHING;
}

const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  '/help': {
    usage: '/help',
    description: 'this list',
    run({ say }) {
      const rows = Object.values(SLASH_COMMANDS).map(({ usage, description }) => [usage, description]);
      say(layTable(rows, null).join('\n'));
      say(
        'Several lines: end one in \\, put them between """, or paste them and press Enter. ↑ brings back what was typed.',
      );
      say('Ctrl-C stops an answer, a second Ctrl-C or Ctrl-D leaves.');
      return NOTHING;
    },
  },
  '/clear': {
    usage: '/clear',
    description: 'forget the conversation',
    run({ session, say }) {
      session.clear();
      say('forgotten');
      return NOTHING;
    },
  },
  '/system': {
    usage: '/system TEXT',
    description: 'instructions from now on; without TEXT: none',
    run({ session, say }, rest) {
      session.setSystem(rest === '' ? null : rest);
      say(rest === '' ? 'no instructions' : 'instructions changed');
      return NOTHING;
    },
  },
  '/regenerate': { usage: '/regenerate', description: 'answer again', run: () => ({ type: 'regenerate' }) },
  '/good': {
    usage: '/good',
    description: 'the last answer was right: learn it (--learn)',
    run: (context) => judgeLast(context, { thumbs: 'up' }),
  },
  '/bad': {
    usage: '/bad',
    description: 'the last answer was wrong: unlearn it (--learn)',
    run: (context) => judgeLast(context, { thumbs: 'down' }),
  },
  '/correct': {
    usage: '/correct TEXT',
    description: 'what the last answer should have been (--learn)',
    run(context, rest) {
      if (rest === '') throw new RuvLLMError('invalid_option', '/correct needs the text that would have been right');
      return judgeLast(context, { correction: rest });
    },
  },
  '/stats': {
    usage: '/stats',
    description: 'tokens and memory in use',
    async run({ stats, contextUse, say, session }) {
      const engine = await stats();
      const { numTokens, maxContext } = contextUse();
      say(`${session.messages.length} messages, ${numTokens} of ${maxContext} tokens of context`);
      say(
        `${engine.numGeneratedTokens} tokens generated, ${engine.numComputedTokens} computed in ${engine.numSteps} steps`,
      );
      return NOTHING;
    },
  },
  '/exit': { usage: '/exit', description: 'leave', run: () => ({ type: 'leave' }) },
};

/** Finds out what a line means and does what can be done at once. An unknown `/word` is refused, never asked. */
export async function readAction(line: string, context: SlashContext): Promise<Action> {
  const text = line.trim();
  if (text === '') return NOTHING;
  const match = /^(\/[a-z]+)(?:\s+([\s\S]*))?$/.exec(text);
  if (match === null) return { type: 'ask', text: line };
  const command = Object.hasOwn(SLASH_COMMANDS, match[1]!) ? SLASH_COMMANDS[match[1]!]! : null;
  if (command !== null) return await command.run(context, match[2] ?? '');
  throw new RuvLLMError(
    'invalid_option',
    `unknown command ${match[1]!}${didYouMean(match[1]!, Object.keys(SLASH_COMMANDS))}; /help shows those there are`,
  );
}
