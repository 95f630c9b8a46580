// A thread that reads documents; started and ended by document-thread.ts.
import { parentPort } from 'node:worker_threads';
import { assert, serializeError } from '../../core/errors.ts';
import { divideDocument, type DividedDocument } from '../../memory/documents/divide-document.ts';
import type { DocumentFile } from '../../memory/documents/read-document.ts';
import type { TaskAnswer } from '../../platform/node/threads/task-thread.ts';

const port = parentPort;
assert(port !== null, 'document-worker runs as a worker thread');

async function answer(file: DocumentFile): Promise<TaskAnswer<DividedDocument>> {
  try {
    return { result: await divideDocument(file) };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

port.on('message', (file: DocumentFile) => void answer(file).then((reply) => port.postMessage(reply)));
port.postMessage('ready');
