import { median } from './report.ts';
import type { BenchModel } from './bench-model.ts';
import type { Memory } from './contestant.ts';
import { type Entrant, withContestants } from './entrants.ts';
import type { MachineProbe } from './machine-peak.ts';
import { type RaceSettings, type TaskName, TASKS } from './tasks.ts';

export type RacePlan = Partial<Record<TaskName, readonly Entrant[]>>;

/** One contestant's results. */
export interface Figures {
  readonly loadMs: number;
  /** After the last task. */
  memory: Memory;
  /** One number per round, in the unit of the task. */
  readonly speeds: Partial<Record<TaskName, number[]>>;
}

export interface RaceResult {
  readonly model: BenchModel;
  /** Tokens of KV cache per contestant. */
  readonly kvTokens: number;
  readonly figures: ReadonlyMap<string, Figures>;
  /** The machine's read speed in the same rounds, GB/s; empty if it cannot be measured. */
  readonly streamRead: number[];
}

/** All contestants are loaded and take turns at each task, so that other load affects all. */
export async function race(
  model: BenchModel,
  plan: RacePlan,
  settings: RaceSettings,
  probe: MachineProbe | null,
): Promise<RaceResult> {
  const tasks = (Object.keys(plan) as TaskName[]).map((name) => ({ name, task: TASKS[name], takers: plan[name]! }));
  const entrants = [...new Set(tasks.flatMap(({ takers }) => takers))];
  const context = Math.ceil(Math.max(...tasks.map(({ task }) => task.maxTokens(settings))) / 256) * 256;
  const numSequences = Math.max(...tasks.map(({ task }) => task.numSequences));
  const request = { path: model.path, numThreads: settings.numThreads, context, numSequences };
  return withContestants(entrants, request, async (contestants) => {
    const figures = new Map<string, Figures>();
    for (const { name, loadMs } of contestants) {
      figures.set(name, { loadMs, memory: { rssBytes: 0, anonymousBytes: null }, speeds: {} });
    }
    const streamRead: number[] = [];
    // Round -1 warms caches, page tables and compilers, and is not counted.
    for (let round = -1; round < settings.numRounds; round++) {
      for (const { name, task, takers } of tasks) {
        if (name === 'decode' && probe !== null && round >= 0) streamRead.push(probe.measure(model.sizeBytes));
        for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
          if (!takers.some((taker) => taker.name === contestant.name)) continue;
          const { ms, numTokens, memory } = await task.run(contestant, settings, round < 0);
          const entry = figures.get(contestant.name)!;
          entry.memory = memory;
          if (round >= 0) (entry.speeds[name] ??= []).push(task.unit === 'ms' ? ms : (numTokens * 1000) / ms);
        }
      }
    }
    return { model, kvTokens: context * numSequences, figures, streamRead };
  });
}

/** The median ratio of two contestants in the same round. */
export function ratio(a: readonly number[], b: readonly number[]): number {
  return median(a.map((value, round) => value / b[round]!));
}

/** Resident memory divided by the minimum: the file and the keys and values of the context. */
export function memoryShare({ model, kvTokens, figures }: RaceResult, name: string): number {
  return figures.get(name)!.memory.rssBytes / (model.sizeBytes + kvTokens * model.kvBytesPerToken);
}
