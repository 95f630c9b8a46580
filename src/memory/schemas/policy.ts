import { z } from 'zod';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { count, embedding, floats, fromBody, hasSpace, name, parseStored, parseWith, space, text, timeMs, toBody, unit } from './primitives.ts'; // prettier-ignore

/** Packed they take 2.8 MiB; a body holds 4 MiB. */
const MAX_WEIGHTS = 1 << 19;

const precision = z.enum(['f32', 'f16', 'q8', 'q4_k', 'q4_0']);

const quantizationParameters = z
  .strictObject({
    /** First and last layer, both included. */
    layerRange: z.tuple([count, count]),
    /** Of tokens older than the tail. */
    precision,
    tailPrecision: precision,
    tailTokens: count,
    activationThreshold: z.number(),
    memoryBudgetBytes: count,
    /** 0: only latency counts, 1: only quality. */
    qualityWeight: unit,
  })
  .refine(({ layerRange: [first, last] }) => first <= last, 'layerRange ends before it starts');

const fastGrnnWeights = z
  .strictObject({
    inputSize: z.int().min(1).max(4096),
    hiddenSize: z.int().min(1).max(1024),
    rank: z.int().min(1).max(1024),
    /** hidden × input, row by row. */
    inputToGate: floats(MAX_WEIGHTS),
    inputToState: floats(MAX_WEIGHTS),
    /** hidden × rank, then rank × hidden. */
    gateLeft: floats(MAX_WEIGHTS),
    gateRight: floats(MAX_WEIGHTS),
    stateLeft: floats(MAX_WEIGHTS),
    stateRight: floats(MAX_WEIGHTS),
    gateBias: floats(MAX_WEIGHTS),
    stateBias: floats(MAX_WEIGHTS),
    zeta: z.number(),
    nu: z.number(),
  })
  .superRefine((weights, context) => {
    const { inputSize, hiddenSize, rank } = weights;
    const sizes = {
      inputToGate: hiddenSize * inputSize,
      inputToState: hiddenSize * inputSize,
      gateLeft: hiddenSize * rank,
      gateRight: rank * hiddenSize,
      stateLeft: hiddenSize * rank,
      stateRight: rank * hiddenSize,
      gateBias: hiddenSize,
      stateBias: hiddenSize,
    };
    for (const [key, size] of Object.entries(sizes)) {
      const { length } = weights[key as keyof typeof sizes];
      if (length !== size) {
        context.addIssue({ code: 'custom', path: [key], message: `has ${length} values, its sizes ask for ${size}` });
      }
    }
  });

const routingChoice = z.strictObject({
  model: name.nullable(),
  contextSize: z
    .int()
    .min(1)
    .max(1 << 24)
    .nullable(),
  temperature: z.number().min(0).max(2).nullable(),
  topP: unit.nullable(),
});

const routerParameters = z.strictObject({
  /** Null: untrained; `safeDefault` decides. */
  cellWeights: fastGrnnWeights.nullable(),
  headBiases: z.strictObject({
    model: z.array(z.number()).max(4),
    contextBucket: z.array(z.number()).max(16),
    temperature: z.number(),
    topP: z.number(),
    confidence: z.number(),
  }),
  ewcLambda: z.number().min(0).max(1e6),
  trainingLoss: z.number().min(0).nullable(),
  /** Below it `safeDefault` decides. */
  minConfidence: unit,
  safeDefault: routingChoice,
});

const ewcParameters = z
  .strictObject({
    lambda: z.number().min(0).max(1e6),
    minLambda: z.number().min(0).max(1e6),
    maxLambda: z.number().min(0).max(1e6),
    fisherDecay: unit,
    fisherFloor: z.number().min(0).max(1),
    minSamples: count,
    maxTasks: z.int().min(1).max(1000),
  })
  .refine(
    (ewc) => ewc.minLambda <= ewc.lambda && ewc.lambda <= ewc.maxLambda,
    'lambda is outside minLambda to maxLambda',
  );

