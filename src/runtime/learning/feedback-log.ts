import { isWholeTenant } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Schedule } from '../../memory/common/services.ts';
import type { Memory } from '../../memory/memory.ts';
import { nameId } from '../../memory/common/ids.ts';
import { plainRequestId, type Trajectory, trajectoryName } from '../../memory/schemas/trajectory.ts';
import type { InstantReport } from '../../learning/sona/sona.ts';
import type { Feedback } from '../../learning/trajectories/feedback.ts';
import {
  createTrajectories,
  type NewTrajectory,
  type RatedTrajectory,
  type Trajectories,
} from '../../learning/trajectories/trajectories.ts';
import { createImplicitSignals, IMPLICIT_SCORES, IMPLICIT_WORDS, type RequestSignal } from './implicit-signals.ts';
import { createRateLimit } from './rate-limit.ts';
import { createTrajectoryKeeper } from './trajectory-keeper.ts';

/** The result of feedback. */
export interface FeedbackReceipt {
  readonly requestId: string;
  readonly verdict: Trajectory['verdict'];
  readonly quality: number | null;
  /** The outcome of the instant learning loop; never rejects. */
  readonly learned: Promise<InstantReport>;
}

/** Stores answered requests and the feedback on them, in the memory. */
export interface FeedbackLog {
  readonly trajectories: Trajectories;
  /** Announces a request that is being written: feedback on it waits until then. */
  expect(tenant: string, requestId: string, written: Promise<void>): void;
  /** Stores an answered request in the background. */
  observe(tenant: string, trajectory: NewTrajectory): void;
  /** Stores a request whose client left during the answer, if implicit feedback is on. */
  observeStopped(tenant: string, trajectory: NewTrajectory): void;
  /** Resolves when the feedback is on disk; `not_found` for requests that are not stored. */
  feedback(tenant: string, feedback: Feedback): Promise<FeedbackReceipt>;
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
  /** The learning loop. Default: none. */
  learn?(tenant: string, feedback: Feedback, rated: RatedTrajectory): Promise<InstantReport>;
}

const FEEDBACK_LIMIT = { burst: 60, perMinute: 60 };

export function createFeedbackLog({
  memory,
  schedule,
  report,
  implicitFeedback = false,
  learn = async () => skipLearning('learning is off'),
}: FeedbackLogContext): FeedbackLog {
  const { store, services } = memory;
  const trajectories = createTrajectories(store, services);
  const keeper = createTrajectoryKeeper({ trajectories, foreground: memory.foreground, schedule, report });
  const signals = implicitFeedback ? createImplicitSignals() : null;
  const limit = createRateLimit(() => services.now(), FEEDBACK_LIMIT);
  const expected = new Map<string, Promise<void>>();
  const pending = new Set<Promise<unknown>>();
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

  function rateImplicitly(tenant: string, { requestId, signal }: RequestSignal): void {
    const feedback = { requestId, source: 'implicit', score: IMPLICIT_SCORES[signal], comment: IMPLICIT_WORDS[signal] } as const; // prettier-ignore
    void track(
      rate(tenant, feedback).catch((error: unknown) => {
        if (error instanceof RuvLLMError && error.code === 'not_found') return; // deleted meanwhile
        report(`storing implicit feedback failed: ${error instanceof Error ? error.message : String(error)}`);
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
      const { requestId, verdict, quality, retrieved: sources } = rated.after;
      const id = nameId(services.sha256, tenant, ...trajectoryName(requestId));
      await memory.graph.rate(tenant, { id, verdict, sources }).catch((error: unknown) => {
        report(`rating sources failed: ${error instanceof Error ? error.message : String(error)}`);
      });
      return { requestId, verdict, quality, learned: track(learn(tenant, feedback, rated)) };
    },
    settle,
    async close() {
      unregister();
      await settle();
    },
  };
}

/** The report of feedback that changes no weights. */
export const skipLearning = (reason: string): InstantReport => ({
  isApplied: false,
  reason,
  lossBefore: null,
  lossAfter: null,
  elapsedMs: 0,
  version: null,
});
