import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { FREE, sumsAndLetters } from '../router/test-examples.contract.ts';
import { loadRouter } from '../router/index.ts';
import { createTrainerHarness, TRAINED_CANDIDATES as candidates } from './harness.contract.ts';
import { createOffPolicyValue } from './off-policy.ts';
import type { RouteVectors } from './router-trainer.ts';
import { forgetRouters, getRouterText, ROUTER_LINE, textFromFloats, textToFloats } from './router-line.ts';
import { trainRouter } from './train-router.ts';

function harness(vectors: RouteVectors | null = null) {
  const shared = createTrainerHarness(
    (sha256) => ({
      trainRouter: async (job) => structuredClone(trainRouter(structuredClone(job), sha256)),
      cancel: async () => {},
    }),
    vectors,
  );
  const { services, versions, blobs, rate, numRated } = shared;
  const tell = (tenant: string, model: string, score: number, query: string, sessionId: string | null = null) =>
    rate(tenant, { model, query, score, sessionId });
  const news = async (tenant: string, model: string, quality: number, times: number): Promise<void> => {
    for (const { text } of sumsAndLetters(times, numRated() + 1)) await tell(tenant, model, quality, text);
  };
  /** Of a hundred requests, how many go to the large one. */
  async function numLarge(tenant: string): Promise<number> {
    const text = await getRouterText(blobs, tenant, await versions.active(tenant, ROUTER_LINE));
    if (text === null) return 0;
    const { encoder, policy } = loadRouter(text, services.sha256);
    return sumsAndLetters(100, 77).filter((one) => policy.decide(encoder.encode({ turns: [one.text] })).candidate === 1)
      .length;
  }
  return { ...shared, tell, news, numLarge };
}

