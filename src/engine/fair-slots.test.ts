import { expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createSchedulerSetUp } from '../../test/support/scheduler-setup.ts';
import { createToyModel, createToySampler, TOY_VOCAB, toyContinuation } from '../../test/support/toy-model.ts';
import { createEngine } from './engine.ts';
import { SLICE_TOKENS } from './fair-slots.ts';

const MANY = { tenant: 'many' };
const FEW = { tenant: 'few' };

test('[E30] a tenant with nothing running preempts the newest sequence of the tenant with the most', () => {
  const { arrive, step, state } = createSchedulerSetUp({ maxRunning: 4 });
  for (let i = 0; i < 6; i++) arrive(3, MANY);
  step();
  const few = [arrive(3, FEW), arrive(3, FEW), arrive(3, FEW)];
  expect(step()).toMatchObject({ admittedIds: [few[0], few[1]], preemptedIds: [3, 2] });
  // Two each: the third waits for one of its own tenant, and nothing is preempted any more.
  for (let i = 0; i < 3 * SLICE_TOKENS; i++) expect(step()).toMatchObject({ admittedIds: [], preemptedIds: [] });
  expect(state.running.map(({ request }) => request.id)).toEqual([0, 1, few[0], few[1]]);
});

test("[E30] ... however long the other tenant's queue is and has waited", () => {
  const { arrive, step } = createSchedulerSetUp({ maxRunning: 2 });
  for (let i = 0; i < 20; i++) arrive(3, MANY, 0);
  step(0);
  const few = arrive(3, FEW, 90_000);
  expect(step(90_000)).toMatchObject({ admittedIds: [few], preemptedIds: [1] });
});

test("[E30] never preempts a higher priority or a tenant's only sequence", () => {
  const { arrive, step } = createSchedulerSetUp({ maxRunning: 2 });
  arrive(3, { ...MANY, priority: 1 });
  arrive(3, { ...MANY, priority: 1 });
  step();
  arrive(3, FEW);
  expect(step()).toMatchObject({ admittedIds: [], preemptedIds: [] });
  const alone = createSchedulerSetUp({ maxRunning: 2 });
  alone.arrive(3, { tenant: 'a' });
  alone.arrive(3, { tenant: 'b' });
  alone.step();
  alone.arrive(3, { tenant: 'c' });
  expect(alone.step()).toMatchObject({ admittedIds: [], preemptedIds: [] });
});

test('[E30] a difference of one slot does not change the queue order', () => {
  const { arrive, step, end } = createSchedulerSetUp({ maxRunning: 2 });
  arrive(3, MANY);
  const other = arrive(3, { tenant: 'other' });
  step();
  const waiting = arrive(3, MANY, 0);
  arrive(3, FEW, 5000);
  end(other);
  expect(step(5000)).toMatchObject({ admittedIds: [waiting], preemptedIds: [] });
});

test('[E30] a preempted sequence gets a full slice before it is preempted again', () => {
  const { arrive, step, end } = createSchedulerSetUp({ maxRunning: 2 });
  arrive(3, MANY);
  arrive(3, MANY);
  step();
  const first = arrive(3, FEW);
  expect(step().preemptedIds).toEqual([1]);
  end(first);
  expect(step().admittedIds).toEqual([1]); // and the first token of its slice
  const second = arrive(3, FEW);
  expect(step().preemptedIds).toEqual([0]);
  end(second);
  expect(step().admittedIds).toEqual([0]);
  arrive(3, FEW);
  for (let i = 3; i < SLICE_TOKENS; i++) expect(step().preemptedIds).toEqual([]);
  expect(step().preemptedIds).toEqual([1]);
});

test('[E30] frees pages of the larger tenant too; if that is not enough, only once', () => {
  const { arrive, step, end } = createSchedulerSetUp({ numPages: 9, maxBatchTokens: 64 });
  for (let i = 0; i < 3; i++) arrive(20, MANY); // 2 pages each
  step();
  const few = arrive(40, FEW); // 3 pages, and one for each that stays
  expect(step()).toMatchObject({ admittedIds: [few], preemptedIds: [2] });
  end(few);
  const large = arrive(100, FEW); // 7 pages and a spare: more than preempting all but one frees
  // Of two running, one is preempted; preempting the last would only swap them.
  expect(step()).toMatchObject({ admittedIds: [], preemptedIds: [1] });
  let numPreempted = 0;
  for (let i = 0; i < 2 * SLICE_TOKENS; i++) numPreempted += step().preemptedIds.filter((id) => id !== large).length;
  expect(numPreempted).toBeLessThanOrEqual(2 + 2); // 2 preempted without success, 2 out of pages
});

test('[E1] [E3] [E30] a tenant starts within a slice although another holds every slot, and all tokens are the same', async () => {
  let numPreemptions = 0;
  for (let seed = 0; seed < 10; seed++) {
    const random = createRandom(seed);
    const below = (limit: number): number => Math.floor(random.next() * limit);
    const maxSequences = 2 + below(7);
    const model = createToyModel({ pageTokens: 4, limits: { numPages: 2000, maxBatchTokens: 32, maxSequences } });
    const engine = createEngine(model, { maxContext: 200, now: () => 0 });
    const asks: { promptIds: number[]; maxTokens: number; seed: number; tokens: number[]; start: number | null; stopIds: Set<number> }[] = []; // prettier-ignore
    const add = (tenant: string, maxTokens: number): number => {
      const promptIds = Array.from({ length: 1 + below(12) }, () => below(TOY_VOCAB));
      const ask = { promptIds, maxTokens, seed: below(1e9), tokens: [], start: null, stopIds: new Set<number>() };
      const id = asks.push(ask) - 1;
      engine.add(engineRequest({ ...ask, id, tenant, sampler: createToySampler(ask.seed) }));
      return id;
    };
    const isEnded = ({ tokens, maxTokens }: (typeof asks)[number]): boolean => tokens.length === maxTokens;
    for (let i = 0; i < 2 * maxSequences; i++) add('many', 60 + below(30));
    let few: { id: number; addedAt: number } | null = null;
    for (let step = 0, left = 5; engine.hasWork; step++) {
      if (left > 0 && (few === null || isEnded(asks[few.id]!)) && below(4) === 0) {
        few = { id: add('few', 1 + below(10)), addedAt: step };
        left--;
      }
      for (const event of await engine.step()) {
        if (event.type === 'token') asks[event.id]!.tokens.push(event.token.tokenId);
      }
      // Each preempted sequence recomputes at most one page, and its own prompt takes one more chunk.
      const waited = few === null ? 0 : step - few.addedAt;
      if (waited > SLICE_TOKENS + 4)
        expect(asks[few!.id]!.tokens.length, `seed ${seed} step ${step}`).toBeGreaterThan(0);
    }
    numPreemptions += engine.stats().numPreemptions;
    for (const ask of asks) expect(ask.tokens).toEqual(toyContinuation(ask.promptIds, ask));
    expect(engine.stats().numPreemptions).toBeLessThanOrEqual(5);
    engine.checkIntegrity();
  }
  expect(numPreemptions).toBeGreaterThan(20);
});
