import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { DIM, linkedExample, randomExample, randomParameters, range } from '../graph-attention/fixtures.contract.ts';
import { createReranker, untrainedState } from '../graph-attention/reranker.ts';
import type { KeptReranker } from '../graph-attention/reranker-store.ts';
import { createTenantRerankers } from './tenant-rerankers.ts';
import { createRerankWork } from './train-rerank.ts';

const kept = (version: number): KeptReranker => ({
  reranker: createReranker({ ...untrainedState(DIM), parameters: randomParameters(version) }),
  space: 'a',
  version,
});
const { query, candidates } = randomExample(5);
const request = {
  space: 'a',
  query,
  candidates: candidates.map(({ vector, ...rest }) => ({ ...rest, record: { vector, space: 'a' } as never })),
};

function setUp(active: (tenant: string) => Promise<KeptReranker | null>) {
  const clock = { ms: 0 };
  const reports: string[] = [];
  const calls: string[] = [];
  const rerank = createTenantRerankers({
    active: (tenant) => (calls.push(tenant), active(tenant)),
    now: () => clock.ms,
    report: (message) => void reports.push(message),
  });
  return { rerank, clock, reports, calls };
}

describe('[RK8] the re-ranker of a tenant', () => {
  test('is read once, then cached, for its space only', async () => {
    const { rerank, calls } = setUp(async (tenant) => (tenant === 'acme' ? kept(1) : null));
    const [rank] = await Promise.all([rerank.of('acme', 'a'), rerank.of('acme', 'a')]);
    expect(rank!(request)).toEqual([...kept(1).reranker.score({ query, candidates })]);
    expect(rerank.of('acme', 'a')).toBe(rank);
    expect(rerank.of('acme', 'b')).toBeNull();
    expect(await rerank.of('other', 'a')).toBeNull();
    expect(rerank.of('other', 'a')).toBeNull();
    expect(calls).toEqual(['acme', 'other']);
  });

  test('is read again after half a minute, and at once after `forget`, also during a read', async () => {
    let version = 1;
    const gates: (() => void)[] = [];
    const { rerank, clock } = setUp(async () => {
      const read = version;
      if (gates.length > 0) await new Promise<void>((resolve) => gates.push(resolve));
      return read === 0 ? null : kept(read);
    });
    const first = await rerank.of('acme', 'a');
    version = 2;
    clock.ms = 30_001;
    expect(rerank.of('acme', 'a')).toBe(first); // refreshed in the background
    await new Promise((resolve) => setTimeout(resolve, 0));
    const second = await rerank.of('acme', 'a');
    expect(second!(request)).toEqual([...kept(2).reranker.score({ query, candidates })]);
    rerank.forget('acme');
    gates.push(() => {});
    const slow = rerank.of('acme', 'a'); // reads version 2
    version = 0;
    rerank.forget('acme');
    const fresh = rerank.of('acme', 'a');
    gates[2]!();
    await fresh;
    gates[1]!();
    await slow;
    expect(await rerank.of('acme', 'a')).toBeNull();
  });

  test('is ignored if it cannot be read or used, with one report', async () => {
    const broken = setUp(() => Promise.reject(new RuvLLMError('io', 'the disk is gone')));
    expect(await broken.rerank.of('acme', 'a')).toBeNull();
    expect(broken.reports).toEqual(['reading a re-ranking failed: the disk is gone']);
    const { rerank, reports } = setUp(async () => kept(1));
    const rank = (await rerank.of('acme', 'a'))!;
    const short = { ...request, query: new Float32Array(3) };
    expect([rank(short), rank(short)]).toEqual([null, null]);
    expect(reports).toEqual([expect.stringContaining('version 1 cannot rank')]);
  });
});

describe('[RK9] training', () => {
  const examples = range(1, 120).map((seed) => linkedExample(seed));
  const job = { dim: DIM, examples, serving: null, timeLimitMs: 60_000 };

  test('ends within its time with the best result so far and names its requests', async () => {
    let ms = 0;
    const { state, learnedFrom, selection } = await createRerankWork(() => (ms += 10)).trainReranker({ ...job, timeLimitMs: 500 }); // prettier-ignore
    expect(learnedFrom.length).toBe(96);
    expect(selection.numQueries).toBe(24);
    expect(state.parameters).not.toEqual(untrainedState(DIM).parameters);
    expect(ms).toBeLessThan(1500);
  });

  test('yields the thread between steps and stops when cancelled', async () => {
    const work = createRerankWork(() => performance.now());
    const running = work.trainReranker(job);
    let numTurns = 0;
    const timer = setInterval(() => ++numTurns === 3 && work.cancelRerank(), 1);
    await expect(running).rejects.toMatchObject({ code: 'aborted' });
    clearInterval(timer);
    expect(numTurns).toBeGreaterThanOrEqual(3);
  });
});
