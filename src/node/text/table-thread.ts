import { Worker } from 'node:worker_threads';
import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { TableThread } from '../../runtime/vocabulary.ts';
import type { TokenTableData } from '../../sampling/grammar/index.ts';
import { identifyModel, type ModelFiles } from './same-model.ts';
import { createTaskThread, type TaskThreadOptions } from '../../platform/node/threads/task-thread.ts';

/** The request to the worker. */
export interface TableTask {
  readonly endIds: readonly number[];
}

/** Heap of the thread: 150 000 tokens take some 200 MB. */
const MEMORY_MB = 1024;

const DEFAULTS: Omit<TaskThreadOptions, 'spawn'> = {
  name: 'the vocabulary thread',
  // 150 000 tokens take a second, on a machine with other work.
  deadlineMs: 30_000,
  maxWaiting: 1,
  // It is needed only once.
  idleMs: 0,
};

/** Errors of the thread, not of the vocabulary. */
const LOSSES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['internal', 'out_of_memory', 'deadline_exceeded']);

function spawnWorker(workerData: ModelFiles): Worker {
  return new Worker(new URL('./table-worker.js', import.meta.url), {
    name: 'ruvllm-vocabulary',
    execArgv: [],
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
}

/** A thread for the vocabulary of the model at `path`; starts with the first grammar. Call it when the model is loaded. */
export function openTableThread(path: string, options: Partial<TaskThreadOptions> = {}): TableThread {
  const files = identifyModel(path);
  const thread = createTaskThread<TableTask, TokenTableData>({
    ...DEFAULTS,
    spawn: () => spawnWorker(files),
    ...options,
  });
  return {
    async build(endIds) {
      try {
        return await thread.run({ endIds }, null);
      } catch (error) {
        if (error instanceof RuvLLMError && LOSSES.has(error.code)) return null;
        throw error;
      }
    },
    dispose: () => thread.dispose(),
  };
}