describe('a router trained on ratings', () => {
  test('[RT1] moves to a candidate with only good ratings, and back after bad ones', async () => {
    const { trainer, news, numLarge, versions, policies } = harness();
    await news('acme', 'large', 1, 40);
    const first = await trainer.train('acme', 'background');
    expect(first.version).toMatchObject({ version: 1, isAccepted: true, loop: 'background', line: ROUTER_LINE });
    expect(await numLarge('acme')).toBe(100);
    expect(await policies.get('acme', 'router')).toMatchObject({
      policyVersion: 1,
      source: 'background-loop',
      parameters: { version: 1, winner: 'always large', candidates: ['small', 'large'], metrics: { examples: 40 } },
    });
    await news('acme', 'large', 0, 40);
    const second = await trainer.train('acme', 'background');
    expect(second.version?.isAccepted).toBe(true);
    expect(await numLarge('acme')).toBe(0);
    expect((await versions.history('acme', ROUTER_LINE)).map(({ parent }) => parent)).toEqual([1, 0]);
    await policies.rollback('acme', 'router', 1);
    expect(await numLarge('acme')).toBe(100);
  });

  test('[RT2] rejects a router that is not surely better and records the reason', async () => {
    const { trainer, tell, numLarge, versions } = harness();
    const random = createRandom(3);
    for (const { text } of sumsAndLetters(120, 4)) {
      await tell('acme', random.next() < 0.5 ? 'small' : 'large', random.next() < 0.5 ? 1 : 0, text);
    }
    const { version } = await trainer.train('acme', 'background');
    expect(version).toMatchObject({ isAccepted: false, blobs: {}, metrics: { held_out_count: 120, examples: 120 } });
    expect(version!.reason).toContain('not sure');
    expect(await versions.active('acme', ROUTER_LINE)).toBeNull();
    expect(await numLarge('acme')).toBe(0);
  });

  test('[RT2] holds out the newest requests: good ratings of old ones alone change nothing', async () => {
    const { trainer, news, versions } = harness();
    await news('acme', 'large', 1, 60);
    await news('acme', 'large', 0, 20);
    expect((await trainer.train('acme', 'background')).version?.isAccepted).toBe(false);
    expect(await versions.active('acme', ROUTER_LINE)).toBeNull();
  });

  test('[RT2] withdraws a router that has become worse than the safe default, even without a better one', async () => {
    const { trainer, news, numLarge, versions } = harness();
    await news('acme', 'large', 1, 90);
    await trainer.train('acme', 'background');
    expect(await numLarge('acme')).toBe(100);
    await news('acme', 'large', 0, 30);
    const { version } = await trainer.train('acme', 'background');
    expect(version).toMatchObject({ version: 2, isAccepted: true, blobs: {}, contents: { kind: 'default' } });
    expect(version!.reason).toContain('back to the safe default');
    expect(await numLarge('acme')).toBe(0);
    expect((await versions.rollback('acme', ROUTER_LINE, 1))!.version).toBe(1);
    expect(await numLarge('acme')).toBe(100);
  });

  test('[RT2] a conversation is never on both sides of the split', async () => {
    const { trainer, tell } = harness();
    for (const { text } of sumsAndLetters(60, 5)) await tell('acme', 'large', 1, text, 'one session');
    const { version } = await trainer.train('acme', 'background');
    expect(version).toMatchObject({ isAccepted: false });
    expect(version!.reason).toContain('0 rated requests outside the held-out conversations');
  });

  test('creates no version from too few requests', async () => {
    const { trainer, news, jobs } = harness();
    await news('acme', 'large', 1, 19);
    expect(await trainer.train('acme', 'background')).toMatchObject({ numExamples: 19, version: null });
    expect(await trainer.maybeTrain('acme')).toBeNull();
    expect(jobs).toEqual([]);
    await news('acme', 'large', 1, 1);
    expect((await trainer.maybeTrain('acme'))?.version?.isAccepted).toBe(true);
    expect(await trainer.maybeTrain('acme')).toBeNull(); // nothing is new
  });

  test('[RT3] nothing of one tenant reaches another’s router', async () => {
    const { trainer, news, numLarge, jobs } = harness();
    await news('acme', 'large', 1, 40);
    await news('other', 'large', 0, 40);
    await trainer.train('acme', 'background');
    await trainer.train('other', 'background');
    expect(jobs.map(({ examples }) => new Set(examples.map(({ quality }) => quality)))).toEqual([new Set([1]), new Set([0])]); // prettier-ignore
    expect([await numLarge('acme'), await numLarge('other')]).toEqual([100, 0]);
  });

  test('[RT4] routes each kind of request to its best candidate', async () => {
    const { trainer, tell, services, versions, blobs } = harness();
    const random = createRandom(8);
    for (const { text, isHard } of sumsAndLetters(300, 5)) {
      const model = random.next() < 0.5 ? 'small' : 'large';
      await tell('acme', model, (model === 'large') === isHard ? 1 : 0, text);
    }
    const { version } = await trainer.train('acme', 'background');
    expect(version?.isAccepted).toBe(true);
    const { encoder, policy } = loadRouter((await getRouterText(blobs, 'acme', (await versions.active('acme', ROUTER_LINE))!))!, services.sha256); // prettier-ignore
    const right = sumsAndLetters(100, 78).filter(
      ({ text, isHard }) => policy.decide(encoder.encode({ turns: [text] })).candidate === Number(isHard),
    );
    expect(right.length).toBeGreaterThan(90);
  });

  test('[RT10] routes by sentence vectors where only they tell what is hard, and not where the text tells it', async () => {
    // The texts are alike; the vectors say which half they are of.
    const numbers = createRandom(12);
    const halfOf = (text: string): number => Number(text.split(' ').at(-1)) % 2;
    const vectors: RouteVectors = {
      space: 'sentences',
      embed: async (text) => Float32Array.from({ length: 12 }, (_, i) => (i === halfOf(text) ? 2 : 0) + numbers.next()),
      now: () => 0,
    };
    const { trainer, tell, services, blobs, jobs } = harness(vectors);
    const random = createRandom(8);
    const codes = Array.from({ length: 300 }, () => Math.floor(random.next() * 1e6));
    for (const code of codes) {
      const model = random.next() < 0.5 ? 'small' : 'large';
      await tell('acme', model, (model === 'large') === (code % 2 === 1) ? 1 : 0, `item ${code}`);
    }
    const { version } = await trainer.train('acme', 'background');
    expect(version).toMatchObject({ isAccepted: true });
    expect(jobs[0]).toMatchObject({ space: 'sentences' });
    const { encoder, policy, rule } = loadRouter((await getRouterText(blobs, 'acme', version))!, services.sha256);
    expect(encoder.space).toBe('sentences');
    expect(rule.familiarity).not.toBeNull();
    const chosenFor = async (text: string): Promise<number> =>
      policy.decide(encoder.encode({ turns: [text], vector: (await vectors.embed(text))! })).candidate;
    const right = await Promise.all(Array.from({ length: 50 }, async (_, i) => (await chosenFor(`item ${1e6 + i}`)) === i % 2)); // prettier-ignore
    expect(right.filter(Boolean).length).toBeGreaterThan(42);
  });

  test('[RT10] trains on the text alone if a request has no vector', async () => {
    const { trainer, news, jobs } = harness({ space: 'sentences', embed: async () => null, now: () => 0 });
    await news('acme', 'large', 1, 40);
    expect((await trainer.train('acme', 'background')).version?.isAccepted).toBe(true);
    expect(jobs[0]).toMatchObject({ space: null, vectorMs: 0 });
  });

  test('[RT11] learns from ratings of the route as from those of the answer', async () => {
    const { trainer, rate, numLarge } = harness();
    for (const { text } of sumsAndLetters(40, 1)) await rate('acme', { model: 'large', query: text, score: 1, target: 'route' }); // prettier-ignore
    expect((await trainer.maybeTrain('acme'))?.version).toMatchObject({ isAccepted: true, metrics: { examples: 40 } });
    expect(await numLarge('acme')).toBe(100);
  });

  test('[RT5] withdraws a router trained on a forgotten request', async () => {
    const { trainer, news, tell, versions, blobs, policies, numLarge } = harness();
    await news('acme', 'large', 1, 30);
    const requestId = await tell('acme', 'large', 1, 'remember me');
    const { version } = await trainer.train('acme', 'background');
    expect(
      await forgetRouters({ versions, blobs, policies: () => policies }, 'acme', new Set(['somebody else'])),
    ).toEqual([]);
    expect(await numLarge('acme')).toBe(100);
    expect(
      await forgetRouters({ versions, blobs, policies: () => policies }, 'acme', new Set([requestId])),
    ).toHaveLength(1);
    expect(await versions.active('acme', ROUTER_LINE)).toBeNull();
    expect(await policies.history('acme', 'router')).toEqual([]); // or a rollback would bring it back
    await expect(blobs.get('acme', Object.values(version!.blobs)[0]!)).rejects.toMatchObject({ code: 'not_found' });
  });
});

