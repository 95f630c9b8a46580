// The engine's worker; started and ended by spawn-engine.ts.
import { createEngineServer } from '../engine/engine-server.ts';
import { holdLife } from '../platform/browser/threads/worker-life.ts';
import { workerScope } from '../platform/browser/worker-scope.ts';
import { createSampler } from '../sampling/sampler.ts';
import { openBrowserModel } from './engine-model.ts';
import type { FromEngineWorker, ToEngineWorker } from './engine-protocol.ts';

/** Writes in progress: the page ends the worker as soon as it hears that the engine is disposed. */
const finishing: (() => Promise<void>)[] = [];

function post(message: FromEngineWorker): void {
  if (message.type !== 'disposed') return workerScope.postMessage(message);
  void Promise.allSettled(finishing.map((finish) => finish())).then(() => workerScope.postMessage(message));
}
const warn = (message: string): void => post({ type: 'warning', message });

/** A message to itself comes after those that have arrived. */
const { port1, port2 } = new MessageChannel();
const waiting: (() => void)[] = [];
port1.addEventListener('message', () => waiting.shift()?.());
port1.start();

let spillKey: CryptoKey | null = null;

const server = createEngineServer({
  post,
  openModel: (spec, onProgress) =>
    openBrowserModel(spec, { onProgress, warn, spillKey, beforeEnd: (finish) => finishing.push(finish) }),
  createSampler,
  now: () => performance.now(),
  yieldToMessages: () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      port2.postMessage(null);
    }),
  onCrash(error) {
    // Outside of any promise, so that the page hears of it.
    setTimeout(() => {
      throw error;
    });
  },
});

workerScope.addEventListener('message', ({ data }) => {
  const message = data as ToEngineWorker;
  if (message.type !== 'start') return server.handle(message);
  ({ spillKey } = message);
  void holdLife(message.lock).then(() => post({ type: 'started' }));
});
