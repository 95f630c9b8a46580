import { beforeEach, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';
import { scoreAnswer, uniquenessOf } from './answer-quality.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';

let memory: TestMemory;
let requests: RequestMemory;
const observed: NewTrajectory[] = [];

beforeEach(async () => {
  observed.length = 0;
  memory = await openTestMemory({ now: () => 1000 });
  const learning = {
    observe: (_: string, one: NewTrajectory) => void observed.push(one),
    observeStopped() {},
    expect() {},
  };
  requests = createRequestMemory(memory, { now: () => 1000, wallClock: () => 1000, report() {}, learning });
});

const question = [{ role: 'user' as const, content: 'where is the blue whale?' }];
async function entries() {
  await requests.settle();
  await memory.audit.flush();
  return (await memory.audit.search('local', {})).entries;
}

test('[QE1] an entry has an estimate with parts; a failed call has none', async () => {
  const { model } = createSpokenModel(['The blue whale is in the sea.'], { memory: requests });
  await model.generate(question);
  await expect(model.generate(question, { maxTokens: 1_000_000 })).rejects.toThrow('context');
  const found = await entries();
  const [good] = found.filter(({ entry }) => entry.error === null);
  const [failed] = found.filter(({ entry }) => entry.error !== null);
  expect(failed!.entry.estimate).toBeUndefined();
  const { quality, parts } = good!.entry.estimate!;
  expect(quality).toBeGreaterThan(0);
  // The scripted model says that each token has the log-probability -1.
  expect(parts).toMatchObject({ likelihood: 0.368, repetition: 1 });
  expect(parts.coherence).toBeGreaterThan(0.3);
  expect(parts.schema).toBeUndefined();
});

test('[QE2] an estimate is no rating: the entry and the trajectory stay unrated', async () => {
  const { model } = createSpokenModel(['In the sea.'], { memory: requests });
  await model.generate(question);
  const [one] = await entries();
  expect([one!.rating, one!.entry.quality, observed[0]!.quality]).toEqual([null, null, null]);
  expect(observed[0]!.estimate).toBeGreaterThan(0);
  const found = await memory.audit.search('local', { minQuality: 0 });
  expect(found.entries).toEqual([]);
});

test('[QE1] estimates can be searched and counted, and the chain covers them', async () => {
  const { model } = createSpokenModel(['In the sea, near the coast of Iceland.', 'no '.repeat(40)], {
    memory: requests,
  });
  await model.generate(question);
  await model.generate(question);
  await entries();
  const found = await memory.audit.search('local', { maxEstimate: 0.01 });
  expect(found.entries.map(({ entry }) => entry.response.slice(0, 5))).toEqual(['no no']);
  const stats = await memory.audit.aggregate('local');
  expect(stats).toMatchObject({ numEstimated: 2, numRated: 0, meanQuality: null });
  expect(await memory.audit.verify('local')).toMatchObject({ isIntact: true, numChecked: 2 });
});

test('[QE4] JSON that was asked for must say something; calls must be whole', () => {
  const answer = (text: string, isJson: boolean) => scoreAnswer({ text, isJson, meanLogprob: -0.1, error: null })!;
  expect(answer('{"name": "", "town": null}', true).parts.schema).toBe(0);
  expect(answer('{"name": "Ada", "town": null}', true).parts.schema).toBe(1);
  expect(answer('{"name": "", "town": null}', false).parts.schema).toBeUndefined();
  const called = (args: string, outcome: 'complete' | 'truncated') =>
    scoreAnswer({ text: `weather${args}`, calls: [{ arguments: args, outcome }], error: null })!;
  expect(called('{"city": "Rome"}', 'complete').parts.schema).toBe(1);
  expect(called('{"city": "Rome"}', 'truncated').parts.schema).toBe(0);
  expect(called('{"city": ""}', 'complete').parts.schema).toBe(0);
});

test('uniqueness is the share of an answer that near patterns do not contain', async () => {
  const nearest = async () => [{ similarity: 1, record: { body: { text: 'the whale is in the sea' } } }] as never;
  const vector = Float32Array.of(1);
  expect(await uniquenessOf({ nearest }, 't', { vector, space: 's' }, 'The whale is in the zoo')).toBeCloseTo(0.25);
  expect(await uniquenessOf({ nearest: async () => [] }, 't', { vector, space: 's' }, 'The whale is here')).toBeNull();
});
