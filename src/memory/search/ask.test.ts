import { expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import type { NearestQuery } from '../types.ts';
import { createAsk } from './ask.ts';
import { embedText } from './embed-text.ts';
import type { MemorySearch } from './search.ts';

test('nothing near is read unless it is asked for and there is a vector', async () => {
  const queries: NearestQuery[] = [];
  const store = { nearest: async (_: string, query: NearestQuery) => (queries.push(query), []) };
  const embedder = { fingerprint: 's', embed: async () => Float32Array.of(1) };
  const search = { search: () => Promise.reject(new Error('not asked')) } as unknown as MemorySearch;
  let nowMs = 0; // each look at the clock is a millisecond later
  const [blind, seeing] = [null, embedder].map((one) =>
    createAsk({ store, search, embedder: one, now: () => nowMs++ }),
  );
  const near = { kinds: ['fact'], k: 3 } as const;
  const none = { near: null, found: null, embeddingMs: 1, nearMs: 1, searchMs: 1 };
  expect(await blind!('t', { text: 'a', near })).toEqual({ ...none, embedded: null });
  expect(await seeing!('t', { text: 'a' })).toMatchObject({ near: null, found: null });
  expect(queries).toEqual([]);
  expect(await seeing!('t', { text: 'a', near })).toMatchObject({ near: [] });
  expect(queries).toEqual([{ ...near, vector: Float32Array.of(1), space: 's', withVectors: false }]);
});

test('a text without tokens has no vector, another failure of the embedder is one', async () => {
  const failing = (error: Error) => ({ fingerprint: 's', embed: () => Promise.reject(error) });
  expect(await embedText(failing(new RuvLLMError('invalid_text', 'no tokens')), '')).toBeNull();
  await expect(embedText(failing(new RuvLLMError('io', 'gone')), 'a')).rejects.toThrow('gone');
  const foreign = Object.assign(new Error('not ours'), { code: 'invalid_text' });
  await expect(embedText(failing(foreign), 'a')).rejects.toThrow('not ours');
});
