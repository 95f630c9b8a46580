import { beforeEach, describe, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { RouteChoice } from '../routing/types.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';

let memory: TestMemory;
let requests: RequestMemory;
let clockMs: number;
const reports: string[] = [];

beforeEach(async () => {
  clockMs = 1_700_000_000_000;
  reports.length = 0;
  memory = await openTestMemory({ now: () => clockMs });
  requests = createRequestMemory(memory, {
    now: () => clockMs,
    wallClock: () => clockMs,
    report: (message) => void reports.push(message),
  });
});

const speak = (answers: readonly string[]) => createSpokenModel(answers, { memory: requests });
const ask = [{ role: 'user' as const, content: 'where is the blue whale?' }];

async function entries(tenant = 'local') {
  await requests.settle();
  await memory.audit.flush();
  const { entries: found } = await memory.audit.search(tenant, {});
  return found.map(({ entry }) => entry);
}

describe('the audit log', () => {
  test('[RM1] knows what was asked, answered and counted', async () => {
    const { model } = speak(['In the sea.']);
    const requestId = '0b9e3b9e-6f6b-4d63-9f1e-0a7f1d1b2c3d';
    const { usage } = await model.generate(ask, { requestId, session: 's1', user: 'u1' });
    const [entry, ...more] = await entries();
    expect(more).toEqual([]);
    expect(entry).toMatchObject({
      requestId,
      sessionId: 's1',
      query: 'where is the blue whale?',
      response: 'In the sea.',
      numPromptTokens: usage.promptTokens,
      numOutputTokens: usage.completionTokens,
      error: null,
      contextDocIds: [],
      space: 'words-1',
    });
    expect(entry!.queryEmbedding).toHaveLength(64);
  });

  test('[RM1] has a call that was left in the middle, and one that failed', async () => {
    const { model } = speak(['In the deep sea, far away.']);
    for await (const chunk of model.generateStream(ask)) if (chunk.text !== '') break;
    await expect(model.generate(ask, { maxTokens: 1_000_000 })).rejects.toThrow('context');
    const found = await entries();
    expect(found.map(({ error }) => error?.code).sort()).toEqual(['aborted', 'context_overflow']);
  });

  test.each([
    ['request', 1],
    ['batch', 0],
  ] as const)(
    '[RM1] with the durability "%s" %i entries are written before the end of the answer',
    async (durability, num) => {
      memory = await openTestMemory({ now: () => clockMs, audit: { durability } });
      const context = { now: () => clockMs, wallClock: () => clockMs, report: () => {} };
      const { model } = createSpokenModel(['In the sea.'], { memory: createRequestMemory(memory, context) });
      await model.generate(ask);
      expect((await memory.audit.search('local', {})).entries).toHaveLength(num);
    },
  );

  test('[RM1] ids are new where none is given, and only UUIDs are taken', async () => {
    const { model } = speak(['a']);
    await model.generate(ask);
    await model.generate(ask);
    const ids = (await entries()).map(({ requestId }) => requestId);
    expect(new Set(ids).size).toBe(2);
    await expect(model.generate(ask, { requestId: 'mine' })).rejects.toMatchObject({ code: 'invalid_option' });
  });
});

describe('[RM7] where the time went', () => {
  /** A distinct duration for each step on this clock. */
  const TIMES = { waitMs: 3, embeddingMs: 5, nearMs: 7, searchMs: 11 };
  const whose = { tenant: 'local', requestId: '0b9e3b9e-6f6b-4d63-9f1e-0a7f1d1b2c3d', model: 'm', session: null, user: null, prompt: ask }; // prettier-ignore
  const outcome = { text: 'In the sea.', numPromptTokens: 3, numOutputTokens: 4, ttftMs: 40, generationMs: 90, queueMs: 8, promptMs: 30, error: null }; // prettier-ignore
  const wish = {
    k: 5,
    kinds: ['fact' as const],
    filter: [],
    tokenBudget: 100,
    minSimilarity: 0,
    expandHops: 0,
    remember: false,
    onlyTrusted: false,
  };
  const near = { kinds: ['pattern' as const], k: 12 };
  let asked: unknown[];

  beforeEach(() => {
    asked = [];
    const found = { results: [], candidates: [], numDuplicates: 0, context: null };
    const { waitMs, ...times } = TIMES;
    const slow = {
      ...memory,
      ask: async (tenant: string, question: object) => {
        asked.push([tenant, question]);
        clockMs += waitMs + times.embeddingMs + times.nearMs + times.searchMs;
        return { embedded: (await memory.embed('whale'))!, near: [], found, ...times };
      },
    };
    requests = createRequestMemory(slow, { now: () => clockMs, wallClock: () => clockMs, report() {} });
  });

  test('is in the entry, part by part, and they fill the whole', async () => {
    const open = await requests.begin({ ...whose, wish, isRouted: true, near });
    clockMs += 2 + 13; // policy and routing
    const choice = { candidate: { kind: 'local', id: 'm', model: 'm' }, probs: [1], confidence: 1, why: { kind: 'best', detail: '' }, propensity: 1, policyMs: 2, routingMs: 13, version: 1, contextSize: 512, sampling: { temperature: 0.2, topP: 0.8, source: 'learned', numSamples: 30 }, state: { candidate: 'm', similarities: [], load: 0, latencyMs: [] } } as unknown as RouteChoice; // prettier-ignore
    clockMs += 90;
    open.finish({ ...outcome, served: { model: 'm', choice } });
    const [entry] = await entries();
    const { latency, routing } = entry!;
    expect(routing).toMatchObject({
      model: 'm',
      contextSize: 512,
      temperature: 0.2,
      topP: 0.8,
      samplingSource: 'learned',
    });
    expect(latency).toEqual({
      waitMs: 3,
      embeddingMs: 5,
      retrievalMs: 11,
      policyMs: 2,
      routingMs: 7 + 13,
      queueMs: 8,
      promptMs: 30,
      generationMs: 90,
      totalMs: 131,
      ttftMs: 40,
      writeMs: 0,
    });
    const steps = ['waitMs', 'embeddingMs', 'retrievalMs', 'policyMs', 'routingMs', 'generationMs'] as const;
    expect(steps.reduce((sum, part) => sum + latency[part]!, 0)).toBe(latency.totalMs);
    const { tokenBudget: _, remember: _remember, ...rest } = wish; // packed in this thread
    const search = { ...rest, filter: [{ field: 'source', is: '!=', value: 'agent-memory' }] };
    expect(asked).toEqual([['local', { text: 'where is the blue whale?', near, search }]]);
  });

  test('omits steps that did not run', async () => {
    const open = await requests.begin({ ...whose, wish: null });
    open.finish({ ...outcome, queueMs: null, promptMs: null });
    expect((await entries())[0]!.latency).toMatchObject({ waitMs: 0, embeddingMs: 0, retrievalMs: 0, policyMs: null, routingMs: 0, queueMs: null, promptMs: null }); // prettier-ignore
    expect(asked).toEqual([]);
  });

  test('[RM3] the entry waits for no vector of the answer, which it has all the same', async () => {
    let come = (): void => {};
    const coming = new Promise<void>((resolve) => (come = resolve));
    const slow = {
      ...memory,
      embed: async (text: string) => {
        if (text === outcome.text) await coming;
        return memory.embed(text);
      },
    };
    requests = createRequestMemory(slow, { now: () => clockMs, wallClock: () => clockMs, report() {} });
    (await requests.begin({ ...whose, wish: null })).finish(outcome);
    await requests.settle();
    expect(memory.audit.stats().numEnqueued).toBe(1);
    come();
    expect((await entries())[0]!.responseEmbedding).toEqual((await memory.embed(outcome.text))!.vector);
  });
});

describe('recalling', () => {
  const told = async (options: GenerateOptions['memory'], tenant = 'local') => {
    const spoken = speak(['ok']);
    const system = { role: 'system' as const, content: 'Be brief.' };
    await spoken.model.generate([system, ...ask], { tenant, ...(options === undefined ? {} : { memory: options }) });
    return spoken.requests[0]!.prompt;
  };

  test('[RM2] puts what is near before the question, numbered, and names it in the log', async () => {
    const id = await memory.add('local', { text: 'The blue whale is in the Atlantic.' });
    await memory.add('local', { text: 'Invoices come on Monday.' });
    const prompt = await told({ minSimilarity: 0.3 });
    expect(prompt).toContain('[1] The blue whale is in the Atlantic.\n');
    expect(prompt).not.toContain('Invoices');
    expect(prompt.startsWith('<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nThese texts')).toBe(true);
    expect(prompt).toContain('\nwhere is the blue whale?<|im_end|>');
    expect((await entries())[0]!.contextDocIds).toEqual([id]);
  });

  test('[RM2] adds nothing where nothing is near, or nothing was asked for', async () => {
    await memory.add('local', { text: 'Invoices come on Monday.' });
    expect(await told({ minSimilarity: 0.9 })).toBe(await told(undefined));
    await memory.add('local', { text: 'The blue whale is here.' });
    expect(await told(undefined)).not.toContain('These texts');
  });

  test('[RM5] only what is the tenant’s own', async () => {
    await memory.add('alice', { text: 'The blue whale is a secret of alice.' });
    expect(await told({ minSimilarity: -1 }, 'bob')).not.toContain('secret');
    expect(await told({ minSimilarity: -1 }, 'alice')).toContain('secret');
  });

  test('[RM5] the tenant of the memory itself asks nothing, and has no log', async () => {
    await expect(told(undefined, 'ruvllm')).rejects.toMatchObject({ data: { option: 'tenant' } });
    expect(await entries('ruvllm')).toEqual([]);
  });

  test('wishes that make no sense are refused with their names', async () => {
    for (const [wish, says] of [
      [{ k: 0 }, '"memory.k"'],
      [{ kinds: ['state'] }, '"memory.kinds"'],
      [{ tokens: 1 }, '"tokens"'],
      [{ filter: [{ field: 'nonsense', is: '=', value: 1 }] }, 'nonsense'],
    ] as const) {
      await expect(told(wish as GenerateOptions['memory']), says).rejects.toThrow(says);
    }
    const ids = speak(['a']).model.generate([1, 2, 3], { memory: {} });
    await expect(ids).resolves.toBeDefined(); // nothing to be about, nothing recalled
  });

  test('[RM3] without a memory it is refused', async () => {
    const { model } = createSpokenModel(['a']);
    await expect(model.generate(ask, { memory: {} })).rejects.toMatchObject({ data: { option: 'memory' } });
  });
});

describe('[RM11] a follow-up question', () => {
  const FILLERS = 20;
  const canal = 'The Corinth canal took eleven years.';
  const question = 'and how long did it take?';
  async function fill(): Promise<string> {
    for (let i = 0; i < FILLERS; i++) await memory.add('local', { text: `Number ${i} did well.` });
    return memory.add('local', { text: canal });
  }

  test('recalls with the messages before it, whatever the answer between them says', async () => {
    await fill();
    const { model, requests: asked } = speak(['ok']);
    const before = [
      { role: 'user' as const, content: 'Where is the Corinth canal?' },
      { role: 'assistant' as const, content: 'In Greece.' },
    ];
    const last = { role: 'user' as const, content: question };
    await model.generate([last], { memory: { k: 1 } });
    await model.generate([...before, last], { memory: { k: 1 } });
    expect([asked[0]!.prompt.includes(canal), asked[1]!.prompt.includes(canal)]).toEqual([false, true]);
    const [entry] = await entries();
    expect(entry!.query).toBe(question);
    expect([...entry!.queryEmbedding!]).toEqual([...(await memory.embedRequest(question))!.vector]);
  });

  test('recalls with the turns of its session, where the prompt has only the last one', async () => {
    await fill();
    const { model, requests: asked } = speak(['In Greece.', 'ok']);
    const session = model.session('s1');
    await session.generate('Where is the Corinth canal?');
    await session.generate(` ${question}`, { memory: { k: 1 } });
    expect(asked[1]!.prompt).toContain(canal);
    await requests.settle();
    const [turn] = await memory.sessions.turns('local', 's1', 1);
    expect([...turn!.embedding!]).toEqual([...(await memory.embed(` ${question}`))!.vector]);
    const other = model.session('s2');
    await other.generate(question, { memory: { k: 1 } });
    expect(asked[2]!.prompt).not.toContain(canal);
  });
});

describe('sessions', () => {
  test('[RM4] keep their turns, and whose they are', async () => {
    const { model } = speak(['In the sea.', 'Still there.']);
    await model.generate(ask, { session: 's1', user: 'u1' });
    await requests.settle();
    await model.generate(ask, { session: 's1', user: 'u1' });
    await requests.settle();
    const turns = await memory.sessions.turns('local', 's1');
    expect(turns.map(({ answer }) => answer)).toEqual(['Still there.', 'In the sea.']);
    const { sessions } = await memory.sessions.find('local', { userId: 'u1' });
    expect(sessions.map(({ sessionId, turnCount }) => [sessionId, turnCount])).toEqual([['s1', 2]]);
  });

  test('[RM4] have a turn before the end of its answer is delivered', async () => {
    const { model } = speak(['In the sea.']);
    const numTurns: number[] = [];
    for await (const { finishReason } of model.generateStream(ask, { session: 's1' })) {
      if (finishReason !== null) numTurns.push((await memory.sessions.turns('local', 's1')).length);
    }
    expect(numTurns).toEqual([1]);
  });

  test('[RM4] name the adapter of their last request', async () => {
    const { model } = speak(['a']);
    const named = async (adapter?: string) => {
      await model.generate(ask, { session: 's1', ...(adapter === undefined ? {} : { adapter }) });
      await requests.settle();
      return (await memory.sessions.find('local', { adapter: 'legal' })).sessions.map(({ sessionId }) => sessionId);
    };
    expect([await named('legal'), await named()]).toEqual([['s1'], []]);
  });

  test('[RM4] a failed call is no turn', async () => {
    const { model } = speak(['a']);
    await expect(model.generate(ask, { session: 's1', maxTokens: 1_000_000 })).rejects.toThrow('context');
    await requests.settle();
    expect(await memory.sessions.get('local', 's1')).toBeNull();
  });
});

describe('[RM8] sessions that the library keeps', () => {
  const requestId = '0b9e3b9e-6f6b-4d63-9f1e-0a7f1d1b2c3d';

  test('write one audit entry per turn, with session, user and request id', async () => {
    const { model } = speak(['In the sea.', 'Still there.']);
    const session = model.session('s1');
    await session.generate('where is the blue whale?', { user: 'u1', requestId });
    await requests.settle();
    for await (const chunk of session.generateStream(' and now?')) if (chunk.finishReason !== null) break;
    await requests.settle();
    const found = (await entries()).toReversed();
    expect(found.map(({ sessionId, query, response }) => [sessionId, query, response])).toEqual([
      ['s1', 'where is the blue whale?', 'In the sea.'],
      ['s1', ' and now?', 'Still there.'],
    ]);
    expect(found[0]!.requestId).toBe(requestId);
    expect(found[1]!.numPromptTokens).toBe('where is the blue whale?In the sea. and now?'.length);
    expect(await memory.sessions.turns('local', 's1')).toHaveLength(2);
    const { sessions } = await memory.sessions.find('local', { userId: 'u1' });
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['s1']);
  });

  test('recall before the turn, and keep the recalled text in the conversation', async () => {
    const id = await memory.add('local', { text: 'The blue whale is in the Atlantic.' });
    const { model, requests: asked } = speak(['ok']);
    const session = model.session('s1');
    await session.generate('where is the blue whale?', { memory: { minSimilarity: 0.3 } });
    expect(asked[0]!.prompt).toMatch(/^\[1\] The blue whale is in the Atlantic\.\n+where is the blue whale\?$/);
    expect((await entries())[0]!.contextDocIds).toEqual([id]);
    await session.generate(' thanks');
    expect(asked[1]!.prompt).toBe(`${asked[0]!.prompt}ok thanks`);
  });

  test('write failed and abandoned turns, but no rejected ones', async () => {
    const { model } = speak(['In the deep sea.']);
    const session = model.session('s1', { tenant: 'alice' });
    await expect(session.generate('a', { maxTokens: 1_000_000 })).rejects.toThrow('context');
    for await (const chunk of session.generateStream('a')) if (chunk.text !== '') break;
    const running = session.generate('a');
    await expect(session.generate('b')).rejects.toMatchObject({ code: 'conflict' });
    await running;
    const codes = (await entries('alice')).map(({ error }) => error?.code ?? null);
    expect(codes.toReversed()).toEqual(['context_overflow', 'aborted', null]);
    expect(await memory.sessions.turns('alice', 's1')).toHaveLength(1);
  });

  test('reject the option "memory" without a memory, and stay usable', async () => {
    const session = createSpokenModel(['a']).model.session('s1');
    await expect(session.generate('a', { memory: {} })).rejects.toMatchObject({ data: { option: 'memory' } });
    expect((await session.generate('a')).text).toBe('a');
  });

  test('only the first turn is an example to train on: later prompts lack their history', async () => {
    const observed: NewTrajectory[] = [];
    const learning = {
      observe: (_tenant: string, one: NewTrajectory) => void observed.push(one),
      observeStopped: () => {},
      expect: () => {},
      noteUses: () => {},
    };
    requests = createRequestMemory(memory, { now: () => clockMs, wallClock: () => clockMs, report() {}, learning });
    const session = speak(['ok']).model.session('s1');
    await session.generate('one');
    await session.generate('two');
    await requests.settle();
    expect(observed.map(({ query, prompt }) => [query, prompt])).toEqual([
      ['one', 'one'],
      ['two', null],
    ]);
  });
});

