import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LowRankFactors } from '../../adapters/types.ts';
import type { PeerDelta } from '../federation/federation.ts';
import { peerId } from '../federation/peer-id.ts';
import { createSonaHarness } from './harness.contract.ts';
import { adapterLine } from './learned-adapter.ts';

type Harness = ReturnType<typeof createSonaHarness>;
type Sona = ReturnType<Harness['open']>;
const line = adapterLine('small');
const ANSWER = 'a blue zog';

/** A node that learned the answer from its own requests. */
async function learnedNode(
  count: number,
  epochRate = 0.02,
  answer = ANSWER,
): Promise<{ harness: Harness; sona: Sona }> {
  const harness = createSonaHarness({ minExamples: 4, learningRate: epochRate });
  const sona = harness.open();
  for (let i = 0; i < count; i++) await harness.add(1, { answer });
  const { version } = await sona.backgroundConsolidate('acme', 'small');
  expect(version?.isAccepted, version?.reason).toBe(true);
  return { harness, sona };
}

const deltaOf = (peer: string, factors: readonly LowRankFactors[]): PeerDelta => ({ id: peerId(peer), peer, factors });
const scaled = (factors: readonly LowRankFactors[], by: number): LowRankFactors[] =>
  factors.map((one) => ({ ...one, scale: one.scale * by }));

let own: Harness;
let sona: Sona;
let honest: readonly LowRankFactors[];
let other: readonly LowRankFactors[];
beforeAll(async () => {
  const nodes = [await learnedNode(60), await learnedNode(48)];
  [honest, other] = (await Promise.all(nodes.map((node) => node.sona.ownAdapter('acme', 'small')))).map((one) => one!.factors); // prettier-ignore
}, 120_000);
beforeEach(async () => {
  // Little of its own, as a new node has; the others have learned more of the same.
  ({ harness: own, sona } = await learnedNode(24, 0.002));
}, 120_000);

