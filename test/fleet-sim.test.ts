// The simulator of gateway policies, on cases computed by hand.
import { describe, expect, test } from 'vitest';
import { createEventQueue } from '../bench/support/fleet-sim/event-queue.ts';
import { createHolders } from '../bench/support/fleet-sim/holders.ts';
import { createLru } from '../bench/support/fleet-sim/lru.ts';
import { readFigures } from '../bench/support/fleet-sim/sim-figures.ts';
import { POLICIES, type PolicyName, type SimOptions } from '../bench/support/fleet-sim/sim-options.ts';
import { fitService, simError, simulateReplay } from '../bench/support/fleet-sim/replay-sim.ts';
import { simulate } from '../bench/support/fleet-sim/simulate.ts';
import { createSessionTrace, createSimTrace, type SimRequest } from '../bench/support/fleet-sim/trace.ts';
import { placesOf } from '../src/gateway/text-index.ts';
import { createRandom } from '../src/core/random.ts';

const OPTIONS: SimOptions = {
  policy: 'affine',
  numNodes: 2,
  numGateways: 1,
  cacheBlocks: 100,
  service: { fixedMs: 10, tokenMs: 1, attentionMs: 0, decodeMs: 5, delayTokens: 0 },
  tokensPerRequest: 128,
  eventDelayMs: 0,
  probeMs: 1000,
  maxTexts: 10_000,
  placesOf,
  isSticky: true,
  storm: null,
  isExhaustive: false,
  seed: 1,
};
const BLOCK = 100;
const request = (atMs: number, blocks: number[], more: Partial<SimRequest> = {}): SimRequest => ({
  atMs,
  blocks,
  numTokens: blocks.length * BLOCK,
  outputTokens: 1,
  session: 0,
  ...more,
});
const run = (requests: SimRequest[], options: Partial<SimOptions> = {}) => {
  const { ttftMs, cachedTokens, nodes, ...counts } = simulate(createSimTrace(requests, BLOCK), {
    ...OPTIONS,
    ...options,
  });
  return { ttftMs: [...ttftMs], cachedTokens: [...cachedTokens], nodes: [...nodes], ...counts };
};

describe('parts', () => {
  test('an LRU drops the same numbers as a Map, in the same order', () => {
    const random = createRandom(5);
    const lru = createLru(37);
    const model = new Map<number, true>();
    for (let step = 0; step < 5000; step++) {
      // Multiples of 64 collide in a table of 128 places.
      const key = Math.floor(random.next() * 90) * (step % 2 === 0 ? 64 : 1);
      expect(lru.has(key)).toBe(model.has(key));
      let dropped = -1;
      if (!model.delete(key) && model.size === 37) {
        dropped = model.keys().next().value!;
        model.delete(dropped);
      }
      model.set(key, true);
      expect(lru.touch(key)).toBe(dropped);
      expect(lru.size).toBe(model.size);
    }
    const keys: number[] = [];
    lru.forEach((key) => keys.push(key));
    expect(keys).toEqual([...model.keys()].toReversed());
    lru.clear();
    expect([lru.size, lru.has(keys[0]!)]).toEqual([0, false]);
  });

  test('events run by time, and in the order they were added', () => {
    let now = -1;
    const queue = createEventQueue((atMs) => (now = atMs));
    const ran: string[] = [];
    const random = createRandom(2);
    const times = Array.from({ length: 500 }, () => Math.floor(random.next() * 50));
    times.forEach((atMs, i) => queue.add(atMs, () => ran.push(`${now} ${i}`)));
    queue.add(10, () => queue.add(10, () => ran.push(`${now} late`)));
    queue.runUntil(10);
    expect(ran.at(-1)).toBe('10 late');
    queue.runAll();
    const sorted = times.map((atMs, i) => ({ atMs, i })).sort((a, b) => a.atMs - b.atMs || a.i - b.i).map(({ atMs, i }) => `${atMs} ${i}`); // prettier-ignore
    expect(ran.filter((name) => name !== '10 late')).toEqual(sorted);
  });

  test('holders are sets of nodes', () => {
    const holders = createHolders(3);
    const of = (block: number): number[] => {
      const found: number[] = [];
      holders.forEach(block, (node) => found.push(node));
      return found.sort((a, b) => a - b);
    };
    for (let node = 0; node < 2000; node++) holders.add(1, node);
    holders.add(1, 7);
    for (let node = 0; node < 2000; node++) if (node !== 7) holders.remove(1, node);
    holders.remove(1, 5000);
    holders.add(2, 9);
    expect([of(0), of(1), of(2)]).toEqual([[], [7], [9]]);
  });
});

