import { beforeEach, describe, expect, test, vi } from 'vitest';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import type { HeardPattern } from '../../learning/reasoning-bank/near-patterns.ts';
import { patternToRecord } from '../../learning/reasoning-bank/pattern.ts';
import { type RouterJob, trainRouter } from '../../learning/router-training/train-router.ts';
import { trajectoryFixture } from '../../learning/trajectories/harness.contract.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import { createPolicyMemory } from '../../memory/policies/policies.ts';
import type { Memory } from '../../memory/memory.ts';
import { judgeRoute, toProbs } from './judge-route.ts';
import { createRouterLoop } from './router-loop.ts';
import { CONFIG, configOf, serveConstant } from './routing.contract.ts';
import { createRouting } from './routing.ts';

let memory: TestMemory;
let clockMs: number;
const reports: string[] = [];
const question = { turns: ['what is 2 and 3'], embedded: null, similarities: [], isLocalOnly: false, load: 0 };

beforeEach(async () => {
  clockMs = 0;
  memory = await openTestMemory({ now: () => Date.UTC(2026, 0, 1) + clockMs });
  reports.length = 0;
});

function open(changes: object = {}, watch: Memory['watch'] = memory.watch) {
  const config = configOf(changes);
  const routing = createRouting({
    config,
    memory: Object.create(memory, { watch: { value: watch } }) as Memory,
    now: () => clockMs,
    seed: 1,
    report: (text) => reports.push(text),
  });
  const serve = (tenant: string, candidate: number, confidence: number) =>
    serveConstant(memory, tenant, config, { candidate, confidence });
  const idFor = async (tenant: string, more: object = {}): Promise<string> =>
    (await routing.decide(tenant, { ...question, ...more })).candidate.id;
  return { config, routing, serve, idFor };
}

