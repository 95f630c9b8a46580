// Router training on the learning thread, as in the package: stopped, lost and restarted.
import { afterAll, describe, expect, test } from 'vitest';
import { loadRouter } from '../src/learning/router/index.ts';
import { sumsAndLetters } from '../src/learning/router/test-examples.contract.ts';
import { createTrainerHarness } from '../src/learning/router-training/harness.contract.ts';
import { getRouterText, ROUTER_LINE } from '../src/learning/router-training/router-line.ts';
import { trainRouter } from '../src/learning/router-training/train-router.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { importDist } from './support/import-dist.ts';

const { openLearningWork } = isServerBuilt
  ? await importDist<typeof import('../src/node/learning/open-learning.ts')>('node/learning/open-learning.js')
  : { openLearningWork: null! };
const opened = isServerBuilt ? openLearningWork() : null;
afterAll(() => opened?.end());

function harness() {
  const shared = createTrainerHarness(() => opened!.work);
  const { versions, blobs, rate, numRated } = shared;
  async function tell(times: number, qualityOf: (isHard: boolean, model: string) => number): Promise<void> {
    for (const { text: query, isHard } of sumsAndLetters(times, numRated() + 1)) {
      const model = numRated() % 2 === 0 ? 'large' : 'small';
      await rate('acme', { model, query, score: qualityOf(isHard, model) });
    }
  }
  const serving = async () => {
    const active = await versions.active('acme', ROUTER_LINE);
    return { version: active?.version ?? 0, text: await getRouterText(blobs, 'acme', active) };
  };
  return { ...shared, tell, serving };
}
/** The large model for hard requests, the small one for others. */
const byKind = (isHard: boolean, model: string): number => +(isHard === (model === 'large'));

describe.skipIf(!isServerBuilt)('a router trained on the learning thread', () => {
  test('[RT1] equals training in this thread, and the stored policy names the winner', async () => {
    const { services, trainer, policies, tell, serving, jobs } = harness();
    await tell(280, byKind);
    const { version } = await trainer.train('acme', 'deep');
    expect(version).toMatchObject({ isAccepted: true, contents: { kind: 'router' } });
    const { text } = await serving();
    const here = trainRouter(jobs[0]!, services.sha256);
    expect(text).toBe(here.text);
    const { contests, winner } = here;
    expect(contests[0]!.name).toBe(winner);
    expect(contests.map(({ name }) => name).sort()).toEqual(
      ['always large', 'always small', 'cosine ridge', 'k-NN', 'length', 'linear', 'ridge'].sort(),
    );
    expect(contests.every(({ heldOut }) => heldOut <= contests[0]!.heldOut)).toBe(true);
    expect(version!.contents).toMatchObject({ winner });
    expect(await policies.get('acme', 'router')).toMatchObject({ reason: expect.stringContaining(winner) as string });
    const { encoder, policy } = loadRouter(text!, services.sha256);
    expect(policy.name).toBe(winner);
    const right = sumsAndLetters(100, 78).filter(
      (one) => policy.decide(encoder.encode({ turns: [one.text] })).candidate === +one.isHard,
    );
    expect(right.length).toBeGreaterThanOrEqual(95);
  });

  test('[RT7] stops on request: the old version serves, and the next training is complete', async () => {
    const { trainer, versions, tell, serving } = harness();
    await tell(240, byKind);
    await trainer.train('acme', 'background');
    const before = await serving();
    expect(before.version).toBe(1);
    await tell(1200, (isHard, model) => 1 - byKind(isHard, model));
    const stop = new AbortController();
    let isOver = false;
    const training = trainer.train('acme', 'deep', { signal: stop.signal }).finally(() => (isOver = true));
    const refused = expect(training).rejects.toMatchObject({ code: 'aborted' });
    await opened!.work.forgetInstant('nobody'); // The thread answers other calls while it trains.
    expect(isOver).toBe(false);
    stop.abort();
    await refused;
    expect(await serving()).toEqual(before);
    expect(await versions.history('acme', ROUTER_LINE)).toHaveLength(1);
    expect((await trainer.train('acme', 'background')).version).toMatchObject({ version: 2, isAccepted: true });
    await expect(trainer.train('acme', 'deep', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' }); // prettier-ignore
  });

  test('[RT7] losing the thread during training loses no state', async () => {
    const { trainer, versions, tell, serving } = harness();
    await tell(240, byKind);
    await trainer.train('acme', 'background');
    const before = await serving();
    await tell(1200, (isHard, model) => 1 - byKind(isHard, model));
    const refused = expect(trainer.train('acme', 'deep')).rejects.toMatchObject({ code: 'io' });
    await opened!.work.forgetInstant('nobody');
    await opened!.end();
    await refused;
    expect(await serving()).toEqual(before);
    expect(await versions.history('acme', ROUTER_LINE)).toHaveLength(1);
    expect((await trainer.train('acme', 'background')).version).toMatchObject({ version: 2, isAccepted: true });
  });
});
