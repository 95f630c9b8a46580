import { RuvLLMError } from '../../core/errors.ts';
import type { EngineStats } from '../../engine/types.ts';
import { formatTable } from '../format.ts';
import type { ChatSession } from './session.ts';

/** What a line means. */
export type Action = { type: 'ask'; text: string } | { type: 'regenerate' } | { type: 'leave' } | { type: 'nothing' };

export interface SlashContext {
  readonly session: ChatSession;
  say(text: string): void;
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

const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  '/help': {
    usage: '/help',
    description: 'this list',
    run({ say }) {
      say(formatTable(Object.values(SLASH_COMMANDS).map(({ usage, description }) => [usage, description])));
      say('A line that ends in \\ goes on in the next. Ctrl-C stops an answer, a second Ctrl-C or Ctrl-D leaves.');
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
  throw new RuvLLMError('invalid_option', `unknown command ${match[1]!}; /help shows those there are`);
}
