import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { bestOf } from './candidates.ts';
import type { RouteDecision, RouteFeedback, RouteInput, RoutePolicy } from './types.ts';

export interface ExplorationOptions {
  /** Expected quality that may be given up in all, for learning; nothing is explored once it is spent. */
  readonly regretBudget: number;
  /** Standard deviation of a quality after one outcome; it falls with the root of their number. */
  readonly deviation: number;
  readonly seed: number;
}

export interface ExploredDecision extends RouteDecision {
  /** Probability with which the candidate was drawn; pass it on with the feedback. */
  readonly propensity: number;
}

export interface Explorer {
  decide(input: RouteInput): ExploredDecision;
  update(feedback: RouteFeedback): void;
  readonly regretSpent: number;
}

/** Draws for estimating the propensity; its minimum is 1 / NUM_DRAWS. */
const NUM_DRAWS = 64;

/** Thompson sampling around a policy's own scores: a candidate of few outcomes is drawn more often, within the budget. */
export function createExplorer(policy: RoutePolicy, numCandidates: number, options: ExplorationOptions): Explorer {
  const { regretBudget, deviation } = options;
  if (!(regretBudget >= 0 && deviation >= 0 && Number.isFinite(deviation)))
    throw new RuvLLMError(
      'invalid_option',
      `regret budget ${regretBudget} and deviation ${deviation} must be 0 or more`,
    );
  const random = createRandom(options.seed);
  const counts = new Float64Array(numCandidates);
  let regretSpent = 0;
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const draw = (scores: Float64Array): number =>
    bestOf(scores.map((score, i) => score + (deviation * normal()) / Math.sqrt(1 + counts[i]!)));
  return {
    get regretSpent() {
      return regretSpent;
    },
    decide(input) {
      const decision = policy.decide(input);
      const best = Math.max(...decision.scores);
      const left = regretBudget - regretSpent;
      const isAffordable = (candidate: number): boolean => best - decision.scores[candidate]! <= left;
      if (!(left > 0) || deviation === 0) return { ...decision, propensity: 1 };
      const drawn = Array.from({ length: NUM_DRAWS }, () => {
        const candidate = draw(decision.scores);
        return isAffordable(candidate) ? candidate : decision.candidate;
      });
      const candidate = drawn[0]!;
      const propensity = drawn.filter((other) => other === candidate).length / NUM_DRAWS;
      if (candidate === decision.candidate) return { ...decision, propensity };
      const regret = Math.max(0, best - decision.scores[candidate]!);
      regretSpent += regret;
      const detail = `drawn with probability ${propensity.toFixed(3)}, expected to lose ${regret.toFixed(4)}`;
      return { ...decision, candidate, propensity, why: { kind: 'explored', detail } };
    },
    update(feedback) {
      counts[feedback.candidate]! += 1;
      policy.update(feedback);
    },
  };
}

/** Throws for invalid feedback. */
export function checkFeedback({ candidate, quality, propensity }: RouteFeedback, numCandidates: number): void {
  if (!(Number.isSafeInteger(candidate) && candidate >= 0 && candidate < numCandidates))
    throw new RuvLLMError('invalid_option', `feedback for candidate ${candidate} of ${numCandidates}`);
  if (!(quality >= 0 && quality <= 1))
    throw new RuvLLMError('invalid_option', `a quality must be from 0 to 1, got ${quality}`);
  if (!(propensity > 0 && propensity <= 1))
    throw new RuvLLMError('invalid_option', `a propensity must be above 0 and at most 1, got ${propensity}`);
}
