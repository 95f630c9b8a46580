import { isWholeTenant } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Schedule } from '../../memory/common/services.ts';
import type { Memory } from '../../memory/memory.ts';
import { nameId } from '../../memory/common/ids.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import {
  type FeedbackOutcome,
  plainRequestId,
  type Trajectory,
  trajectoryName,
} from '../../memory/schemas/trajectory.ts';
import type { InstantReport } from '../../learning/sona/sona.ts';
import type { Feedback } from '../../learning/trajectories/feedback.ts';
import {
  createTrajectories,
  type NewTrajectory,
  type RatedTrajectory,
  requestNotFound,
  type Trajectories,
} from '../../learning/trajectories/trajectories.ts';
import { type Corrections, createCorrections, type RememberedCorrection } from '../memory/corrections.ts';
import { createImplicitSignals, IMPLICIT_SCORES, IMPLICIT_WORDS, type RequestSignal } from './implicit-signals.ts';
import { createRateLimit } from './rate-limit.ts';
import { createTrajectoryKeeper } from './trajectory-keeper.ts';

/** The result of feedback. */
export interface FeedbackReceipt {
  readonly requestId: string;
  readonly verdict: Trajectory['verdict'];
  readonly quality: number | null;
  /** The outcome for the correction in the memory; null: there is none. */
  readonly remembered: RememberedCorrection | null;
  /** The outcome of the instant learning loop; never rejects. */
  readonly learned: Promise<InstantReport>;
  /** The outcome as a whole, once it is stored; never rejects. */
  readonly outcome: Promise<FeedbackOutcome>;
}

/** The state of the feedback on a request. */
export interface FeedbackState {
  readonly requestId: string;
  readonly verdict: Trajectory['verdict'];
  readonly quality: number | null;
  /** Of the last feedback; null: the answer is not rated. */
  readonly outcome: FeedbackOutcome | null;
  /** Whether the learning loop is still running. */
  readonly isPending: boolean;
}

/** Stores answered requests and the feedback on them, in the memory. */
export interface FeedbackLog {
  readonly trajectories: Trajectories;
  /** Corrected answers for near questions. */
  readonly corrections: Corrections;
  /** Announces a request that is being written: feedback on it waits until then. */
  expect(tenant: string, requestId: string, written: Promise<void>): void;
  /** Stores an answered request in the background. */
  observe(tenant: string, trajectory: NewTrajectory): void;
  /** Stores a request whose client left during the answer, if implicit feedback is on. */
  observeStopped(tenant: string, trajectory: NewTrajectory): void;
  /** Resolves when the feedback is on disk; `not_found` for requests that are not stored. */
  feedback(tenant: string, feedback: Feedback): Promise<FeedbackReceipt>;
  /** The outcome of the feedback on a request; `not_found` for requests that are not stored. */
  receipt(tenant: string, requestId: string): Promise<FeedbackState>;
  /** Resolves when all observed requests and signals are stored. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface FeedbackLogContext {
  readonly memory: Memory;
  readonly schedule: Schedule;
  /** Called with errors from background work. */
  readonly report: (message: string) => void;
  /** Whether repeated, rephrased and abandoned requests count as feedback. Default false. */
  readonly implicitFeedback?: boolean;
  /** Whether corrections are recalled for near questions of the same user. Default true. */
  readonly corrections?: boolean;
  /** The learning loop. Default: none. */
  learn?(tenant: string, feedback: Feedback, rated: RatedTrajectory): Promise<InstantReport>;
}

const FEEDBACK_LIMIT = { burst: 60, perMinute: 60 };

