import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createToyModel,
  createToySampler,
  TOY_VOCAB,
  toyContinuation,
  type ToyModelOptions,
} from '../../test/support/toy-model.ts';
import { engineRequest } from '../../test/support/engine-request.ts';
import { RuvLLMError } from '../core/errors.ts';
import { createEngine, type Engine } from './engine.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

interface Ask {
  promptIds: number[];
  maxTokens: number;
  seed: number;
  stopIds?: ReadonlySet<number>;
}

function request(id: number, ask: Ask): EngineRequest {
  return engineRequest({
    id,
    promptIds: ask.promptIds,
    maxTokens: ask.maxTokens,
    stopIds: ask.stopIds ?? new Set(),
    sampler: createToySampler(ask.seed),
  });
}

function setUp(options: ToyModelOptions & { maxContext?: number } = {}) {
  const model = createToyModel(options);
  let clock = 0;
  const engine = createEngine(model, { maxContext: options.maxContext ?? 1024, now: () => clock++ });
  return { model, engine };
}

async function runToEnd(engine: Engine, events: EngineEvent[] = []): Promise<EngineEvent[]> {
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  expect(engine.stats().numFreePages).toBe(engine.stats().numPages);
  return events;
}

function tokensOf(events: readonly EngineEvent[], id: number): number[] {
  return events.flatMap((event) => (event.type === 'token' && event.id === id ? [event.token.tokenId] : []));
}

function endOf(events: readonly EngineEvent[], id: number) {
  return events.find((event) => event.id === id && event.type !== 'token');
}

const count = (length: number): number[] => Array.from({ length }, (_, index) => index % TOY_VOCAB);

test("[E5] generates exactly maxTokens tokens, equal to the model's alone, then ends with length", async () => {
  const { engine } = setUp();
  const ask = { promptIds: [1, 2, 3], maxTokens: 40, seed: 5 };
  engine.add(request(0, ask));
  const events = await runToEnd(engine);
  expect(tokensOf(events, 0)).toEqual(toyContinuation(ask.promptIds, ask));
  expect(events.filter((event) => event.type === 'token')).toHaveLength(40);
  expect(endOf(events, 0)).toMatchObject({ type: 'finished', reason: 'length', stopId: null });
  expect(engine.stats()).toMatchObject({ numSteps: 40, numComputedTokens: 42, numGeneratedTokens: 40 });
});

test('[E5] a stop token ends the sequence and is not part of it', async () => {
  const { engine } = setUp();
  const whole = toyContinuation([7], { seed: 1, maxTokens: 30 });
  const stopIds = new Set([whole[9]!]);
  const expected = whole.slice(0, whole.indexOf(whole[9]!));
  engine.add(request(0, { promptIds: [7], maxTokens: 30, seed: 1, stopIds }));
  const events = await runToEnd(engine);
  expect(tokensOf(events, 0)).toEqual(expected);
  expect(endOf(events, 0)).toMatchObject({ type: 'finished', reason: 'stop', stopId: whole[9] });
});

test('[E4] the same seed gives the same tokens, another seed different ones', async () => {
  const { engine } = setUp();
  for (const [id, seed] of [1, 1, 2].entries()) engine.add(request(id, { promptIds: [4, 4], maxTokens: 20, seed }));
  const events = await runToEnd(engine);
  expect(tokensOf(events, 0)).toEqual(tokensOf(events, 1));
  expect(tokensOf(events, 0)).not.toEqual(tokensOf(events, 2));
});

test('[E1] [E2] [E3] any mix of requests, batch sizes and pages gives each request its own tokens', async () => {
  const ask = fc.record({
    promptIds: fc.array(fc.nat(TOY_VOCAB - 1), { minLength: 1, maxLength: 36 }),
    maxTokens: fc.integer({ min: 1, max: 60 }),
    seed: fc.nat(),
    arrivesAtStep: fc.nat(20),
  });
  let numPreemptions = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(ask, { minLength: 1, maxLength: 8, size: 'max' }),
      fc.record({
        maxBatchTokens: fc.integer({ min: 1, max: 40 }),
        maxSequences: fc.integer({ min: 1, max: 5 }),
        numPages: fc.integer({ min: 6, max: 10 }), // 6 × 16 tokens hold the largest request: 36 + 60
      }),
      async (asks, limits) => {
        const { engine } = setUp({ limits: { ...limits, maxLogitRows: 5 } });
        const events: EngineEvent[] = [];
        const order = [...asks].sort((a, b) => a.arrivesAtStep - b.arrivesAtStep);
        let id = 0;
        for (let step = 0; id < order.length; step++) {
          while (id < order.length && order[id]!.arrivesAtStep <= step) engine.add(request(id, order[id++]!));
          events.push(...(await engine.step()));
          engine.checkIntegrity();
        }
        await runToEnd(engine, events);
        for (const [index, one] of order.entries()) {
          expect(tokensOf(events, index)).toEqual(toyContinuation(one.promptIds, one));
        }
        numPreemptions += engine.stats().numPreemptions;
      },
    ),
    { numRuns: 150, seed: 20 },
  );
  expect(numPreemptions).toBeGreaterThan(50); // otherwise the property has tested nothing
});

