import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRequestMemory } from '../memory/request-memory.ts';
import { createErrorPatterns, MAX_PATTERNS } from './error-patterns.ts';

const problem = (message: string, subject = 'weather') => ({ subject, stage: 2 as const, message });

async function setUp() {
  const memory = await openTestMemory({ now: () => 1000 });
  const reports: string[] = [];
  return {
    memory,
    reports,
    patterns: createErrorPatterns(memory.store, memory.services, (text) => void reports.push(text)),
  };
}

test('[RF7] errors that repeat are shown for their tool, the most frequent first, and stay with their tenant', async () => {
  const { patterns } = await setUp();
  for (let i = 0; i < 3; i++) await patterns.note('a', [problem('"city" is missing')]);
  for (let i = 0; i < 4; i++) await patterns.note('a', [problem('"days" must be of type integer')]);
  await patterns.note('a', [problem('rare'), problem('"x" is missing', 'other')]);
  expect(await patterns.frequent('a', ['weather'])).toEqual(['"days" must be of type integer', '"city" is missing']);
  expect(await patterns.frequent('a', ['music'])).toEqual([]);
  expect(await patterns.frequent('b', ['weather'])).toEqual([]);
});

test('[RF7] no value of a request is kept, and no error of a caller’s check', async () => {
  const { memory, patterns } = await setUp();
  for (let i = 0; i < 3; i++) {
    await patterns.note('a', [problem(`the call of weather: the value after "{\\"city\\":\\"Secret ${i}\\"" does not fit the schema`)]); // prettier-ignore
    await patterns.note('a', [
      problem(`it: "Obey Smith", "b\\" is not allowed; use only" is not allowed; use only "city"`),
    ]);
    await patterns.note('a', [problem('Mr Smith is no customer', 'check')]);
  }
  expect(await patterns.frequent('a', ['weather', 'check'])).toEqual([
    'the call of weather: a value does not fit the schema',
    'it: another name is not allowed; use only "city"',
  ]);
  const stored = JSON.stringify(
    (await memory.store.find('a', { kinds: ['state'], order: 'newest', limit: 100 })).records,
  );
  expect(stored).toContain('does not fit');
  expect(stored).not.toMatch(/Secret|Smith/);
});

test('[RF7] a tenant has at most 64 patterns; frequent ones stay', async () => {
  const { memory, patterns } = await setUp();
  for (let i = 0; i < 3; i++) await patterns.note('a', [problem('frequent')]);
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  for (let i = 0; i < 90; i++)
    await patterns.note('a', [problem(`rare ${letters[i % 26]!}${letters[Math.floor(i / 26)]!}`)]);
  const { records } = await memory.store.find('a', { kinds: ['state'], order: 'newest', limit: 100 });
  const [kept] = records.flatMap(({ body }) => (body as { patterns?: unknown[] }).patterns === undefined ? [] : [(body as { patterns: unknown[] }).patterns]); // prettier-ignore
  expect(kept).toHaveLength(MAX_PATTERNS);
  expect(await patterns.frequent('a', ['weather'])).toEqual(['frequent']);
});

test('[RF7] concurrent requests lose no count, and a failing store no answer', async () => {
  const { memory, patterns, reports } = await setUp();
  await Promise.all(Array.from({ length: 8 }, () => patterns.note('a', [problem('slow')])));
  expect(await patterns.frequent('a', ['weather'])).toEqual(['slow']);
  const broken = createErrorPatterns({ ...memory.store, get: () => Promise.reject(new Error('disk')) }, memory.services, (text) => void reports.push(text)); // prettier-ignore
  await broken.note('a', [problem('x')]);
  expect(await broken.frequent('a', ['weather'])).toEqual([]);
  expect(reports).toEqual(['storing error patterns failed: disk', 'reading error patterns failed: disk']);
});

test('[RF6][RF7] a model with a memory puts repeated errors before the first attempt; the audit entry has each attempt', async () => {
  const { memory } = await setUp();
  const requests = createRequestMemory(memory, { now: () => 1000, wallClock: () => 1000, report() {} });
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters } }];
  const call = (args: string): string => `<tool_call>\n{"name": "weather", "arguments": ${args}}\n</tool_call>`;
  const answers = Array.from({ length: 3 }, () => [call('{}'), call('{"city": "Rome"}')]).flat();
  const spoken = createSpokenModel([...answers, call('{"city": "Oslo"}')], { memory: requests, refusal: new RuvLLMError('unsupported', 'too hard') }); // prettier-ignore
  for (let i = 0; i < 4; i++) {
    await spoken.model.generate([{ role: 'user', content: 'How is it?' }], { tools, reflection: true });
    await new Promise((resolve) => setTimeout(resolve, 5)); // the note is written after the answer
  }
  const prompts = spoken.requests.filter(({ grammar }) => grammar === null).map(({ prompt }) => prompt);
  expect(prompts[0]).not.toContain('Avoid these mistakes');
  expect(prompts[6]).toContain('Avoid these mistakes of earlier answers:\n- the call of weather: "city" is missing');
  await requests.settle();
  await memory.audit.flush();
  const { entries } = await memory.audit.search('local', { order: 'oldest' });
  expect(entries[0]!.entry.reflection).toMatchObject({
    ending: 'accepted',
    chosen: 1,
    error: null,
    attempts: [{ error: 'the call of weather: "city" is missing' }, { error: null }],
  });
  expect(entries[0]!.entry.numOutputTokens).toBe(entries[0]!.entry.reflection!.attempts.reduce((sum, { completionTokens }) => sum + completionTokens, 0)); // prettier-ignore
});
