import { z } from 'zod';
import type { MemoryRecord, PutRecord } from '../types.ts';
import {
  count,
  durationMs,
  embedding,
  fromBody,
  name,
  parseStored,
  parseWith,
  space,
  text,
  timeMs,
  toBody,
  unit,
  uuid,
  withoutKeys,
} from './primitives.ts';
import { MAX_TRAJECTORY_TEXT } from './text-lengths.ts';

export const VERDICTS = ['success', 'failure', 'partial', 'unknown'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Sources that were offered to one answer: what an operator may ask for, and no more. */
const MAX_RETRIEVED = 64;
/** What a search may have looked at. */
const MAX_CANDIDATES = 64;
const MAX_FEEDBACK = 16;
const MAX_STEPS = 64;

export const feedbackSource = z.enum(['api', 'cli', 'ui', 'implicit']);

/** What somebody said of an answer. */
export const feedbackEntry = z.strictObject({
  atMs: timeMs,
  source: feedbackSource,
  score: unit.nullable(),
  comment: text(4096).nullable(),
  hasCorrection: z.boolean(),
});
export type FeedbackEntry = z.infer<typeof feedbackEntry>;

/** What a router saw of a request beside its words, so that it can be trained on the same. */
const routeState = z.strictObject({
  /** Which of the configured candidates answered. */
  candidate: name,
  /** Of what the memory found, the nearest first. */
  similarities: z.array(z.number().min(-1).max(1)).max(32),
  load: unit,
  /** By candidate, as measured then. */
  latencyMs: z.array(durationMs).max(256),
});
export type RouteState = z.infer<typeof routeState>;

/** What the memory looked at for a request, as it ranked it then: what was shown of it is in `retrieved`. */
const rankedCandidate = z.strictObject({
  id: uuid,
  /** Rounding may bring it a little beyond 1. */
  similarity: z.number().min(-1.01).max(1.01).nullable(),
  score: z.number().min(-1e6).max(1e6),
  hops: z.int().min(0).max(64),
});

/** A request, what was done for it, and what came of it: what can be learned from. The audit log is apart, and never changes. */
export const trajectory = z
  .strictObject({
    requestId: uuid,
    sessionId: name.nullable(),
    userId: name.nullable(),
    model: name,
    createdMs: timeMs,
    expiresMs: timeMs.nullable(),
    /** What it was about. */
    query: text(MAX_TRAJECTORY_TEXT),
    /** As the model was told it: a text, or turns. Null: too long to be kept, or token ids; nothing can be trained on it. */
    prompt: z
      .union([
        text(MAX_TRAJECTORY_TEXT),
        z.array(z.strictObject({ role: name, content: text(MAX_TRAJECTORY_TEXT) })).max(256),
      ])
      .nullable(),
    answer: text(MAX_TRAJECTORY_TEXT),
    /** What the answer should have been. */
    correction: text(MAX_TRAJECTORY_TEXT, 1).nullable(),
    steps: z.array(text(1024)).max(MAX_STEPS),
    parameters: z.strictObject({
      /** How likely the router was to choose this model; null: nobody chose. */
      propensity: unit.nullable(),
      /** How the answer was sampled; null: not known. */
      temperature: z.number().min(0).max(100).nullable().optional(),
      topP: unit.nullable().optional(),
    }),
    /** Only where a router chose. */
    route: routeState.optional(),
    candidates: z.array(rankedCandidate).max(MAX_CANDIDATES).optional(),
    /** What was shown; whether the answer used it, null where that cannot be told. */
    retrieved: z.array(z.strictObject({ id: uuid, isUsed: z.boolean().nullable() })).max(MAX_RETRIEVED),
    verdict: z.enum(VERDICTS),
    /** Null: nobody said. */
    quality: unit.nullable(),
    latencyMs: durationMs,
    numOutputTokens: count,
    feedback: z.array(feedbackEntry).max(MAX_FEEDBACK),
    /** Whether its information is in the bank already. */
    isDistilled: z.boolean(),
    embedding: embedding.nullable(),
    space: space.nullable(),
  })
  .refine((one) => (one.embedding === null) === (one.space === null), 'embedding and space come together');
export type Trajectory = z.infer<typeof trajectory>;

/** What the id of its record is made of. */
export const trajectoryName = (requestId: string): readonly ['trajectory', string] => ['trajectory', requestId];

export function trajectoryToRecord(one: Trajectory, place: { id: string; tenant: string }): PutRecord {
  const {
    requestId,
    sessionId,
    userId,
    model,
    verdict,
    quality,
    isDistilled,
    createdMs,
    expiresMs,
    embedding: vector,
    space: made,
    ...body
  } = parseWith<Trajectory>(trajectory, one, 'trajectory');
  return {
    ...place,
    kind: 'trajectory',
    createdMs,
    expiresMs,
    fields: { requestId, sessionId, userId, model, verdict, quality, isDistilled },
    body: toBody(body),
    vector,
    space: made,
  };
}

/** Of the parameters: written as null by older versions. */
const REMOVED_KEYS = ['contextSize', 'adapterHash'];

export function trajectoryFromRecord(record: MemoryRecord): Trajectory {
  const { createdMs, expiresMs, vector, space: made } = record;
  const body = fromBody(record.body) as { readonly parameters?: unknown };
  const parameters = withoutKeys(body.parameters, REMOVED_KEYS);
  return parseStored<Trajectory>(
    trajectory,
    { ...body, parameters, ...record.fields, createdMs, expiresMs, embedding: vector, space: made },
    `trajectory ${record.id}`,
  );
}
