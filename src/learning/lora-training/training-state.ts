import { RuvLLMError } from '../../core/errors.ts';

/** A stopped run as plain data; it continues to the same bits. */
export interface TrainingState {
  readonly parameters: Float32Array;
  /** Adam's moments. */
  readonly first: Float32Array;
  readonly second: Float32Array;
  readonly numSteps: number;
  /** Order of the examples: another one would repeat some and skip others. */
  readonly seed: number;
  readonly batchSize: number;
  readonly numExamples: number;
  readonly numParameters: number;
}

type Fixed = Pick<TrainingState, 'seed' | 'batchSize' | 'numExamples' | 'numParameters'>;

/** Throws unless the state belongs to this run and all of its numbers are finite. */
export function checkState(state: TrainingState, run: Fixed): void {
  for (const key of ['seed', 'batchSize', 'numExamples', 'numParameters'] as const) {
    if (state[key] === run[key]) continue;
    throw new RuvLLMError('invalid_option', `a state with ${key} ${state[key]}, this run has ${run[key]}`, {
      data: { option: `state.${key}` },
    });
  }
  if (!Number.isSafeInteger(state.numSteps) || state.numSteps < 0) {
    throw new RuvLLMError('invalid_option', `a state after ${state.numSteps} steps`, {
      data: { option: 'state.numSteps' },
    });
  }
  for (const key of ['parameters', 'first', 'second'] as const) {
    const vector = state[key];
    const isWhole = vector instanceof Float32Array && vector.length === run.numParameters;
    if (isWhole && vector.every((value) => Number.isFinite(value))) continue;
    const length = vector instanceof Float32Array ? vector.length : 0;
    throw new RuvLLMError(
      'invalid_option',
      `state.${key} must be ${run.numParameters} finite values, has ${length} or some that are not`,
      { data: { option: `state.${key}`, length, numParameters: run.numParameters } },
    );
  }
}