export function createFeedbackLog({
  memory,
  schedule,
  report,
  implicitFeedback = false,
  corrections: isRecalling = true,
  learn = async () => skipLearning('learning is off'),
}: FeedbackLogContext): FeedbackLog {
  const { store, services } = memory;
  const trajectories = createTrajectories(store, services);
  const corrections = createCorrections(memory, isRecalling);
  const keeper = createTrajectoryKeeper({ trajectories, foreground: memory.foreground, schedule, report });
  const signals = implicitFeedback ? createImplicitSignals() : null;
  const limit = createRateLimit(() => services.now(), FEEDBACK_LIMIT);
  const expected = new Map<string, Promise<void>>();
  const pending = new Set<Promise<unknown>>();
  /** Feedback whose outcome is open. */
  const open = new Map<string, Promise<unknown>>();
  const keyOf = (tenant: string, requestId: string): string => JSON.stringify([tenant, requestId]);

  function track<T>(work: Promise<T>): Promise<T> {
    pending.add(work);
    void work.finally(() => pending.delete(work));
    return work;
  }

  async function rate(tenant: string, feedback: Feedback): Promise<RatedTrajectory> {
    await expected.get(keyOf(tenant, feedback.requestId));
    await keeper.kept(tenant, feedback.requestId);
    return trajectories.rate(tenant, feedback);
  }

  /** Null: the feedback has no correction, or the memory failed. */
  async function remember(
    tenant: string,
    { correction = null }: Feedback,
    { before, after }: RatedTrajectory,
  ): Promise<RememberedCorrection | null> {
    try {
      // Praise withdraws an earlier correction.
      if (before.correction !== null && after.correction === null) {
        await corrections.forget(tenant, [{ field: 'requestId', is: '=', value: after.requestId }]);
      }
      return correction === null ? null : await corrections.remember(tenant, after);
    } catch (error) {
      report(`remembering a correction failed: ${messageOf(error)}`);
      return null;
    }
  }

  /** The effect of a rating on the correction that the answer repeated; empty: nothing. */
  async function reconsider(
    tenant: string,
    { correction = null, target }: Feedback,
    { before, after }: RatedTrajectory,
  ) {
    if (correction !== null || target === 'route' || before.verdict === after.verdict) return '';
    // Praise says nothing new about a correction, unless it takes a rejection back.
    if (after.verdict === 'success' && before.verdict !== 'failure') return '';
    try {
      if ((await corrections.reconsider(tenant, after)) === 0) return '';
      return after.verdict === 'failure' ? OF_REJECTED : OF_RESTORED;
    } catch (error) {
      report(`rating a correction failed: ${messageOf(error)}`);
      return '';
    }
  }

  /** Stores the outcome, also of the feedback that it replaces. */
  async function conclude(tenant: string, requestId: string, outcome: FeedbackOutcome): Promise<FeedbackOutcome> {
    const replaced = { ...NO_OUTCOME, state: 'superseded', reason: `newer feedback counts: request ${requestId}` } as const; // prettier-ignore
    try {
      await trajectories.conclude(tenant, requestId, outcome);
      for (const older of outcome.supersedes) {
        await trajectories.conclude(tenant, older, replaced).catch((error: unknown) => {
          if (!(error instanceof RuvLLMError) || error.code !== 'not_found') throw error; // expired
        });
      }
    } catch (error) {
      report(`storing the outcome of feedback failed: ${messageOf(error)}`);
    }
    return outcome;
  }

  function rateImplicitly(tenant: string, { requestId, signal }: RequestSignal): void {
    const feedback = { requestId, source: 'implicit', score: IMPLICIT_SCORES[signal], comment: IMPLICIT_WORDS[signal] } as const; // prettier-ignore
    void track(
      rate(tenant, feedback).catch((error: unknown) => {
        if (error instanceof RuvLLMError && error.code === 'not_found') return; // deleted meanwhile
        report(`storing implicit feedback failed: ${messageOf(error)}`);
      }),
    );
  }

  async function settle(): Promise<void> {
    await Promise.allSettled(expected.values());
    await keeper.settle();
    await Promise.allSettled(pending);
  }

  const unregister = memory.erasure.register({
    name: 'feedback',
    async erase({ tenant }) {
      // Queued requests are written first, where the memory erases them.
      await settle();
      signals?.forget(tenant);
      limit.forget(tenant);
    },
    // Other users of the tenant may have sent requests since.
    count: async (subject) => (isWholeTenant(subject) && signals?.has(subject.tenant) === true ? 1 : 0),
  });

  return {
    trajectories,
    corrections,
    expect(tenant, requestId, written) {
      const key = keyOf(tenant, requestId);
      const done = written.catch(() => {}).finally(() => expected.delete(key));
      expected.set(key, done);
    },
    observe(tenant, trajectory) {
      const signal = signals?.notice(tenant, trajectory) ?? null;
      keeper.keep(tenant, trajectory);
      if (signal !== null) rateImplicitly(tenant, signal);
    },
    observeStopped(tenant, trajectory) {
      if (signals === null) return;
      keeper.keep(tenant, trajectory);
      rateImplicitly(tenant, { requestId: trajectory.requestId, signal: 'stop' });
    },
    async feedback(tenant, given) {
      limit.take(tenant);
      const feedback = { ...given, requestId: plainRequestId(given.requestId) };
      const rated = await rate(tenant, feedback);
      const { requestId, verdict, quality, sessionId, retrieved: sources } = rated.after;
      const id = nameId(services.sha256, tenant, ...trajectoryName(requestId));
      await memory.graph.rate(tenant, { id, verdict, sources }).catch((error: unknown) => {
        report(`rating sources failed: ${messageOf(error)}`);
      });
      if (sessionId !== null && quality !== null) {
        await memory.sessions.rateTurn(tenant, sessionId, requestId, quality).catch((error: unknown) => {
          report(`rating a turn failed: ${messageOf(error)}`);
        });
      }
      const remembered = await remember(tenant, feedback, rated);
      const recalled = await reconsider(tenant, feedback, rated);
      const skipped = whyNoStep(feedback, remembered);
      const learned = track(skipped === null ? learn(tenant, feedback, rated) : Promise.resolve(skipped));
      const outcome = track(
        learned.then((learnedNow) => conclude(tenant, requestId, outcomeOf(remembered, learnedNow, recalled))),
      );
      const key = keyOf(tenant, requestId);
      open.set(key, outcome);
      void outcome.finally(() => {
        if (open.get(key) === outcome) open.delete(key);
      });
      return { requestId, verdict, quality, remembered, learned, outcome };
    },
    async receipt(tenant, id) {
      const requestId = plainRequestId(id);
      const key = keyOf(tenant, requestId);
      await expected.get(key);
      await keeper.kept(tenant, requestId);
      const one = await trajectories.get(tenant, requestId);
      if (one === null) throw requestNotFound(requestId);
      const { verdict, quality, feedback, outcome = feedback.length === 0 ? null : OUTCOME_UNKNOWN } = one;
      return { requestId, verdict, quality, outcome, isPending: open.has(key) };
    },
    settle,
    async close() {
      unregister();
      await settle();
    },
  };
}

