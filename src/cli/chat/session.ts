import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';
import type { GenerateResult } from '../../runtime/generation-types.ts';
import type { Model } from '../../runtime/model.ts';
import { collectAnswer } from '../collect-answer.ts';

/** Long enough for an answer, short enough that a model that never ends does not fill the context with one. */
export const DEFAULT_CHAT_TOKENS = 1024;

/** An answer; `isStopped` when the user had heard enough, and then nothing was measured. */
export type Turn =
  | {
      readonly isStopped: false;
      readonly user: string;
      readonly answer: GenerateResult;
      readonly isContextFull: boolean;
    }
  | { readonly isStopped: true; readonly user: string; readonly text: string };

export interface TurnOptions {
  /** Ends the answer, not the conversation. */
  readonly signal: AbortSignal;
  readonly onText: (piece: string) => void;
}

/** A conversation with one model. */
export interface ChatSession {
  readonly messages: readonly ChatMessage[];
  readonly system: string | null;
  /** Of the last answer; null: there is none, or nobody keeps it. */
  readonly lastRequestId: string | null;
  setSystem(text: string | null): void;
  /** Forgets the turns; the system text stays. */
  clear(): void;
  /** One turn. When it fails the conversation is as it was before. */
  ask(text: string, options: TurnOptions): Promise<Turn>;
  /** Answers the last question again; `invalid_option` when there is none. */
  regenerate(options: TurnOptions): Promise<Turn>;
}

type ChatModel = Pick<Model, 'encodePrompt' | 'generateStream'> & { modelInfo(): { readonly maxContext: number } };

export function createChatSession(
  model: ChatModel,
  params: GenerateOptions,
  system: string | null,
  /** Makes the ids that answers are judged by; null: they are not. */
  newRequestId: (() => string) | null = null,
): ChatSession {
  let messages: ChatMessage[] = [];
  let systemText = system;
  let numRegenerations = 0;
  let lastRequestId: string | null = null;
  const withSystem = (turns: readonly ChatMessage[]): ChatMessage[] =>
    systemText === null ? [...turns] : [{ role: 'system', content: systemText }, ...turns];

  async function answer(turns: readonly ChatMessage[], options: TurnOptions): Promise<Turn> {
    const user = turns.at(-1)!.content;
    const prompt = withSystem(turns);
    const room = model.modelInfo().maxContext - model.encodePrompt(prompt).length;
    const wanted = params.maxTokens ?? DEFAULT_CHAT_TOKENS;
    let heard = '';
    const requestId = newRequestId?.() ?? null;
    lastRequestId = null;
    try {
      const result = await collectAnswer(
        model.generateStream(prompt, {
          ...params,
          // The same seed would give the answer that was not wanted.
          ...(params.seed == null ? {} : { seed: params.seed + numRegenerations }),
          // "Most tokens": what does not fit is cut off and said so. Without any room the model refuses by itself.
          maxTokens: Math.max(1, Math.min(wanted, room)),
          signal: options.signal,
          ...(requestId === null ? {} : { requestId }),
        }),
        (piece) => {
          heard += piece;
          options.onText(piece);
        },
      );
      const { text: content, reasoning } = result;
      messages = [...turns, { role: 'assistant', content, ...(reasoning === '' ? {} : { reasoning }) }];
      lastRequestId = requestId;
      const isContextFull = result.finishReason === 'length' && result.usage.completionTokens >= room;
      return { isStopped: false, user, answer: result, isContextFull };
    } catch (error) {
      if (!(error instanceof RuvLLMError) || error.code !== 'aborted' || !options.signal.aborted) throw error;
      if (heard !== '') messages = [...turns, { role: 'assistant', content: heard }];
      return { isStopped: true, user, text: heard };
    }
  }

  return {
    get messages() {
      return messages;
    },
    get system() {
      return systemText;
    },
    get lastRequestId() {
      return lastRequestId;
    },
    setSystem(text) {
      systemText = text;
    },
    clear() {
      messages = [];
      lastRequestId = null;
    },
    ask(text, options) {
      numRegenerations = 0;
      return answer([...messages, { role: 'user', content: text }], options);
    },
    regenerate(options) {
      const last = messages.findLastIndex(({ role }) => role === 'user');
      if (last < 0) throw new RuvLLMError('invalid_option', 'there is no answer yet that could be given again');
      numRegenerations++;
      return answer(messages.slice(0, last + 1), options);
    },
  };
}
