import type { DataOwner } from '../../core/erasure.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';

/** An item of a conversation as clients see it. */
export interface ConversationItem {
  readonly id: string;
  readonly type: string;
}

/** The content of each type of object. */
export interface StoredContents {
  readonly response: {
    readonly body: object;
    /** The whole conversation including this response, without instructions. */
    readonly messages: readonly ChatMessage[];
    /** Turns at the end that are the answer: calls of tools, their results and texts. Default 1. */
    readonly numAnswerTurns?: number;
  };
  readonly 'chat.completion': {
    readonly body: object;
    /** The messages of the request. */
    readonly messages: readonly ChatMessage[];
  };
  readonly conversation: { readonly items: readonly ConversationItem[] };
}

export type StoredType = keyof StoredContents;
export type Metadata = Readonly<Record<string, string>>;

/** The part of an object that lists need. */
export interface StoredEntry {
  readonly id: string;
  readonly type: StoredType;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** Null: none. */
  readonly model: string | null;
  readonly metadata: Metadata;
  /** The requests of the object and their users. */
  readonly owners: readonly Omit<DataOwner, 'tenant'>[];
}

/** An object that a client can read, change or continue later. */
export interface StoredObject<T extends StoredType = StoredType> extends StoredEntry {
  readonly type: T;
  readonly content: StoredContents[T];
}
