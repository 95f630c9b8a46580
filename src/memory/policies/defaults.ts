import type { PolicyEntry, PolicyOf, PolicyType } from '../schemas/policy.ts';

const common = {
  name: 'main',
  policyVersion: 0,
  fisherDiagonal: null,
  embedding: null,
  space: null,
  createdMs: 0,
  lastAccessedMs: 0,
  source: 'default',
} as const;

/** Policies before anything is learned. Confidence 0: any learned policy replaces them. */
export const DEFAULT_POLICIES: { readonly [T in PolicyType]: PolicyOf<T> } = {
  router: {
    ...common,
    policyType: 'router',
    confidence: 0,
    parameters: { version: 0, winner: '', candidates: [], metrics: {}, sampling: [] },
    reason: 'no router is trained: the default candidate answers, with default sampling',
  },
  ewc: {
    ...common,
    policyType: 'ewc',
    confidence: 0,
    parameters: {
      lambda: 2000,
      minLambda: 100,
      maxLambda: 15_000,
      fisherDecay: 0.999,
      fisherFloor: 1e-6,
      minSamples: 50,
      maxTasks: 10,
    },
    reason: 'starting values; lambda moves by 10 % with the loss of earlier tasks, and a boundary needs 50 examples',
  },
};

export function defaultPolicy(type: PolicyType, name: string): PolicyEntry | null {
  return name === 'main' ? DEFAULT_POLICIES[type] : null;
}
