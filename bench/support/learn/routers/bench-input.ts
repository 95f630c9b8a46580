import type { RouteEncoder, RouteInput, RouteRequest } from '../../../../src/learning/router/index.ts';
import { NUM_QUERY_FEATURES } from '../../../../src/learning/router/types.ts';
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

/** Parts have no sentence embedding, which would double the cost; their embedding block stays at its mean. */
export function encodeForBench(encoder: RouteEncoder, request: RouteRequest): BenchInput {
  const input = encoder.encode(request);
  const partOf = (part: string): Float32Array => {
    const { features } = encoder.encode({ ...request, turns: [...request.turns.slice(0, -1), part] });
    if (request.vector !== undefined) features.fill(0, NUM_QUERY_FEATURES, NUM_QUERY_FEATURES + input.embedding.length);
    return features;
  };
  return {
    ...input,
    text: (request.turns.at(-1) ?? '').toLowerCase(),
    segments: [...segmentTurns(request.turns).map(partOf), input.features],
  };
}