describe('cases by hand', () => {
  test('a prompt costs its uncached tokens, and waits for those before it', () => {
    // One node: 10 + 300 ms; the second waits 210 ms and computes one block; the last token of the third is not cached.
    const { ttftMs, cachedTokens } = run([request(0, [1, 2, 3]), request(100, [1, 2, 4]), request(1000, [1, 2])], { numNodes: 1 }); // prettier-ignore
    expect(cachedTokens).toEqual([0, 200, 199]);
    expect(ttftMs).toEqual([310, 310 - 100 + 110, 11]);
  });

  test('requests in progress delay a prompt', () => {
    const service = { ...OPTIONS.service, delayTokens: 7 };
    const { ttftMs } = run([request(0, [1], { outputTokens: 1000 }), request(200, [2])], { numNodes: 1, service });
    expect(ttftMs).toEqual([110, 117]);
  });

  test('affinity follows the cache, least loaded and round robin do not', () => {
    const trace = [request(0, [1, 2]), request(1000, [1, 2, 3]), request(2000, [1, 2, 3, 4])];
    expect(run(trace)).toMatchObject({ cachedTokens: [0, 200, 300] });
    expect(run(trace, { policy: 'least loaded' })).toMatchObject({ cachedTokens: [0, 0, 200] });
    expect(run(trace, { policy: 'round robin' })).toMatchObject({ cachedTokens: [0, 0, 200] });
    expect(run(trace, { policy: 'oracle' })).toMatchObject({ cachedTokens: [0, 200, 300] });
  });

  test('a queue outweighs warm blocks', () => {
    // The warm node has 300 pending tokens and one request when the last one comes: 0 + 300 + 128 > 100.
    const trace = [request(0, [1]), request(1000, [1, 2, 3, 4]), request(1001, [1])];
    const { nodes } = run(trace);
    expect(nodes[1]).toBe(nodes[0]);
    expect(nodes[2]).not.toBe(nodes[0]);
  });

  test('a gateway knows a cache only after the events, and a text only if it was its own', () => {
    const trace = [request(0, [1, 2]), request(1000, [1, 2])];
    expect(run(trace, { eventDelayMs: 889 }).cachedTokens).toEqual([0, 0]);
    expect(run(trace, { eventDelayMs: 700 }).cachedTokens).toEqual([0, 199]);
    // The second gateway does not know that a node has [1, 2], and there are thirty.
    const other = (session: number) => [trace[0]!, request(1000, [1, 2], { session })];
    expect(run(other(0), { numGateways: 2, numNodes: 30 }).cachedTokens).toEqual([0, 199]);
    expect(run(other(1), { numGateways: 2, numNodes: 30 }).cachedTokens).toEqual([0, 0]);
    const later = [trace[0]!, request(1000, [5]), request(2000, [6]), request(3000, [1, 2])];
    expect(run(later).cachedTokens[3]).toBe(199);
    expect(run(later, { maxTexts: 1 }).cachedTokens[3]).toBe(0);
  });

  test('gateways that start together do not send their first requests to the same nodes', () => {
    const first = Array.from({ length: 10 }, (_, session) => request(session, [session], { session }));
    const { nodes } = run(first, { numGateways: 10, numNodes: 100 });
    expect(new Set(nodes).size).toBeGreaterThan(7);
  });

  test('full caches evict the ends of the oldest prompts first', () => {
    const trace = [request(0, [1, 2]), request(1000, [3, 4]), request(2000, [1, 2])];
    const { cachedTokens, numBatches, numChanges } = run(trace, { numNodes: 1, cacheBlocks: 3 });
    expect(cachedTokens).toEqual([0, 0, 100]);
    // Stored 1 2; stored 3 4, removed 2; stored 2, removed 4.
    expect([numBatches, numChanges]).toEqual([5, 7]);
  });

  test('a storm moves requests without a first token, breaks started answers and empties caches', () => {
    const storm = { atMs: 500, share: 1, maxDownMs: 1e-9 };
    const trace = [0, 150].map((atMs) => request(atMs, [1], { outputTokens: 1000 }));
    trace.push(request(450, [2]), request(5000, [1]), request(6000, [3]));
    const all = run(trace, { numNodes: 1, storm });
    expect(all).toMatchObject({ numBroken: 2, numRetried: 1, cachedTokens: [0, 99, 0, 0, 0] });
    // No other node is up for the third.
    expect(all.ttftMs).toEqual([110, 11, NaN, 110, 110]);
    // Lost requests are no load any more: both nodes are equal, and take turns.
    const { nodes } = run(trace, { storm });
    expect(nodes[4]).not.toBe(nodes[3]);
    const one = run(trace, { numNodes: 30, storm: { ...storm, share: 0.5 } });
    expect(one.ttftMs.every((ms) => ms > 0)).toBe(true);
  });
});

const trace = createSessionTrace({ numSessions: 2000, requestsPerSecond: 80, seed: 3 });
const fleet: Partial<SimOptions> = { numNodes: 40, cacheBlocks: 400, maxTexts: 2e6, service: { fixedMs: 20, tokenMs: 0.1, attentionMs: 0, decodeMs: 20, delayTokens: 0 } }; // prettier-ignore
const figuresOf = (policy: PolicyName, more: Partial<SimOptions> = {}) =>
  readFigures(trace, simulate(trace, { ...OPTIONS, ...fleet, policy, ...more }), 20_000);

