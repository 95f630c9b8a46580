// A thread that renders and tokenizes long texts: started by text-thread.ts, and ended by it when it has nothing to do.
import { parentPort, workerData } from 'node:worker_threads';
import { assert, serializeError } from '../../core/errors.ts';
import type { PromptContext } from '../../runtime/prompt.ts';
import { runTextTask, type TextTask } from '../../runtime/text/text-tasks.ts';
import { readTextSide } from '../../runtime/text/text-side.ts';
import { identifyFiles } from './content-identity.ts';
import { modelPartPaths, openModelFile } from './open-model-file.ts';
import type { TaskAnswer } from './task-thread.ts';
import type { PackedResult, TextWorkerData } from './text-thread.ts';

const port = parentPort;
assert(port !== null, 'text-worker runs as a worker thread');

/** null: the files are not those any more that the model was loaded from. */
function openTextSide({ path, digest }: TextWorkerData): PromptContext | null {
  try {
    const gguf = openModelFile(path);
    try {
      const context = readTextSide(gguf.metadata);
      return identifyFiles(modelPartPaths(path)).digest === digest ? context : null;
    } finally {
      gguf.source.close();
    }
  } catch {
    return null; // the same file was good when the model was loaded
  }
}

function answer(task: TextTask, context: PromptContext): TaskAnswer<PackedResult> {
  try {
    const { lists, text } = runTextTask(task, context);
    return { result: { lists: lists.map((ids) => Int32Array.from(ids)), text } };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

const context = openTextSide(workerData as TextWorkerData);
if (context !== null) {
  port.on('message', (task: TextTask) => {
    const answered = answer(task, context);
    const moved = 'result' in answered ? answered.result.lists.map(({ buffer }) => buffer as ArrayBuffer) : [];
    port.postMessage(answered, moved);
  });
}
port.postMessage(context === null ? 'unable' : 'ready');
