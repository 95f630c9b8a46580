import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createMemorySpill, type MemorySpill } from '../../test/support/memory-spill.ts';
import { createToyModel, createToySampler, TOY_VOCAB, toyContinuation, type ToyModelOptions } from '../../test/support/toy-model.ts'; // prettier-ignore
import { createEngine, type Engine, type EngineOptions } from './engine.ts';
import type { DraftSource } from './speculation/types.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const PROMPT = Array.from({ length: 20 }, (_, i) => i + 1);
const SEED = 7;
const ANSWER = toyContinuation(PROMPT, { seed: SEED, maxTokens: 30 });

/** A source whose guesses the test chooses. */
const guessing = (guess: (done: number) => readonly number[]): Partial<EngineOptions> => ({
  speculation: {
    isForced: true,
    openSources: ({ request }): DraftSource[] => [
      {
        propose: (tokens, maxTokens) => ({
          source: 'model',
          tokens: guess(tokens.length - request.promptIds.length).slice(0, maxTokens),
          evidence: 99,
        }),
      },
    ],
  },
});

interface SetUp extends Partial<EngineOptions> {
  readonly model?: ToyModelOptions;
}

function setUp({ model: modelOptions = {}, ...options }: SetUp = {}) {
  const limits = { maxLogitRows: 24, numPages: 4096, ...modelOptions.limits };
  const model = createToyModel({ ...modelOptions, limits });
  let clock = 0;
  const engine = createEngine(model, { maxContext: 128, now: () => clock++, speculates: true, speculation: { isForced: true }, ...options }); // prettier-ignore
  let id = 0;
  const ask = async (more: Partial<EngineRequest> = {}): Promise<EngineEvent[]> => {
    const tokens = { promptIds: PROMPT, maxTokens: 30, sampler: createToySampler(SEED) };
    engine.add(engineRequest({ id: id++, ...tokens, ...more }));
    return runToEnd(engine);
  };
  return { model, engine, ask };
}

async function runToEnd(engine: Engine): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  while (engine.hasBackgroundWork) engine.workInBackground();
  engine.checkIntegrity();
  return events;
}

const tokensOf = (events: readonly EngineEvent[]): number[] =>
  events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []));

test('[E41] right guesses become several tokens of one step, and the answer stays the same', async () => {
  const { engine, ask } = setUp(guessing((done) => ANSWER.slice(done)));
  const events = await ask();
  expect(tokensOf(events)).toEqual(ANSWER);
  expect(events.at(-1)).toMatchObject({ type: 'finished', reason: 'length', acceptedDraftTokens: 25, rejectedDraftTokens: 0 }); // prettier-ignore
  // One step of the prompt, then nine tokens, nine, nine and the rest.
  expect(engine.stats()).toMatchObject({ numSteps: 5, drafts: { model: { numProposed: 25, numAccepted: 25 } } });
});

test('[E41] wrong guesses leave no trace in the answer, the pages and the prefix cache', async () => {
  const wrong = (done: number): number[] => [
    ...ANSWER.slice(done, done + 2),
    (ANSWER[done + 2]! + 1) % TOY_VOCAB,
    5,
    5,
  ];
  const { engine, ask } = setUp(guessing(wrong));
  expect(tokensOf(await ask())).toEqual(ANSWER);
  const { numProposed, numAccepted } = engine.stats().drafts.model;
  expect(numAccepted).toBeLessThan(numProposed / 2);
  expect(numAccepted).toBeGreaterThan(10);
  // The next turn finds the pages of the answer, as without guesses.
  const promptIds = [...PROMPT, ...ANSWER, 3];
  const next = await ask({ promptIds, maxTokens: 5, sampler: createToySampler(1) });
  expect(tokensOf(next)).toEqual(toyContinuation(promptIds, { seed: 1, maxTokens: 5 }));
  expect(next.at(-1)).toMatchObject({ cachedTokens: 49 });
});

test('[E41] guesses outside the vocabulary, beyond the answer and beyond the context are not sent', async () => {
  for (const guess of [() => [TOY_VOCAB], () => [-1], () => [1.5], () => []]) {
    const { engine, ask } = setUp(guessing(guess));
    expect(tokensOf(await ask())).toEqual(ANSWER);
    expect(engine.stats().drafts.model.numProposed).toBe(0);
  }
  const { engine, model, ask } = setUp({ ...guessing((done) => ANSWER.slice(done)), maxContext: 23 });
  expect(tokensOf(await ask({ maxTokens: 3 }))).toEqual(ANSWER.slice(0, 3));
  expect(engine.stats().drafts.model.numProposed).toBe(1);
  for (const { positions } of model.batches) expect(Math.max(...Array.from(positions))).toBeLessThan(22);
});

test('[E41] a stop token among right guesses ends the answer there', async () => {
  const at = 12;
  const { ask } = setUp(guessing((done) => ANSWER.slice(done)));
  const events = await ask({ stopIds: new Set([ANSWER[at]!]) });
  expect(tokensOf(events)).toEqual(ANSWER.slice(0, ANSWER.indexOf(ANSWER[at]!)));
  expect(events.at(-1)).toMatchObject({ type: 'finished', reason: 'stop' });
});

