import { Worker } from 'node:worker_threads';
import type { CallTransport, RemoteReply } from '../../core/remote-calls.ts';
import { connectWorker } from '../../platform/node/threads/worker-calls.ts';

/** Starts the learning thread. Works only in the built package. */
export function spawnLearning(): CallTransport {
  const worker = new Worker(new URL('./learning-worker.js', import.meta.url), {
    name: 'ruvllm-learning',
    execArgv: [],
  });
  const { transport, receive } = connectWorker(worker);
  worker.unref();
  worker.on('message', (reply: RemoteReply) => receive(reply));
  return transport;
}
