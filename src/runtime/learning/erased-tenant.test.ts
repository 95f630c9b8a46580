import { afterEach, expect, test } from 'vitest';
import { trajectoryFixture } from '../../learning/trajectories/harness.contract.ts';
import { createTestLearning, type TestLearning } from './operations/harness.contract.ts';

let desk: TestLearning;
afterEach(async () => desk.learning.close());

const rate = (tenant: string): Promise<unknown> =>
  desk.learning.feedback(tenant, { requestId: 'none', thumbs: 'up' }).catch(({ code }: { code: string }) => code);

test('[ER8] the rating limit of an erased tenant starts again, and that of others does not', async () => {
  desk = await createTestLearning();
  for (const tenant of ['acme', 'other']) {
    let answer: unknown;
    for (let i = 0; i < 1000 && answer !== 'overloaded'; i++) answer = await rate(tenant);
  }
  await desk.memory.erase({ tenant: 'acme' });
  expect([await rate('acme'), await rate('other')]).toEqual(['not_found', 'overloaded']);
});

test('[ER9] a question that an erased tenant asks again is a new one', async () => {
  desk = await createTestLearning({}, 'small', { implicitFeedback: true });
  const { learning, memory } = desk;
  const observe = async (n: number): Promise<string> => {
    const one = trajectoryFixture(n, { query: 'why?', prompt: 'why?', sessionId: null, embedding: null, space: null, model: 'small' }); // prettier-ignore
    learning.observe('acme', one);
    await learning.settle();
    return one.requestId;
  };
  const [first] = [await observe(1), await observe(2)];
  expect((await learning.receipt('acme', first)).quality).toBeLessThan(0.5);
  await memory.erase({ tenant: 'acme' });
  const third = await observe(3);
  expect((await learning.receipt('acme', third)).quality).toBeNull();
  expect(desk.told).toEqual([]);
});

test('[ER10] an erased tenant is prepared again, and is not trained in the meantime', async () => {
  desk = await createTestLearning();
  const { learning, memory, served } = desk;
  const requestId = await desk.add();
  await (
    await learning.feedback('acme', { requestId, thumbs: 'up' })
  ).learned;
  await learning.prepare('acme', 'small');
  expect(served.get('acme')!.instant).not.toBeNull();
  for (let i = 0; i < 2; i++) {
    const { parts } = await memory.erase({ tenant: 'acme' });
    expect(parts.find(({ name }) => name === 'learning')).toMatchObject({ numFound: 1, numLeft: 0 });
    await learning.prepare('acme', 'small');
    expect(served.get('acme')).toEqual({ trained: null, instant: null });
  }
});

test('[ER11] what an erased user taught is learned anew without it', async () => {
  desk = await createTestLearning();
  const { learning, memory } = desk;
  const taught: string[] = [];
  for (const userId of ['ann', 'ben']) {
    const requestId = await desk.add({ userId });
    await (
      await learning.feedback('acme', { requestId, thumbs: 'up' })
    ).learned;
    taught.push(requestId);
  }
  expect(await learning.sona.taught('acme', 'small')).toEqual(taught);
  await memory.erase({ tenant: 'acme', userId: 'ann' });
  expect(await learning.sona.taught('acme', 'small')).toEqual([taught[1]]);
});

test('[ER12] a request that is not written yet is erased, and so are the runs of loops', async () => {
  desk = await createTestLearning();
  const { learning, memory, control } = desk;
  await desk.run('learn.run', { waitMs: 50_000 });
  expect(control.runs.list('acme')).toHaveLength(1);
  const one = trajectoryFixture(9, { embedding: null, space: null, model: 'small' });
  learning.observe('acme', one);
  await memory.erase({ tenant: 'acme' });
  await learning.settle();
  expect(await learning.trajectories.get('acme', one.requestId)).toBeNull();
  expect(control.runs.list('acme')).toEqual([]);
});
