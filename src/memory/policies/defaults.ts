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

/** Types of which something can be said before anything is learned; a pattern is nothing but what was learned. */
export type DefaultPolicyType = Exclude<PolicyType, 'pattern'>;

/** What holds until something is learned. `confidence` 0: anything learned beats it. */
export const DEFAULT_POLICIES: { readonly [T in DefaultPolicyType]: PolicyOf<T> } = {
  quantization: {
    ...common,
    policyType: 'quantization',
    confidence: 0,
    parameters: {
      layerRange: [0, 1023],
      precision: 'q8',
      tailPrecision: 'f16',
      tailTokens: 256,
      activationThreshold: 0,
      memoryBudgetBytes: 0,
      qualityWeight: 0.5,
    },
    reason: 'q8 costs 0.002 of perplexity, 4 bits 7 to 14 % on models of 1 B: no fewer bits before they are measured',
  },
  router: {
    ...common,
    policyType: 'router',
    confidence: 0,
    parameters: {
      cellWeights: null,
      headBiases: { model: [], contextBucket: [], temperature: 0, topP: 0, confidence: 0 },
      ewcLambda: 2000,
      trainingLoss: null,
      minConfidence: 0.7,
      safeDefault: { model: null, contextSize: null, temperature: 0.7, topP: 0.9 },
    },
    reason: 'no router is trained: the loaded model answers, with the documented sampling',
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
  kernel: {
    ...common,
    policyType: 'kernel',
    confidence: 0,
    parameters: { operation: '*', packId: 'auto', kernelId: null, meanMicros: null, numSamples: 0 },
    reason: 'nothing is measured yet: the pack that passed its self-check on this machine',
  },
};

export function defaultPolicy(type: PolicyType, name: string): PolicyEntry | null {
  return name === 'main' && type in DEFAULT_POLICIES ? DEFAULT_POLICIES[type as DefaultPolicyType] : null;
}
