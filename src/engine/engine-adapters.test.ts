import { describe, expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { randomAdapter, type RandomAdapterOptions } from '../../test/support/random-adapter.ts';
import { loadRandom } from '../../test/support/run-model.ts';
import type { Adapter } from '../adapters/index.ts';
import { createRandom } from '../core/random.ts';
import type { SpillStore } from '../kv-cache/types.ts';
import { createEngine, type Engine } from './engine.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const LIMITS = { maxBatchTokens: 32, maxSequences: 4, maxLogitRows: 4, numPages: 120 };
const PROMPT = Array.from({ length: 40 }, (_, i) => 3 + ((i * 37) % 300));

const greedy = {
  sample: (logits: Float32Array) => {
    const max = logits.reduce((best, value) => Math.max(best, value), -Infinity);
    return { tokenId: logits.indexOf(max), logprob: null, top: [] };
  },
};

interface Answer {
  tokens: number[];
  cachedTokens: number;
  error?: string;
}

async function open(spill: SpillStore | null = null) {
  const model = await loadRandom(
    { architecture: 'llama', type: 'F32', seed: 5, shape: { numLayers: 2 } },
    { limits: LIMITS, maxContextTokens: 96 },
  );
  const engine = createEngine(model, { maxContext: 96, now: () => 0, modelHash: 'm', policy: 'p', spill });
  return {
    model,
    engine,
    make: (options: RandomAdapterOptions) => randomAdapter(model.shape, { strength: 1, ...options }),
  };
}

let nextId = 0;
function add(engine: Engine, request: Partial<EngineRequest> = {}): number {
  const id = nextId++;
  engine.add(engineRequest({ id, promptIds: PROMPT, maxTokens: 8, sampler: greedy, ...request }));
  return id;
}

function collect(answers: Map<number, Answer>, events: readonly EngineEvent[]): void {
  for (const event of events) {
    const answer = answers.get(event.id) ?? { tokens: [], cachedTokens: 0 };
    answers.set(event.id, answer);
    if (event.type === 'failed') answer.error = event.error.message;
    else answer.cachedTokens = event.cachedTokens;
    if (event.type === 'token') answer.tokens.push(event.token.tokenId);
  }
}

async function finish(engine: Engine, answers = new Map<number, Answer>()): Promise<Map<number, Answer>> {
  while (engine.hasWork) {
    collect(answers, await engine.step());
    engine.checkIntegrity();
  }
  return answers;
}

async function ask(engine: Engine, request: Partial<EngineRequest> = {}): Promise<Answer> {
  const id = add(engine, request);
  return (await finish(engine)).get(id)!;
}

const using = (...ids: number[]) => ({ adapters: ids.map((id) => ({ id, scale: 1 })) });

test('[E31] requests with different adapters, several or none share steps and answer as if alone', async () => {
  const { engine, make } = await open();
  for (const id of [1, 2]) engine.loadAdapter(id, await make({ seed: id, rank: 2 * id }));
  const kinds = [using(), using(1), using(2), using(2, 1)];
  const alone: number[][] = [];
  for (const kind of kinds) alone.push((await ask(engine, { ...kind, cachePrefix: false })).tokens);
  expect(new Set(alone.map(String)).size).toBe(4);
  const ids = kinds.map((kind) => add(engine, { ...kind, cachePrefix: false }));
  const answers = await finish(engine);
  expect(ids.map((id) => answers.get(id)!.tokens)).toEqual(alone);
});

test('[E32] never reuses pages of another adapter, of another scale or without an adapter', async () => {
  const { engine, make } = await open();
  for (const id of [1, 2]) engine.loadAdapter(id, await make({ seed: id }));
  const kinds = [using(), using(1), using(2), using(1, 2), { adapters: [{ id: 1, scale: 0.5 }] }];
  const lookUp = (kind: ReturnType<typeof using>, tenant = 'tenant') =>
    engine.cachedTokens({ tenant, promptIds: PROMPT, ...kind });
  for (const kind of kinds) {
    expect(lookUp(kind)).toBe(0);
    expect((await ask(engine, kind)).cachedTokens).toBe(0);
    expect(lookUp(kind)).toBe(39);
    expect(lookUp(kind, 'other')).toBe(0);
  }
  expect(lookUp(using(99))).toBe(0);
  for (const kind of kinds) expect((await ask(engine, kind)).cachedTokens).toBe(39);
  // The order in which a request lists them is irrelevant, and so is an adapter scaled by 0.
  expect((await ask(engine, using(2, 1))).cachedTokens).toBe(39);
  expect((await ask(engine, { adapters: [{ id: 1, scale: 0 }] })).cachedTokens).toBe(39);
});

test('[E32] replacing an adapter invalidates its pages unless the content is the same', async () => {
  const { engine, make } = await open();
  const replace = (from: number, to: number, adapter: Adapter): void => {
    engine.loadAdapter(to, adapter);
    engine.unloadAdapter(from);
  };
  engine.loadAdapter(1, await make({ seed: 1 }));
  const first = await ask(engine, using(1));
  replace(1, 2, await make({ seed: 2 }));
  const second = await ask(engine, using(2));
  expect(second.cachedTokens).toBe(0);
  expect(second.tokens).not.toEqual(first.tokens);
  replace(2, 3, await make({ seed: 1 }));
  expect(await ask(engine, using(3))).toEqual({ tokens: first.tokens, cachedTokens: 39 });
});

test('[E32] the same holds for spilled pages after a restart', async () => {
  const spill = createMemorySpill();
  const before = await open(spill.open());
  before.engine.loadAdapter(1, await before.make({ seed: 1 }));
  const { tokens } = await ask(before.engine, using(1));
  while (before.engine.hasBackgroundWork) before.engine.workInBackground();
  await before.engine.dispose();
  const { engine, make } = await open(spill.open());
  engine.loadAdapter(1, await make({ seed: 2 }));
  engine.loadAdapter(2, await make({ seed: 1 }));
  expect((await ask(engine)).cachedTokens).toBe(0);
  expect((await ask(engine, using(1))).cachedTokens).toBe(0);
  const again = await ask(engine, using(2));
  expect(again.tokens).toEqual(tokens);
  expect(again.cachedTokens).toBeGreaterThanOrEqual(32);
});

test("[E32] a tenant named like an adapter's content hash shares no pages with its users", async () => {
  const { engine, make } = await open();
  const adapter = await make({ seed: 1 });
  engine.loadAdapter(1, adapter);
  await ask(engine, { ...using(1), tenant: 'a' });
  for (const tenant of [adapter.contentHash, `a${adapter.contentHash}`, `${adapter.contentHash}*1`]) {
    expect((await ask(engine, { tenant })).cachedTokens).toBe(0);
    expect((await ask(engine, { ...using(1), tenant })).cachedTokens).toBe(0);
  }
});

test('[E33] an adapter that affects no K or V shares pages with requests without it', async () => {
  const { engine, make } = await open();
  const targets = ['attn_q', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down', 'output'] as const;
  engine.loadAdapter(1, await make({ seed: 1, layers: [1], targets }));
  engine.loadAdapter(2, await make({ seed: 1, layers: [1], targets: ['attn_v'] }));
  const alone = await ask(engine, { ...using(1), cachePrefix: false });
  const base = await ask(engine);
  const shared = await ask(engine, using(1));
  expect(shared).toEqual({ tokens: alone.tokens, cachedTokens: 39 });
  expect(shared.tokens).not.toEqual(base.tokens);
  expect(await ask(engine)).toEqual({ ...base, cachedTokens: 39 });
  expect((await ask(engine, using(2))).cachedTokens).toBe(0);
});

test('[E34] an adapter unloaded during a stream stays until the stream ends', async () => {
  const { engine, make } = await open();
  engine.loadAdapter(1, await make({ seed: 1 }));
  const { tokens } = await ask(engine, { ...using(1), cachePrefix: false });
  const { adapterBytes } = engine.stats().cache;
  expect(adapterBytes).toBeGreaterThan(0);
  const answers = new Map<number, Answer>();
  const running = add(engine, { ...using(1), cachePrefix: false });
  collect(answers, await engine.step());
  engine.loadAdapter(2, await make({ seed: 2 }));
  expect([engine.unloadAdapter(1), engine.unloadAdapter(1)]).toEqual([true, false]);
  expect(() => add(engine, using(1))).toThrow('adapter 1 not found');
  const next = add(engine, { ...using(2), cachePrefix: false });
  expect(engine.stats()).toMatchObject({ numAdapters: 2, cache: { adapterBytes: 2 * adapterBytes } });
  await finish(engine, answers);
  expect(answers.get(running)!.tokens).toEqual(tokens);
  expect(answers.get(next)!.tokens).not.toEqual(tokens);
  expect(engine.stats()).toMatchObject({ numAdapters: 1, cache: { adapterBytes } });
});

test('[E34] an abort during a step frees the adapter after the step', async () => {
  const { engine, make } = await open();
  engine.loadAdapter(1, await make({ seed: 1 }));
  const id = add(engine, using(1));
  engine.unloadAdapter(1);
  const step = engine.step();
  engine.abort(id);
  expect(engine.stats().numAdapters).toBe(1);
  await step;
  expect(engine.stats()).toMatchObject({ numAdapters: 0, cache: { adapterBytes: 0 } });
  engine.checkIntegrity();
});

test('[E35] rejects an adapter that does not fit the model or the memory, and changes nothing', async () => {
  const { engine, model, make } = await open();
  const before = engine.stats();
  const other = { ...model.shape, feedForwardDim: model.shape.feedForwardDim + 2 };
  expect(() => engine.loadAdapter(1, { architecture: 'qwen2', contentHash: '', factors: [] })).toThrow(
    /adapter is for qwen2/,
  );
  const misfit = await randomAdapter(other, { seed: 1 });
  expect(() => engine.loadAdapter(1, misfit)).toThrow(
    /blk\.0\.ffn_gate as a matrix of \d+ x \d+, the model has \d+ x \d+/,
  );
  const large = await make({ seed: 1, rank: 1024, targets: ['ffn_up', 'ffn_gate', 'ffn_down'] });
  expect(() => engine.loadAdapter(1, large)).toThrow(/bytes for adapter weights do not fit/);
  expect(engine.stats()).toEqual(before);
  engine.loadAdapter(1, await make({ seed: 1 }));
  expect((await ask(engine, using(1))).tokens).toHaveLength(8);
});

test.each([
  [{ adapters: [{ id: 7, scale: 1 }] }, 'adapter 7 not found'],
  [{ adapters: [{ id: 1, scale: NaN }] }, 'got NaN'],
  [{ adapters: [{ id: 1, scale: 1000 }] }, 'must be -100 to 100, got 1000'],
  [using(1, 1, 1, 1, 1), 'a request can use 4 adapters, got 5'],
])('[E35] rejects a request with %j', async (request, message) => {
  const { engine, make } = await open();
  engine.loadAdapter(1, await make({ seed: 1, targets: ['output'] }));
  expect(() => add(engine, request)).toThrow(message);
  expect(engine.hasWork).toBe(false);
  expect(engine.unloadAdapter(1)).toBe(true);
  expect(engine.stats().numAdapters).toBe(0);
});

test('[E31] an adapter listed twice is applied twice', async () => {
  const { engine, make } = await open();
  engine.loadAdapter(1, await make({ seed: 1 }));
  const twice = await ask(engine, { ...using(1, 1), cachePrefix: false });
  const doubled = await ask(engine, { adapters: [{ id: 1, scale: 2 }], cachePrefix: false });
  expect(twice.tokens).toEqual(doubled.tokens);
});

describe('[E49] when the memory is short', () => {
  const RANK = 4;

  /** As many adapters of one size as fit, and one more. */
  async function fill() {
    const opened = await open();
    const { engine, make } = opened;
    engine.loadAdapter(1, await make({ seed: 1, rank: RANK }));
    const { adapterBytes, budgetBytes } = engine.stats().cache;
    let count = 1;
    while (engine.stats().numAdapters === count && count * adapterBytes < budgetBytes) {
      count++;
      engine.loadAdapter(count, await make({ seed: count, rank: RANK }));
    }
    expect(engine.stats().numAdapters).toBe(count - 1);
    expect(count).toBeGreaterThan(3);
    return { ...opened, count, sizeBytes: adapterBytes };
  }

  test('the adapter that was idle for longest makes room, and is loaded again for a request', async () => {
    const { engine, count } = await fill();
    const isIn = (id: number): boolean => {
      const { numAdapters } = engine.stats();
      engine.unloadAdapter(id);
      return engine.stats().numAdapters < numAdapters;
    };
    const { tokens } = await ask(engine, { ...using(1), cachePrefix: false });
    expect(tokens).toHaveLength(8);
    // Now 2 is the oldest.
    expect([isIn(2), isIn(1)]).toEqual([false, true]);
    expect(() => add(engine, using(1))).toThrow('adapter 1 not found');
    expect(await ask(engine, using(count))).toMatchObject({ tokens: expect.any(Array) });
  });

  test('one that a request uses stays, and a request that cannot have its own comes back', async () => {
    const { engine, make, count } = await fill();
    const answers = new Map<number, Answer>();
    const ids = Array.from({ length: count - 1 }, (_, i) => add(engine, { ...using(i + 2), maxTokens: 4 }));
    const before = engine.stats();
    expect(() => add(engine, using(1))).toThrow(
      /adapter 1 was idle and cannot be loaded again while others are in use/,
    );
    const more = await make({ seed: 99, rank: RANK });
    expect(() => engine.loadAdapter(99, more)).toThrow(/do not fit/);
    expect(engine.stats()).toEqual(before);
    expect(engine.abort(ids[0]!)).toBe(true);
    const large = await make({ seed: 1, rank: 1024, targets: ['ffn_up', 'ffn_gate', 'ffn_down'] });
    expect(() => engine.loadAdapter(99, large)).toThrow(/do not fit/);
    expect(engine.stats().numAdapters).toBe(before.numAdapters);
    ids.shift();
    await finish(engine, answers);
    for (const id of ids) expect(answers.get(id)!.tokens).toHaveLength(4);
    expect((await ask(engine, using(1))).tokens).toHaveLength(8);
  });

  test('free pages are those that sequences can have', async () => {
    const { engine, model, count, sizeBytes } = await fill();
    const { pageBytes } = model.pages;
    const { numPages, numFreePages, cache } = engine.stats();
    expect(cache.adapterBytes).toBe((count - 1) * sizeBytes);
    expect(numFreePages).toBe(numPages - cache.adapterBytes / pageBytes);
    for (let id = 1; id <= count; id++) engine.unloadAdapter(id);
    expect(engine.stats().numFreePages).toBe(numPages);
  });

  test('adapters that are known are limited', async () => {
    const { engine, make, count } = await fill();
    const loadMore = async (): Promise<void> => {
      for (let id = count + 1; ; id++) engine.loadAdapter(id, await make({ seed: id, rank: RANK }));
    };
    await expect(loadMore()).rejects.toThrow(/in and outside the memory budget, at most \d+ may be: unload one first/);
  });

  test('answers are those of an engine that has room for all, whatever is loaded, unloaded and asked for', async () => {
    const random = createRandom(campaign({ short: 7, long: Date.now() % 100_000 }));
    const pick = (count: number): number => Math.floor(random.next() * count);
    const { engine, model, make, count } = await fill();
    const alone = new Map<string, readonly number[]>();
    const expected = async (id: number, scale: number): Promise<readonly number[]> => {
      const key = `${id} ${scale}`;
      if (!alone.has(key)) {
        const other = await open();
        other.engine.loadAdapter(id, await make({ seed: id, rank: RANK }));
        alone.set(key, (await ask(other.engine, { adapters: [{ id, scale }] })).tokens);
      }
      return alone.get(key)!;
    };
    const loaded = new Set(Array.from({ length: count }, (_, i) => i + 1));
    for (let round = 0; round < campaign({ short: 25, long: 400 }); round++) {
      const id = 1 + pick(count);
      if (!loaded.has(id)) {
        engine.loadAdapter(id, await make({ seed: id, rank: RANK }));
        loaded.add(id);
      } else if (random.next() < 0.15) {
        expect(engine.unloadAdapter(id)).toBe(true);
        loaded.delete(id);
        continue;
      }
      const scale = 0.5 + pick(2) / 2;
      const wanted = { adapters: [{ id, scale }] };
      const answers = new Map<number, Answer>();
      const [one, two] = [add(engine, wanted), add(engine, using())];
      await finish(engine, answers);
      expect([round, answers.get(one)!.tokens]).toEqual([round, await expected(id, scale)]);
      expect(answers.get(two)!.tokens).toHaveLength(8);
      const { numFreePages, cache } = engine.stats();
      expect(numFreePages * model.pages.pageBytes + cache.adapterBytes).toBeLessThanOrEqual(cache.budgetBytes);
    }
  });
});