describe('choosing', () => {
  test('[RO1] the safe default, where nothing is trained and where there is no memory', async () => {
    const { routing } = open();
    expect(await routing.decide('acme', question)).toMatchObject({
      candidate: { id: 'small' },
      confidence: 0,
      why: { kind: 'safe-default' },
      propensity: 1,
      version: 0,
    });
    const bare = createRouting({ config: configOf(), memory: null, now: () => 0, seed: 1, report() {} });
    expect((await bare.decide('acme', question)).candidate.id).toBe('small');
  });

  test.each([
    [0.71, 'large', 'fixed'],
    [0.69, 'small', 'safe-default'],
  ])('[RO2] with a confidence of %f it is %s', async (confidence, id, kind) => {
    const { routing, serve } = open();
    await serve('acme', 1, confidence);
    const choice = await routing.decide('acme', question);
    expect(choice).toMatchObject({ candidate: { id }, why: { kind }, version: 1 });
    expect(choice.confidence).toBeCloseTo(confidence, 6);
    expect(choice.probs[1]).toBeCloseTo(confidence, 6);
  });

  test('[RO2] the limit is the configured one', async () => {
    const { idFor, serve } = open({ minConfidence: 0.5 });
    await serve('acme', 1, 0.55);
    expect(await idFor('acme')).toBe('large');
  });

  test('[RO4] by the router of the tenant that asks', async () => {
    const { idFor, serve } = open();
    await serve('acme', 1, 0.9);
    await serve('other', 2, 0.9);
    expect([await idFor('acme'), await idFor('other'), await idFor('third')]).toEqual(['large', 'far', 'small']);
    expect([await idFor('acme'), await idFor('other'), await idFor('third')]).toEqual(['large', 'far', 'small']);
  });

  test('[RO5] never what cannot do it, or was down a moment ago', async () => {
    const { routing, idFor, serve } = open();
    await serve('acme', 2, 0.95);
    expect(await idFor('acme')).toBe('far');
    expect(await idFor('acme', { isLocalOnly: true })).toBe('small');
    routing.note('far', null);
    expect(await idFor('acme')).toBe('small');
    clockMs += 10_001;
    expect(await idFor('acme')).toBe('far');
  });

  test('[RO5] what only this machine can do is refused where nothing here can', async () => {
    const { routing } = open({ candidates: [CONFIG.candidates[2]], default: 'far' });
    await expect(routing.decide('acme', { ...question, isLocalOnly: true })).rejects.toMatchObject({ code: 'unsupported' }); // prettier-ignore
  });

  test('[RO6] what failed is replaced by the safe default, once', async () => {
    const { routing, serve } = open();
    await serve('acme', 2, 0.95);
    const choice = await routing.decide('acme', question);
    const next = routing.fallBack(choice, question, 'it is down')!;
    expect(next).toMatchObject({ candidate: { id: 'small' }, propensity: null, why: { kind: 'fallback' }, state: { candidate: 'small' } }); // prettier-ignore
    expect(next.why.detail).toBe('"far" failed before its first token: it is down');
    expect(routing.fallBack(next, question, 'down, too')).toBeNull();
  });

  test('[RO9] a rollback of the router policy decides the next request, also if another process made it', async () => {
    memory = await openTestMemory({ now: () => Date.UTC(2026, 0, 1) + clockMs, isShared: true });
    const { routing, serve, idFor } = open();
    await serve('acme', 1, 0.9);
    await serve('acme', 2, 0.9);
    expect(await idFor('acme')).toBe('far');
    await memory.policies.rollback('acme', 'router', 1);
    expect(await idFor('acme')).toBe('large');
    expect(await routing.explain('acme', question)).toMatchObject({ version: 1, policyVersion: 3 });
    await createPolicyMemory(memory.store, memory.services).rollback('acme', 'router', 2);
    expect(await idFor('acme')).toBe('far');
  });

  test('[RO9] a removed router policy decides nothing any more', async () => {
    const { serve, idFor } = open();
    await serve('acme', 1, 0.9);
    expect(await idFor('acme')).toBe('large');
    await memory.policies.remove('acme', 'router');
    expect(await idFor('acme')).toBe('small');
  });

  test('[RO9] a router of a removed kind is none: told once, and the next training replaces it', async () => {
    const { config, routing, idFor } = open();
    await serveConstant(memory, 'acme', config, { candidate: 1, confidence: 0.9, kind: 'bandit' });
    for (let i = 0; i < 3; i++, clockMs += 40_000) expect(await idFor('acme')).toBe('small');
    expect(reports).toEqual([expect.stringContaining('router version 1 has an unsupported type')]);
    const trajectories = createTrajectories(memory.store, memory.services);
    for (let n = 1; n <= 40; n++) {
      const one = trajectoryFixture(n, { model: 'large', query: `${n}`, prompt: null, embedding: null, space: null });
      await trajectories.add('acme', one);
      await trajectories.rate('acme', { requestId: one.requestId, score: 1 });
    }
    const work = {
      trainRouter: async (job: RouterJob) => trainRouter(job, memory.services.sha256),
      cancel: async () => {},
    };
    const { version } = await createRouterLoop(memory, routing, work).train('acme', 'background');
    expect(version).toMatchObject({ version: 2, isAccepted: true });
    expect(await idFor('acme')).toBe('large');
  });

  test('[RO9] a router that cannot be read, or of other candidates, is none', async () => {
    const { serve } = open();
    await serve('acme', 1, 0.9);
    const fewer = open({ candidates: CONFIG.candidates.slice(0, 2) });
    expect(await fewer.idFor('acme')).toBe('small');
    const { records } = await memory.store.find('acme', { kinds: ['state'], order: 'oldest', limit: 100 });
    const blob = records.filter(({ fields }) => String(fields['name']).startsWith('float-blob'));
    await memory.store.delete('acme', blob.map(({ id }) => id)); // prettier-ignore
    expect(await open().idFor('acme')).toBe('small');
    expect(reports).toHaveLength(1);
  });
});

