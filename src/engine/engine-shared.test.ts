import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createMemoryShared } from '../../test/support/memory-shared.ts';
import { createToyModel, createToySampler } from '../../test/support/toy-model.ts';
import { createEngine, type Engine } from './engine.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const PROMPT = Array.from({ length: 20 }, (_, i) => i + 1);
const OTHER_PROMPT = PROMPT.map((id) => id + 30);

function createNode(shared = createMemoryShared()) {
  const clock = { ms: 0 };
  const tier = { store: shared.open(), timeoutMs: 1000 };
  let numReady = 0;
  const onReady = (): void => void numReady++;
  const engine = createEngine(createToyModel(), { maxContext: 64, now: () => clock.ms, shared: tier, onReady });
  const add = (id: number, more: Partial<EngineRequest> = {}): void =>
    engine.add(engineRequest({ id, promptIds: PROMPT, maxTokens: 6, sampler: createToySampler(1), tenant: 'acme', ...more })); // prettier-ignore
  const cached = (): number => engine.cachedTokens({ tenant: 'acme', promptIds: PROMPT, adapters: [] });
  return { engine, shared, clock, add, cached, numReady: () => numReady };
}

async function runToEnd({ engine, shared }: { engine: Engine; shared: ReturnType<typeof createMemoryShared> }) {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    await shared.settled();
    engine.checkIntegrity();
  }
  while (engine.hasBackgroundWork) engine.workInBackground();
  await shared.settled();
  return events;
}

const tokensOf = (events: readonly EngineEvent[], id: number): number[] =>
  events.flatMap((event) => (event.id === id && event.type === 'token' ? [event.token.tokenId] : []));

/** A node that waits for the pages that another one stored; they do not come. */
async function createWaiting() {
  const first = createNode();
  first.add(0);
  const expected = tokensOf(await runToEnd(first), 0);
  first.shared.holdsAfter = 0;
  const node = createNode(first.shared);
  node.add(0);
  await node.engine.step();
  expect(node.engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 1 });
  return { ...node, expected };
}

test('[SH9] a sequence joins the queue with the pages of another node and gets the same tokens', async () => {
  const first = createNode();
  first.add(0);
  const expected = tokensOf(await runToEnd(first), 0);
  expect(expected.length).toBe(6);
  expect(expected.every(Number.isInteger)).toBe(true);
  expect(first.engine.stats().cache.shared!.computeMs).toBe(0); // measured, by a clock that stands still
  const second = createNode(first.shared);
  second.add(0);
  expect(second.engine.awaited?.isIdle).toBe(true);
  const events = await runToEnd(second);
  expect(tokensOf(events, 0)).toEqual(expected);
  expect(second.engine.stats().cache.savedTokens).toBe(16);
  expect(second.numReady()).toBeGreaterThan(0);
});

test('[SH12] a sequence that waits for pages delays no other of its tenant, and counts as waiting', async () => {
  const node = await createWaiting();
  node.shared.holdsAfter = Infinity;
  node.add(1, { promptIds: OTHER_PROMPT });
  const events: EngineEvent[] = [];
  while (tokensOf(events, 1).length < 6) {
    events.push(...(await node.engine.step()));
    await node.shared.settled();
  }
  expect(node.engine.stats().numWaiting).toBe(1);
  node.clock.ms = 1000;
  expect(tokensOf(await runToEnd(node), 0)).toEqual(node.expected);
  expect(node.engine.stats().cache.shared!.numLate).toBe(1);
});

test('a sequence that is aborted or times out while it waits for pages ends at once', async () => {
  const aborted = await createWaiting();
  expect(aborted.engine.abort(0)).toBe(true);
  expect([aborted.engine.hasWork, aborted.engine.stats().numWaiting]).toEqual([false, 0]);
  aborted.engine.checkIntegrity();
  const late = await createWaiting();
  late.engine.abort(0);
  late.add(1, { timeoutMs: 100 });
  late.clock.ms = 100;
  expect(await late.engine.step()).toMatchObject([{ type: 'failed', id: 1, error: { code: 'deadline_exceeded' } }]);
  expect(late.engine.hasWork).toBe(false);
});

test('[SH16] an erased tenant gets no pages that were on their way', async () => {
  const first = createNode();
  first.add(0);
  await runToEnd(first);
  const node = createNode(first.shared);
  node.add(0);
  node.engine.eraseTenant('acme', false);
  await first.shared.settled();
  await node.engine.step();
  await first.shared.settled();
  expect(node.engine.countTenant('acme')).toBe(0);
  await runToEnd(node);
  expect([node.cached(), node.engine.countTenant('acme')]).toEqual([0, 0]);
});
