import type { Estimator } from '../estimator.ts';
import type { PolicyState, RouteExample } from '../types.ts';

/** Mean of the known outcomes per candidate, 0.5 if there are none. */
export function meanOutcomes(examples: readonly RouteExample[], numCandidates: number): Float32Array {
  return Float32Array.from({ length: numCandidates }, (_, i) => {
    const known = examples.map(({ outcomes }) => outcomes[i]!).filter((outcome) => !Number.isNaN(outcome));
    return known.length === 0 ? 0.5 : known.reduce((sum, outcome) => sum + outcome, 0) / known.length;
  });
}

/** Always chooses the same candidate: the baseline every router must beat. */
export function createConstant(name: string, candidate: number, numCandidates: number): Estimator {
  const qualities = Float64Array.from({ length: numCandidates }, (_, i) => +(i === candidate));
  return {
    name,
    estimate: () => ({ qualities, confidence: 1, why: { kind: 'fixed', detail: `always candidate ${candidate}` } }),
    update() {},
    save: () => ({ kind: 'constant', numbers: { candidate, numCandidates }, arrays: {}, texts: { name: [name] } }),
  };
}

export function loadConstant({ numbers, texts }: PolicyState): Estimator {
  return createConstant(texts?.['name']?.[0] ?? 'constant', numbers['candidate']!, numbers['numCandidates']!);
}
