import { RuvLLMError } from '../../core/errors.ts';
import { showValue } from '../../core/show-value.ts';
import type { SystemState } from './features/state-features.ts';
import { type Candidate, MAX_CANDIDATES, type RouteInput } from './types.ts';

const KINDS: readonly string[] = ['local', 'adapter', 'remote'] satisfies Candidate['kind'][];
const KEYS = new Set(['id', 'kind', 'pricePerToken', 'latencyMs']);

function refuse(message: string): never {
  throw new RuvLLMError('invalid_option', message);
}

/** Validates a configured list; ids are unique. */
export function resolveCandidates(given: readonly Candidate[]): readonly Candidate[] {
  if (!Array.isArray(given) || given.length === 0 || given.length > MAX_CANDIDATES)
    refuse(
      `a router needs 1 to ${MAX_CANDIDATES} candidates, got ${Array.isArray(given) ? given.length : typeof given}`,
    );
  const seen = new Set<string>();
  return Object.freeze(
    given.map((candidate, index) => {
      const unknown = Object.keys(candidate).find((key) => !KEYS.has(key));
      if (unknown !== undefined) refuse(`candidate ${index}: unknown key "${unknown.slice(0, 80)}"`);
      const { id, kind, pricePerToken, latencyMs } = candidate;
      if (typeof id !== 'string' || id.length === 0 || id.length > 200)
        refuse(`candidate ${index}: the id must be a string of 1 to 200 characters`);
      if (seen.has(id)) refuse(`candidate ${index}: "${id}" is configured twice`);
      if (!KINDS.includes(kind)) refuse(`candidate "${id}": kind must be one of ${KINDS.join(', ')}`);
      for (const [name, value] of Object.entries({ pricePerToken, latencyMs }))
        if (!(Number.isFinite(value) && value >= 0))
          refuse(`candidate "${id}": ${name} must be 0 or more, got ${showValue(value)}`);
      seen.add(id);
      return Object.freeze({ id, kind, pricePerToken, latencyMs });
    }),
  );
}

/** Price of time and money in units of quality. */
export interface UtilityWeights {
  /** λ: quality per second. */
  readonly perSecond: number;
  /** μ: quality per unit of price. */
  readonly perCost: number;
}

/** Expected time to first token of each candidate in ms: measured, or else configured, for the uncached part of the prompt. */
export const expectedLatencies = (candidates: readonly Candidate[], system: SystemState = {}): number[] =>
  candidates.map(({ latencyMs }, i) => (system.latencyMs?.[i] || latencyMs) * (1 - (system.warmShares?.[i] ?? 0)));

/** λ·latency + μ·cost of each candidate for one request. */
export function penaltiesOf(
  candidates: readonly Candidate[],
  weights: UtilityWeights,
  input: RouteInput,
): Float64Array {
  const latencies = expectedLatencies(candidates, input.system);
  return Float64Array.from(
    candidates,
    ({ pricePerToken }, i) =>
      (weights.perSecond * latencies[i]!) / 1000 + weights.perCost * pricePerToken * input.numTokens,
  );
}

/** The candidate with the highest score; ties go to the lowest penalty, then to the first. */
export function bestOf(scores: ArrayLike<number>, penalties?: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < scores.length; i++) {
    const isCheaper = penalties !== undefined && scores[i] === scores[best] && penalties[i]! < penalties[best]!;
    if (scores[i]! > scores[best]! || isCheaper) best = i;
  }
  return best;
}