test('[E1] [E10] aborts at any step leave other sequences unchanged and no page behind', async () => {
  const ask = fc.record({
    promptIds: fc.array(fc.nat(TOY_VOCAB - 1), { minLength: 1, maxLength: 36 }),
    maxTokens: fc.integer({ min: 1, max: 60 }),
    seed: fc.nat(),
    abortAtStep: fc.option(fc.nat(60)),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(ask, { minLength: 2, maxLength: 6, size: 'max' }),
      fc.boolean(),
      async (asks, isMidStep) => {
        let step = 0;
        const abortDue = (): void => {
          for (const [id, { abortAtStep }] of asks.entries()) if (abortAtStep === step) engine.abort(id);
          engine.checkIntegrity();
        };
        const { engine } = setUp({
          limits: { numPages: 7, maxBatchTokens: 24, maxSequences: 4, maxLogitRows: 4 },
          beforeForward: () => (isMidStep ? abortDue() : undefined),
        });
        for (const [id, one] of asks.entries()) engine.add(request(id, one));
        const events: EngineEvent[] = [];
        for (; engine.hasWork; step++) {
          if (!isMidStep) abortDue();
          events.push(...(await engine.step()));
          engine.checkIntegrity();
        }
        expect(engine.stats().numFreePages).toBe(7);
        for (const [id, one] of asks.entries()) {
          const alone = toyContinuation(one.promptIds, one);
          const tokens = tokensOf(events, id);
          expect(tokens).toEqual(alone.slice(0, tokens.length));
          if (one.abortAtStep === null) expect(tokens).toEqual(alone);
        }
      },
    ),
    { numRuns: 100, seed: 21 },
  );
});

test('[E3] [E8] preempts the youngest, which resumes with the same tokens', async () => {
  const { engine, model } = setUp({ limits: { numPages: 4 } });
  const old = { promptIds: count(15), maxTokens: 40, seed: 1 };
  const young = { promptIds: count(14), maxTokens: 30, seed: 2 };
  engine.add(request(0, old));
  engine.add(request(1, young));
  const events = await runToEnd(engine);
  expect(tokensOf(events, 0)).toEqual(toyContinuation(old.promptIds, old));
  expect(tokensOf(events, 1)).toEqual(toyContinuation(young.promptIds, young));
  expect(engine.stats().numPreemptions).toBe(1);
  const finished = events.filter((event) => event.type === 'finished').map((event) => event.id);
  expect(finished).toEqual([0, 1]);
  // After the preemption, prompt and generated tokens are recomputed together.
  expect(model.batches.some((batch) => batch.sequences.length === 1 && batch.tokenIds.length > 14)).toBe(true);
});

test('[E9] rejects a request that can never fit, with all numbers, and changes nothing', () => {
  const { engine } = setUp({ limits: { numPages: 2 }, maxContext: 1000 });
  expect(engine.maxContext).toBe(32);
  const tooLong = request(0, { promptIds: count(20), maxTokens: 13, seed: 0 });
  expect(() => engine.add(tooLong)).toThrow(
    expect.objectContaining({
      code: 'context_overflow',
      message:
        'a prompt of 20 tokens and 13 to generate exceed the context of 32; shorten the prompt, lower maxTokens or load the model with a larger context',
      data: { promptTokens: 20, maxTokens: 13, maxContext: 32 },
    }),
  );
  expect(engine.hasWork).toBe(false);
  engine.add(request(0, { promptIds: count(20), maxTokens: 12, seed: 0 }));
});

test('rejects empty prompts, tokens outside the vocabulary and a maxTokens of 0', () => {
  const { engine } = setUp();
  const add = (ask: Partial<Ask>) => () => engine.add(request(0, { promptIds: [1], maxTokens: 1, seed: 0, ...ask }));
  expect(add({ promptIds: [] })).toThrow(expect.objectContaining({ code: 'empty_prompt' }));
  expect(add({ maxTokens: 0 })).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  expect(add({ promptIds: [3, TOY_VOCAB] })).toThrow(
    expect.objectContaining({
      code: 'invalid_token',
      message: 'token 61 at position 1 is outside the vocabulary of 61',
    }),
  );
  expect(add({ promptIds: [-1] })).toThrow(expect.objectContaining({ code: 'invalid_token' }));
  expect(add({ promptIds: [1.5] })).toThrow(expect.objectContaining({ code: 'invalid_token' }));
});

