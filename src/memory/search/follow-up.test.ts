import { expect, test } from 'vitest';
import { wordEmbedder } from '../../../test/support/test-memory.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { contextOf, embedQuestion } from './follow-up.ts';

const ASKED = 'Who built the Corinth canal?';

test.each([
  'and how long does it take?',
  'How deep is it?',
  'Why?',
  'what about the locks?',
  'Und wie lange dauert das?',
  'When did they finish this?',
  'Which locks?',
  'Was it dug, drained, walled, roofed, paved, opened, painted and mapped?',
])('[SE12] "%s" refers to the question before it', (question) => {
  expect(contextOf(question, [ASKED])).toBe(ASKED);
});

test.each([
  'When does the library close?',
  'When did Ada sell her car?',
  'What injury did Tom have?',
  'How deep is the Panama canal, and is it wider than 30 metres along all of its locks and lakes?',
  'Is it true that the Matterhorn is in Italy?',
  'Which locks leak?',
  'Was it dug, drained, walled, roofed, paved, opened, painted, lit and mapped?',
])('[SE12] "%s" stands alone', (question) => {
  expect(contextOf(question, [ASKED])).toBe('');
});

test('[SE12] a chain of follow-ups reaches back to the question that stands alone, and no further', () => {
  const turns = ['Which ships are in Lisbon?', ASKED, 'How deep is it?'];
  expect(contextOf('and how long?', turns)).toBe(`${ASKED}\nHow deep is it?`);
  expect(contextOf('and how long?', [])).toBe('');
  expect(contextOf('and how long?', ['x'.repeat(10_000)]).length).toBeLessThanOrEqual(300);
});

test('[SE12] the embedding moves towards the question before it; one that stands alone keeps its own', async () => {
  const asked = wordEmbedder.embed('How deep is it?') as Float32Array;
  const before = wordEmbedder.embed(ASKED) as Float32Array;
  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  const { vector } = (await embedQuestion(wordEmbedder, 'How deep is it?', [ASKED]))!;
  expect(dot(vector, vector)).toBeCloseTo(1, 5);
  expect(dot(vector, before)).toBeGreaterThan(dot(asked, before));
  expect(dot(vector, asked)).toBeGreaterThan(dot(vector, before));
  const alone = await embedQuestion(wordEmbedder, 'When does the library close?', [ASKED]);
  expect(alone!.vector).toEqual(wordEmbedder.embed('When does the library close?'));
  expect(await embedQuestion(null, 'How deep is it?', [ASKED])).toBeNull();
});

test('[SE12] where one of the two texts has no tokens, the other one is searched', async () => {
  const embedder = {
    fingerprint: 's',
    embed(text: string) {
      if (text.includes('***')) throw new RuvLLMError('invalid_text', 'no tokens');
      return Float32Array.of(text.includes('canal') ? 1 : 2, 0);
    },
  };
  expect((await embedQuestion(embedder, 'and ***?', [ASKED]))!.vector).toEqual(Float32Array.of(1, 0));
  expect((await embedQuestion(embedder, 'and it?', ['*** builds ships daily']))!.vector).toEqual(Float32Array.of(2, 0));
  expect(await embedQuestion(embedder, 'and ***?', ['*** builds ships daily'])).toBeNull();
});
