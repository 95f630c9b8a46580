import { Worker } from 'node:worker_threads';
import { systemClock, within } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ServerMessage } from '../../engine/protocol.ts';
import type { Transport } from '../../runtime/engine-client.ts';
import type { EngineWarningMessage } from './engine-host.ts';

/** A thread in native code cannot be terminated: it is left behind. */
const TERMINATE_MS = 2000;

function startWorker(): Worker {
  return new Worker(new URL('./engine-worker.js', import.meta.url), {
    name: 'ruvllm-engine',
    // Node's flags are for the program: `--input-type` would break the worker.
    execArgv: [],
  });
}

/** A thread without an engine, whose code is loaded. */
let spare: Worker | null = null;

/** Starts the thread of the next engine, so that its code is loaded while the caller does something else. */
export function prepareEngineThread(): void {
  if (spare !== null) return;
  const worker = startWorker();
  spare = worker;
  worker.unref();
  const drop = (): void => {
    if (spare === worker) spare = null;
  };
  worker.on('error', drop).on('exit', drop);
}

function takeWorker(): Worker {
  const worker = spare;
  spare = null;
  return worker ?? startWorker();
}

/** Starts an engine in its own worker thread. Works only in the built package, because the worker is a .js file. */
export function spawnEngine(worker = takeWorker()): Transport {
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
      worker.on('message', (message: ServerMessage | EngineWarningMessage) => {
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
      await within(systemClock, TERMINATE_MS, worker.terminate());
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
