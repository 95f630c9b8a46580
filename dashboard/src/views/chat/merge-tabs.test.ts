import { expect, test } from 'vitest';
import { mergeTabs } from './merge-tabs.ts';
import { type Conversation, createConversation as createEmpty, createUserMessage } from './types.ts';

const createConversation = (
  id: string,
  createdMs: number,
  text: string,
  state: 'done' | 'streaming' = 'done',
): Conversation => ({
  ...createEmpty(),
  id,
  createdMs,
  updatedMs: createdMs,
  messages: [{ ...createUserMessage(text), id: `${id}-1`, state }],
});
const textsOf = (all: readonly Conversation[]): string[] =>
  all.map(({ id, messages }) => `${id}: ${messages[0]!.text}`);

test('adds conversations of the other tab and keeps those of this one', () => {
  const local = createConversation('mine', 2, 'a');
  const incoming = createConversation('theirs', 3, 'b');
  expect(textsOf(mergeTabs([local], { before: [], after: [incoming] }))).toEqual(['theirs: b', 'mine: a']);
});

test('removes conversations deleted in the other tab, unless an answer is streaming here', () => {
  const both = [createConversation('old', 1, 'a'), createConversation('busy', 2, 'b', 'streaming')];
  expect(textsOf(mergeTabs(both, { before: both, after: [] }))).toEqual(['busy: b']);
});

test('does not restore a conversation deleted here that the other tab merely copied', () => {
  const old = createConversation('old', 1, 'a');
  expect(mergeTabs([], { before: [old], after: [old] })).toEqual([]);
});

test("takes the other tab's changes, but not its stale copies of conversations changed here", () => {
  const before = [createConversation('x', 1, 'old'), createConversation('y', 2, 'old')];
  const local = [createConversation('x', 1, 'mine'), createConversation('y', 2, 'old')];
  const after = [createConversation('x', 1, 'old'), createConversation('y', 2, 'theirs')];
  expect(textsOf(mergeTabs(local, { before, after }))).toEqual(['y: theirs', 'x: mine']);
});