test('[E10] abort frees all pages at once, waiting, running or during a step', async () => {
  let duringForward = (): void => {};
  const { engine } = setUp({ limits: { maxSequences: 2 }, beforeForward: () => duringForward() });
  const survivor = { promptIds: [7, ...count(19)], maxTokens: 12, seed: 3 };
  engine.add(request(0, { promptIds: count(40), maxTokens: 9, seed: 1 }));
  engine.add(request(1, survivor));
  engine.add(request(2, { promptIds: count(40), maxTokens: 9, seed: 1 }));
  expect(engine.abort(2)).toBe(true);
  expect(engine.abort(2)).toBe(false);
  const events = await engine.step();
  const before = engine.stats().numFreePages;
  duringForward = () => {
    duringForward = () => {};
    expect(engine.abort(0)).toBe(true);
    expect(engine.stats().numFreePages).toBe(before + 3);
    engine.checkIntegrity();
  };
  const after = await engine.step();
  expect(after.filter((event) => event.id === 0)).toEqual([]);
  expect(tokensOf(after, 1)).toHaveLength(1);
  events.push(...after);
  await runToEnd(engine, events);
  expect(tokensOf(events, 1)).toEqual(toyContinuation(survivor.promptIds, survivor));
  expect(tokensOf(events, 2)).toEqual([]);
});

test('[E11] bad logits fail only their sequence', async () => {
  const { engine } = setUp();
  const good = { promptIds: [9], maxTokens: 10, seed: 3 };
  const bad = request(1, { promptIds: [8], maxTokens: 10, seed: 4 });
  let calls = 0;
  const sampler = {
    sample(logits: Float32Array, history: readonly number[]) {
      if (++calls === 4) throw new RuvLLMError('bad_logits', 'NaN at 3', { data: { index: 3 } });
      return bad.sampler.sample(logits, history);
    },
  };
  engine.add(request(0, good));
  engine.add({ ...bad, sampler });
  const events = await runToEnd(engine);
  expect(tokensOf(events, 0)).toEqual(toyContinuation(good.promptIds, good));
  expect(tokensOf(events, 1)).toHaveLength(3);
  expect(endOf(events, 1)).toEqual({
    type: 'failed',
    id: 1,
    error: { code: 'bad_logits', message: 'NaN at 3', data: { index: 3 }, isRetryable: false },
  });
});

test('[E12] a throwing forward pass fails its step, not the engine or waiting requests', async () => {
  let failures = 0;
  const { engine } = setUp({
    limits: { maxSequences: 2 },
    beforeForward: () => {
      if (failures-- > 0) throw new Error('lost the device');
    },
  });
  const waiting = { promptIds: [5], maxTokens: 10, seed: 3 };
  engine.add(request(0, { promptIds: [1], maxTokens: 10, seed: 3 }));
  engine.add(request(1, { promptIds: [2], maxTokens: 10, seed: 3 }));
  engine.add(request(2, waiting));
  const events = await engine.step();
  failures = 1;
  const failed = await engine.step();
  const error = {
    code: 'kernel_failed',
    message: 'the forward pass failed: lost the device',
    data: {},
    isRetryable: false,
  };
  expect(failed).toEqual([
    { type: 'failed', id: 0, error },
    { type: 'failed', id: 1, error },
  ]);
  engine.checkIntegrity();
  await runToEnd(engine, events);
  expect(tokensOf(events, 2)).toEqual(toyContinuation(waiting.promptIds, waiting));
});

test('uses the injected clock', async () => {
  const model = createToyModel();
  let clock = 100;
  const engine = createEngine(model, { maxContext: 64, now: () => clock });
  engine.add(request(0, { promptIds: [1], maxTokens: 2, seed: 1 }));
  clock = 107;
  const [first] = await engine.step();
  clock = 120;
  const [second] = await engine.step();
  expect(first).toMatchObject({ queuedMs: 7, elapsedMs: 7 });
  expect(second).toMatchObject({ queuedMs: 7, elapsedMs: 20 });
});

test('dispose frees everything, including the model', async () => {
  const { engine, model } = setUp();
  engine.add(request(0, { promptIds: [1], maxTokens: 9, seed: 0 }));
  await engine.step();
  await engine.dispose();
  engine.checkIntegrity();
  expect(engine.stats().numFreePages).toBe(64);
  expect(model.isDisposed).toBe(true);
});
