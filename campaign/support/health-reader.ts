// Asks for /health in a thread of its own, so that the work of the attackers' clients does not count as the server's.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const PAUSE_MS = 200;

/** As text: tests run the sources, and a worker of Node 20 loads no TypeScript. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads');
const { url, pauseMs } = workerData;
let isOver = false;
parentPort.on('message', () => (isOver = true));
(async () => {
  const times = [];
  while (!isOver) {
    const began = performance.now();
    const { status } = await fetch(url + '/health', { signal: AbortSignal.timeout(60000) }).catch(() => ({ status: 0 }));
    times.push(status === 200 ? performance.now() - began : Infinity);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  parentPort.postMessage(times);
  parentPort.close();
})();
`;

/** Starts at once; `stop` resolves to the times of all answers in ms, Infinity where there was none. */
export function startHealthReader(url: string): { stop(): Promise<readonly number[]> } {
  const worker = new Worker(PROGRAM, { eval: true, workerData: { url, pauseMs: PAUSE_MS } });
  return {
    async stop() {
      worker.postMessage('over');
      const [times] = (await once(worker, 'message')) as [number[]];
      return times;
    },
  };
}
