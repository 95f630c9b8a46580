import { RuvLLMError } from '../../../core/errors.ts';
import type { ConsolidateReport } from '../../../learning/sona/consolidate.ts';
import type { Sona } from '../../../learning/sona/sona.ts';
import type { Learning } from '../learning.ts';

export const LOOPS = ['background', 'deep'] as const;
export type LoopName = (typeof LOOPS)[number];

/** One run of a loop that somebody asked for. */
export interface LearningRun {
  readonly model: string;
  readonly loop: LoopName;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly startedMs: number;
  readonly endedMs: number | null;
  /** What it came to; null while it runs. */
  readonly reason: string | null;
  readonly report: RunReport | null;
}

export interface RunReport extends Omit<ConsolidateReport, 'version' | 'reason'> {
  /** The version it made; null: none. */
  readonly version: number | null;
  readonly isAccepted: boolean;
  /** Of the reasoning bank; loop C only. */
  readonly numPatternsCreated?: number;
  readonly numPatternsMerged?: number;
  /** Of the order in which what is recalled is shown; loop C only. */
  readonly reranking?: { readonly version: number | null; readonly isAccepted: boolean; readonly reason: string };
}

/** Runs of loops by tenant and model: one at a time of each, and the last one is remembered. */
export interface LearningRuns {
  /** Begins a run, or joins the same one that is under way; `conflict` where another loop is. */
  start(tenant: string, model: string, loop: LoopName): { readonly ended: Promise<LearningRun> };
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
  readonly learning: Pick<Learning, 'sona'>;
  now(): number;
  hold<T>(id: string, work: (modelId: string) => Promise<T>): Promise<T>;
}

const LOOP_WORK: Readonly<
  Record<LoopName, (sona: Sona, tenant: string, model: string, signal: AbortSignal) => Promise<RunOutcome>>
> = {
  background: async (sona, tenant, model, signal) =>
    outcomeOf(await sona.backgroundConsolidate(tenant, model, { signal }), {}),
  async deep(sona, tenant, model, signal) {
    const { adapter, bank, reranker } = await sona.deepOptimize(tenant, model, { signal });
    const { version, reason } = reranker;
    return outcomeOf(adapter, {
      numPatternsCreated: bank.numCreated,
      numPatternsMerged: bank.numMerged,
      reranking: { version: version?.version ?? null, isAccepted: version?.isAccepted ?? false, reason },
    });
  },
};

type RunOutcome = { readonly reason: string; readonly report: RunReport };

function outcomeOf({ version, reason, ...counts }: ConsolidateReport, more: Partial<RunReport>): RunOutcome {
  const isAccepted = version?.isAccepted ?? false;
  return { reason, report: { version: version?.version ?? null, isAccepted, ...counts, ...more } };
}

export function createLearningRuns({ learning, now, hold }: LearningRunsContext): LearningRuns {
  const entries = new Map<string, Entry>();
  const keyOf = (tenant: string, model: string): string => JSON.stringify([tenant, model]);
  const isRunning = ({ run }: Entry): boolean => run.state === 'running';

  async function carryOut(entry: Entry): Promise<LearningRun> {
    const { tenant, abort } = entry;
    const { model, loop } = entry.run;
    const end = (changes: Partial<LearningRun>): LearningRun =>
      (entry.run = { ...entry.run, endedMs: Math.floor(now()), ...changes });
    try {
      const outcome = await hold(model, (id) => LOOP_WORK[loop](learning.sona, tenant, id, abort.signal));
      return end({ state: 'done', ...outcome });
    } catch (error) {
      const state = abort.signal.aborted ? 'cancelled' : 'failed';
      return end({ state, reason: error instanceof Error ? error.message : String(error) });
    }
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
    start(tenant, model, loop) {
      const key = keyOf(tenant, model);
      const known = entries.get(key);
      if (known !== undefined && isRunning(known)) {
        if (known.run.loop === loop) return known;
        throw new RuvLLMError('conflict', `the ${known.run.loop} loop of ${model} is under way; cancel it, or wait`, {
          data: { model, loop: known.run.loop },
          isRetryable: true,
        });
      }
      makeRoom();
      const run: LearningRun = { model, loop, state: 'running', startedMs: Math.floor(now()), endedMs: null, reason: null, report: null }; // prettier-ignore
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