test('[RM3] a memory that fails is told of once, and no call fails of it', async () => {
  memory = await openTestMemory({
    embedder: {
      fingerprint: 'broken',
      dim: 4,
      embed: () => Promise.reject(new RuvLLMError('io', 'the thread is gone')),
    },
  });
  requests = createRequestMemory(memory, {
    now: () => 0,
    wallClock: () => 1,
    report: (message) => void reports.push(message),
  });
  const { model } = speak(['a']);
  for (let i = 0; i < 3; i++) expect((await model.generate(ask)).text).toBe('a');
  const found = await entries();
  expect(found).toHaveLength(3);
  expect(found[0]!.queryEmbedding).toBeNull();
  expect(reports).toEqual(['embedding failed: the thread is gone']);
});

test('[RM9] what can be learned from says what was looked at, shown, and used', async () => {
  const observed: NewTrajectory[] = [];
  const learning = {
    observe: (_tenant: string, one: NewTrajectory) => void observed.push(one),
    observeStopped: () => {},
    expect: () => {},
    noteUses: () => {},
  };
  requests = createRequestMemory(memory, { now: () => clockMs, wallClock: () => clockMs, report: () => {}, learning });
  const used = await memory.add('local', { text: 'The blue whale swims in the cold deep sea of the north.' });
  const unused = await memory.add('local', { text: 'A blue whale calf drinks milk for half a year or longer.' });
  const { model } = speak(['It swims in the cold deep sea of the north.', 'Hm.', 'Nothing.']);
  const question = [{ role: 'user' as const, content: 'what of the blue whale?' }];
  await model.generate(question, { memory: { minSimilarity: 0.05, k: 2 } });
  await model.generate(question, { memory: { minSimilarity: 0.05, k: 1 } });
  await model.generate(question);
  await requests.settle();
  const marks = observed.map(({ retrieved }) => Object.fromEntries(retrieved.map(({ id, isUsed }) => [id, isUsed])));
  expect(marks[0]).toEqual({ [used]: true, [unused]: false });
  // Too short to tell; and what was not shown is known to have been there.
  expect(Object.values(marks[1]!)).toEqual([null]);
  expect(observed[1]!.candidates!.map(({ id }) => id).toSorted()).toEqual([used, unused].toSorted());
  expect(observed[0]!.candidates).toEqual(observed[1]!.candidates);
  expect(marks[2]).toEqual({});
  expect(observed[2]!.candidates).toBeUndefined();
});