describe('[RO14] a router that reads sentence vectors', () => {
  async function serveVectors(changes: object = {}) {
    const opened = open(changes);
    const rated = [(await memory.embed('what is 2 and 3'))!, (await memory.embed('and what is 3'))!];
    await serveConstant(memory, 'acme', opened.config, { candidate: 1, confidence: 0.9, rated });
    return opened;
  }

  test('embeds the request, unless its recall has already', async () => {
    const { routing, idFor } = await serveVectors();
    const embedded = await memory.embed(question.turns[0]!);
    const embed = vi.spyOn(memory, 'embed');
    expect(await idFor('acme')).toBe('large');
    expect(embed).toHaveBeenCalledTimes(1);
    expect(await idFor('acme', { embedded })).toBe('large');
    expect(embed).toHaveBeenCalledTimes(1);
    expect((await routing.explain('acme', question)).inputs).toMatchObject({ vector: 'encoder' });
    expect((await routing.explain('acme', { ...question, embedded })).inputs).toMatchObject({ vector: 'recall' });
  });

  test('leaves a request unlike all rated ones to the safe default and says so', async () => {
    const { routing } = await serveVectors();
    const choice = await routing.decide('acme', { ...question, turns: ['zebra'] });
    expect(choice).toMatchObject({
      candidate: { id: 'small' },
      why: { kind: 'unfamiliar' },
      confidence: 0,
      version: 1,
    });
    expect(choice.why.detail).toContain('unlike all rated requests');
  });

  test('leaves the request to the safe default if the encoder is late or fails', async () => {
    await serveVectors();
    const clock = { now: () => 0, wallClock: () => 0, setTimer: (_: number, ring: () => void) => (queueMicrotask(ring), () => {}) }; // prettier-ignore
    const config = configOf({ encoderTimeoutMs: 7 });
    const late = createRouting({ config, memory, now: () => 0, seed: 1, report() {}, clock });
    const choiceOf = (routing: typeof late) => routing.decide('acme', question);
    vi.spyOn(memory, 'embed').mockImplementation(() => new Promise(() => {}));
    const choice = await choiceOf(late);
    expect(choice).toMatchObject({ candidate: { id: 'small' }, why: { kind: 'safe-default' } });
    expect(choice.why.detail).toBe('no sentence vector within 7 ms');
    vi.spyOn(memory, 'embed').mockRejectedValue(new Error('closed'));
    expect((await choiceOf(open().routing)).candidate.id).toBe('small');
    expect((await open().routing.explain('acme', question)).candidates[0]).toMatchObject({ quality: null });
  });
});

describe('[RO10] an explanation', () => {
  test('tells cost, time and who cannot answer; what no router knows is null', async () => {
    const { routing } = open();
    const told = await routing.explain('acme', { ...question, turns: ['x'.repeat(4000)], isLocalOnly: true });
    expect(told).toMatchObject({ candidate: 'small', safeDefault: 'small', minConfidence: 0.7, version: 0 });
    expect(told.inputs).toEqual({ promptTokens: 1000, similarities: [], load: 0, isLocalOnly: true, vector: null });
    const unknown = { quality: null, score: null, trust: null };
    expect(told.candidates).toEqual([
      { id: 'small', kind: 'local', ...unknown, cost: 0, latencyMs: 1000, cachedTokens: 0, isAble: true },
      { id: 'large', kind: 'local', ...unknown, cost: 0, latencyMs: 1000, cachedTokens: 0, isAble: true },
      {
        id: 'far',
        kind: 'remote',
        ...unknown,
        cost: expect.closeTo(0.004, 10) as number,
        latencyMs: 1000,
        cachedTokens: 0,
        isAble: false,
      },
    ]);
  });

  test('shows candidates without enough context as unable, also if one of them must answer', async () => {
    const { routing } = open();
    const models = CONFIG.candidates.map(() => ({ maxContext: 8, promptTokens: 20, cachedTokens: 0 }));
    const told = await routing.explain('acme', { ...question, models });
    expect([told.candidate, told.candidates.map(({ isAble }) => isAble)]).toEqual(['small', [false, false, false]]);
  });

  test('counts the time that was measured, less what is cached', async () => {
    const { routing, idFor, serve } = open({ weights: { perSecond: 2, perCost: 0 } });
    await serve('acme', 1, 0.9); // says 1 for the large one and 0 for the others
    const models = [512, 512, null].map((maxContext) => ({ maxContext, promptTokens: 100, cachedTokens: 0 }));
    expect(await idFor('acme', { models })).toBe('large');
    const warm = models.with(0, { maxContext: 512, promptTokens: 100, cachedTokens: 75 });
    expect(await idFor('acme', { models: warm })).toBe('small'); // 0 − 2 × 0.25 s against 1 − 2 × 1 s
    const told = await routing.explain('acme', { ...question, models: warm });
    expect(told.candidates[0]).toMatchObject({ latencyMs: 250, cachedTokens: 75, score: -0.5 });
    routing.note('large', 100);
    expect(await idFor('acme', { models: warm })).toBe('large'); // 1 − 2 × 0.1 s
    expect((await routing.decide('acme', { ...question, models: warm })).state.warmShares).toEqual([0.75, 0, 0]);
  });

  test('of a router has its numbers and its version', async () => {
    const { routing, serve } = open();
    await serve('acme', 1, 0.9);
    const told = await routing.explain('acme', question);
    expect(told).toMatchObject({ candidate: 'large', policy: 'always large', version: 1, reason: 'fixed' });
    expect(told.candidates.map(({ quality, score, trust }) => [quality, score, trust])).toEqual([[0, 0, 1], [1, 1, 1], [0, 0, 1]]); // prettier-ignore
  });
});

