import { z } from 'zod';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { count, embedding, floats, fromBody, hasSpace, name, parseStored, parseWith, space, text, timeMs, toBody, unit } from './primitives.ts';

/** Packed they take 2.8 MiB; a body holds 4 MiB. */
const MAX_WEIGHTS = 1 << 19;

/** How a candidate's answers are sampled where a request says nothing of it. */
export const learnedSampling = z.strictObject({
  candidate: name,
  temperature: z.number().min(0).max(100),
  topP: unit,
  /** Mean quality with these settings, and with all others, on requests that they were not chosen by. */
  quality: unit,
  otherQuality: unit,
  /** Conversations that were rated with these settings. */
  numSamples: count,
});
export type LearnedSampling = z.infer<typeof learnedSampling>;

export const routerParameters = z.strictObject({
  /** Of the log of learned versions, which has the weights; 0: the default candidate answers. */
  version: count,
  /** Which way to judge won. */
  winner: text(200),
  candidates: z.array(name).max(256),
  /** The figures it was accepted by. */
  metrics: z.record(z.string().max(64), z.number()),
  sampling: z.array(learnedSampling).max(256),
});
export type RouterParameters = z.infer<typeof routerParameters>;

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

/** The parameters of each type of policy; a new type is one line here. */
export const POLICY_PARAMETERS = {
  router: routerParameters,
  ewc: ewcParameters,
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
    z.strictObject({ ...envelope, policyType: z.literal('router'), parameters: routerParameters }),
    z.strictObject({ ...envelope, policyType: z.literal('ewc'), parameters: ewcParameters }),
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
