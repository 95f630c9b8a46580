import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { createToyModel, createToySampler, toyContinuation } from '../../test/support/toy-model.ts';
import { createEngine, type Engine } from './engine.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const PROMPT = Array.from({ length: 20 }, (_, i) => i + 1);

function setUp() {
  const spill = createMemorySpill();
  const engine = createEngine(createToyModel(), { maxContext: 64, now: () => 0, spill: spill.open() });
  const add = (id: number, tenant: string, more: Partial<EngineRequest> = {}): void =>
    engine.add(engineRequest({ id, promptIds: PROMPT, maxTokens: 6, sampler: createToySampler(id), tenant, cachePrefix: true, ...more })); // prettier-ignore
  const cached = (tenant: string): number => engine.cachedTokens({ tenant, promptIds: PROMPT, adapters: [] });
  return { engine, spill, add, cached };
}

async function runToEnd(engine: Engine): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) events.push(...(await engine.step()));
  while (engine.hasBackgroundWork) engine.workInBackground();
  engine.checkIntegrity();
  return events;
}

test('an erased tenant has no pages in memory, in the queue or on disk; others keep theirs', async () => {
  const { engine, spill, add, cached } = setUp();
  for (const tenant of ['acme', 'other']) {
    add(engine.stats().numSteps, tenant);
    await runToEnd(engine);
  }
  const numPages = spill.pages.size;
  expect(cached('acme')).toBeGreaterThan(0);
  expect(engine.countTenant('acme')).toBeGreaterThan(1);
  expect(engine.eraseTenant('acme', true)).toEqual([]);
  engine.checkIntegrity();
  expect([engine.countTenant('acme'), cached('acme'), spill.pages.size]).toEqual([0, 0, numPages / 2]);
  expect(cached('other')).toBeGreaterThan(0);
});

test('requests of an erased tenant fail, and leave no pages', async () => {
  const { engine, spill, add, cached } = setUp();
  add(0, 'acme');
  add(1, 'other');
  await engine.step();
  const events = engine.eraseTenant('acme', true);
  expect(events).toMatchObject([{ type: 'failed', id: 0, error: { code: 'aborted' } }]);
  const numOthers = (await runToEnd(engine)).filter(({ id }) => id === 1).length;
  expect(numOthers).toBeGreaterThan(0);
  expect([engine.countTenant('acme'), cached('acme')]).toEqual([0, 0]);
  expect(engine.countTenant('other')).toBeGreaterThan(0);
  expect([...spill.pages.keys()].some((key) => key.includes('acme'))).toBe(false);
});

test('when only a part of a tenant is erased, its requests finish without leaving pages', async () => {
  const { engine, spill, add, cached } = setUp();
  add(0, 'acme');
  await engine.step();
  await engine.step();
  expect(engine.eraseTenant('acme', false)).toEqual([]);
  engine.checkIntegrity();
  const events = await runToEnd(engine);
  const tokens = events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []));
  expect(events.at(-1)).toMatchObject({ type: 'finished', id: 0 });
  expect(tokens).toEqual(toyContinuation(PROMPT, { seed: 0, maxTokens: 6 }).slice(-tokens.length));
  expect([engine.countTenant('acme'), cached('acme'), spill.pages.size]).toEqual([0, 0, 0]);
  // The next request is cached as usual.
  add(1, 'acme');
  await runToEnd(engine);
  expect(cached('acme')).toBeGreaterThan(0);
});
