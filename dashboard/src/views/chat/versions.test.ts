import { expect, test } from 'vitest';
import { allMessages, showVersion, startVersion, versionsAt } from './versions.ts';
import { createConversation, createUserMessage, type Conversation } from './types.ts';

const add = (conversation: Conversation, ...texts: string[]): Conversation => ({
  ...conversation,
  messages: [...conversation.messages, ...texts.map((text) => ({ ...createUserMessage(text), id: text }))],
});
const textsOf = ({ messages }: Conversation): string => messages.map(({ text }) => text).join(' ');

test('keeps the answer that is regenerated, with everything after it', () => {
  const first = add(createConversation(), 'q1', 'a1', 'q2', 'a2');
  const second = add(startVersion(first, 'a1'), 'b1');
  expect([textsOf(second), versionsAt(second, 1)]).toEqual(['q1 b1', { number: 2, count: 2 }]);
  const back = showVersion(second, 'b1', -1);
  expect([textsOf(back), versionsAt(back, 1)]).toEqual(['q1 a1 q2 a2', { number: 1, count: 2 }]);
  expect(textsOf(showVersion(back, 'a1', 1))).toBe('q1 b1');
  expect(versionsAt(back, 0)).toBeNull();
});

test('keeps versions within versions, and those of the first message', () => {
  let conversation = add(createConversation(), 'q1', 'a1', 'q2', 'a2');
  conversation = add(startVersion(conversation, 'a2'), 'b2');
  conversation = add(startVersion(conversation, 'q1'), 'r1', 'c1');
  conversation = add(startVersion(conversation, 'r1'), 's1');
  expect([textsOf(conversation), versionsAt(conversation, 0)]).toEqual(['s1', { number: 3, count: 3 }]);
  conversation = showVersion(showVersion(conversation, 's1', -1), 'r1', -1);
  expect([textsOf(conversation), versionsAt(conversation, 3)]).toEqual(['q1 a1 q2 b2', { number: 2, count: 2 }]);
  expect(textsOf(showVersion(conversation, 'b2', -1))).toBe('q1 a1 q2 a2');
  const all = allMessages(conversation).map(({ text }) => text).sort(); // prettier-ignore
  expect(all).toEqual(['a1', 'a2', 'b2', 'c1', 'q1', 'q2', 'r1', 's1']);
});

test('does nothing beyond the first and the last version', () => {
  const conversation = add(createConversation(), 'q1', 'a1');
  expect(showVersion(conversation, 'a1', 1)).toBe(conversation);
  expect(startVersion(conversation, 'unknown')).toBe(conversation);
});
