import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory, wordEmbedder } from '../../../test/support/test-memory.ts';
import type { GenerateOptions } from '../generate-options.ts';
import { createFeedbackLog, type FeedbackLog } from '../learning/feedback-log.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';

/** Like an embedder that knows which words matter. */
const embedder = {
  ...wordEmbedder,
  embed: (text: string) =>
    wordEmbedder.embed(text.replace(/\b(what|tell|me|is|the|of|my|s|do|does|our|in|a)\b/gi, ' ')),
};
let memory: TestMemory;
let log: FeedbackLog;
let requests: RequestMemory;
let clockMs: number;
const reports: string[] = [];

async function open(corrections = true): Promise<void> {
  const report = (message: string): void => void reports.push(message);
  log = createFeedbackLog({ memory, schedule: () => () => {}, report, corrections });
  requests = createRequestMemory(memory, { now: () => clockMs, wallClock: () => clockMs, report, learning: log });
}

beforeEach(async () => {
  clockMs = 1_700_000_000_000;
  reports.length = 0;
  memory = await openTestMemory({ now: () => clockMs, embedder });
  await open();
});

/** Asks, and returns the prompt as the model read it. */
async function ask(question: string, options: GenerateOptions = {}, answer = 'I do not know.') {
  clockMs += 1000;
  const requestId = crypto.randomUUID();
  const spoken = createSpokenModel([answer], { memory: requests });
  await spoken.model.generate([{ role: 'user', content: question }], { requestId, ...options });
  await requests.settle();
  await log.settle();
  return { requestId, prompt: spoken.requests[0]!.prompt };
}

async function correct(question: string, correction: string, options: GenerateOptions = {}) {
  const { requestId } = await ask(question, options);
  const receipt = await log.feedback(options.tenant ?? 'local', { requestId, correction });
  return { ...receipt, requestId };
}

