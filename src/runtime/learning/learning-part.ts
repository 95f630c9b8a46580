import type { LearnedVersion } from '../../learning/versions/version-log.ts';

/** Result of a training. */
export interface PartOutcome {
  /** Null: there was too little to learn from. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
}

/** Something else that learns beside the models, from the same requests: who answers them. */
export interface LearningPart {
  readonly name: 'routing';
  /** Trains for those for whom it is due. */
  run(signal?: AbortSignal): Promise<unknown>;
  /** Trains for one tenant now. */
  train(tenant: string, loop: 'background' | 'deep', options: { readonly signal: AbortSignal }): Promise<PartOutcome>;
}
