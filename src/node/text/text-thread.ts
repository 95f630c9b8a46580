import { Worker } from 'node:worker_threads';
import type { TextResult, TextTask } from '../../runtime/text/text-tasks.ts';
import type { TextThread } from '../../runtime/text/text-thread.ts';
import { identifyModel, type ModelFiles } from './same-model.ts';
import { createTaskThread, type TaskThreadOptions } from '../../platform/node/threads/task-thread.ts';

/** A result between threads: ids are transferred, not copied. */
export interface PackedResult {
  readonly lists: readonly Int32Array[];
  readonly text: string | null;
}

/** Heap of the thread: 4 million characters without words, more than a request has, took up to 600 MB. */
const MEMORY_MB = 1536;

const DEFAULTS: Omit<TaskThreadOptions, 'spawn'> = {
  name: 'the text thread',
  // A template may take 2 s and 4 million characters without words 8 s, on a machine with other work.
  deadlineMs: 30_000,
  maxWaiting: 256,
  idleMs: 60_000,
};

/** The input of the worker. */
export interface TextWorkerData {
  readonly files: ModelFiles;
  /** Replaces the template of the file; null: none. */
  readonly chatTemplate: string | null;
}

function spawnWorker(workerData: TextWorkerData): Worker {
  return new Worker(new URL('./text-worker.js', import.meta.url), {
    name: 'ruvllm-text',
    execArgv: [],
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
}

/** A thread for long texts of the model at `path`; starts with the first one. Call it when the model is loaded. */
export function openTextThread(
  path: string,
  chatTemplate: string | null = null,
  options: Partial<TaskThreadOptions> = {},
): TextThread {
  const files = identifyModel(path);
  const thread = createTaskThread<TextTask, PackedResult>({
    ...DEFAULTS,
    spawn: () => spawnWorker({ files, chatTemplate }),
    ...options,
  });
  return {
    async run(task, signal, tenant) {
      const packed = await thread.run(task, signal, tenant);
      return packed === null ? null : unpack(packed);
    },
    dispose: () => thread.dispose(),
  };
}

const unpack = ({ lists, text }: PackedResult): TextResult => ({ lists: lists.map(toArray), text });

/** A loop, because `Array.from` takes twice as long: 26 ms for 786 000 ids on the main thread. */
function toArray(ids: Int32Array): number[] {
  const list: number[] = [];
  for (let i = 0; i < ids.length; i++) list.push(ids[i]!);
  return list;
}