test('[RT6] the off-policy value of a choice is unbiased', () => {
  const random = createRandom(1);
  // By chance 0.2 the second was tried; it is worth 0.9 on hard ones and 0.1 on others, and half of them are hard.
  const examples = Array.from({ length: 20_000 }, () => {
    const isHard = random.next() < 0.5;
    const tried = random.next() < 0.2 ? 1 : 0;
    const quality = tried === 0 ? 0.5 : isHard ? 0.9 : 0.1;
    const outcomes = Float32Array.of(NaN, NaN);
    outcomes[tried] = quality;
    const input = { numTokens: 0 } as never;
    return { isHard, one: { input, outcomes, propensities: Float32Array.of(0.8, 0.2), group: '', tried } };
  });
  const valueOf = createOffPolicyValue(examples.slice(0, 1000).map(({ one }) => one), candidates, FREE); // prettier-ignore
  const mean = (choose: (isHard: boolean) => number): number =>
    examples.reduce((sum, { isHard, one }) => sum + valueOf(one, choose(isHard)), 0) / examples.length;
  expect(mean((isHard) => Number(isHard))).toBeCloseTo(0.7, 1);
  expect(mean((isHard) => Number(!isHard))).toBeCloseTo(0.3, 1);
  expect(mean(() => 0)).toBeCloseTo(0.5, 5);
});

test('a text survives the conversion to floats', () => {
  for (const text of ['{}', '{"a":"ü€😀"}', `{"a":"${'x'.repeat(1001)}"}`])
    expect(textFromFloats(structuredClone(textToFloats(text)))).toBe(text);
});
