import { Worker } from 'node:worker_threads';
import type { CallTransport, RemoteReply } from '../../../core/remote-calls.ts';

/** Starts the thread that learns. Runs from the built package only. */
export function spawnLearning(): CallTransport {
  const worker = new Worker(new URL('./learning-worker.js', import.meta.url), {
    name: 'ruvllm-learning',
    execArgv: [],
  });
  let onReply = (_reply: RemoteReply): void => {};
  let onEnd = (_reason: string): void => {};
  let failure: string | null = null;
  worker.unref();
  worker.on('error', (error: Error) => (failure = error.message));
  worker.on('message', (reply: RemoteReply) => onReply(reply));
  worker.on('exit', (exitCode) => onEnd(failure ?? `exit code ${exitCode}`));
  return {
    post: (call) => worker.postMessage(call),
    listen(reply, end) {
      onReply = reply;
      onEnd = end;
    },
    setBusy(isBusy) {
      if (isBusy) worker.ref();
      else worker.unref();
    },
    async end() {
      await worker.terminate();
    },
  };
}