const plainPrompt = (question: string): string => `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
const EXCHANGE =
  '<|im_start|>user\nWhat is the name of my cat?<|im_end|>\n<|im_start|>assistant\nYour cat is called Pim.<|im_end|>\n';

describe('[RM9] a correction', () => {
  test('is an exchange before the same question and near ones, from the next request on', async () => {
    const { remembered } = await correct('What is the name of my cat?', 'Your cat is called Pim.');
    expect(remembered).toMatchObject({ state: 'remembered', supersedes: [], numRepeats: 0 });
    for (const question of ['What is the name of my cat?', 'what is the name of my cat', "Tell me my cat's name."]) {
      expect((await ask(question)).prompt).toBe(EXCHANGE + plainPrompt(question));
    }
    expect(reports).toEqual([]);
  });

  test.each([
    'What is the code of the safe?',
    'How many moons does Jupiter have?',
    'When does our project have a name?',
    'Write a poem.',
  ])('leaves the prompt of %j as it is', async (question) => {
    await correct('What is the name of my cat?', 'Your cat is called Pim.');
    await correct('How many moons does Mars have?', 'Two.');
    await correct('Who chose the name of our project?', 'Ann.');
    expect((await ask(question)).prompt).toBe(plainPrompt(question));
  });

  test('costs a user without any only one look at the store, and is found as soon as there is one', async () => {
    const count = vi.spyOn(memory.store, 'count');
    const numLooks = (): number => count.mock.calls.filter(([, { kinds }]) => kinds.includes('qa-pair')).length;
    for (let i = 0; i < 3; i++) await ask('What is the name of my cat?', { user: 'ann' });
    expect(numLooks()).toBe(1);
    await correct('What is the name of my cat?', 'Your cat is called Pim.', { user: 'ann' });
    expect((await ask('What is the name of my cat?', { user: 'ann' })).prompt).toContain('Pim');
  });

  test('is recalled for its user and tenant only', async () => {
    const question = 'What is the name of my cat?';
    await correct(question, 'Your cat is called Pim.', { user: 'ann' });
    expect((await ask(question, { user: 'ann' })).prompt).toBe(EXCHANGE + plainPrompt(question));
    for (const other of [{ user: 'bob' }, {}, { user: 'ann', tenant: 'other' }]) {
      expect((await ask(question, other)).prompt).toBe(plainPrompt(question));
    }
    // Nor as a text of the memory.
    expect((await ask(question, { user: 'bob', memory: { minSimilarity: -1 } })).prompt).not.toContain('Pim');
  });

  test('can be switched off for a request and for the server', async () => {
    const question = 'What is the name of my cat?';
    await correct(question, 'Your cat is called Pim.');
    expect((await ask(question, { corrections: false })).prompt).toBe(plainPrompt(question));
    await open(false);
    expect((await ask(question)).prompt).toBe(plainPrompt(question));
    expect((await correct(question, 'Your cat is called Tom.')).remembered).toMatchObject({ state: 'refused' });
  });

  test('is a source of the answer and linked to its request', async () => {
    const question = 'What is the name of my cat?';
    const { remembered } = await correct(question, 'Your cat is called Pim.');
    const { requestId } = await ask(question, {}, 'Your cat is called Pim.');
    const id = (remembered as { id: string }).id;
    const { retrieved, prompt } = (await log.trajectories.get('local', requestId))!;
    expect(retrieved).toMatchObject([{ id }]);
    expect(prompt).toEqual([{ role: 'user', content: question }]);
    expect(await memory.get('local', id)).toMatchObject({ kind: 'qa-pair', source: 'correction', quality: 1 });
    expect(await memory.graph.neighbours('local', id, { relations: ['derived'] })).toHaveLength(1);
  });

  test('replaces the correction of the same question, whose request is named', async () => {
    const question = 'What is the name of my cat?';
    const first = await correct(question, 'Your cat is called Tom.');
    const second = await correct("Tell me my cat's name.", 'Your cat is called Pim.');
    expect(second.remembered).toMatchObject({ supersedes: [first.requestId] });
    expect((await ask("my cat's name?")).prompt).toContain('Pim');
    expect((await ask(question)).prompt).not.toContain('Tom');
    const ids = [first, second].map(({ remembered }) => (remembered as { id: string }).id);
    expect(await memory.get('local', ids[0]!)).toMatchObject({ metadata: { answer: 'Your cat is called Tom.' } });
    const edges = await memory.graph.neighbours('local', ids[1]!, { relations: ['supersedes'] });
    expect(edges.map(({ id }) => id)).toEqual([ids[0]]);
    // The older one is right again.
    await log.corrections!.forget('local', [{ field: 'requestId', is: '=', value: second.requestId }]);
    expect((await ask(question)).prompt).toContain('Tom');
  });

  test('of another attribute of the same subject replaces nothing', async () => {
    await correct('What is the name of my cat?', 'Your cat is called Pim.');
    expect((await correct('How old is my cat?', 'Four years.')).remembered).toMatchObject({ supersedes: [] });
    expect((await ask('What is the name of my cat?')).prompt).toContain('Pim');
    expect((await ask('How old is my cat?')).prompt).toContain('Four years.');
  });

  test('given twice for one request counts once, for other requests as repeated, and is shown more often', async () => {
    const question = 'What is the name of my cat?';
    const { requestId } = await correct(question, 'Your cat is called Pim.');
    const again = await log.feedback('local', { requestId, correction: 'Your cat is called Pim.' });
    expect(again.remembered).toMatchObject({ numRepeats: 0 });
    const numShown = async (): Promise<number> =>
      (await ask(question)).prompt.split('Your cat is called Pim.').length - 1;
    expect(await numShown()).toBe(1);
    const second = await correct(question, 'your cat is called pim');
    expect(second.remembered).toMatchObject({ numRepeats: 1 });
    expect((await log.feedback('local', { requestId: second.requestId, correction: 'your cat is called pim' })).remembered).toMatchObject({ numRepeats: 1 }); // prettier-ignore
    expect(await numShown()).toBe(2);
    for (const numRepeats of [2, 3]) {
      expect((await correct(question, 'your cat is called pim')).remembered).toMatchObject({ numRepeats });
    }
    expect(await numShown()).toBe(3);
  });

  test('that the answer already says, or that cannot be recalled, is not remembered', async () => {
    const { requestId } = await ask('What is the name of my cat?', {}, 'Pim!');
    const give = async (correction: string) => (await log.feedback('local', { requestId, correction })).remembered;
    expect(await give('Pim')).toMatchObject({ state: 'already-known' });
    expect(await give('x'.repeat(4097))).toMatchObject({
      state: 'refused',
      reason: 'the correction has 4097 characters; 4096 can be recalled',
    });
  });

  test('of a question that only makes sense in its conversation is not remembered', async () => {
    const requestId = crypto.randomUUID();
    const { model } = createSpokenModel(['no'], { memory: requests });
    const turn = (role: 'user' | 'assistant', content: string) => ({ role, content });
    const messages = [turn('user', 'Is it cold?'), turn('assistant', 'Yes.'), turn('user', 'And you?')];
    await model.generate(messages, { requestId });
    await requests.settle();
    const { remembered } = await log.feedback('local', { requestId, correction: 'Never.' });
    expect(remembered).toMatchObject({ state: 'refused', reason: 'the question refers to the conversation before it' });
  });

  test('is withdrawn by praise of the answer; praise alone remembers nothing', async () => {
    const question = 'What is the name of my cat?';
    const { requestId } = await correct(question, 'Your cat is called Pim.');
    await log.feedback('local', { requestId, thumbs: 'up' });
    expect((await ask(question)).prompt).toBe(plainPrompt(question));
    expect((await memory.stats('local')).numRecords['qa-pair']).toBeUndefined();
  });

  test('stands before a text prompt, too', async () => {
    const requestId = crypto.randomUUID();
    const spoken = createSpokenModel(['red'], { memory: requests });
    await spoken.model.generate('The best colour is', { requestId });
    await requests.settle();
    await log.feedback('local', { requestId, correction: ' purple.' });
    await spoken.model.generate('The best colour is');
    expect(spoken.requests[1]!.prompt).toBe('The best colour is purple.\nThe best colour is');
  });

  test('is left out where the context has no room for it', async () => {
    await correct('What is the name of my cat?', 'Your cat is called Pim.');
    const question = [{ role: 'user' as const, content: 'What is the name of my cat?' }];
    for (const maxContext of [200, 120]) {
      const spoken = createSpokenModel(['ok'], { memory: requests, maxContext });
      await spoken.model.generate(question, { maxTokens: 4 });
      expect(spoken.requests[0]!.prompt.includes('Pim'), String(maxContext)).toBe(maxContext === 200);
    }
  });

  test('is found by its question after the embedder changed', async () => {
    const { remembered } = await correct('What is the name of my cat?', 'Your cat is called Pim.');
    const other = { ...embedder, fingerprint: 'words-2' };
    memory = await openTestMemory({ now: () => clockMs, embedder: other, store: memory.store });
    await memory.reindex();
    const record = await memory.get('local', (remembered as { id: string }).id);
    expect(record).toMatchObject({ space: 'words-2', embedding: embedder.embed('What is the name of my cat?') });
  });

  test('can be retired by model and time', async () => {
    const question = 'What is the name of my cat?';
    await correct(question, 'Your cat is called Pim.');
    expect(await log.corrections!.retire('local', 'other', 0)).toBe(0);
    expect(await log.corrections!.retire('local', 'toy', clockMs + 1)).toBe(0);
    expect(await log.corrections!.retire('local', 'toy', 0)).toBe(1);
    expect((await ask(question)).prompt).toBe(plainPrompt(question));
  });
});
