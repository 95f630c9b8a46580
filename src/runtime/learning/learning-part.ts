import type { LearnedVersion } from '../../learning/versions/version-log.ts';

/** The outcome of a training run. */
export interface PartOutcome {
  /** Null: too few examples. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
}

/** Another learner on the same requests: the router. */
export interface LearningPart {
  readonly name: 'routing';
  /** Trains all tenants that are due. */
  run(signal?: AbortSignal): Promise<unknown>;
  /** Trains one tenant now. */
  train(tenant: string, loop: 'background' | 'deep', options: { readonly signal: AbortSignal }): Promise<PartOutcome>;
}
