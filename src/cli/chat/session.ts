import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';
import type { GenerateResult } from '../../runtime/generation-types.ts';
import type { Model } from '../../runtime/model.ts';
import { collectAnswer } from '../collect-answer.ts';
import { generateWithTools } from '../mcp/generate-with-tools.ts';
import type { CliTools } from '../mcp/open-cli-tools.ts';

/** Keeps a model that never stops from filling the context with one answer. */
export const DEFAULT_CHAT_TOKENS = 1024;

/** An answer, complete or stopped by the user. */
export type Turn =
  | {
      readonly isStopped: false;
      readonly user: string;
      readonly answer: GenerateResult;
      readonly isContextFull: boolean;
      /** Oldest messages that had to leave the context. */
      readonly numDropped: number;
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
  /** Request id of the last complete answer; null if there is none or answers have no ids. */
  readonly lastRequestId: string | null;
  setSystem(text: string | null): void;
  /** Options that answers use besides those of the start. */
  readonly params: GenerateOptions;
  setParams(params: Partial<GenerateOptions>): void;
  /** Replaces all turns. */
  setMessages(messages: readonly ChatMessage[]): void;
  /** Removes all turns but keeps the system prompt. */
  clear(): void;
  /** Runs one turn; an error leaves the conversation unchanged. */
  ask(text: string, options: TurnOptions): Promise<Turn>;
  /** Regenerates the last answer; throws `invalid_option` if there is none. */
  regenerate(options: TurnOptions): Promise<Turn>;
}

type ChatModel = Pick<Model, 'encodePrompt' | 'generateStream' | 'runToolsStream'> & {
  modelInfo(): { readonly maxContext: number };
};

export function createChatSession(
  model: ChatModel,
  startParams: GenerateOptions,
  system: string | null,
  /** Creates request ids for feedback; null if feedback is off. */
  newRequestId: (() => string) | null = null,
  /** Null: the model has no tools. */
  tools: CliTools | null = null,
): ChatSession {
  const shownTools = tools === null ? {} : { tools: tools.tools.map(({ definition }) => definition) };
  let messages: ChatMessage[] = [];
  let params = startParams;
  let systemText = system;
  let numRegenerations = 0;
  let lastRequestId: string | null = null;
  const withSystem = (turns: readonly ChatMessage[]): ChatMessage[] =>
    systemText === null ? [...turns] : [{ role: 'system', content: systemText }, ...turns];

  /** The turns without the oldest ones that leave no space for an answer. */
  function slide(turns: readonly ChatMessage[], maxTokens: number) {
    const { maxContext } = model.modelInfo();
    const neededTokens = Math.min(maxTokens, Math.floor(maxContext / 4));
    for (let kept = turns; ;) {
      const prompt = withSystem(kept);
      const freeTokens = maxContext - model.encodePrompt(prompt, shownTools).length;
      const next = kept.findIndex(({ role }, index) => index > 0 && role === 'user');
      if (freeTokens >= neededTokens || next < 0) return { kept, prompt, freeTokens };
      kept = kept.slice(next);
    }
  }

  async function answer(turns: readonly ChatMessage[], options: TurnOptions): Promise<Turn> {
    const user = turns.at(-1)!.content;
    const maxTokens = params.maxTokens ?? DEFAULT_CHAT_TOKENS;
    const { kept, prompt, freeTokens } = slide(turns, maxTokens);
    let received = '';
    const requestId = newRequestId?.() ?? null;
    lastRequestId = null;
    try {
      const callOptions = {
        ...params,
        // The same seed would reproduce the same answer.
        ...(params.seed == null ? {} : { seed: params.seed + numRegenerations }),
        // A prompt that leaves no free tokens is rejected by the model.
        maxTokens: Math.max(1, Math.min(maxTokens, freeTokens)),
        signal: options.signal,
        ...(requestId === null ? {} : { requestId }),
      };
      let madeTurns: readonly ChatMessage[] = [];
      const chunks =
        tools === null
          ? model.generateStream(prompt, callOptions)
          : generateWithTools(model, prompt, callOptions, tools, (made) => (madeTurns = made));
      const result = await collectAnswer(chunks, (piece) => {
        received += piece;
        options.onText(piece);
      });
      const { text: content, reasoning } = result;
      const answerTurn: ChatMessage = { role: 'assistant', content, ...(reasoning === '' ? {} : { reasoning }) };
      messages = [...kept, ...(madeTurns.length === 0 ? [answerTurn] : madeTurns)];
      lastRequestId = requestId;
      const isContextFull = result.finishReason === 'length' && result.usage.completionTokens >= freeTokens;
      return { isStopped: false, user, answer: result, isContextFull, numDropped: turns.length - kept.length };
    } catch (error) {
      if (!(error instanceof RuvLLMError) || error.code !== 'aborted' || !options.signal.aborted) throw error;
      if (received !== '') messages = [...kept, { role: 'assistant', content: received }];
      return { isStopped: true, user, text: received };
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
    get params() {
      return params;
    },
    setParams(changes) {
      params = { ...params, ...changes };
    },
    setMessages(turns) {
      messages = [...turns];
      lastRequestId = null;
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
      if (last < 0) throw new RuvLLMError('invalid_option', 'no answer to regenerate yet');
      numRegenerations++;
      return answer(messages.slice(0, last + 1), options);
    },
  };
}
