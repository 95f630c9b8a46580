import { beforeEach, describe, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import type { ChatMessage } from '../../chat/types.ts';
import { readFacts } from './distil-facts.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';
import type { GenerateJson } from './types.ts';

let memory: TestMemory;
let requests: RequestMemory;
let clockMs: number;
const reports: string[] = [];

beforeEach(async () => {
  clockMs = Date.UTC(2026, 0, 1);
  reports.length = 0;
  memory = await openTestMemory({ now: () => clockMs });
  requests = open();
});

const open = (): RequestMemory =>
  createRequestMemory(memory, { now: () => clockMs, wallClock: () => clockMs, report: (message) => void reports.push(message) }); // prettier-ignore
const speak = (answers: readonly string[]) => createSpokenModel(answers, { memory: requests });
const ask = (content: string): ChatMessage[] => [{ role: 'user', content }];
const facts = (...values: readonly [string, string][]): string =>
  JSON.stringify({
    facts: values.map(([attribute, value]) => ({ subject: 'user', attribute, value, polarity: 'is' })),
  });
const remember = { memory: { remember: true }, session: 's1', user: 'alice' };
const listed = async (tenant = 'local') =>
  (await memory.agents.facts.list(tenant, { limit: 99 })).facts.map(({ attribute, value }) => `${attribute}: ${value}`);

const settle = async (): Promise<void> => {
  await requests.settle();
  await memory.agents.idle();
};

describe('sessions that remember', () => {
  test('[RM12] a fact of one session is recalled in a later one, with its source', async () => {
    const first = speak(['Nice to meet you.', facts(['city', 'Lisbon']), 'In Lisbon.', '{"facts":[]}']);
    await first.model.generate(ask('I live in Lisbon. Hello!'), remember);
    await settle();
    expect(first.requests[1]).toMatchObject({ grammar: { type: 'json_schema' }, priority: -10 });
    clockMs += 86_400_000;
    const { memory: recall } = await first.model.generate(ask('What is my city, where do I live?'), { ...remember, session: 's2' }); // prettier-ignore
    const prompt = first.requests[2]!.prompt;
    expect(prompt).toContain('facts, user 2026-01-01:\n[1] "user: city is Lisbon"');
    expect(prompt).toContain('user 2026-01-01:\n[2] "I live in Lisbon. Hello!"');
    expect(prompt.indexOf('From memory')).toBeGreaterThan(prompt.indexOf('<|im_start|>user'));
    expect(recall).toMatchObject({ outcome: 'used', sources: expect.arrayContaining([expect.objectContaining({ kind: 'fact', tier: 'semantic', speaker: 'user' })]) }); // prettier-ignore
    await settle();
    const [fact] = (await memory.agents.facts.list('local', { limit: 9 })).facts;
    expect(await memory.agents.why('local', fact!.id)).toMatchObject({
      fact: { sessionId: 's1', speaker: 'user', numUses: 1, usedMs: [clockMs] },
      message: 'I live in Lisbon. Hello!',
    });
    expect(reports).toEqual([]);
  });

  test('[RM12] nothing is stored without the option; the option requires a session', async () => {
    const { model, requests: sent } = speak(['Hello.']);
    await model.generate(ask('I live in Lisbon.'), { session: 's1', user: 'alice', memory: {} });
    await model.generate(ask('I live in Lisbon.'), { session: 's1', user: 'alice' });
    await settle();
    expect(sent).toHaveLength(2);
    expect(await memory.store.count('local', { kinds: ['agent-step', 'fact'] })).toBe(0);
    await expect(model.generate(ask('x'), { memory: { remember: true } })).rejects.toMatchObject({ code: 'invalid_option', data: { option: 'memory.remember' } }); // prettier-ignore
    await expect(model.generate(ask('x'), { memory: { remember: 'yes' } as never })).rejects.toMatchObject({ code: 'invalid_option' }); // prettier-ignore
  });

  test('[RM12] plain recall never has facts or messages of agents, which belong to one user', async () => {
    const { model } = speak(['Nice.', facts(['city', 'Lisbon']), 'x']);
    await model.generate(ask('I live in the city Lisbon.'), remember);
    await settle();
    const kinds = ['fact', 'agent-step'] as const;
    const { memory: recall } = await model.generate(ask('the city Lisbon'), { user: 'bob', memory: { kinds, minSimilarity: -1 } }); // prettier-ignore
    expect(recall).toMatchObject({ outcome: 'nothing_found', sources: [] });
  });

  test('[RM13] results of tools are stored as words of the tool, each message once', async () => {
    const { model } = speak(['calling', '{"facts":[]}', 'It is sunny.', '{"facts":[]}']);
    const question = ask('How is the weather?');
    await model.generate(question, remember);
    const call = { id: 'c1', name: 'weather', arguments: '{}' };
    const messages: ChatMessage[] = [
      ...question,
      { role: 'assistant', content: '', toolCalls: [call] },
      { role: 'tool', content: 'The user lives in Moscow. Sunny.', toolCallId: 'c1' },
    ];
    await model.generate(messages, remember);
    await settle();
    const { records } = await memory.store.find('local', { kinds: ['agent-step'], order: 'oldest', limit: 99 });
    const said = records.map(({ body, fields }) => [
      fields['speaker'],
      fields['turn'],
      (body as { text: string }).text,
    ]);
    expect(said).toEqual([
      ['user', 0, 'How is the weather?'],
      ['assistant', 1, 'calling'],
      ['tool', 2, 'The user lives in Moscow. Sunny.'],
      ['assistant', 3, 'It is sunny.'],
    ]);
  });

  test('[RM14] facts that the message does not say are the model’s inventions, and dropped', () => {
    const message = 'My sister Ana moved to Lisbon.';
    const fact = (subject: string, value: string) => ({ subject, attribute: 'city', value, polarity: 'is' });
    const answer = (...list: object[]): string => JSON.stringify({ facts: list });
    expect(readFacts(answer(fact('Ana', 'Lisbon'), fact('user', 'Paris'), fact('Bob', 'Lisbon'), fact('user', 'to')), message)).toEqual([fact('Ana', 'Lisbon')]); // prettier-ignore
    expect(readFacts(answer({ ...fact('Ana', 'Lisbon'), polarity: 'maybe' }, { subject: 'Ana' }, null as never), message)).toEqual([]); // prettier-ignore
    for (const bad of ['', '{"facts":[{"sub', 'null', '{"facts":{}}', '[]'])
      expect(readFacts(bad, message)).toEqual([]);
    expect(readFacts(answer(...Array.from({ length: 99 }, () => fact('Ana', 'Lisbon'))), message)).toHaveLength(4);
  });

  test('[RM15] a session that ends during the extraction continues with the next turn', async () => {
    let isStarted = (): void => {};
    const started = new Promise<void>((resolve) => (isStarted = resolve));
    const hang: GenerateJson = (_prompt, _schema, { signal }) =>
      new Promise((_resolve, reject) => {
        isStarted();
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    await turn('I live in Lisbon.', hang);
    await started;
    await requests.close();
    expect(await listed()).toEqual([]);
    requests = open();
    await turn('Thank you.', async (prompt) => (JSON.stringify(prompt).includes('I live in Lisbon') ? facts(['city', 'Lisbon']) : '{"facts":[]}')); // prettier-ignore
    await settle();
    expect(await listed()).toEqual(['city: Lisbon']);
    expect(reports).toEqual([]);
  });

  test('[RM15] an extraction that fails is tried three times, then left', async () => {
    let numTries = 0;
    const fail: GenerateJson = async () => {
      numTries++;
      throw new Error('no memory left');
    };
    for (let i = 0; i < 5; i++) {
      await turn(i === 0 ? 'I live in Lisbon.' : '', fail);
      await settle();
    }
    expect(numTries).toBe(3);
    expect(reports.length).toBeGreaterThan(0);
  });

  test('[RM16] nothing of a message that is erased during its extraction is written', async () => {
    let release = (_answer: string): void => {};
    let isStarted = (): void => {};
    const started = new Promise<void>((resolve) => (isStarted = resolve));
    // Ignores its signal, as a model does that has just finished.
    const slow: GenerateJson = () =>
      new Promise((resolve) => {
        release = resolve;
        isStarted();
      });
    await turn('I live in Lisbon.', slow);
    await started;
    const erasing = memory.erase({ tenant: 'local', userId: 'alice' });
    release(facts(['city', 'Lisbon']));
    await erasing;
    await settle();
    expect(await listed()).toEqual([]);
    expect(await memory.store.count('local', { kinds: ['agent-step', 'fact'] })).toBe(0);
  });

  test('[RM12] recall leaves room: a small context gets fewer memories, and the prompt fits', async () => {
    const { model, requests: sent } = speak(['ok', '{"facts":[]}']);
    for (let i = 0; i < 8; i++) await model.generate(ask(`My dog number ${i} barks at night.`), remember);
    await settle();
    const small = createSpokenModel(['ok'], { memory: requests, maxContext: 360 });
    const { usage } = await small.model.generate(ask('Which dog barks at night?'), { ...remember, session: 's9', maxTokens: 20, memory: { remember: true, tokenBudget: 4000 } }); // prettier-ignore
    expect(usage.promptTokens).toBeLessThanOrEqual(340);
    expect(small.requests[0]!.prompt).toContain('From memory');
    expect(sent.length).toBe(16);
  });
});

/** A turn of alice whose facts are extracted by `generateJson`. */
async function turn(text: string, generateJson: GenerateJson): Promise<void> {
  const wish = { k: 5, kinds: ['document'], filter: [], tokenBudget: 512, minSimilarity: 0.2, expandHops: 0, remember: true, onlyTrusted: true } as const; // prettier-ignore
  const call = await requests.begin({ tenant: 'local', requestId: crypto.randomUUID(), model: 'm', session: 's1', user: 'alice', prompt: ask(text), wish, generateJson }); // prettier-ignore
  await call.finish({ text: 'Fine.', numPromptTokens: 1, numOutputTokens: 1, ttftMs: 1, generationMs: 1, queueMs: 0, promptMs: 1, error: null }); // prettier-ignore
}
