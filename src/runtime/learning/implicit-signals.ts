import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';

/** Behaviour that counts as implicit feedback. */
export type ImplicitSignal = 'retry' | 'edit' | 'stop';

/**
 * Below the middle, but never low enough for a verdict: the right answer is unknown, so no weights are trained on a guess. Router and
 * patterns use the quality.
 */
export const IMPLICIT_SCORES: Readonly<Record<ImplicitSignal, number>> = { retry: 0.35, edit: 0.45, stop: 0.4 };

export const IMPLICIT_WORDS: Readonly<Record<ImplicitSignal, string>> = {
  retry: 'asked again',
  edit: 'asked differently',
  stop: 'stopped',
};

/** A later request is unrelated. */
const WITHIN_MS = 10 * 60_000;
/** Concurrent conversations per tenant. */
const MAX_RECENT = 16;
const MAX_TENANTS = 1000;

interface Asked {
  readonly requestId: string;
  readonly whose: string;
  readonly before: string;
  readonly last: string;
  readonly atMs: number;
}

export interface RequestSignal {
  readonly requestId: string;
  readonly signal: ImplicitSignal;
}

type Request = Pick<NewTrajectory, 'requestId' | 'sessionId' | 'userId' | 'model' | 'prompt' | 'createdMs'>;

/** Detects a request that repeats or rephrases the last turn of an earlier one. */
export function createImplicitSignals() {
  const tenants = new Map<string, Asked[]>();

  return {
    /** The earlier request that this one repeats or rephrases; null: none. */
    notice(tenant: string, request: Request): RequestSignal | null {
      const asked = askedOf(request);
      if (asked === null) return null;
      const recent = (tenants.get(tenant) ?? []).filter(({ atMs }) => asked.atMs - atMs <= WITHIN_MS);
      const earlier = recent.findLast((one) => one.whose === asked.whose && one.before === asked.before);
      tenants.delete(tenant);
      tenants.set(tenant, [...recent.filter((one) => one !== earlier), asked].slice(-MAX_RECENT));
      if (tenants.size > MAX_TENANTS) tenants.delete(tenants.keys().next().value!);
      if (earlier === undefined) return null;
      return { requestId: earlier.requestId, signal: earlier.last === asked.last ? 'retry' : 'edit' };
    },
    has: (tenant: string): boolean => tenants.has(tenant),
    forget: (tenant: string): void => void tenants.delete(tenant),
  };
}

/** Null: not comparable. */
function askedOf({ requestId, sessionId, userId, model, prompt, createdMs }: Request): Asked | null {
  if (prompt === null) return null;
  const whose = JSON.stringify([sessionId, userId, model]);
  // A text has no turns: only an equal text is a repetition.
  if (typeof prompt === 'string') return { requestId, whose, before: prompt, last: '', atMs: createdMs };
  const last = prompt.at(-1);
  if (last?.role !== 'user') return null;
  const turns = prompt.slice(0, -1);
  // Without a session, two first messages are two conversations, not a rephrased one.
  const before = JSON.stringify(sessionId === null && !turns.some(({ role }) => role === 'assistant') ? prompt : turns);
  return { requestId, whose, before, last: last.content, atMs: createdMs };
}
