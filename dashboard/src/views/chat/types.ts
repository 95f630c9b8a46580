import type { AnswerOrigin } from '../../api/chat.ts';
import { createId } from '../../format/create-id.ts';
import type { SamplingOptions, Usage } from '../../api/types.ts';

/** Metadata of an answer. */
export interface AnswerDetails extends AnswerOrigin {
  readonly model: string;
  readonly usage: Usage | null;
  readonly finishReason: string | null;
  /** Time to first token; null: no tokens. */
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
  /** Whether a model outside this server answered. Default false. */
  readonly isRemote?: boolean;
}

/** The rating and correction of an answer that the server has stored. */
export interface Verdict {
  readonly thumbs: 'up' | 'down' | null;
  readonly correction: string | null;
  /** What became of it; absent: not known. */
  readonly outcome?: string;
}

export type MessageState = 'done' | 'streaming' | 'stopped' | 'failed';

export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** The model's reasoning before the answer. */
  readonly reasoning: string;
  readonly state: MessageState;
  /** The error message of a failed answer. */
  readonly failure: string | null;
  readonly details: AnswerDetails | null;
  readonly verdict: Verdict;
}

/** The generation settings of a conversation. */
export interface ChatSettings {
  readonly system: string;
  readonly options: SamplingOptions;
  /** Whether relevant memory records are added to the prompt. */
  readonly usesMemory: boolean;
}

export interface Conversation {
  readonly id: string;
  /** null: the first available model. */
  readonly model: string | null;
  readonly settings: ChatSettings;
  readonly messages: readonly Message[];
  readonly createdMs: number;
}

export const NO_VERDICT: Verdict = { thumbs: null, correction: null };

/** Creates a message of the user. */
export function createUserMessage(text: string): Message {
  return {
    id: createId(),
    role: 'user',
    text,
    reasoning: '',
    state: 'done',
    failure: null,
    details: null,
    verdict: NO_VERDICT,
  };
}
