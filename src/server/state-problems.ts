import type { Memory } from '../runtime/lower-layers.ts';
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
