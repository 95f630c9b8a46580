import { RuvLLMError } from '../core/errors.ts';
import { createWorkerLife } from '../platform/browser/threads/worker-life.ts';
import { onWorkerError } from '../platform/browser/worker-scope.ts';
import type { Transport } from '../runtime/engine-client.ts';
import type { FromEngineWorker, ToEngineWorker } from './engine-protocol.ts';

/** Starts an engine in its own worker. */
export function spawnEngine(spillKey: CryptoKey | null, warn: (message: string) => void): Transport {
  const worker = new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module', name: 'ruvllm-engine' });
  const life = createWorkerLife();
  let isClosed = false;
  let onLost = (_error: RuvLLMError): void => {};
  const post = (message: ToEngineWorker): void => worker.postMessage(message);

  function lose(reason: string): void {
    if (isClosed) return;
    isClosed = true;
    life.release();
    worker.terminate();
    const message = `the engine's worker ${reason}; load the model again and send the request once more`;
    onLost(new RuvLLMError('engine_crashed', message, { data: { reason }, isRetryable: true }));
  }

  onWorkerError(worker, lose);
  worker.addEventListener('messageerror', () => lose('sent a message that cannot be read'));
  worker.addEventListener('message', ({ data }: MessageEvent<FromEngineWorker>) => {
    if (data.type === 'started') life.watch(() => lose('was ended by the browser'));
    if (data.type === 'warning') warn(data.message);
  });
  post({ type: 'start', lock: life.lock, spillKey });
  return {
    post(message) {
      if (!isClosed) post(message);
    },
    onMessage(listener) {
      worker.addEventListener('message', ({ data }: MessageEvent<FromEngineWorker>) => {
        if (data.type !== 'started' && data.type !== 'warning') listener(data);
      });
    },
    onLost(listener) {
      onLost = listener;
    },
    setBusy() {},
    async close() {
      isClosed = true;
      life.release();
      worker.terminate();
    },
  };
}
