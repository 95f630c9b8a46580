import type { NewTrajectory, Trajectories } from '../../learning/trajectories/trajectories.ts';
import { countAtOnce } from '../../memory/common/foreground.ts';
import type { Schedule } from '../../memory/common/services.ts';
import type { Memory } from '../../memory/memory.ts';
import { messageOf } from '../../core/errors.ts';

/** Stores trajectories in small batches while the memory is idle. */
export interface TrajectoryKeeper {
  /** Queues a trajectory. */
  keep(tenant: string, trajectory: NewTrajectory): void;
  /** Resolves when the trajectory of a request is no longer queued; writes it at once. */
  kept(tenant: string, requestId: string): Promise<void>;
  /** Resolves when all are written. */
  settle(): Promise<void>;
}

export interface TrajectoryKeeperContext {
  readonly trajectories: Pick<Trajectories, 'addAll'>;
  readonly foreground: Memory['foreground'];
  readonly schedule: Schedule;
  /** Called with errors and lost trajectories. */
  readonly report: (message: string) => void;
}

interface Waiting {
  readonly tenant: string;
  readonly trajectory: NewTrajectory;
}

/** Maximum queue length; more trajectories are dropped and reported. */
const MAX_WAITING = 1000;

/** Delayed, because a batch costs little more than one write, and the end of an answer must not wait. */
const BATCH_MS = 50;

export function createTrajectoryKeeper({
  trajectories,
  foreground,
  schedule,
  report,
}: TrajectoryKeeperContext): TrajectoryKeeper {
  /** By tenant and request; the first ones are being written. */
  const waiting = new Map<string, Waiting>();
  let numGivenUp = 0;
  let numHurrying = 0;
  let working: Promise<void> | null = null;
  const keyOf = (tenant: string, id: string): string => JSON.stringify([tenant, id]);

  async function write(some: readonly Waiting[]): Promise<void> {
    try {
      await trajectories.addAll(some);
    } catch (error) {
      // Written one by one, so that only the rejected one is lost.
      if (some.length > 1) for (const one of some) await write([one]);
      else report(`storing a request for learning failed: ${messageOf(error)}`);
    }
  }

  async function drain(): Promise<void> {
    while (waiting.size > 0) {
      if (numHurrying === 0) await foreground.turn();
      const batch = [...waiting].slice(0, countAtOnce(foreground, waiting.size));
      await write(batch.map(([, one]) => one));
      for (const [key, one] of batch) if (waiting.get(key) === one) waiting.delete(key);
    }
  }

  const plan = (): void => void schedule(() => void work(), BATCH_MS);

  /** Resets `working` here: an empty `drain` ends before `working` is assigned, and would never reset it. */
  function work(): Promise<void> {
    working ??= drain().finally(() => {
      working = null;
      if (waiting.size > 0) plan();
    });
    return working;
  }

  async function hurry(isDone: () => boolean): Promise<void> {
    numHurrying++;
    foreground.release();
    try {
      while (!isDone()) await work();
    } finally {
      numHurrying--;
    }
  }

  return {
    keep(tenant, trajectory) {
      if (waiting.size >= MAX_WAITING) {
        if (numGivenUp++ === 0) report(`${MAX_WAITING} requests are queued for learning; more are dropped`);
        return;
      }
      waiting.set(keyOf(tenant, trajectory.requestId), { tenant, trajectory });
      if (working === null) plan();
    },
    async kept(tenant, requestId) {
      const key = keyOf(tenant, requestId);
      if (waiting.has(key)) await hurry(() => !waiting.has(key));
    },
    settle: () => hurry(() => waiting.size === 0),
  };
}
