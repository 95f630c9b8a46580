import type { AnswerOrigin } from '../../api/chat.ts';
import type { SamplingOptions, Usage } from '../../api/types.ts';

/** What is known of an answer beside its words. */
export interface AnswerDetails extends AnswerOrigin {
  readonly model: string;
  readonly usage: Usage | null;
  readonly finishReason: string | null;
  /** Until the first word; null: there was none. */
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
}

/** What was said of an answer, as the server has it. */
export interface Verdict {
  readonly thumbs: 'up' | 'down' | null;
  readonly correction: string | null;
}

export type MessageState = 'done' | 'streaming' | 'stopped' | 'failed';

export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** What the model thought before it spoke. */
  readonly reasoning: string;
  readonly state: MessageState;
  /** Why it failed. */
  readonly failure: string | null;
  readonly details: AnswerDetails | null;
  readonly verdict: Verdict;
}

/** How the answers of a conversation are made. */
export interface ChatSettings {
  readonly system: string;
  readonly options: SamplingOptions;
  /** Whether the memory is asked for what fits. */
  readonly usesMemory: boolean;
}

export interface Conversation {
  readonly id: string;
  /** null: the first there is. */
  readonly model: string | null;
  readonly settings: ChatSettings;
  readonly messages: readonly Message[];
  readonly createdMs: number;
}

export const NO_VERDICT: Verdict = { thumbs: null, correction: null };

/** A message of a person. */
export function userMessage(text: string): Message {
  return {
    id: crypto.randomUUID(),
    role: 'user',
    text,
    reasoning: '',
    state: 'done',
    failure: null,
    details: null,
    verdict: NO_VERDICT,
  };
}
