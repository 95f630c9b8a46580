// A thread that renders and tokenizes long texts; started, and ended when idle, by text-thread.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { assert, serializeError } from '../../core/errors.ts';
import type { PromptContext } from '../../runtime/prompt.ts';
import { runTextTask, type TextTask } from '../../runtime/text/text-tasks.ts';
import { readTextSide } from '../../runtime/text/text-side.ts';
import { readSameModel } from './same-model.ts';
import type { TaskAnswer } from '../../platform/node/threads/task-thread.ts';
import type { PackedResult, TextWorkerData } from './text-thread.ts';

const port = parentPort;
assert(port !== null, 'text-worker runs as a worker thread');

function answer(task: TextTask, context: PromptContext): TaskAnswer<PackedResult> {
  try {
    const { lists, text } = runTextTask(task, context);
    return { result: { lists: lists.map((ids) => Int32Array.from(ids)), text } };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

const { files, chatTemplate } = workerData as TextWorkerData;
const context = readSameModel(files, (metadata) => readTextSide(metadata, chatTemplate));
if (context !== null) {
  port.on('message', (task: TextTask) => {
    const answered = answer(task, context);
    const moved = 'result' in answered ? answered.result.lists.map(({ buffer }) => buffer as ArrayBuffer) : [];
    port.postMessage(answered, moved);
  });
}
port.postMessage(context === null ? 'unable' : 'ready');
