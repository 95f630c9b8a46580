import { RuvLLMError } from '../../../core/errors.ts';
import type { Learning } from '../learning.ts';
import { type LoopName, type PartReport, type RunOf, type RunReport, runSteps } from './run-parts.ts';

/** One run of a loop that somebody asked for. */
export interface LearningRun {
  /** Or the line of versions, where it is of no model. */
  readonly model: string;
  readonly of: RunOf;
  readonly loop: LoopName;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly startedMs: number;
  readonly endedMs: number | null;
  /** Outcome; null while it runs. */
  readonly reason: string | null;
  /** Of the model; null where there is none. */
  readonly report: RunReport | null;
  /** Of each part that has ended. */
  readonly parts: readonly PartReport[];
}

/** Runs of loops by tenant and model: one at a time of each, and the last one is remembered. */
export interface LearningRuns {
  /** Begins a run, or joins the same one that is under way; `conflict` where another loop is. */
  start(tenant: string, model: string, loop: LoopName, of?: RunOf): { readonly ended: Promise<LearningRun> };
  /** Null: nothing runs. It ends at its next step and can go on from there. */
  cancel(tenant: string, model: string): LearningRun | null;
  list(tenant: string): readonly LearningRun[];
  close(): Promise<void>;
}

interface Entry {
  readonly tenant: string;
  run: LearningRun;
  readonly abort: AbortController;
  ended: Promise<LearningRun>;
}

/** They wait for one thread: more of them would only wait longer. */
const MAX_RUNNING = 32;
const MAX_KEPT = 1000;

export interface LearningRunsContext {
  readonly learning: Pick<Learning, 'sona' | 'parts'>;
  /** Why no router can be trained where none is. */
  readonly noRouting: string;
  now(): number;
  hold<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
}

export function createLearningRuns({ learning, noRouting, now, hold }: LearningRunsContext): LearningRuns {
  const entries = new Map<string, Entry>();
  const keyOf = (tenant: string, model: string): string => JSON.stringify([tenant, model]);
  const isRunning = ({ run }: Entry): boolean => run.state === 'running';

  async function carryOut(entry: Entry): Promise<LearningRun> {
    const { tenant, abort } = entry;
    const { model, loop, of } = entry.run;
    const context = { learning, noRouting, hold, tenant, model, loop, signal: abort.signal };
    await runSteps(context, of, (parts, report) => {
      entry.run = { ...entry.run, parts: [...entry.run.parts, ...parts], report: report ?? entry.run.report };
    });
    const { parts } = entry.run;
    const bad = parts.find(({ state }) => state === 'cancelled') ?? parts.find(({ state }) => state === 'failed');
    const state = bad?.state === 'cancelled' || bad?.state === 'failed' ? bad.state : 'done';
    const told = bad ?? parts[0]!;
    return (entry.run = { ...entry.run, state, endedMs: Math.floor(now()), reason: told.reason });
  }

  /** Ended runs, the oldest first, go when there are too many. */
  function makeRoom(): void {
    if ([...entries.values()].filter(isRunning).length >= MAX_RUNNING) {
      throw new RuvLLMError('overloaded', `${MAX_RUNNING} runs are under way already`, { isRetryable: true });
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
        throw new RuvLLMError('conflict', `the ${known.run.loop} loop of ${model} is under way; cancel it, or wait`, {
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
    async close() {
      for (const { abort } of entries.values()) abort.abort();
      await Promise.allSettled([...entries.values()].map(({ ended }) => ended));
    },
  };
}