describe('merging the adapters of peers', () => {
  test('[FD14] [FD16] serves a version that names the peers, if own held-out requests gain', async () => {
    const before = await own.lossOf('new?', ANSWER);
    const report = await sona.mergePeers('acme', 'small', [deltaOf('berlin', honest), deltaOf('paris', other)]);
    expect(report.version, report.reason).toMatchObject({ isAccepted: true, version: 2, loop: 'operator', contents: { peers: ['berlin', 'paris'] } }); // prettier-ignore
    expect(report.reason).toContain('merged the own adapter and those of berlin, paris');
    expect(report.version!.learnedFrom).toEqual(expect.arrayContaining(['federation/berlin', 'federation/paris']));
    expect(await own.lossOf('new?', ANSWER)).toBeLessThan(before);
    expect(await sona.rollback('acme', 'small', 1)).toMatchObject({ version: 1 });
    expect(await own.lossOf('new?', ANSWER)).toBeCloseTo(before, 5);
  });

  test('[FD16] shares what it trained alone, not what it merged', async () => {
    const alone = await sona.ownAdapter('acme', 'small');
    await sona.mergePeers('acme', 'small', [deltaOf('berlin', honest)]);
    expect(await sona.ownAdapter('acme', 'small')).toEqual(alone);
  });

  test('[FD15] a liar among three does not change what serves beyond the honest nodes', async () => {
    const merge = async (deltas: PeerDelta[]): Promise<number> => {
      const { version, reason } = await sona.mergePeers('acme', 'small', deltas);
      const loss = await own.lossOf('new?', ANSWER);
      expect(version, reason).not.toBeNull();
      await sona.rollback('acme', 'small', 1);
      return loss;
    };
    const alone = await own.lossOf('new?', ANSWER);
    const clean = await merge([deltaOf('berlin', honest), deltaOf('paris', other)]);
    expect(clean).toBeLessThan(alone);
    for (const factor of [-1, 100, -100]) {
      const poisoned = await merge([deltaOf('berlin', honest), deltaOf('liar', scaled(other, factor))]);
      // Refused, or between the own and the honest adapter: never worse than without any peer.
      expect(poisoned, `times ${factor}`).toBeLessThanOrEqual(alone + 1e-6);
    }
  }, 120_000);

  test('[FD17] a merge names and learns from no peer that it left out', async () => {
    const newcomer = createSonaHarness({ minExamples: 4 });
    for (let i = 0; i < 24; i++) await newcomer.add(1, { answer: ANSWER });
    const deltas = [deltaOf('berlin', honest), deltaOf('liar', scaled(other, -1))];
    const { version, reason } = await newcomer.open().mergePeers('acme', 'small', deltas);
    expect(version, reason).toMatchObject({ isAccepted: true, contents: { peers: ['berlin'] } });
    expect(reason).toContain('without liar');
    expect(version!.learnedFrom).not.toContain('federation/liar');
  });

  test('[FD16] refuses what own held-out requests lose by, and serves what it served', async () => {
    const before = await own.lossOf('new?', ANSWER);
    const served = own.served.get('acme')!.trained;
    const report = await sona.mergePeers('acme', 'small', [deltaOf('liar', scaled(honest, -1))]);
    expect(report.version).toMatchObject({ isAccepted: false, blobs: {}, learnedFrom: [] });
    expect(report.reason).toContain('held-out loss');
    expect(own.served.get('acme')!.trained).toBe(served);
    expect(await own.lossOf('new?', ANSWER)).toBe(before);
  });

  test('[FD14] one adapter alone is not merged, and one of another size is refused', async () => {
    const empty = createSonaHarness({ minExamples: 4 });
    const report = await empty.open().mergePeers('acme', 'small', [deltaOf('berlin', honest)]);
    expect(report).toMatchObject({ version: null, reason: '1 adapters of peers and no own one; two are needed' });
    const wide = honest.map((one) => ({ ...one, numCols: one.numCols + 1 }));
    await expect(sona.mergePeers('acme', 'small', [deltaOf('berlin', wide)])).rejects.toThrow(/adapter changes .* with \d+ × \d+ values, the model has/); // prettier-ignore
  });

  test('[FD9] removing a peer withdraws the merged version and those trained on it; the own one serves', async () => {
    const before = await own.lossOf('new?', ANSWER);
    await sona.mergePeers('acme', 'small', [deltaOf('berlin', honest), deltaOf('paris', other)]);
    for (let i = 0; i < 30; i++) await own.add(1, { answer: 'a red fox' });
    const { version } = await sona.backgroundConsolidate('acme', 'small');
    expect(version, version?.reason).toMatchObject({ version: 3, isAccepted: true });
    expect(version!.learnedFrom).toContain('federation/paris');
    expect(await sona.withdrawPeers('acme', [peerId('stranger')])).toEqual([]);
    const withdrawn = await sona.withdrawPeers('acme', [peerId('paris')]);
    expect(withdrawn).toEqual([{ model: 'small', reason: 'version 1 serves, which learned from this node alone' }]);
    expect(await sona.versions.active('acme', line)).toMatchObject({ version: 1 });
    expect(await own.lossOf('new?', ANSWER)).toBeCloseTo(before, 5);
    await expect(sona.rollback('acme', 'small', 2)).rejects.toMatchObject({ code: 'not_found' });
    // Own requests that the withdrawn versions had learned are learned again.
    const again = await sona.backgroundConsolidate('acme', 'small');
    expect(again.version, again.reason).toMatchObject({ isAccepted: true });
    expect(again.version!.learnedFrom).not.toContain('federation/berlin');
  }, 120_000);

  test('[FD5] a merge for one tenant leaves the others', async () => {
    await sona.mergePeers('acme', 'small', [deltaOf('berlin', honest), deltaOf('paris', other)]);
    expect([...own.served.keys()]).toEqual(['acme']);
    expect(await sona.versions.history('other', line)).toEqual([]);
  });
});
