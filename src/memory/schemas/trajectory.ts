import { z } from 'zod';
import type { BuiltRecords } from '../built-records.ts';
import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import type { MemoryRecord, PutRecord } from '../types.ts';
import { count, durationMs, embedding, fromBody, hasSpace, name, parseStored, parseWith, space, text, timeMs, toBody, unit, uuid, withoutKeys } from './primitives.ts';
import { MAX_TRAJECTORY_TEXT } from './text-lengths.ts';

export const VERDICTS = ['success', 'failure', 'partial', 'unknown'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Most sources of one answer. */
const MAX_RETRIEVED = 64;
/** Most candidates of one search. */
const MAX_CANDIDATES = 64;
const MAX_FEEDBACK = 16;
const MAX_STEPS = 64;

const feedbackEntry = z.strictObject({
  atMs: timeMs,
  source: z.enum(['api', 'cli', 'ui', 'implicit']),
  score: unit.nullable(),
  comment: text(4096).nullable(),
  hasCorrection: z.boolean(),
  /** The rated part; absent: the answer. */
  target: z.enum(['answer', 'route']).optional(),
});
export type FeedbackEntry = z.infer<typeof feedbackEntry>;

/** `stored`: nothing changed at once; the background and deep loops learn from it. */
const OUTCOME_STATES = ['remembered', 'learned', 'refused', 'already-known', 'superseded', 'stored'] as const;

/** The outcome of the last feedback. */
const feedbackOutcome = z.strictObject({
  state: z.enum(OUTCOME_STATES),
  reason: text(1024),
  /** Of the instant loop: mean −log p of a token; null: it did not run. */
  lossBefore: z.number().nullable(),
  lossAfter: z.number().nullable(),
  /** Requests whose feedback it replaces. */
  supersedes: z.array(uuid).max(64),
});
export type FeedbackOutcome = z.infer<typeof feedbackOutcome>;

/** The router's inputs besides the text, so that it can be trained on the same. */
const routeState = z.strictObject({
  /** The candidate that answered. */
  candidate: name,
  /** Of the search results, the nearest first. */
  similarities: z.array(z.number().min(-1).max(1)).max(32),
  load: unit,
  /** By candidate, at that time. */
  latencyMs: z.array(durationMs).max(256),
  /** By candidate, the share of the prompt that was in its prefix cache. */
  warmShares: z.array(unit).max(256).optional(),
});
export type RouteState = z.infer<typeof routeState>;

/** A candidate of the request's search, as ranked then; `retrieved` has those that were shown. */
const rankedCandidate = z.strictObject({
  id: uuid,
  /** Rounding may exceed 1 a little. */
  similarity: z.number().min(-1.01).max(1.01).nullable(),
  score: z.number().min(-1e6).max(1e6),
  hops: z.int().min(0).max(64),
});

/** A request with its answer and feedback, for learning. Unlike audit entries it changes. */
export const trajectory = z
  .strictObject({
    requestId: uuid,
    sessionId: name.nullable(),
    userId: name.nullable(),
    model: name,
    createdMs: timeMs,
    expiresMs: timeMs.nullable(),
    /** The user's text. */
    query: text(MAX_TRAJECTORY_TEXT),
    /** The model's input: a text, or turns. Null: too long, or token ids; it cannot be used for training. */
    prompt: z
      .union([
        text(MAX_TRAJECTORY_TEXT),
        z.array(z.strictObject({ role: name, content: text(MAX_TRAJECTORY_TEXT) })).max(256),
      ])
      .nullable(),
    answer: text(MAX_TRAJECTORY_TEXT),
    /** Whether the model ended the answer itself; absent: unknown. */
    isComplete: z.boolean().optional(),
    /** The user's corrected answer. */
    correction: text(MAX_TRAJECTORY_TEXT, 1).nullable(),
    steps: z.array(text(1024)).max(MAX_STEPS),
    parameters: z.strictObject({
      /** The router's probability of choosing this model; null: no router was used. */
      propensity: unit.nullable(),
      /** How the answer was sampled; null: not known. */
      temperature: z.number().min(0).max(100).nullable().optional(),
      topP: unit.nullable().optional(),
    }),
    /** Only with a router. */
    route: routeState.optional(),
    candidates: z.array(rankedCandidate).max(MAX_CANDIDATES).optional(),
    /** The shown sources. `isUsed`: whether the answer used it; null: unknown. */
    retrieved: z.array(z.strictObject({ id: uuid, isUsed: z.boolean().nullable() })).max(MAX_RETRIEVED),
    verdict: z.enum(VERDICTS),
    /** Null: unrated. */
    quality: unit.nullable(),
    /** Estimated without a person, before parts that need an embedding; absent: unknown. No weights are trained on it. */
    estimate: unit.optional(),
    latencyMs: durationMs,
    numOutputTokens: count,
    feedback: z.array(feedbackEntry).max(MAX_FEEDBACK),
    outcome: feedbackOutcome.optional(),
    /** Whether the pattern bank has it already. */
    isDistilled: z.boolean(),
    embedding: embedding.nullable(),
    space: space.nullable(),
  })
  .refine(...hasSpace('embedding'));
export type Trajectory = z.infer<typeof trajectory>;

const ANSWER_PREFIX = /^(?:chatcmpl|cmpl|resp|msg|conv)[-_]/;

/** The request id without the prefix of an answer's format. */
export const plainRequestId = (id: string): string => id.replace(ANSWER_PREFIX, '');

/** The name that its record's id is derived from. */
export const trajectoryName = (requestId: string): readonly ['trajectory', string] => ['trajectory', requestId];

export function trajectoryToRecord(one: Trajectory, place: { id: string; tenant: string }): PutRecord {
  const checked = parseWith<Trajectory>(trajectory, one, 'trajectory');
  const { createdMs, expiresMs, embedding: vector, space, ...rest } = checked;
  const { requestId, sessionId, userId, model, verdict, quality, isDistilled, ...body } = rest;
  const fields = { requestId, sessionId, userId, model, verdict, quality, isDistilled };
  return { ...place, kind: 'trajectory', createdMs, expiresMs, fields, body: toBody(body), vector, space };
}

/** Trajectories of requests, as new records. */
export function buildTrajectories(
  added: readonly { readonly tenant: string; readonly trajectory: Trajectory }[],
  sha256: Sha256,
): BuiltRecords<null> {
  const records = added.map(({ tenant, trajectory: one }) => ({
    ...trajectoryToRecord(one, { id: nameId(sha256, tenant, ...trajectoryName(one.requestId)), tenant }),
    ifVersion: 0,
  }));
  return { records, result: null };
}

/** Parameters that older versions wrote as null. */
const REMOVED_KEYS = ['contextSize', 'adapterHash'];

export function trajectoryFromRecord(record: MemoryRecord): Trajectory {
  const { createdMs, expiresMs, vector, space } = record;
  const body = fromBody(record.body) as { readonly parameters?: unknown };
  const parameters = withoutKeys(body.parameters, REMOVED_KEYS);
  return parseStored<Trajectory>(
    trajectory,
    { ...body, parameters, ...record.fields, createdMs, expiresMs, embedding: vector, space },
    `trajectory ${record.id}`,
  );
}