describe('the loop that trains routers', () => {
  test('[RT7] reports the failure of one tenant and trains the others; after a stop it trains none', async () => {
    const { routing, idFor } = open();
    const trajectories = createTrajectories(memory.store, memory.services);
    for (const tenant of ['acme', 'other']) {
      await idFor(tenant);
      for (let i = 0; i < 24; i++) {
        const one = trajectoryFixture(i + 1, { model: 'large', query: `question ${i}`, prompt: null, embedding: null, space: null }); // prettier-ignore
        await trajectories.add(tenant, one);
        await trajectories.rate(tenant, { requestId: one.requestId, score: 1 });
      }
    }
    let numAsked = 0;
    const loop = createRouterLoop(memory, routing, {
      async trainRouter(job) {
        if (numAsked++ === 0) throw new Error('the first is lost');
        return trainRouter(job, memory.services.sha256);
      },
      cancel: async () => {},
    });
    await loop.run(AbortSignal.abort());
    expect(numAsked).toBe(0);
    await expect(loop.run()).rejects.toThrow('the first is lost');
    expect(numAsked).toBe(2);
    expect([await idFor('acme'), await idFor('other')].sort()).toEqual(['large', 'small']);
  });
});

describe('[RO7] exploration', () => {
  const draw = async (changes: object, tenant: string, times: number): Promise<string[]> => {
    const { idFor, serve } = open(changes);
    await serve(tenant, 1, 0.9);
    const ids: string[] = [];
    for (let i = 0; i < times; i++) ids.push(await idFor(tenant));
    return ids;
  };

  test('is off by default', async () => {
    expect(new Set(await draw({}, 'acme', 200))).toEqual(new Set(['large']));
  });

  test('gives up no more than the budget, and says how likely each was', async () => {
    const { routing, serve } = open({ exploration: { regretBudget: 3, deviation: 1 } });
    await serve('acme', 1, 0.9); // sure of 1 for the large one and 0 for the others: each costs 1
    const choices = [];
    for (let i = 0; i < 200; i++) choices.push(await routing.decide('acme', question));
    const explored = choices.filter(({ why }) => why.kind === 'explored');
    expect(explored).toHaveLength(3);
    for (const { propensity } of explored) expect(propensity! > 0 && propensity! < 1).toBe(true);
    expect(choices.at(-1)).toMatchObject({ candidate: { id: 'large' }, propensity: 1 });
  });

  test('never draws what cannot answer', async () => {
    const { idFor, serve } = open({ exploration: { regretBudget: 1e6, deviation: 1 } });
    await serve('acme', 1, 0.9);
    const ids = new Set<string>();
    for (let i = 0; i < 300; i++) ids.add(await idFor('acme', { isLocalOnly: true }));
    expect(ids).toEqual(new Set(['small', 'large']));
  });
});

