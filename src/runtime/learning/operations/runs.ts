import { RuvLLMError } from '../../../core/errors.ts';
import type { Learning } from '../learning.ts';
import { type LoopName, type PartReport, type RunOf, type RunReport, runSteps, type StepContext } from './run-parts.ts';

/** A run of a learning loop, started by an operator. */
export interface LearningRun {
  /** The model, or the line of versions. */
  readonly model: string;
  readonly of: RunOf;
  readonly loop: LoopName;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly startedMs: number;
  readonly endedMs: number | null;
  /** The outcome; null while it runs. */
  readonly reason: string | null;
  /** Of the model; null: none. */
  readonly report: RunReport | null;
  /** Of the finished parts. */
  readonly parts: readonly PartReport[];
}

/** Runs by tenant and model: one at a time each; the last one is remembered. */
export interface LearningRuns {
  /** Starts a run, or joins the same run in progress; `conflict` during a run of another loop. */
  start(tenant: string, model: string, loop: LoopName, of?: RunOf): { readonly ended: Promise<LearningRun> };
  /** Cancels a run at its next step; null: none in progress. */
  cancel(tenant: string, model: string): LearningRun | null;
  list(tenant: string): readonly LearningRun[];
  /** Cancels the runs of a tenant and forgets them. */
  forget(tenant: string): Promise<void>;
  close(): Promise<void>;
}

interface Entry {
  readonly tenant: string;
  run: LearningRun;
  readonly abort: AbortController;
  ended: Promise<LearningRun>;
}

/** Runs share one thread: more would only wait. */
const MAX_RUNNING = 32;
const MAX_KEPT = 1000;

export interface LearningRunsContext {
  readonly learning: Pick<Learning, 'sona' | 'parts' | 'pathOf'>;
  /** Default null: there are no peers. */
  readonly federation?: StepContext['federation'];
  /** The message if there is no router to train. */
  readonly noRouting: string;
  now(): number;
  hold<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
}

export function createLearningRuns({
  learning,
  federation = null,
  noRouting,
  now,
  hold,
}: LearningRunsContext): LearningRuns {
  const entries = new Map<string, Entry>();
  const keyOf = (tenant: string, model: string): string => JSON.stringify([tenant, model]);
  const isRunning = ({ run }: Entry): boolean => run.state === 'running';

  async function carryOut(entry: Entry): Promise<LearningRun> {
    const { tenant, abort } = entry;
    const { model, loop, of } = entry.run;
    const context = { learning, federation, noRouting, hold, tenant, model, loop, signal: abort.signal };
    await runSteps(context, of, (parts, report) => {
      entry.run = { ...entry.run, parts: [...entry.run.parts, ...parts], report: report ?? entry.run.report };
    });
    const { parts } = entry.run;
    const bad = parts.find(({ state }) => state === 'cancelled') ?? parts.find(({ state }) => state === 'failed');
    const state = bad?.state === 'cancelled' || bad?.state === 'failed' ? bad.state : 'done';
    const told = bad ?? parts[0]!;
    return (entry.run = { ...entry.run, state, endedMs: Math.floor(now()), reason: told.reason });
  }

  /** Deletes the oldest ended runs if there are too many. */
  function makeRoom(): void {
    if ([...entries.values()].filter(isRunning).length >= MAX_RUNNING) {
      throw new RuvLLMError('overloaded', `${MAX_RUNNING} runs are in progress`, { isRetryable: true });
    }
    for (const [key, entry] of entries) {
      if (entries.size < MAX_KEPT) return;
      if (!isRunning(entry)) entries.delete(key);
    }
  }

  return {
    start(tenant, model, loop, of = 'all') {
      const key = keyOf(tenant, model);
      const known = entries.get(key);
      if (known !== undefined && isRunning(known)) {
        if (known.run.loop === loop && known.run.of === of) return known;
        throw new RuvLLMError('conflict', `the ${known.run.loop} loop of ${model} is in progress; cancel it or wait`, {
          data: { model, loop: known.run.loop },
          isRetryable: true,
        });
      }
      if (of === 'routing' && !learning.parts().some(({ name }) => name === of)) {
        throw new RuvLLMError('unsupported', noRouting, { data: { option: 'of' } });
      }
      makeRoom();
      const run: LearningRun = { model, of, loop, state: 'running', startedMs: Math.floor(now()), endedMs: null, reason: null, report: null, parts: [] }; // prettier-ignore
      const entry: Entry = { tenant, run, abort: new AbortController(), ended: Promise.resolve(run) };
      entries.delete(key);
      entries.set(key, entry);
      entry.ended = carryOut(entry);
      return entry;
    },
    cancel(tenant, model) {
      const entry = entries.get(keyOf(tenant, model));
      if (entry === undefined || !isRunning(entry)) return null;
      entry.abort.abort();
      return entry.run;
    },
    list: (tenant) => [...entries.values()].filter((entry) => entry.tenant === tenant).map(({ run }) => run),
    async forget(tenant) {
      for (const [key, entry] of entries) {
        if (entry.tenant !== tenant) continue;
        entry.abort.abort();
        await entry.ended.catch(() => {});
        entries.delete(key);
      }
    },
    async close() {
      for (const { abort } of entries.values()) abort.abort();
      await Promise.allSettled([...entries.values()].map(({ ended }) => ended));
    },
  };
}
