// Streams one file into the storage of the page, where only workers can write to it; started and ended by model-library.ts.
import { serializeError, type SerializedError } from '../core/errors.ts';
import { importFile, type ImportTask } from '../platform/browser/files/import-file.ts';
import { type FileRecord, openModelFolder } from '../platform/browser/files/model-folder.ts';
import { holdLife } from '../platform/browser/threads/worker-life.ts';
import { workerScope } from '../platform/browser/worker-scope.ts';

export type ToStorageWorker =
  /** `lock` tells the page whether the worker lives. */
  { readonly type: 'import'; readonly task: ImportTask; readonly lock: string } | { readonly type: 'abort' };
export type FromStorageWorker =
  | { readonly type: 'started' }
  | { readonly type: 'progress'; readonly doneBytes: number; readonly totalBytes: number | null }
  | { readonly type: 'done'; readonly record: FileRecord }
  | { readonly type: 'failed'; readonly error: SerializedError };

/** Progress messages of a fast disk would flood the page. */
const PROGRESS_MS = 50;

const post = (message: FromStorageWorker): void => workerScope.postMessage(message);
const controller = new AbortController();
let nextProgressMs = 0;

workerScope.addEventListener('message', ({ data }) => {
  const message = data as ToStorageWorker;
  if (message.type === 'abort') controller.abort();
  else void holdLife(message.lock).then(() => run(message.task));
});

async function run(task: ImportTask): Promise<void> {
  post({ type: 'started' });
  try {
    const record = await importFile(await openModelFolder(), task, {
      signal: controller.signal,
      onProgress(doneBytes, totalBytes) {
        if (performance.now() < nextProgressMs && doneBytes !== totalBytes) return;
        nextProgressMs = performance.now() + PROGRESS_MS;
        post({ type: 'progress', doneBytes, totalBytes });
      },
    });
    post({ type: 'done', record });
  } catch (error) {
    post({ type: 'failed', error: serializeError(error) });
  }
}
