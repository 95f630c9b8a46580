import { createRemote } from '../../core/remote-calls.ts';
import type { SonaOptions } from '../../learning/sona/options.ts';
import type { LearningWork } from '../../learning/sona/types.ts';
import { WORK_METHODS } from '../../learning/sona/work-methods.ts';
import type { Memory } from '../../memory/memory.ts';
import { createLearning, type Learning } from '../../runtime/learning/learning.ts';
import { spawnLearning } from './spawn-learning.ts';

/** How learning is opened; all but the memory has a default. */
export interface OpenLearningOptions extends SonaOptions {
  /** Where everything that is learned from, and everything learned, is kept. Closed by whoever opened it, after this. */
  readonly memory: Memory;
  /** Whether asking again, asking differently and leaving say something of an answer. Default false. */
  readonly implicitFeedback?: boolean;
  /** Hears of what the operator should know. Default: a warning of the process. */
  readonly report?: (message: string) => void;
}

const warn = (message: string): void => process.emitWarning(message, { code: 'RUVLLM_LEARNING' });

/** The learning thread; it starts with the first thing to do. */
export interface OpenedWork {
  readonly work: LearningWork;
  end(): Promise<void>;
}

export function openLearningWork(): OpenedWork {
  let remote: ReturnType<typeof createRemote<LearningWork>> | null = null;
  const methods = Object.keys(WORK_METHODS) as (keyof LearningWork)[];
  /** A thread that was lost is started anew: what it knew is with whoever calls. */
  const call = async (method: keyof LearningWork, args: readonly unknown[]): Promise<unknown> => {
    remote ??= createRemote<LearningWork>(spawnLearning(), WORK_METHODS, { name: 'learning' });
    const used = remote;
    try {
      return await (used.object[method] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
    } catch (error) {
      if (used.hasEnded && remote === used) remote = null;
      throw error;
    }
  };
  const idle: readonly (keyof LearningWork)[] = ['cancel', 'release', 'forgetInstant'];
  const work = Object.fromEntries(
    methods.map((method) => [
      method,
      // What only ends or forgets something needs no thread to be started for it.
      (...args: readonly unknown[]) =>
        remote === null && idle.includes(method) ? Promise.resolve() : call(method, args),
    ]),
  ) as unknown as LearningWork;
  return {
    work,
    async end() {
      await remote?.end();
    },
  };
}

/** Opens what learns. */
export function openNodeLearning({
  memory,
  report = warn,
  implicitFeedback = false,
  ...options
}: OpenLearningOptions): Learning {
  const { work, end } = openLearningWork();
  return createLearning({
    memory,
    work,
    endWork: end,
    schedule(task, delayMs) {
      const timer = setTimeout(task, delayMs).unref();
      return () => clearTimeout(timer);
    },
    report,
    options,
    implicitFeedback,
  });
}
