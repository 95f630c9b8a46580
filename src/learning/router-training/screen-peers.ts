import { clusteredChange } from '../gate/clustered.ts';
import { foldsOf, importanceOf, RIDGE_DEFAULTS, type Steps, trainRidge } from '../router/index.ts';
import type { TriedExample } from './off-policy.ts';
import type { RatedRoute } from './rated-routes.ts';

/** Rated requests of another node, oldest first. */
export interface PeerRoutes {
  readonly peer: string;
  readonly examples: readonly RatedRoute[];
}

export interface PeerVerdict {
  readonly peer: string;
  readonly numExamples: number;
  readonly isUsed: boolean;
  readonly reason: string;
}

/** A peer always gets this much weight, so that a node with few ratings can learn from others. */
const MIN_PEER_WEIGHT = 100;
const NUM_FOLDS = 3;
/** Rise of the error that is taken for chance, relative to the error without the peer. */
const MAX_RISE = 0.01;

const weightOf = ({ propensity }: RatedRoute): number => (propensity === null ? 1 : importanceOf(propensity));

/**
 * The newest examples of each peer, up to the weight of this node's own: neither many ratings nor small propensities, which multiply
 * the weight of a rating, let one peer outvote this node.
 */
export function boundPeers(
  peers: readonly PeerRoutes[],
  own: readonly RatedRoute[],
  maxExamples: number,
): PeerRoutes[] {
  const maxCount = Math.floor(maxExamples / Math.max(1, peers.length));
  const maxWeight = Math.max(
    MIN_PEER_WEIGHT,
    own.reduce((sum, one) => sum + weightOf(one), 0),
  );
  return peers.flatMap(({ peer, examples }) => {
    if (maxCount <= 0) return [];
    let weight = 0;
    const newest = examples
      .slice(-maxCount)
      .toReversed()
      .filter((one) => (weight += weightOf(one)) <= maxWeight);
    return newest.length === 0 ? [] : [{ peer, examples: newest.toReversed() }];
  });
}

interface EncodedPeer {
  readonly peer: string;
  readonly examples: readonly TriedExample[];
}

interface ScreenOptions {
  readonly numCandidates: number;
  readonly hasVectors: boolean;
  readonly seed: number;
}

/**
 * Rejects a peer whose examples worsen estimates of this node's own ratings ("reject on negative impact", Barreno et al. 2010). Each own
 * rating is estimated by estimators that saw none of its conversation, once without and once with the peer.
 */
export function* screenPeersSteps(
  own: readonly TriedExample[],
  peers: readonly EncodedPeer[],
  { numCandidates, hasVectors, seed }: ScreenOptions,
): Steps<PeerVerdict[]> {
  const options = { ...RIDGE_DEFAULTS, isScaled: false, isByVector: hasVectors };
  const folds = foldsOf(own, NUM_FOLDS, seed);
  function* lossesWith(foreign: readonly TriedExample[]): Steps<number[]> {
    const losses: number[] = Array.from({ length: own.length });
    for (let fold = 0; fold < NUM_FOLDS; fold++) {
      yield;
      const estimator = trainRidge([...own.filter((_, i) => folds[i] !== fold), ...foreign], numCandidates, options);
      own.forEach(({ input, outcomes, tried }, i) => {
        if (folds[i] === fold) losses[i] = (estimator.estimate(input).qualities[tried]! - outcomes[tried]!) ** 2;
      });
    }
    return losses;
  }
  const alone = yield* lossesWith([]);
  const error = alone.reduce((sum, loss) => sum + loss, 0) / alone.length;
  const groups = own.map(({ group }) => group);
  const verdicts: PeerVerdict[] = [];
  for (const { peer, examples } of peers) {
    const { mean, low, high } = clusteredChange(alone, yield* lossesWith(examples), groups);
    const isUsed = mean <= MAX_RISE * error && low <= 0;
    const percent = (value: number): string => `${((100 * value) / error).toFixed(1)} %`;
    const change = `the error on ${own.length} own ratings changes by ${percent(mean)} (95 % ${percent(low)} to ${percent(high)})`;
    verdicts.push({
      peer,
      numExamples: examples.length,
      isUsed,
      reason: isUsed ? change : `rejected: ${change}`,
    });
  }
  return verdicts;
}
