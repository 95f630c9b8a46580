import type { Worker } from 'node:worker_threads';
import type { CallTransport, RemoteReply } from '../../../core/remote-calls.ts';

/** The way to a thread that answers calls. `receive` is handed each reply; `onExit` hears of the end, after whoever waits. */
export function connectWorker(
  worker: Worker,
  onExit: (reason: string) => void = () => {},
): { readonly transport: CallTransport; receive(reply: RemoteReply): void } {
  let onReply = (_reply: RemoteReply): void => {};
  let onEnd = (_reason: string): void => {};
  let failure: string | null = null;
  worker.on('error', (error: Error) => (failure = error.message));
  worker.on('exit', (exitCode) => {
    const reason = failure ?? `exit code ${exitCode}`;
    onEnd(reason);
    onExit(reason);
  });
  return {
    receive: (reply) => onReply(reply),
    transport: {
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
    },
  };
}