const NO_OUTCOME = { lossBefore: null, lossAfter: null, supersedes: [] };
const OF_REMEMBERED = 'near questions of this user are answered with it; the weights learn it when it repeats';
const OF_REPEATED = 'the prompt shows it once more from now on; the weights learn it when it repeats again';
const OF_REJECTED = '; the correction that the answer repeated is no longer recalled';
const OF_RESTORED = '; the correction that the answer repeated is recalled again';
const OF_ROUTE = 'the router learns from it, and no model';
/** Feedback of older versions, or a crash before its outcome was stored. */
export const OUTCOME_UNKNOWN: FeedbackOutcome = {
  ...NO_OUTCOME,
  state: 'stored',
  reason: 'the next learning loop learns from it',
};
const MAX_REASON = 1024;

/** Why the instant loop is not needed; null: it is. */
function whyNoStep({ target }: Feedback, remembered: RememberedCorrection | null): InstantReport | null {
  if (target === 'route') return skipLearning(OF_ROUTE);
  if (remembered?.state === 'already-known') return skipLearning(remembered.reason, 'already-known');
  if (remembered?.state !== 'remembered' || remembered.numRepeats > 1) return null;
  return skipLearning(remembered.numRepeats === 0 ? OF_REMEMBERED : OF_REPEATED);
}

function outcomeOf(remembered: RememberedCorrection | null, learned: InstantReport, recalled: string): FeedbackOutcome {
  const { outcome, reason, lossBefore, lossAfter } = learned;
  const isRemembered = remembered?.state === 'remembered' && outcome !== 'learned';
  const limits = remembered?.state === 'refused' ? `; not recalled: ${remembered.reason}` : '';
  const earlier = remembered?.state === 'remembered' ? remembered.supersedes : [];
  return {
    state: isRemembered ? 'remembered' : outcome === 'skipped' ? 'stored' : outcome,
    reason: clipText(reason + limits + recalled, MAX_REASON).text,
    lossBefore,
    lossAfter,
    supersedes: [...new Set([...earlier, ...learned.supersedes])].slice(0, 64),
  };
}

/** The report of feedback that changes no weights. */
export const skipLearning = (reason: string, outcome: InstantReport['outcome'] = 'skipped'): InstantReport => ({
  outcome,
  isApplied: false,
  reason,
  lossBefore: null,
  lossAfter: null,
  elapsedMs: 0,
  version: null,
  supersedes: [],
});
