import { Worker } from 'node:worker_threads';
import { RuvLLMError } from '../../core/errors.ts';
import type { ServerMessage } from '../../engine/protocol.ts';
import type { Transport } from '../../runtime/engine-client.ts';
import type { EngineWarning } from './engine-model.ts';

/** Messages of the worker to the process, not to the engine client. */
export interface WorkerWarning {
  readonly type: 'warning';
  readonly warning: EngineWarning;
}

/** Starts an engine in its own worker thread. Works only in the built package, because the worker is a .js file. */
export function spawnEngine(): Transport {
  const worker = new Worker(new URL('./engine-worker.js', import.meta.url), {
    name: 'ruvllm-engine',
    // Node's flags are for the program: `--input-type` would break the worker.
    execArgv: [],
  });
  let isClosed = false;
  let failure: Error | null = null;
  let onLost = (_error: RuvLLMError): void => {};
  worker.on('error', (error: Error) => (failure = error));
  worker.on('exit', (exitCode) => {
    if (!isClosed) onLost(describeLoss(exitCode, failure));
    isClosed = true;
  });
  worker.unref();
  return {
    post(message) {
      if (!isClosed) worker.postMessage(message);
    },
    onMessage(listener) {
      worker.on('message', (message: ServerMessage | WorkerWarning) => {
        if (message.type === 'warning') process.emitWarning(message.warning.message, { code: message.warning.code });
        else listener(message);
      });
    },
    onLost(listener) {
      onLost = listener;
    },
    setBusy(isBusy) {
      if (isClosed) return;
      if (isBusy) worker.ref();
      else worker.unref();
    },
    async close() {
      isClosed = true;
      await worker.terminate();
    },
  };
}

function describeLoss(exitCode: number, cause: (Error & { code?: string }) | null): RuvLLMError {
  const reason = cause === null ? '' : `: ${cause.message}`;
  const code = cause?.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'out_of_memory' : 'kernel_failed';
  return new RuvLLMError(code, `the engine worker exited with code ${exitCode}${reason}`, {
    data: { exitCode },
    ...(cause === null ? {} : { cause }),
  });
}
