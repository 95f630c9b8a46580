import type { Memory } from '../runtime/lower-layers.ts';
import type { ModelProgress } from '../runtime/model-config.ts';
import type { KeyStore } from './keys/key-store.ts';
import type { Logger } from './logger.ts';

/** `keys` are API keys, `spill` is the folder of KV pages and sessions, `fleet-adapters` those that the fleet has published. */
export const STATE_PARTS = ['memory', 'keys', 'backup', 'master-key', 'spill', 'fleet-adapters'] as const;
export type StatePart = (typeof STATE_PARTS)[number];

/** State that was lost, is damaged or is not stored. */
export interface StateProblem {
  readonly part: StatePart;
  /** With paths and addresses: for the log and admin keys only. */
  readonly reason: string;
}

/** A part that is not ready yet. Requests are answered without it. */
export interface Preparation {
  /** The sentence encoder: until it is there, the memory searches by words. */
  readonly part: 'encoder';
  /** `unavailable`: it will not be there before the next start. */
  readonly phase: 'waiting' | 'unavailable' | ModelProgress['phase'];
  readonly doneBytes: number;
  /** Null: not known. */
  readonly totalBytes: number | null;
  /** Of `unavailable`, else null. With paths and addresses: for admin keys only. */
  readonly reason: string | null;
}

interface ProblemSources {
  readonly memory: Memory | null;
  readonly keys: KeyStore;
  readonly others: () => readonly StateProblem[];
  readonly logger: Logger;
}

/** All problems of the server's state; each is logged when it is first seen. */
export function createProblemLog({ memory, keys, others, logger }: ProblemSources): () => readonly StateProblem[] {
  const logged = new Set<string>();
  return () => {
    const degraded = memory?.degraded() ?? null;
    const problems: StateProblem[] = [
      ...(degraded === null ? [] : [{ part: 'memory' as const, reason: degraded }]),
      ...keys.problems().map((reason) => ({ part: 'keys' as const, reason })),
      ...others(),
    ];
    for (const { part, reason } of problems) {
      if (logged.has(`${part} ${reason}`)) continue;
      logged.add(`${part} ${reason}`);
      logger.log('error', 'state', { part, reason });
    }
    return problems;
  };
}
