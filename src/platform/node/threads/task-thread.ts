import type { Worker } from 'node:worker_threads';
import { deserializeError, RuvLLMError, type SerializedError } from '../../../core/errors.ts';
import { abortError, onAbort } from '../../../core/abort.ts';
import { startComputeDeadline } from '../process/compute-deadline.ts';

export interface TaskThreadOptions {
  /** What it does, for messages: 'the text thread'. */
  readonly name: string;
  /** A thread that says `ready`, or `unable` when it cannot do its work, then answers each task with a `TaskAnswer`. */
  readonly spawn: () => Worker;
  /** Milliseconds of computing for one task; then its thread is ended. */
  readonly deadlineMs: number;
  /** Waiting tasks of one owner; more are refused. */
  readonly maxWaiting: number;
  /** Milliseconds without work after which the thread is ended. */
  readonly idleMs: number;
}

export type TaskAnswer<Result> = { readonly result: Result } | { readonly error: SerializedError };

/** Tasks one after the other in a thread that is started when there is one, and ended when there is none. */
export interface TaskThread<Task, Result> {
  /**
   * Owners take turns, so that the tasks of one do not hold up those of another. null: the thread cannot be had, or the task cannot be
   * handed over; nothing is wrong with the task.
   */
  run(task: Task, signal: AbortSignal | null, owner?: string): Promise<Result | null>;
  dispose(): Promise<void>;
}

interface Job<Task, Result> {
  readonly task: Task;
  readonly owner: string;
  settle(outcome: Result | null | RuvLLMError): void;
}

export function createTaskThread<Task, Result>(options: TaskThreadOptions): TaskThread<Task, Result> {
  const { name, spawn, deadlineMs, maxWaiting, idleMs } = options;
  /** By owner; the first owner is the next one. */
  const waiting = new Map<string, Set<Job<Task, Result>>>();
  let thread: { readonly worker: Worker; isReady: boolean } | null = null;
  let current: Job<Task, Result> | null = null;
  let isUnable = false;
  let isDisposed = false;
  let cancelTimer = (): void => {};

  async function endThread(): Promise<void> {
    const ended = thread;
    thread = null;
    cancelTimer();
    await ended?.worker.terminate();
  }

  function finish(outcome: Result | null | RuvLLMError): void {
    const job = current;
    current = null;
    cancelTimer();
    job?.settle(outcome);
    next();
  }

  /** One that was lost at work takes its task along; before that, the task is as good as before. */
  function lose(isReady: boolean, error: RuvLLMError): void {
    void endThread();
    finish(isReady ? error : null);
  }

  function startThread(): { readonly worker: Worker; isReady: boolean } {
    const worker = spawn();
    const own = { worker, isReady: false };
    worker.on('message', (message: TaskAnswer<Result> | 'ready' | 'unable') => {
      if (thread !== own) return; // of a thread that was given up
      if (message === 'ready') {
        own.isReady = true;
        begin();
      } else if (message === 'unable') {
        isUnable = true;
        void endThread();
        for (const job of waitingJobs()) job.settle(null);
        finish(null);
      } else finish('result' in message ? message.result : deserializeError(message.error));
    });
    worker.on('error', (cause: Error & { code?: string }) => {
      if (thread === own) lose(own.isReady, describeLoss(name, cause));
    });
    worker.on('exit', (exitCode) => {
      if (thread === own) lose(own.isReady, new RuvLLMError('internal', `${name} exited with code ${exitCode}`));
    });
    return own;
  }

  const waitingJobs = (): Job<Task, Result>[] => [...waiting.values()].flatMap((jobs) => [...jobs]);

  function leave(job: Job<Task, Result>): void {
    const jobs = waiting.get(job.owner);
    jobs?.delete(job);
    if (jobs?.size === 0) waiting.delete(job.owner);
  }

  /** The oldest task of the owner who has waited longest for a turn. */
  function takeNext(): Job<Task, Result> | null {
    const [turn] = waiting;
    if (turn === undefined) return null;
    const [owner, jobs] = turn;
    const [job] = jobs;
    waiting.delete(owner);
    waiting.set(owner, jobs);
    leave(job!);
    return job!;
  }

  function next(): void {
    if (current !== null) return;
    const job = takeNext();
    if (job === null) return rest();
    current = job;
    thread ??= startThread();
    thread.worker.ref();
    cancelTimer();
    if (thread.isReady) begin();
  }

  /** Not before the thread is there: its start is not the task's time. */
  function begin(): void {
    if (current === null) return rest(); // whoever asked has left meanwhile
    cancelTimer = startComputeDeadline(deadlineMs, () => lose(true, tooLong(name, deadlineMs)));
    try {
      thread!.worker.postMessage(current.task);
    } catch {
      finish(null); // not data: a function, a symbol
    }
  }

  function rest(): void {
    thread?.worker.unref();
    cancelTimer();
    const idle = setTimeout(() => void endThread(), idleMs).unref();
    cancelTimer = () => clearTimeout(idle);
  }

  return {
    run(task, signal, owner = '') {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(abortError(signal));
        if (isDisposed) return reject(disposed(name));
        if (isUnable) return resolve(null);
        const jobs = waiting.get(owner) ?? new Set();
        if (jobs.size >= maxWaiting) return reject(overloaded(name, maxWaiting));
        const job: Job<Task, Result> = {
          task,
          owner,
          settle(outcome) {
            unsubscribe?.();
            leave(job); // one that is at work is finished, for nobody: starting a thread anew would take longer
            if (outcome instanceof RuvLLMError) reject(outcome);
            else resolve(outcome);
          },
        };
        const unsubscribe = signal && onAbort(signal, () => job.settle(abortError(signal)));
        waiting.set(owner, jobs.add(job));
        next();
      });
    },
    async dispose() {
      isDisposed = true;
      const error = disposed(name);
      for (const job of waitingJobs()) job.settle(error);
      current?.settle(error);
      current = null;
      await endThread();
    },
  };
}

const disposed = (name: string): RuvLLMError => new RuvLLMError('not_loaded', `${name} was closed with its model`);

const overloaded = (name: string, limit: number): RuvLLMError =>
  new RuvLLMError('overloaded', `${limit} tasks wait for ${name}`, { data: { limit }, isRetryable: true });

const tooLong = (name: string, limit: number): RuvLLMError =>
  new RuvLLMError('deadline_exceeded', `${name} exceeded the limit of ${limit} ms for a task`, { data: { limit } });

function describeLoss(name: string, cause: Error & { code?: string }): RuvLLMError {
  const code = cause.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'out_of_memory' : 'internal';
  return new RuvLLMError(code, `${name} failed: ${cause.message}`, { cause });
}
