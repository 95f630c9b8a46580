import { createOnDemand } from '../../core/on-demand.ts';
import { type CallTransport, createRemote } from '../../core/remote-calls.ts';
import type { SonaOptions } from '../../learning/sona/options.ts';
import type { LearningWork } from '../../learning/sona/types.ts';
import { WORK_METHODS } from '../../learning/sona/work-methods.ts';
import type { Schedule } from '../../memory/common/services.ts';
import type { Memory } from '../../memory/memory.ts';
import { createLearning, type Learning } from './learning.ts';

/** Options of learning; only the memory is required. */
export interface OpenLearningOptions extends SonaOptions {
  /** Stores requests, feedback and learned weights. The caller closes it after learning. */
  readonly memory: Memory;
  /** Whether repeated, rephrased and abandoned requests count as feedback. Default false. */
  readonly implicitFeedback?: boolean;
  /** Whether corrections are recalled for near questions of the same user; the weights learn those that repeat. Default true. */
  readonly corrections?: boolean;
  /** Called with problems for the operator. Default: a warning of the process or of the console. */
  readonly report?: (message: string) => void;
}

/** The learning thread; starts with the first task. */
export interface OpenedWork {
  readonly work: LearningWork;
  end(): Promise<void>;
}

/** Calls that only end or forget something start no thread. */
const IDLE_METHODS: readonly (keyof LearningWork)[] = ['cancel', 'release', 'forgetInstant'];

/** A thread that learned nothing for this long is ended; its state is with the caller. */
const IDLE_MS = 60_000;

export function openLearningWork(spawn: () => CallTransport, schedule: Schedule): OpenedWork {
  const thread = createOnDemand({
    open: async () => createRemote<LearningWork>(spawn(), WORK_METHODS, { name: 'learning' }),
    end: (remote) => remote.end(),
    idleMs: IDLE_MS,
    schedule,
  });
  const methods = Object.keys(WORK_METHODS) as (keyof LearningWork)[];
  const call = (method: keyof LearningWork, args: readonly unknown[]): Promise<unknown> =>
    thread.use(async (remote) => {
      try {
        return await (remote.object[method] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
      } catch (error) {
        if (remote.hasEnded) void thread.end(); // crashed: the next call starts another one
        throw error;
      }
    });
  const work = Object.fromEntries(
    methods.map((method) => [
      method,
      (...args: readonly unknown[]) =>
        !thread.isOpen() && IDLE_METHODS.includes(method) ? Promise.resolve() : call(method, args),
    ]),
  ) as unknown as LearningWork;
  return {
    work,
    async end() {
      await thread.end();
    },
  };
}

export interface LearningPlatform extends OpenedWork {
  readonly schedule: Schedule;
  warn(message: string): void;
}

/** Opens learning with the thread and the timers of a platform. */
export function openLearningOn(
  { work, end, schedule, warn }: LearningPlatform,
  { memory, report = warn, implicitFeedback = false, corrections = true, ...options }: OpenLearningOptions,
): Learning {
  return createLearning({ memory, work, endWork: end, schedule, report, options, implicitFeedback, corrections });
}
