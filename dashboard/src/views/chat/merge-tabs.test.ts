import { expect, test } from 'vitest';
import { mergeTabs } from './merge-tabs.ts';
import { type Conversation, userMessage } from './types.ts';

const talk = (id: string, createdMs: number, text: string, state: 'done' | 'streaming' = 'done'): Conversation => ({
  id,
  createdMs,
  model: null,
  settings: { system: '', options: {}, usesMemory: false },
  messages: [{ ...userMessage(text), id: `${id}-1`, state }],
});
const words = (all: readonly Conversation[]): string[] => all.map(({ id, messages }) => `${id}: ${messages[0]!.text}`);

test('what another tab began is added, and what only this one has stays', () => {
  const mine = talk('mine', 2, 'a');
  expect(words(mergeTabs([mine], { before: [], after: [talk('theirs', 3, 'b')] }))).toEqual(['theirs: b', 'mine: a']);
});

test('what it removed goes, unless it is being answered here', () => {
  const both = [talk('old', 1, 'a'), talk('busy', 2, 'b', 'streaming')];
  expect(words(mergeTabs(both, { before: both, after: [] }))).toEqual(['busy: b']);
});

test('what was removed here and is only copied there does not come back', () => {
  const old = talk('old', 1, 'a');
  expect(mergeTabs([], { before: [old], after: [old] })).toEqual([]);
});

test('what it changed is as it has it; its copy of what changed here is older', () => {
  const before = [talk('x', 1, 'old'), talk('y', 2, 'old')];
  const own = [talk('x', 1, 'mine'), talk('y', 2, 'old')];
  const after = [talk('x', 1, 'old'), talk('y', 2, 'theirs')];
  expect(words(mergeTabs(own, { before, after }))).toEqual(['y: theirs', 'x: mine']);
});
