import { Worker } from 'node:worker_threads';
import { RuvLLMError } from '../../core/errors.ts';
import type { DivideDocument, DividedDocument } from '../../memory/documents/divide-document.ts';
import type { DocumentFile } from '../../memory/documents/read-document.ts';
import { createTaskThread, type TaskThreadOptions } from '../../platform/node/threads/task-thread.ts';

/** Enough for a PDF of the largest size. */
const MEMORY_MB = 1024;

export interface DocumentThread {
  readonly divide: DivideDocument;
  dispose(): Promise<void>;
}

const OPTIONS: TaskThreadOptions = {
  name: 'the document thread',
  spawn: () =>
    new Worker(new URL('./document-worker.js', import.meta.url), {
      name: 'ruvllm-documents',
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    }),
  deadlineMs: 30_000,
  maxWaiting: 16,
  idleMs: 10_000,
};

/** A thread that parses documents, whatever their size and type: a hostile file must not stop the server. Starts with the first one. */
export function openDocumentThread(): DocumentThread {
  const thread = createTaskThread<DocumentFile, DividedDocument>(OPTIONS);
  return {
    async divide(file, tenant) {
      const divided = await thread.run(file, null, tenant);
      if (divided !== null) return divided;
      throw new RuvLLMError('internal', 'the document thread could not be started', { isRetryable: true });
    },
    dispose: () => thread.dispose(),
  };
}