test('the same seed gives the same trace and result, another seed another one', () => {
  const again = createSessionTrace({ numSessions: 2000, requestsPerSecond: 80, seed: 3 });
  expect(again).toEqual(trace);
  expect(createSessionTrace({ numSessions: 2000, requestsPerSecond: 80, seed: 4 })).not.toEqual(trace);
  const [one, two, other] = [1, 1, 2].map((seed) => simulate(trace, { ...OPTIONS, ...fleet, policy: 'random', seed }));
  expect(two).toEqual(one);
  expect(other).not.toEqual(one);
});

test('a choice among few candidates is the choice among all nodes', () => {
  for (const policy of ['affine', 'least loaded'] as const) {
    const options = { ...OPTIONS, ...fleet, policy, numGateways: 2, cacheBlocks: 150, tokensPerRequest: 128, storm: { atMs: 30_000, share: 0.3, maxDownMs: 20_000 } }; // prettier-ignore
    const [all, few] = [true, false].map((isExhaustive) => simulate(trace, { ...options, isExhaustive }));
    expect(few!.nodes).toEqual(all!.nodes);
    expect(few).toEqual(all);
  }
});

test('a span of time without requests has no figures', () => {
  const { numRequests, p50Ms, p99Ms, hitShare, imbalance } = readFigures(trace, simulate(trace, { ...OPTIONS, ...fleet, policy: 'random' }), 1e9); // prettier-ignore
  expect([numRequests, p50Ms, p99Ms, hitShare, imbalance]).toEqual([0, NaN, NaN, NaN, NaN]);
});

test('every request is answered once, and sums agree', () => {
  for (const policy of POLICIES) {
    const { numFailed, numRequests, hitShare } = figuresOf(policy);
    expect([policy, numFailed]).toEqual([policy, 0]);
    expect(numRequests).toBeGreaterThan(3000);
    expect(hitShare).toBeGreaterThan(0);
    expect(hitShare).toBeLessThan(1);
  }
});

test('policies are ordered: oracle, affine, then those that do not know caches', () => {
  const all = Object.fromEntries(POLICIES.map((policy) => [policy, figuresOf(policy)])) as Record<PolicyName, ReturnType<typeof figuresOf>>; // prettier-ignore
  expect(all.oracle.p50Ms).toBeLessThanOrEqual(all.affine.p50Ms);
  for (const policy of ['least loaded', 'round robin', 'random'] as const) {
    expect(all.affine.hitShare).toBeGreaterThan(all[policy].hitShare + 0.1);
    expect(all.affine.p50Ms).toBeLessThan(all[policy].p50Ms / 2);
  }
  expect(all['least loaded'].p99Ms).toBeLessThan(all.random.p99Ms);
  expect(figuresOf('affine', { maxTexts: 1000 }).hitShare).toBeLessThan(all.affine.hitShare - 0.1);
});

test('many gateways wait little longer than one that sees all requests', () => {
  const [one, many] = [1, 16].map((numGateways) => figuresOf('affine', { numGateways }));
  expect(many!.p99Ms).toBeLessThan(1.5 * one!.p99Ms);
});

describe('a replay with measured times', () => {
  test('times are fitted: fixed, per token, and per token it attends to', () => {
    const shapes = [
      [330, 330],
      [360, 30],
      [420, 420],
      [540, 120],
    ] as const;
    const samples = shapes.map(([numPromptTokens, numTokens]) => ({ numPromptTokens, numTokens, ms: 7 + 0.25 * numTokens + 0.01 * numTokens * (numPromptTokens - numTokens / 2) })); // prettier-ignore
    const { fixedMs, tokenMs, attentionMs } = fitService(samples);
    expect([fixedMs, tokenMs, attentionMs].map((value) => Number(value.toFixed(9)))).toEqual([7, 0.25, 0.01]);
  });

  test('two conversations on two nodes: affinity computes only new tokens', () => {
    const requests = [0, 1, 1, 0].map((conversation, i) => ({ conversation, numTokens: i < 2 ? 100 : 140 }));
    const replayed = (policy: PolicyName) => simulateReplay(requests, { policy, numNodes: 2, service: { fixedMs: 10, tokenMs: 1, attentionMs: 0.01 } }); // prettier-ignore
    const affine = replayed('affine');
    expect([affine.hitShare, affine.p50Ms]).toEqual([200 / 480, 160]);
    expect(replayed('least loaded').hitShare).toBe(0);
    expect(simError(affine, { ttftMs: 128, hitShare: 200 / 480 })).toBeCloseTo(0.25, 9);
    expect(simError(affine, { ttftMs: 160, hitShare: 400 / 480 })).toBeCloseTo(0.5, 9);
  });
});
