import type { Clock } from '../core/clock.ts';
import { describeFailure, refusal } from './errors.ts';
import { waitFor } from '../core/abort.ts';
import type { ModelCatalog, PullStep } from './model-catalog.ts';

/** A running or ended download of a model. */
export interface PullJob {
  readonly id: string;
  readonly reference: string;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  /** Progress; null: none reported yet. */
  readonly step: PullStep | null;
  /** Average rate of the current file; null: not known yet. */
  readonly bytesPerSecond: number | null;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Downloads models while the server runs. */
export interface PullJobs {
  /** Starts a pull, or returns the running one of the same reference; throws a 429 at the limit. */
  start(reference: string): PullJob;
  /** Newest first. */
  list(): readonly PullJob[];
  find(id: string): PullJob | null;
  /** Null: not found. The next pull resumes from the downloaded part. */
  cancel(id: string): PullJob | null;
  /** Yields the job after each change, at most every `WATCH_MS`, until it ends. */
  watch(id: string, signal: AbortSignal): AsyncGenerator<PullJob, void, undefined>;
  /** Cancels running pulls. */
  close(): Promise<void>;
}

interface Entry {
  job: PullJob;
  readonly abort: AbortController;
  completion: Promise<void>;
  /** Where the measurement of the rate started. */
  rateStart: { readonly item: string; readonly phase: string; readonly bytes: number; readonly ms: number } | null;
  readonly listeners: Set<() => void>;
}

/** Pulls share one network connection. */
const MAX_RUNNING = 2;
const MAX_KEPT = 50;
const WATCH_MS = 250;

export function createPullJobs(catalog: ModelCatalog, clock: Clock): PullJobs {
  const entries = new Map<string, Entry>();
  const isRunning = ({ job }: Entry): boolean => job.state === 'running';

  function change(entry: Entry, changes: Partial<PullJob>): void {
    entry.job = { ...entry.job, ...changes };
    for (const listen of entry.listeners) listen();
  }

  function progress(entry: Entry, step: PullStep): void {
    const { item, phase, doneBytes } = step;
    const nowMs = clock.now();
    if (entry.rateStart?.item !== item || entry.rateStart.phase !== phase)
      entry.rateStart = { item, phase, bytes: doneBytes, ms: nowMs };
    const { bytes, ms } = entry.rateStart;
    const bytesPerSecond = nowMs > ms ? ((doneBytes - bytes) * 1000) / (nowMs - ms) : null;
    change(entry, { step, bytesPerSecond });
  }

  async function runPull(entry: Entry): Promise<void> {
    const { signal } = entry.abort;
    try {
      await catalog.pull(entry.job.reference, { signal, onProgress: (step) => progress(entry, step) });
      change(entry, { state: 'done', endedMs: clock.wallClock() });
    } catch (error) {
      const { code, message } = describeFailure(error);
      const end = { endedMs: clock.wallClock() };
      change(
        entry,
        signal.aborted ? { state: 'cancelled', ...end } : { state: 'failed', error: { code, message }, ...end },
      );
    }
  }

  function makeRoom(): void {
    const numRunning = [...entries.values()].filter(isRunning).length;
    if (numRunning >= MAX_RUNNING) {
      throw refusal(429, 'too_many_requests', `${numRunning} pulls are running; the limit is ${MAX_RUNNING}`, {
        type: 'rate_limit_error',
        retryAfterSeconds: 10,
      });
    }
    for (const [id, entry] of entries) {
      if (entries.size < MAX_KEPT) return;
      if (!isRunning(entry)) entries.delete(id);
    }
  }

  return {
    start(reference) {
      const running = [...entries.values()].find((entry) => isRunning(entry) && entry.job.reference === reference);
      if (running !== undefined) return running.job;
      makeRoom();
      const id = crypto.randomUUID();
      const job: PullJob = {
        id,
        reference,
        state: 'running',
        step: null,
        bytesPerSecond: null,
        startedMs: clock.wallClock(),
        endedMs: null,
        error: null,
      };
      const entry: Entry = {
        job,
        abort: new AbortController(),
        completion: Promise.resolve(),
        rateStart: null,
        listeners: new Set(),
      };
      entries.set(id, entry);
      entry.completion = runPull(entry);
      return entry.job;
    },
    list: () => [...entries.values()].map(({ job }) => job).toReversed(),
    find: (id) => entries.get(id)?.job ?? null,
    cancel(id) {
      const entry = entries.get(id);
      if (entry === undefined) return null;
      entry.abort.abort();
      return entry.job;
    },
    async *watch(id, signal) {
      const entry = entries.get(id);
      if (entry === undefined) return;
      for (;;) {
        const { job } = entry;
        yield job;
        if (job.state !== 'running' || signal.aborted) return;
        await waitFor(signal, (wake) => clock.setTimer(WATCH_MS, wake));
        if (entry.job === job) {
          await waitFor(signal, (wake) => {
            entry.listeners.add(wake);
            return () => entry.listeners.delete(wake);
          });
        }
      }
    },
    async close() {
      for (const { abort } of entries.values()) abort.abort();
      await Promise.allSettled([...entries.values()].map(({ completion }) => completion));
    },
  };
}
