import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import {
  createToyModel,
  createToySampler,
  TOY_DIM,
  TOY_VOCAB,
  toyContinuation,
  toyHidden,
  toyLogits,
  type ToyModelOptions,
} from '../../test/support/toy-model.ts';
import { createEngine, type Engine } from './engine.ts';
import { createExaminer, type ExaminedTokens } from './examiner.ts';
import type { AdmittedRequest, EngineEvent } from './types.ts';

const NUM_TOP = 5;
const ids = (length: number, seed = 0): number[] => Array.from({ length }, (_, i) => (seed + i * 7) % TOY_VOCAB);

function toExamine(id: number, promptIds: number[], labels: number[], more: Partial<AdmittedRequest> = {}) {
  const examiner = createExaminer(labels, TOY_DIM, NUM_TOP);
  return engineRequest({ id, promptIds, maxTokens: labels.length, sampler: examiner, examiner, ...more });
}

function setUp(options: ToyModelOptions = {}) {
  let clock = 0;
  return createEngine(createToyModel(options), { maxContext: 1024, now: () => clock++ });
}

async function runToEnd(engine: Engine): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  return events;
}

const examinedOf = (events: readonly EngineEvent[], id: number): ExaminedTokens | undefined =>
  events.flatMap((event) => (event.type === 'examined' && event.id === id ? [event.tokens] : []))[0];

/** Expected values, computed without engine, pages or batches. */
function expectExamined(found: ExaminedTokens | undefined, promptIds: number[], labels: number[]): void {
  expect(found!.numTokens).toBe(labels.length);
  labels.forEach((label, i) => {
    const context = [...promptIds, ...labels.slice(0, i)];
    const logits = toyLogits(context);
    const best = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]!).slice(0, NUM_TOP);
    expect(found!.hidden.slice(i * TOY_DIM, (i + 1) * TOY_DIM)).toEqual(toyHidden(context, context.length - 1));
    // The likeliest tokens, then every label of the answer that is not among them.
    const known = [...best, ...new Set(labels.filter((id) => !best.includes(id)))];
    const start = i * found!.maxKnown;
    expect(found!.numKnown[i]).toBe(known.length);
    expect(Array.from(found!.knownIds.slice(start, start + known.length))).toEqual(known);
    expect(found!.knownLogits.slice(start, start + known.length)).toEqual(
      Float32Array.from(known, (id) => logits[id]!),
    );
    expect(found!.labelLogits[i]).toBe(logits[label]);
    expect(found!.logSumExp[i]).toBeCloseTo(Math.log(logits.reduce((sum, value) => sum + Math.exp(value), 0)), 5);
  });
}

test('[E36] examines given tokens as if they were generated, while others run', async () => {
  const answer = toyContinuation(ids(20, 5), { seed: 1, maxTokens: 30 });
  for (const maxBatchTokens of [256, 7]) {
    const engine = setUp({ limits: { maxBatchTokens } });
    engine.add(toExamine(0, ids(33), ids(12, 3)));
    engine.add(engineRequest({ id: 1, promptIds: ids(20, 5), maxTokens: 30, sampler: createToySampler(1) }));
    engine.add(toExamine(2, ids(3, 9), ids(1, 4)));
    const events = await runToEnd(engine);
    expectExamined(examinedOf(events, 0), ids(33), ids(12, 3));
    expectExamined(examinedOf(events, 2), ids(3, 9), ids(1, 4));
    expect(events.filter(({ id, type }) => id !== 1 && type !== 'examined')).toEqual([]);
    expect(events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []))).toEqual(answer);
  }
});

test('[E36] gives the same values after a preemption and with a cached prefix', async () => {
  const engine = setUp({ limits: { numPages: 6, maxBatchTokens: 16 } });
  engine.add(toExamine(0, ids(60), ids(15, 3)));
  for (let i = 0; i < 7; i++) await engine.step();
  engine.add(engineRequest({ id: 1, promptIds: ids(40, 3), maxTokens: 20, sampler: createToySampler(1), priority: 5 }));
  const events = await runToEnd(engine);
  expect(engine.stats().numPreemptions).toBeGreaterThan(0);
  expectExamined(examinedOf(events, 0), ids(60), ids(15, 3));
  engine.add(toExamine(2, ids(60), ids(8, 4)));
  const again = await runToEnd(engine);
  expectExamined(examinedOf(again, 2), ids(60), ids(8, 4));
});

test('fails on NaN', async () => {
  const engine = setUp({ changeLogits: (logits) => void (logits[3] = Number.NaN) });
  engine.add(toExamine(0, ids(5), ids(2)));
  expect(await runToEnd(engine)).toMatchObject([{ type: 'failed', error: { code: 'bad_logits' } }]);
});

test('counts no token as generated', async () => {
  const engine = setUp();
  engine.add(toExamine(0, ids(5), ids(4)));
  await runToEnd(engine);
  expect(engine.stats().numGeneratedTokens).toBe(0);
});