describe('patterns', () => {
  const rules = { ids: ['a', 'b'], patternNames: ['a', 'b'], safeDefault: 0, minConfidence: 0.7 };
  const pattern = (recommendedModel: string): HeardPattern =>
    ({ similarity: 1, weight: 1, pattern: { recommendedModel, confidence: 1 } }) as HeardPattern;
  const decision = (confidence: number) => ({ candidate: 1, scores: Float64Array.of(0, 1), confidence, why: { kind: 'best', detail: '' } }) as const; // prettier-ignore
  const all = [true, true];
  const crowd = (name: string): HeardPattern[] => Array.from({ length: 50 }, () => pattern(name));

  test('[RO3] however many there are, they weigh three tenths', () => {
    const against = judgeRoute(decision(1), crowd('a'), all, rules);
    expect(against).toMatchObject({ candidate: 1, share: 0.3 });
    expect(against.confidence).toBeCloseTo(0.7, 10);
    expect(judgeRoute(decision(0.99), crowd('a'), all, rules)).toMatchObject({ candidate: 0, why: { kind: 'safe-default' } }); // prettier-ignore
    expect(judgeRoute(decision(0.6), crowd('b'), all, rules).confidence).toBeCloseTo(0.72, 10);
    expect(judgeRoute(decision(0.5), crowd('b'), all, rules).why.kind).toBe('safe-default');
  });

  test('[RO5] patterns never choose an unavailable candidate', () => {
    expect(judgeRoute(decision(0.9), crowd('a'), [false, true], { ...rules, safeDefault: 1 })).toMatchObject({ candidate: 1, share: 0 }); // prettier-ignore
  });

  test('the best candidate has the stated probability, and no other exceeds it', () => {
    expect(toProbs([0, 1, 0.5], 1, 0.9)[1]).toBe(0.9);
    const probs = toProbs([0, 0.1], 1, 0.2);
    expect(probs).toEqual([0.2, 0.2]);
    expect(toProbs([-Infinity, 1], 1, 0.9)).toEqual([0, 0.9]);
    expect(toProbs([1], 0, 0.9)).toEqual([0.9]);
  });

  test('[RO3] those near the question are heard', async () => {
    const { routing, config, serve } = open();
    await serve('acme', 1, 0.75);
    const embedded = (await memory.embed('what is the sum'))!;
    const bank = { support: 40, confidence: 0.95, numUses: 0, lastUsedMs: 0, verdict: 'success', quality: { count: 40, mean: 1, variance: 0 }, models: {}, recommendedModel: 'small' } as const; // prettier-ignore
    const { vector: embedding, space } = embedded;
    const pattern = { ...bank, id: memory.services.newId(), text: 'sums', embedding, space };
    await memory.store.put([patternToRecord(pattern, 'acme')]);
    const told = await routing.explain('acme', { ...question, embedded });
    expect(told.patterns).toMatchObject([{ text: 'sums', recommends: 'small' }]);
    expect(told.patternShare).toBeGreaterThan(0.2);
    expect(told).toMatchObject({ candidate: 'small', reason: 'safe-default', policy: 'always large', version: 1 });
    expect(told.candidates.map(({ id }) => id)).toEqual(config.candidates.map(({ id }) => id));
  });

  test('[RO13] uses neighbours that the request found, without a second search', async () => {
    const { routing, serve } = open({}, null);
    expect(routing.nearQuery('acme')).toBeNull(); // nothing is known of them yet
    await serve('acme', 1, 0.75);
    const embedded = (await memory.embed('what is the sum'))!;
    const { vector: embedding, space } = embedded;
    const bank = { support: 40, confidence: 0.95, numUses: 0, lastUsedMs: 0, verdict: 'success', quality: { count: 40, mean: 1, variance: 0 }, models: {}, recommendedModel: 'small' } as const; // prettier-ignore
    await memory.store.put([patternToRecord({ ...bank, id: memory.services.newId(), text: 'sums', embedding, space }, 'acme')]); // prettier-ignore
    await routing.decide('acme', { ...question, embedded });
    expect(routing.nearQuery('other')).toBeNull();
    const query = routing.nearQuery('acme')!;
    expect(query).toEqual({ kinds: ['pattern'], k: 8 });
    const near = await memory.store.nearest('acme', { ...embedded, ...query, withVectors: false });
    const nearest = vi.spyOn(memory.store, 'nearest');
    const choice = await routing.decide('acme', { ...question, embedded, near });
    expect(choice).toMatchObject({ candidate: { id: 'small' }, why: { kind: 'safe-default' } });
    expect(nearest).not.toHaveBeenCalled();
    expect(choice.policyMs).toBeGreaterThanOrEqual(0);
    // As it would be after a look of its own.
    expect((await routing.decide('acme', { ...question, embedded })).probs).toEqual(choice.probs);
    // So many of others are among them that ours may lie behind: a filter has to find those.
    const others = Array.from({ length: 8 }, () => ({ ...near[0]!, record: { ...near[0]!.record, fields: {} } }));
    nearest.mockClear();
    expect((await routing.decide('acme', { ...question, embedded, near: others })).probs).toEqual(choice.probs);
    expect(nearest).toHaveBeenCalled();
  });
});

test('[RO13] patterns in this thread are searched here', async () => {
  const { routing, serve } = open();
  await serve('acme', 1, 0.75);
  const embedded = (await memory.embed('what is the sum'))!;
  const bank = { support: 40, confidence: 0.95, numUses: 0, lastUsedMs: 0, verdict: 'success', quality: { count: 40, mean: 1, variance: 0 }, models: {}, recommendedModel: 'small' } as const; // prettier-ignore
  const pattern = { ...bank, id: memory.services.newId(), text: 'sums', embedding: embedded.vector, space: embedded.space }; // prettier-ignore
  await memory.store.put([patternToRecord(pattern, 'acme')]);
  const first = await routing.decide('acme', { ...question, embedded });
  await expect.poll(() => routing.nearQuery('acme')).toBeNull();
  const nearest = vi.spyOn(memory.store, 'nearest');
  const second = await routing.decide('acme', { ...question, embedded });
  expect(nearest).not.toHaveBeenCalled();
  expect(second.patternIds).toEqual([pattern.id]);
  second.probs.forEach((one, i) => expect(one).toBeCloseTo(first.probs[i]!, 2));
});