const patternParameters = z.strictObject({
  summary: text(4096),
  verdict: z.enum(['success', 'failure', 'partial', 'unknown']),
  /** Trajectories it was made of. */
  support: count,
  quality: unit,
  numUses: count,
  recommended: routingChoice,
});

const kernelParameters = z.strictObject({
  operation: name,
  /** `auto`: chosen for the machine. */
  packId: name,
  kernelId: name.nullable(),
  meanMicros: z.number().min(0).nullable(),
  numSamples: count,
});

/** The parameters of each policy type. */
const POLICY_PARAMETERS = {
  quantization: quantizationParameters,
  router: routerParameters,
  ewc: ewcParameters,
  pattern: patternParameters,
  kernel: kernelParameters,
} as const;
export type PolicyType = keyof typeof POLICY_PARAMETERS;
export const POLICY_TYPES = Object.keys(POLICY_PARAMETERS) as PolicyType[];
export type PolicyParameters<T extends PolicyType = PolicyType> = z.infer<(typeof POLICY_PARAMETERS)[T]>;

const policySource = z.enum([
  'default',
  'instant-loop',
  'background-loop',
  'deep-loop',
  'federated',
  'operator',
]);
export type PolicySource = z.infer<typeof policySource>;

const envelope = {
  name,
  /** 1 at first, one more with each put; 0 for a bundled default. */
  policyVersion: count,
  confidence: unit,
  fisherDiagonal: floats(MAX_WEIGHTS).nullable(),
  embedding: embedding.nullable(),
  space: space.nullable(),
  createdMs: timeMs,
  lastAccessedMs: timeMs,
  source: policySource,
  /** Why it has these values. */
  reason: text(1024),
};

export const policyEntry = z
  .discriminatedUnion('policyType', [
    z.strictObject({ ...envelope, policyType: z.literal('quantization'), parameters: quantizationParameters }),
    z.strictObject({ ...envelope, policyType: z.literal('router'), parameters: routerParameters }),
    z.strictObject({ ...envelope, policyType: z.literal('ewc'), parameters: ewcParameters }),
    z.strictObject({ ...envelope, policyType: z.literal('pattern'), parameters: patternParameters }),
    z.strictObject({ ...envelope, policyType: z.literal('kernel'), parameters: kernelParameters }),
  ])
  .refine(...hasSpace('embedding'))
  .refine(
    (policy) => policy.fisherDiagonal === null || policy.policyType === 'ewc',
    'fisherDiagonal is of ewc policies',
  );
export type PolicyEntry = z.infer<typeof policyEntry>;
/** A policy of one type, its parameters typed. */
export type PolicyOf<T extends PolicyType> = Extract<PolicyEntry, { policyType: T }>;

export function policyKey(type: PolicyType, policyName: string): string {
  return `${type}/${policyName}`;
}

export function policyToRecord(
  policy: PolicyEntry,
  place: { id: string; tenant: string; isCurrent: boolean },
): PutRecord {
  const {
    embedding: vector,
    space,
    policyType,
    confidence,
    source,
    policyVersion,
    ...body
  } = parseWith<PolicyEntry>(policyEntry, policy, `policy ${policy.policyType} "${policy.name}"`);
  return {
    id: place.id,
    tenant: place.tenant,
    kind: 'policy',
    expiresMs: null,
    fields: {
      policyKey: policyKey(policyType, body.name),
      policyType,
      policyVersion,
      isCurrent: place.isCurrent,
      confidence,
      source,
    },
    body: toBody(body),
    vector,
    space,
  };
}

export function policyFromRecord(record: MemoryRecord): PolicyEntry {
  const { policyType, confidence, source, policyVersion } = record.fields;
  const body = fromBody(record.body) as object;
  return parseStored<PolicyEntry>(
    policyEntry,
    { ...body, policyType, confidence, source, policyVersion, embedding: record.vector, space: record.space },
    `policy ${record.id}`,
  );
}
