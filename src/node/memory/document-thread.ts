import { Worker } from 'node:worker_threads';
import { type DivideDocument, divideDocument, type DividedDocument } from '../../memory/documents/divide-document.ts';
import { parseMediaType } from '../../core/media-type.ts';
import type { DocumentFile } from '../../memory/documents/read-document.ts';
import { createTaskThread } from '../../platform/node/threads/task-thread.ts';

/** Enough for a PDF of the largest size. */
const MEMORY_MB = 1024;
/** Files up to this size are divided in this thread: that takes a few milliseconds, and a thread takes more to start. */
const MAX_HERE_CHARS = 64 << 10;
/** Formats that are parsed by a library: a hostile file must not stop the server. */
const PARSED = /\.(?:pdf|html?|xhtml)$/i;

export interface DocumentThread {
  readonly divide: DivideDocument;
  dispose(): Promise<void>;
}

/** A thread for large and parsed documents; starts with the first one. */
export function openDocumentThread(): DocumentThread {
  const thread = createTaskThread<DocumentFile, DividedDocument>({
    name: 'the document thread',
    spawn: () =>
      new Worker(new URL('./document-worker.js', import.meta.url), {
        name: 'ruvllm-documents',
        execArgv: [],
        resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
      }),
    deadlineMs: 60_000,
    maxWaiting: 64,
    idleMs: 10_000,
  });
  return {
    async divide(file) {
      const type = parseMediaType(file.contentType)?.type ?? 'text/plain';
      const isPlain = type.startsWith('text/') && type !== 'text/html';
      if (file.content.length <= MAX_HERE_CHARS && isPlain && !PARSED.test(file.name)) return divideDocument(file);
      return (await thread.run(file, null)) ?? divideDocument(file);
    },
    dispose: () => thread.dispose(),
  };
}
