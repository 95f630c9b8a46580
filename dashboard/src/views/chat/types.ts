import type { AnswerOrigin } from '../../api/chat.ts';
import { createId } from '../../format/create-id.ts';
import type { FeedbackOutcome, SamplingOptions, Usage } from '../../api/types.ts';
import { messages as texts } from '../../messages/index.ts';
import type { ChatImage } from './chat-image.ts';
import type { Versions } from './versions.ts';

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
  /** Whether it was generated in the tab; the server does not know it. Default false. */
  readonly isInTab?: boolean;
}

/** The rating and correction of an answer that the server has stored. */
export interface Verdict {
  readonly thumbs: 'up' | 'down' | null;
  readonly correction: string | null;
  /** What became of it, by the server. */
  readonly receipt?: FeedbackOutcome;
  /** A text about it, if there is no receipt. */
  readonly outcome?: string;
}

export type MessageState = 'done' | 'streaming' | 'stopped' | 'failed';

/** A call of a tool; the page's user runs it. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** Null: not known yet. */
  readonly result: string | null;
}

export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** Of a user's message. Default: none. */
  readonly images?: readonly ChatImage[];
  /** The model's reasoning before the answer. */
  readonly reasoning: string;
  /** Default: none. */
  readonly toolCalls?: readonly ToolCall[];
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
  /** OpenAI tool definitions as JSON; empty: none. */
  readonly tools: string;
}

export interface Conversation {
  readonly id: string;
  /** Chosen by the user; null: the first line of the first message. */
  readonly title: string | null;
  readonly isPinned: boolean;
  /** null: the first available model. */
  readonly model: string | null;
  readonly settings: ChatSettings;
  /** Empty until it is loaded. */
  readonly messages: readonly Message[];
  /** Other versions of messages, by the id of the message before them. */
  readonly versions: Readonly<Record<string, Versions>>;
  readonly createdMs: number;
  /** When the last message was sent. */
  readonly updatedMs: number;
  /** On the server; 0: not stored yet. */
  readonly version: number;
  /** False: only its title has been read from the server. */
  readonly isLoaded: boolean;
}

/** Without options, the server's defaults for the model count. */
export const DEFAULT_SETTINGS: ChatSettings = { system: '', options: {}, usesMemory: false, tools: '' };

/** Creates an empty conversation. */
export function createConversation(start: Partial<Pick<Conversation, 'model' | 'settings'>> = {}): Conversation {
  const nowMs = Date.now();
  return {
    id: createId(),
    title: null,
    isPinned: false,
    model: null,
    settings: DEFAULT_SETTINGS,
    messages: [],
    versions: {},
    createdMs: nowMs,
    updatedMs: nowMs,
    version: 0,
    isLoaded: true,
    ...start,
  };
}

export const isEmpty = ({ isLoaded, messages }: Conversation): boolean => isLoaded && messages.length === 0;
export const isStreaming = ({ messages }: Conversation): boolean => messages.some(({ state }) => state === 'streaming');

const MAX_TITLE_CHARS = 60;

/** Returns the title of a conversation. */
export function titleOf({ title, messages }: Conversation): string {
  if (title !== null) return title;
  const first = messages.find(({ role }) => role === 'user');
  const line = (first?.text.slice(0, 200).trim() || first?.images?.[0]?.name || '').split('\n')[0]!;
  return line === ''
    ? texts.chat.newConversation
    : line.length > MAX_TITLE_CHARS
      ? `${line.slice(0, MAX_TITLE_CHARS)}…`
      : line;
}

export const NO_VERDICT: Verdict = { thumbs: null, correction: null };

/** Creates a message of the user. */
export function createUserMessage(text: string, images: readonly ChatImage[] = []): Message {
  return {
    id: createId(),
    role: 'user',
    text,
    ...(images.length === 0 ? {} : { images }),
    reasoning: '',
    state: 'done',
    failure: null,
    details: null,
    verdict: NO_VERDICT,
  };
}
