import type { RouteEncoder, RouteInput, RouteRequest } from '../../../../src/learning/router/index.ts';
import { segmentTurns } from './segments.ts';

/** A request with additional data for the bench contestants. */
export interface BenchInput extends RouteInput {
  /** Lower-case text of the last turn, for keyword rules. */
  readonly text: string;
  /**
   * Features of the earlier turns, or of the parts of a single one, and finally of the whole text: the input of a recurrent network.
   */
  readonly segments: readonly Float32Array[];
}

export const textOf = (input: RouteInput): string => (input as Partial<BenchInput>).text ?? '';
export const segmentsOf = (input: RouteInput): readonly Float32Array[] =>
  (input as Partial<BenchInput>).segments ?? [input.features];

/** Parts have no sentence vector, which would double the cost. */
export function encodeForBench(encoder: RouteEncoder, request: RouteRequest): BenchInput {
  const input = encoder.encode(request);
  const partOf = (part: string): Float32Array =>
    encoder.encode({ ...request, turns: [...request.turns.slice(0, -1), part], vector: undefined }).features;
  return {
    ...input,
    text: (request.turns.at(-1) ?? '').toLowerCase(),
    segments: [...segmentTurns(request.turns).map(partOf), input.features],
  };
}
