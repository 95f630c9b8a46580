import { RuvLLMError } from '../../../core/errors.ts';
import { ROUTER_BUCKETS, readTextFeatures } from '../../router/index.ts';
import type { RatedRoute } from '../../router-training/rated-routes.ts';
import { MAX_SHARED_ROUTES, type RouteEvidence, toRouteEvidence } from '../route-evidence.ts';
import type { PushOptions } from '../types.ts';
import { discreteGaussian } from './discrete-gaussian.ts';
import type { RandomIntegers } from './random-integers.ts';
import { CANDIDATE_WIDTH, RATING_PART, SENSITIVITY, sumRatings } from './rating-sums.ts';

/** Standard deviations of the noise below which a word is left out. */
const THRESHOLD = 3;
const PAUSE_EVERY = 4096;
/** Words of a made-up rating. */
const NUM_WORDS = 8;

/** σ² of the noise that spends at most ρ. */
export const varianceFor = (rho: number): number => Math.ceil(SENSITIVITY ** 2 / (2 * rho));

/** The ρ that this noise spends; not above that of `varianceFor`. */
export const rhoOf = (variance: number): number => SENSITIVITY ** 2 / (2 * variance);

/** Adds noise to each number; nothing but the result may leave the node. */
export async function addNoise(sums: Float64Array, variance: number, random: RandomIntegers): Promise<Float64Array> {
  const noised = new Float64Array(sums.length);
  for (let i = 0; i < sums.length; i++) {
    // A server answers other requests meanwhile.
    if (i % PAUSE_EVERY === 0) await new Promise((resolve) => void setTimeout(resolve, 0));
    noised[i] = sums[i]! + discreteGaussian(variance, random);
  }
  return noised;
}

const NO_TERMS = 'no-terms';

/** Why an option cannot be used with a privacy budget. */
export function notNoised(option: string): RuvLLMError {
  const reason = option === NO_TERMS ? 'the noised ratings consist of hashed words' : 'no noise protects a conversation in them'; // prettier-ignore
  return new RuvLLMError('invalid_option', `${option}: not with a privacy budget, because ${reason}; leave the option out, or end the budget with: ruvllm federate privacy --off`, { data: { option } }); // prettier-ignore
}

/** Throws for parts that no noise protects; those that were not asked for are left out. */
export function refuseUnnoised({ texts = false, terms = true, patterns = false, adapters = [] }: PushOptions): void {
  const asked = Object.entries({ texts, patterns, adapters: adapters.length > 0, [NO_TERMS]: !terms }).find(([, is]) => is); // prettier-ignore
  if (asked !== undefined) throw notNoised(asked[0]);
}

interface Weighted {
  readonly bucket: number;
  readonly weight: number;
}

/** Different buckets, each as likely as its weight. */
function drawBuckets(all: readonly Weighted[], random: RandomIntegers): Set<number> {
  const drawn = new Set<number>();
  const total = all.reduce((sum, { weight }) => sum + weight, 0);
  if (total === 0) return drawn;
  for (let i = 0; i < NUM_WORDS; i++) {
    let left = random.unit() * total;
    const one = all.find(({ weight }) => (left -= weight) < 0);
    if (one !== undefined) drawn.add(one.bucket);
  }
  return drawn;
}

/** Ratings made up from noised sums: receivers learn from them as from others. Uses nothing that was not noised. */
function makeRatings(
  noised: Float64Array,
  numCandidates: number,
  variance: number,
  random: RandomIntegers,
): RatedRoute[] {
  const least = THRESHOLD * Math.sqrt(variance);
  const plain = readTextFeatures({ turns: [''] }, ROUTER_BUCKETS);
  const ratings: RatedRoute[] = [];
  for (let candidate = 0; candidate < numCandidates; candidate++) {
    const at = candidate * CANDIDATE_WIDTH;
    for (const quality of [1, 0]) {
      const sign = quality === 1 ? 1 : -1;
      const words = Array.from(noised.subarray(at + 2, at + CANDIDATE_WIDTH), (value, bucket) => ({ bucket, weight: sign * value })).filter(({ weight }) => weight > least); // prettier-ignore
      const count = Math.round(noised[at + (quality === 1 ? 0 : 1)]! / RATING_PART);
      for (let i = 0; i < Math.min(count, MAX_SHARED_ROUTES); i++) {
        const counts = new Map([...drawBuckets(words, random)].map((bucket) => [bucket, 1]));
        const request = { turns: [], features: { ...plain, counts } };
        ratings.push({ request, candidate, quality, propensity: null, group: String(ratings.length) });
      }
    }
  }
  return shuffled(ratings, random).slice(0, MAX_SHARED_ROUTES);
}

/** Receivers take the newest ones first, so no candidate may be last. */
function shuffled<T>(items: T[], random: RandomIntegers): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}

/** Evidence for receivers from noised sums; uses nothing else of the ratings. */
export const fromNoisedSums = (
  noised: Float64Array,
  candidates: readonly string[],
  variance: number,
  random: RandomIntegers,
): RouteEvidence => toRouteEvidence(makeRatings(noised, candidates.length, variance, random), candidates, null);

/** Evidence about candidates that is (ε, δ)-differentially private for conversations, with the σ² of an accounted ρ. */
export async function toPrivateEvidence(
  examples: readonly RatedRoute[],
  candidates: readonly string[],
  variance: number,
  random: RandomIntegers,
): Promise<RouteEvidence> {
  const noised = await addNoise(sumRatings(examples, candidates.length), variance, random);
  return fromNoisedSums(noised, candidates, variance, random);
}
