import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Schedule } from './services.ts';

/**
 * Runs a task that has to succeed in the end. If the store cannot be reached, it resolves all the same and the task is repeated until it
 * succeeds; other failures reject.
 */
export type Eventually = (task: () => Promise<void>) => Promise<void>;

/** Rejects with every failure. */
export const atOnce: Eventually = (task) => task();

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 10_000;

const isPassing = (error: unknown): boolean => error instanceof RuvLLMError && error.code === 'io' && error.isRetryable;

/** Tasks of a memory whose store may be away when it is opened; they are done in order. */
export function createEventually(schedule: Schedule, report: (message: string) => void) {
  const late: (() => Promise<void>)[] = [];
  let cancel: (() => void) | null = null;
  let isStopped = false;

  function retryLater(delayMs: number): void {
    if (isStopped) return;
    cancel = schedule(() => void retry(delayMs), delayMs);
  }
  async function retry(delayMs: number): Promise<void> {
    for (let task = late[0]; task !== undefined; task = late[0]) {
      if (isStopped) return;
      try {
        await task();
      } catch (error) {
        if (isPassing(error)) return retryLater(Math.min(MAX_RETRY_MS, 2 * delayMs));
        report(`opening the memory failed: ${messageOf(error)}`);
      }
      late.shift();
    }
    cancel = null;
  }

  const run: Eventually = async (task) => {
    if (late.length === 0) {
      try {
        return await task();
      } catch (error) {
        if (!isPassing(error)) throw error;
      }
    }
    late.push(task);
    if (cancel === null) retryLater(FIRST_RETRY_MS);
  };
  return {
    run,
    /** Whether all tasks are done. */
    isDone: (): boolean => late.length === 0,
    stop(): void {
      isStopped = true;
      cancel?.();
    },
  };
}
