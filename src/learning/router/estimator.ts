import type { PolicyState, RouteFeedback, RouteInput, RouteReason } from './types.ts';

/** Estimate for one request, before prices and shrinkage. */
export interface Estimate {
  /** By candidate, about from 0 to 1. */
  readonly qualities: Float64Array;
  /** How sure it is; not a probability until calibrated. NaN: take the lead of the best over the next. */
  readonly confidence: number;
  readonly why: RouteReason;
}

/** Estimates the quality of each candidate; a decision rule turns it into a policy. */
export interface Estimator {
  readonly name: string;
  estimate(input: RouteInput): Estimate;
  update(feedback: RouteFeedback): void;
  save(): PolicyState;
}
