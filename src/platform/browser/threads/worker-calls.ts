import { type CallTransport, type MethodList, type RemoteCall, type RemoteReply, serveCalls } from '../../../core/remote-calls.ts'; // prettier-ignore
import { onWorkerError, workerScope } from '../worker-scope.ts';
import { createWorkerLife, holdLife } from './worker-life.ts';

/** The first message to a worker that answers calls. */
interface CallsStart {
  readonly lock: string;
}
type FromWorker = RemoteReply | { readonly isAlive: true };

/** The way to a worker of `serveWorkerCalls`. */
export function connectWorker(worker: Worker): CallTransport {
  const life = createWorkerLife();
  worker.postMessage({ lock: life.lock } satisfies CallsStart);
  return {
    post: (call) => worker.postMessage(call),
    listen(onReply, onEnd) {
      worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
        if ('isAlive' in data) life.watch(() => onEnd('it was ended by the browser'));
        else onReply(data);
      });
      onWorkerError(worker, onEnd);
    },
    setBusy() {},
    async end() {
      life.release();
      worker.terminate();
    },
  };
}

/** In the worker: answers the calls of the page. */
export function serveWorkerCalls<T extends object>(object: T, methods: MethodList<T>): void {
  const post = (message: FromWorker): void => workerScope.postMessage(message);
  const serve = serveCalls(object, methods, post);
  workerScope.addEventListener('message', ({ data }) => {
    const message = data as CallsStart | RemoteCall;
    if (!('lock' in message)) return serve(message);
    void holdLife(message.lock).then(() => post({ isAlive: true }));
  });
}
