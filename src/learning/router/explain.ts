import { NUM_QUERY_FEATURES, type RouteDecision, type RouteInput } from './types.ts';
import type { Router } from './stored-router.ts';

/** The numbers of the query block, in order. */
export const QUERY_FEATURE_NAMES = [
  'stem words', 'length', 'digits', 'digits in the stem', 'symbols', 'capitals', 'word length', 'long words', 'function words',
  'negation', 'negations', 'question mark', 'open end', 'distinct words', 'sentences', 'lines', 'quotes', 'choice length',
  'choice length spread', 'choices with digits', 'choice likeness', 'most alike choices', 'choices in the stem', 'choices',
  'choices with quotes', 'which or what', 'how or why', 'who, when or where', 'condition', 'code', 'other script', 'turns',
] as const; // prettier-ignore

/** A decision in plain data, for people and for JSON. */
export interface RouteExplanation {
  readonly candidate: string;
  readonly policy: string;
  readonly confidence: number;
  readonly reason: string;
  readonly detail: string;
  readonly candidates: readonly {
    readonly id: string;
    readonly quality: number;
    readonly score: number;
    /** How far quality differences between requests are believed for it. */
    readonly trust: number;
  }[];
  /** Most unusual features of the request, in standard deviations from the mean. */
  readonly features: readonly { readonly name: string; readonly deviations: number }[];
  readonly neighbours: readonly { readonly index: number; readonly similarity: number }[];
}

const MAX_SHOWN = 8;

/** Why a request went where it went. */
export function explainDecision(router: Router, input: RouteInput, decision: RouteDecision): RouteExplanation {
  const { candidates, shrinkage } = router.rule;
  const features = Array.from({ length: NUM_QUERY_FEATURES }, (_, i) => ({
    name: QUERY_FEATURE_NAMES[i]!,
    deviations: input.query[i]!,
  }));
  return {
    candidate: candidates[decision.candidate]!.id,
    policy: router.policy.name,
    confidence: decision.confidence,
    reason: decision.why.kind,
    detail: decision.why.detail,
    candidates: candidates.map(({ id }, i) => ({
      id,
      quality: decision.qualities[i]!,
      score: decision.scores[i]!,
      trust: shrinkage?.slopes[i] ?? 1,
    })),
    features: features
      .filter(({ deviations }) => deviations !== 0)
      .sort((a, b) => Math.abs(b.deviations) - Math.abs(a.deviations))
      .slice(0, MAX_SHOWN),
    neighbours: (decision.why.neighbours ?? []).slice(0, MAX_SHOWN),
  };
}