test('[E41] bad logits in the row of a guess fail the sequence only when the answer reaches them', async () => {
  const changeLogits = (logits: Float32Array, context: readonly number[]): void => {
    if (context.length === PROMPT.length + 10) logits.fill(NaN);
  };
  const sampler = createToySampler(SEED);
  const checked = { sample: (...args: Parameters<typeof sampler.sample>) => {
    if (args[0].some(Number.isNaN)) throw new Error('NaN');
    return sampler.sample(...args);
  } }; // prettier-ignore
  const { ask } = setUp({ ...guessing((done) => ANSWER.slice(done)), model: { changeLogits } });
  const events = await ask({ sampler: checked });
  expect(tokensOf(events)).toEqual(ANSWER.slice(0, 10));
  expect(events.at(-1)).toMatchObject({ type: 'failed' });
});

test('[E41] tokens that a grammar requires are guessed by its sampler', async () => {
  const sampler = createToySampler(SEED);
  let done = 0;
  const constrained = {
    draft: (maxTokens: number) => ANSWER.slice(done, done + maxTokens),
    sample(...args: Parameters<typeof sampler.sample>) {
      done++;
      return sampler.sample(...args);
    },
  };
  const { engine, ask } = setUp();
  expect(tokensOf(await ask({ sampler: constrained }))).toEqual(ANSWER);
  expect(engine.stats()).toMatchObject({ numSteps: 7, drafts: { grammar: { numProposed: 23, numAccepted: 23 } } });
});

test('[E42] an answer that was given before is guessed for its tenant, and forgotten with it', async () => {
  const { engine, ask } = setUp();
  const accepted = async (tenant: string): Promise<number> => {
    const before = engine.stats().drafts.learned.numAccepted;
    expect(tokensOf(await ask({ tenant }))).toEqual(ANSWER);
    return engine.stats().drafts.learned.numAccepted - before;
  };
  expect(await accepted('acme')).toBe(0);
  expect(await accepted('acme')).toBeGreaterThan(20);
  expect(await accepted('other')).toBe(0);
  expect(engine.stats().draftBytes).toBeGreaterThan(0);
  engine.eraseTenant('acme', false);
  expect(engine.countTenant('acme')).toBe(0);
  expect(await accepted('acme')).toBe(0);
});

test('[E42] a request that ran while its tenant was erased is not remembered', async () => {
  const { engine, ask } = setUp();
  engine.add(engineRequest({ id: 99, promptIds: PROMPT, maxTokens: 30, sampler: createToySampler(SEED), tenant: 'acme' })); // prettier-ignore
  await engine.step();
  engine.eraseTenant('acme', false);
  await runToEnd(engine);
  expect(engine.countTenant('acme')).toBe(0);
  await ask({ tenant: 'acme' });
  expect(engine.stats().drafts.learned.numProposed).toBe(0);
});

test('[E42] answers take their memory from the budget and yield to sequences', async () => {
  // So few pages that a sequence of full length leaves no slab for answers.
  const { engine, ask } = setUp({ model: { limits: { numPages: 8 } } });
  for (let i = 0; i < 3; i++) expect(tokensOf(await ask())).toEqual(ANSWER);
  expect(engine.stats()).toMatchObject({ draftBytes: 0, drafts: { learned: { numProposed: 0 } } });
  const roomy = setUp();
  await roomy.ask();
  await roomy.ask();
  const { draftBytes, cache } = roomy.engine.stats();
  expect(draftBytes).toBeGreaterThan(0);
  expect(cache.usedBytes).toBeGreaterThanOrEqual(draftBytes);
  expect(cache.adapterBytes).toBe(0);
  roomy.engine.cache.clear();
  expect(roomy.engine.stats()).toMatchObject({ draftBytes: 0, cache: { usedBytes: 0 } });
});

test('[E42] [E49] pages of answers are free for sequences, which get them', async () => {
  const { engine, ask } = setUp({ model: { limits: { numPages: 32 } } });
  await ask();
  await ask();
  const { draftBytes, numFreePages, numPages } = engine.stats();
  expect([draftBytes > 0, numFreePages]).toEqual([true, numPages]);
  for (let id = 100; id < 108; id++) {
    const promptIds = Array.from({ length: 100 }, (_, i) => 1 + ((i * id) % 50));
    engine.add(engineRequest({ id, promptIds, maxTokens: 28, sampler: createToySampler(id) }));
  }
  let least = draftBytes;
  while (engine.hasWork) {
    await engine.step();
    engine.checkIntegrity();
    least = Math.min(least, engine.stats().draftBytes);
  }
  expect(least).toBe(0);
});

async function learnAndStop(spill: MemorySpill): Promise<void> {
  const { engine, ask } = setUp({ spill: spill.open(), modelHash: 'model' });
  await ask({ tenant: 'acme' });
  await engine.dispose();
}

