// The engine's thread; started and ended by spawn-engine.ts.
import { parentPort } from 'node:worker_threads';
import { assert } from '../../core/errors.ts';
import { createEngineServer } from '../../engine/engine-server.ts';
import type { ClientMessage } from '../../engine/protocol.ts';
import { createSampler } from '../../sampling/sampler.ts';
import { openEngineModel } from './engine-model.ts';
import type { WorkerWarning } from './spawn-engine.ts';

const port = parentPort;
assert(port !== null, 'engine-worker runs as a worker thread');

const server = createEngineServer({
  post: (message) => port.postMessage(message),
  // Warnings go to the main thread, where the program listens to `process.on('warning')`.
  openModel: (spec, onProgress) =>
    openEngineModel(spec, onProgress, (warning) =>
      port.postMessage({ type: 'warning', warning } satisfies WorkerWarning),
    ),
  createSampler,
  now: () => performance.now(),
  // Immediates run after the port's messages of the same event loop turn.
  yieldToMessages: () => new Promise((resolve) => setImmediate(resolve)),
  onCrash(error) {
    // Outside of any promise, so that the error ends the thread and reaches the main thread.
    setImmediate(() => {
      throw error;
    });
  },
});

port.on('message', (message: ClientMessage) => server.handle(message));
