import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';

/** User action taken as implicit feedback. */
export type ImplicitSignal = 'retry' | 'edit' | 'stop';

/**
 * Below 0.5, but never low enough for a verdict: the better answer is unknown, so no token is trained on a
 * guess. Router and patterns see the quality.
 */
export const IMPLICIT_SCORES: Readonly<Record<ImplicitSignal, number>> = { retry: 0.35, edit: 0.45, stop: 0.4 };

export const IMPLICIT_WORDS: Readonly<Record<ImplicitSignal, string>> = {
  retry: 'asked again',
  edit: 'asked differently',
  stop: 'stopped',
};

/** Later it is another matter. */
const WITHIN_MS = 10 * 60_000;
/** Conversations that go on at once. */
const MAX_RECENT = 16;
const MAX_TENANTS = 1000;

interface Asked {
  readonly requestId: string;
  readonly whose: string;
  readonly before: string;
  readonly last: string;
  readonly atMs: number;
}

export interface HeardSignal {
  readonly requestId: string;
  readonly signal: ImplicitSignal;
}

type Request = Pick<NewTrajectory, 'requestId' | 'sessionId' | 'userId' | 'model' | 'prompt' | 'createdMs'>;

/** Notices when a request asks for what was just answered: the same again, or the last turn in other words. */
export function createImplicitSignals() {
  const tenants = new Map<string, Asked[]>();

  return {
    /** Of which earlier answer the request tells something; null: of none. */
    notice(tenant: string, request: Request): HeardSignal | null {
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
    forget: (tenant: string): void => void tenants.delete(tenant),
  };
}

/** Null: nothing to compare by. */
function askedOf({ requestId, sessionId, userId, model, prompt, createdMs }: Request): Asked | null {
  if (prompt === null) return null;
  const whose = JSON.stringify([sessionId, userId, model]);
  // A text has no turns: it is the same, or it is another one.
  if (typeof prompt === 'string') return { requestId, whose, before: prompt, last: '', atMs: createdMs };
  const last = prompt.at(-1);
  if (last?.role !== 'user') return null;
  const turns = prompt.slice(0, -1);
  // The first words of a conversation are not another's in other words, unless it is known to be the same one.
  const before = JSON.stringify(sessionId === null && !turns.some(({ role }) => role === 'assistant') ? prompt : turns);
  return { requestId, whose, before, last: last.content, atMs: createdMs };
}