test('[E42] answers are found after a restart, in the namespace of their tenant and model', async () => {
  const spill = createMemorySpill();
  await learnAndStop(spill);
  const again = setUp({ spill: spill.open(), modelHash: 'model' });
  await again.ask({ tenant: 'acme' });
  expect(again.engine.stats().drafts.learned.numAccepted).toBeGreaterThan(10);
  const other = setUp({ spill: spill.open(), modelHash: 'another model' });
  await other.ask({ tenant: 'acme' });
  expect(other.engine.stats().drafts.learned.numProposed).toBe(0);
});

test('[E42] damaged answers on disk cost time and nothing else', async () => {
  const damages: ((page: { bytes: Uint8Array; isCorrupt: boolean }) => void)[] = [
    (page) => (page.isCorrupt = true),
    (page) => (page.bytes = page.bytes.slice(0, -2)),
    (page) => (page.bytes = page.bytes.slice(0, -4)),
    (page) => page.bytes.fill(255),
  ];
  for (const damage of damages) {
    const spill = createMemorySpill();
    await learnAndStop(spill);
    // Only the stored answers: damaged pages are the subject of other tests.
    for (const [key, page] of spill.pages) if (Buffer.from(key.split('/')[0]!, 'latin1').includes('drafts') || key.endsWith('/0')) damage(page); // prettier-ignore
    const { ask } = setUp({ spill: spill.open(), modelHash: 'model' });
    expect(tokensOf(await ask({ tenant: 'acme' }))).toEqual(ANSWER);
  }
});

/** A greedy sampler: the toy draft model guesses its tokens right. */
const greedy = { sample: (logits: Float32Array) => ({ tokenId: logits.indexOf(Math.max(...logits)), logprob: null, top: [] }) }; // prettier-ignore

async function askWithDraftModel(draft: ToyModelOptions, more: Partial<EngineRequest> = {}) {
  const plain = setUp({ speculates: false });
  const expected = tokensOf(await plain.ask({ sampler: greedy, ...more }));
  const warnings: string[] = [];
  const draftModel = createToyModel(draft);
  const { engine, ask } = setUp({ draftModel, warn: (message) => warnings.push(message) });
  const first = tokensOf(await ask({ sampler: greedy, ...more, cachePrefix: false }));
  return { expected, first, engine, ask, warnings, draftModel };
}

test('[E44] a draft model with the same taste halves the steps', async () => {
  const { expected, first, engine } = await askWithDraftModel({});
  expect(first).toEqual(expected);
  expect(engine.stats()).toMatchObject({ numSteps: 5, drafts: { model: { numProposed: 25, numAccepted: 25 } } });
});

test('[E44] a draft model with another taste changes nothing but the speed', async () => {
  const changeLogits = (logits: Float32Array, context: readonly number[]): void => {
    if (context.length % 3 === 0) logits.reverse();
  };
  const { expected, first, engine } = await askWithDraftModel({ changeLogits });
  expect(first).toEqual(expected);
  const { numProposed, numAccepted } = engine.stats().drafts.model;
  expect(numAccepted).toBeGreaterThan(5);
  expect(numAccepted).toBeLessThan(numProposed);
});

test('[E44] a draft model that is too short, too small or broken is left out, and reported once', async () => {
  for (const [draft, numWarnings] of [
    [{ contextLength: 24 }, 0],
    [{ limits: { numPages: 2 } }, 0],
    [{ changeLogits: (logits: Float32Array) => logits.fill(NaN) }, 1],
    [{ beforeForward: () => Promise.reject(new Error('no memory')) }, 1],
  ] as const) {
    const { expected, first, ask, warnings } = await askWithDraftModel(draft);
    expect(first).toEqual(expected);
    expect(tokensOf(await ask({ sampler: greedy, cachePrefix: false }))).toEqual(expected);
    expect(warnings).toHaveLength(numWarnings);
  }
});

test('[E44] pages of the draft model are freed with their sequences and erased with their tenant', async () => {
  const { engine, ask } = await askWithDraftModel({});
  await ask({ sampler: greedy, tenant: 'acme' });
  expect(engine.countTenant('acme')).toBeGreaterThan(1);
  engine.eraseTenant('acme', true);
  expect(engine.countTenant('acme')).toBe(0);
  // Thirty answers need far more pages than there are, if none were freed.
  const { first, expected, ask: askSmall } = await askWithDraftModel({ limits: { numPages: 8 } });
  expect(first).toEqual(expected);
  for (let i = 0; i < 30; i++) await askSmall({ sampler: greedy, cachePrefix: false, promptIds: [...PROMPT, i] });
});

test('[E43] nothing is drafted in models with recurrent layers, or where it is off', async () => {
  for (const options of [{ model: { numStates: 12 } }, { speculates: false }]) {
    const { engine, ask } = setUp({ ...guessing((done) => ANSWER.slice(done)), ...options });
    expect(tokensOf(await ask())).toEqual(ANSWER);
    expect(engine.stats().drafts.model.numProposed).toBe(0);
  }
});
