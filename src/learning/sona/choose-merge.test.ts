import { describe, expect, test } from 'vitest';
import type { LowRankFactors } from '../../adapters/types.ts';
import type { PeerDelta } from '../federation/federation.ts';
import { decidePromotion, type ShadowResult } from '../gate/gate.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import { acceptHarmless, chooseMerge } from './choose-merge.ts';
import type { AdapterPlan, LearningWork } from './types.ts';

const plan: AdapterPlan = { path: 'small.gguf', rank: 1, numLayers: 1, maxTokens: 8 };

/** A delta is one number; the merge is the mean. The loss of an example is its distance from 1, or from −1 if its weight is below 0. */
const factorsOf = (value: number): LowRankFactors[] => [
  { target: 'q', layer: 0, numCols: 1, numRows: 1, rank: 1, scale: 1, a: Float32Array.of(value), b: Float32Array.of(1) } as unknown as LowRankFactors, // prettier-ignore
];
const valueOf = (factors: readonly LowRankFactors[]): number => factors[0]!.a[0]!;
const peerOf = (peer: string, value: number): PeerDelta => ({ id: `federation/${peer}`, peer, factors: factorsOf(value) }); // prettier-ignore
const examplesOf = (count: number, weight = 1): TrainingExample[] =>
  Array.from({ length: count }, () => ({ tokenIds: [1, 2], numPromptTokens: 1, weight }));

function createWork() {
  const merged: number[] = [];
  const work: Pick<LearningWork, 'losses' | 'mergeDeltas'> = {
    async losses(_plan, examples, parameters) {
      const value = parameters?.[0] ?? 0;
      return { losses: examples.map(({ weight = 1 }) => Math.abs(value - weight)), elapsedMs: 0 };
    },
    async mergeDeltas(_plan, own, peers) {
      const values = [...(own === null ? [] : [own]), ...peers].map(valueOf);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      merged.push(peers.length);
      return { parameters: Float32Array.of(mean), norms: [], bound: 1, keptEnergy: 1 };
    },
  };
  return { work, merged };
}

const own = { plan, parameters: Float32Array.of(1), factors: factorsOf(1) };

async function choose(deltas: readonly PeerDelta[], train = examplesOf(40), vote: typeof own | null = own) {
  const { work, merged } = createWork();
  const { used } = await chooseMerge(work, plan, { own: vote, deltas, train, limitMs: 1000 });
  return { peers: used.map(({ peer }) => peer), merged };
}

describe('choosing the peers of a merge', () => {
  test('[FD17] keeps all peers if own training examples lose little, and merges once', async () => {
    const { peers, merged } = await choose([peerOf('berlin', 0.98), peerOf('paris', 0.95)]);
    expect(peers).toEqual(['berlin', 'paris']);
    expect(merged).toEqual([2]);
  });

  test('[FD17] leaves out the peer that raises the loss of own training examples, wherever it is', async () => {
    for (const lie of [-1, -100, Number.NaN]) {
      expect((await choose([peerOf('berlin', 0.98), peerOf('liar', lie)])).peers).toEqual(['berlin']);
      expect((await choose([peerOf('liar', lie), peerOf('berlin', 0.98)])).peers).toEqual(['berlin']);
    }
  });

  test('[FD17] without an own adapter, compares each merge without one peer', async () => {
    expect((await choose([peerOf('liar', -1), peerOf('berlin', 0.98)], examplesOf(4), null)).peers).toEqual(['berlin']);
  });

  test('[FD17] rejected answers and nodes without examples choose nothing', async () => {
    const deltas = [peerOf('berlin', 0.98), peerOf('liar', -1)];
    expect((await choose(deltas, [])).peers).toEqual(['berlin', 'liar']);
    // The liar would please these.
    expect((await choose(deltas, [...examplesOf(10), ...examplesOf(30, -0.5)])).peers).toEqual(['berlin']);
  });

  test('[FD17] more than four peers are merged once, by the mean without the extremes', async () => {
    const { merged } = await choose([-1, 0.9, 0.9, 0.9, 0.9].map((value, i) => peerOf(`peer-${i}`, value)));
    expect(merged).toEqual([5]);
  });
});

describe('accepting a merge that few held-out requests decide', () => {
  const shadow = (changes: readonly number[]): ShadowResult => ({ before: changes.map(() => 2), after: changes.map((change) => 2 + change) }); // prettier-ignore
  const repeat = (count: number, change: number): number[] => Array.from({ length: count }, () => change);
  /** One of 16 requests gains much, the others lose a little: Student's t is not sure. */
  const rare = [-1.9, ...repeat(15, 0.01)];
  const decide = (heldOut: number[], trained: number[], elsewhere: number[] = []) => {
    const results = { heldOut: shadow(heldOut), elsewhere: shadow(elsewhere), trained: shadow(trained) };
    return acceptHarmless(decidePromotion(results.heldOut, results.elsewhere), results);
  };

  test('[FD16] accepts it if training examples of this node show that it does little harm', () => {
    expect(decidePromotion(shadow(rare), shadow([])).isAccepted).toBe(false);
    const { isAccepted, reason, metrics } = decide(rare, repeat(80, 0.05));
    expect(isAccepted).toBe(true);
    expect(reason).toContain('the loss of 80 training examples rises by 0.0500');
    expect(metrics).toMatchObject({ trained_count: 80 });
  });

  test('[FD16] refuses what training examples lose by, and what too few of them show', () => {
    expect(decide(rare, repeat(80, 0.11)).isAccepted).toBe(false);
    expect(decide(rare, [...repeat(70, 0), ...repeat(10, 1)]).isAccepted).toBe(false);
    expect(decide(rare, repeat(29, 0)).isAccepted).toBe(false);
  });

  test('[FD16] refuses it if the held-out loss rises, of all or of one, or other answers lose', () => {
    expect(decide([-1.9, ...repeat(15, 0.2)], repeat(80, 0)).isAccepted).toBe(false);
    expect(decide([-1.9, -1.9, 1.1, ...repeat(15, 0)], repeat(80, 0)).isAccepted).toBe(false);
    expect(decide(rare, repeat(80, 0), repeat(10, 0.06)).isAccepted).toBe(false);
    expect(decide(repeat(3, -1), repeat(80, 0)).isAccepted).toBe(false);
  });

  test('[FD16] losses that are not numbers are refused, and are no metric', () => {
    const { isAccepted, metrics } = decide(rare, repeat(80, Number.NaN));
    expect(isAccepted).toBe(false);
    expect(Object.values(metrics).every(Number.isFinite)).toBe(true);
    expect(decide([...rare, Number.NaN], repeat(80, 0)).isAccepted).toBe(false);
  });
});
