import type { Clock } from '../core/clock.ts';
import { describeFailure, refusal } from './errors.ts';
import { waitFor } from '../core/abort.ts';
import type { ModelCatalog, PullStep } from './model-catalog.ts';

/** A model that is being brought here, or was. */
export interface PullJob {
  readonly id: string;
  readonly reference: string;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  /** What is being done; null: nothing was told yet. */
  readonly step: PullStep | null;
  /** Of the file in work, on average; null: not known yet. */
  readonly bytesPerSecond: number | null;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Brings models here while the server goes on. */
export interface PullJobs {
  /** Begins, or joins one that is under way for the same reference; a 429 where enough are. */
  start(reference: string): PullJob;
  /** The newest first. */
  list(): readonly PullJob[];
  find(id: string): PullJob | null;
  /** Null: there is none. What was brought stays, and the next pull goes on from there. */
  cancel(id: string): PullJob | null;
  /** The job whenever it has changed, at most every `WATCH_MS`, until it has ended. */
  watch(id: string, signal: AbortSignal): AsyncGenerator<PullJob, void, undefined>;
  /** Ends what runs. */
  close(): Promise<void>;
}

interface Entry {
  job: PullJob;
  readonly abort: AbortController;
  ended: Promise<void>;
  /** What the rate is counted from. */
  from: { readonly item: string; readonly phase: string; readonly bytes: number; readonly ms: number } | null;
  readonly listeners: Set<() => void>;
}

/** They share one line to the same place. */
const MAX_RUNNING = 2;
const MAX_KEPT = 50;
/** Faster than anybody can see. */
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
    if (entry.from?.item !== item || entry.from.phase !== phase)
      entry.from = { item, phase, bytes: doneBytes, ms: nowMs };
    const { bytes, ms } = entry.from;
    const bytesPerSecond = nowMs > ms ? ((doneBytes - bytes) * 1000) / (nowMs - ms) : null;
    change(entry, { step, bytesPerSecond });
  }

  async function carryOut(entry: Entry): Promise<void> {
    const { signal } = entry.abort;
    try {
      await catalog.pull(entry.job.reference, { signal, onProgress: (step) => progress(entry, step) });
      change(entry, { state: 'done', endedMs: clock.wallClock() });
    } catch (error) {
      const { code, message } = describeFailure(error);
      const ended = { endedMs: clock.wallClock() };
      change(
        entry,
        signal.aborted ? { state: 'cancelled', ...ended } : { state: 'failed', error: { code, message }, ...ended },
      );
    }
  }

  function makeRoom(): void {
    const numRunning = [...entries.values()].filter(isRunning).length;
    if (numRunning >= MAX_RUNNING) {
      throw refusal(429, 'too_many_requests', `${numRunning} models are being pulled, at most ${MAX_RUNNING} may be`, {
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
      const known = [...entries.values()].find((entry) => isRunning(entry) && entry.job.reference === reference);
      if (known !== undefined) return known.job;
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
        ended: Promise.resolve(),
        from: null,
        listeners: new Set(),
      };
      entries.set(id, entry);
      entry.ended = carryOut(entry);
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
      await Promise.allSettled([...entries.values()].map(({ ended }) => ended));
    },
  };
}
