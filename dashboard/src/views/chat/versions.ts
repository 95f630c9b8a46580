import type { Conversation, Message } from './types.ts';

/** Versions of a message: each with the messages after it. */
export interface Versions {
  /** Index of the shown one, whose messages are in the conversation. */
  readonly shown: number;
  /** The shown one is empty. */
  readonly tails: readonly (readonly Message[])[];
}

/** Key of the versions of the first message. */
const FIRST = 'first';

/** Versions belong to the message before them, which they all answer. */
const keyAt = ({ messages }: Conversation, index: number): string => (index === 0 ? FIRST : messages[index - 1]!.id);

/** The number and count of versions of the message at an index; null: there is one. */
export function versionsAt(conversation: Conversation, index: number): { number: number; count: number } | null {
  const versions = conversation.versions[keyAt(conversation, index)];
  return versions === undefined ? null : { number: versions.shown + 1, count: versions.tails.length };
}

/** Removes the message and all after it from view, and keeps them as a version. */
export function startVersion(conversation: Conversation, messageId: string): Conversation {
  const index = conversation.messages.findIndex(({ id }) => id === messageId);
  if (index < 0) return conversation;
  const key = keyAt(conversation, index);
  const { shown, tails } = conversation.versions[key] ?? { shown: 0, tails: [[]] };
  const kept = tails.with(shown, conversation.messages.slice(index));
  return {
    ...conversation,
    messages: conversation.messages.slice(0, index),
    versions: { ...conversation.versions, [key]: { shown: kept.length, tails: [...kept, []] } },
  };
}

/** Shows the version before (-1) or after (1) the shown one. */
export function showVersion(conversation: Conversation, messageId: string, step: 1 | -1): Conversation {
  const index = conversation.messages.findIndex(({ id }) => id === messageId);
  const key = index < 0 ? FIRST : keyAt(conversation, index);
  const versions = conversation.versions[key];
  const next = versions === undefined ? undefined : versions.tails[versions.shown + step];
  if (index < 0 || versions === undefined || next === undefined) return conversation;
  const shown = versions.shown + step;
  const tails = versions.tails.with(versions.shown, conversation.messages.slice(index)).with(shown, []);
  return {
    ...conversation,
    messages: [...conversation.messages.slice(0, index), ...next],
    versions: { ...conversation.versions, [key]: { shown, tails } },
  };
}

/** All messages of a conversation, those of other versions included. */
export const allMessages = ({ messages, versions }: Conversation): readonly Message[] => [
  ...messages,
  ...Object.values(versions).flatMap(({ tails }) => tails.flat()),
];
