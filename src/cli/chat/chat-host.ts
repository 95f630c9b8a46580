import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../../runtime/model.ts';
import type { CommandContext } from '../command.ts';
import { describeAnswer } from '../summary.ts';
import type { ChatSession, Turn } from './session.ts';
import { readAction, type SavedChats, type SendFeedback, type SlashContext } from './slash-commands.ts';

/** Handles input lines, from a terminal or a pipe. */
export interface ChatHost {
  /** Returns false if the user leaves; throws errors of the turn. */
  handle(line: string, signal: AbortSignal): Promise<boolean>;
  readonly turns: readonly Turn[];
}

/** Errors after which the chat continues with other input. */
export const RECOVERABLE: ReadonlySet<ErrorCode> = new Set([
  'context_overflow',
  'invalid_option',
  'invalid_text',
  'empty_prompt',
  'template_error',
]);

export function createChatHost(
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
  model: Model,
  session: ChatSession,
  sendFeedback: SendFeedback | null = null,
  saved: SavedChats | null = null,
): ChatHost {
  const turns: Turn[] = [];
  const slashContext: SlashContext = {
    session,
    sendFeedback,
    saved,
    say: (text) => output.note(text),
    stats: () => model.stats(),
    contextUse: () => ({
      numTokens: session.messages.length === 0 ? 0 : model.encodePrompt(session.messages).length,
      maxContext: model.modelInfo().maxContext,
    }),
  };

  function report(turn: Turn): void {
    turns.push(turn);
    output.markdown(null);
    output.text('\n');
    if (turn.isStopped) return output.aside('stopped');
    output.aside(describeAnswer(turn.answer, model.modelInfo().maxContext));
    if (turn.numDropped > 0) {
      output.note(
        `the context is full: the ${turn.numDropped} oldest messages were dropped; /clear starts a new conversation`,
      );
    }
    if (turn.isContextFull)
      output.note(`the context of ${model.modelInfo().maxContext} tokens is full; /clear starts a new conversation`);
  }

  return {
    turns,
    async handle(line, signal) {
      const action = await readAction(line, slashContext);
      if (action.type === 'leave') return false;
      const options = { signal, onText: (piece: string) => output.markdown(piece) };
      try {
        if (action.type === 'ask') report(await session.ask(action.text, options));
        if (action.type === 'regenerate') report(await session.regenerate(options));
      } catch (error) {
        throw withClearHint(error);
      }
      if (io.signal.aborted) throw new RuvLLMError('aborted', 'the chat was cancelled');
      return true;
    },
  };
}

function withClearHint(error: unknown): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'context_overflow') return error;
  return new RuvLLMError(error.code, `${error.message}; /clear starts a new conversation`, {
    cause: error,
    data: error.data,
  });
}
