import type { PolicyState, RouteFeedback, RouteInput, RouteReason } from './types.ts';

/** What a way of judging says about one request, before prices and doubts. */
export interface Estimate {
  /** By candidate, about from 0 to 1. */
  readonly qualities: Float64Array;
  /** How sure it is; not a probability until calibrated. NaN: take the lead of the best over the next. */
  readonly confidence: number;
  readonly why: RouteReason;
}

/** Judges candidates; a decision rule makes a policy of it. */
export interface Estimator {
  readonly name: string;
  estimate(input: RouteInput): Estimate;
  update(feedback: RouteFeedback): void;
  save(): PolicyState;
}
