// Reads streams in a thread of its own, so that the work of the attackers' clients does not count as a gap.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** As text: tests run the sources, and a worker of Node 20 loads no TypeScript. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads');
const { url, token, body } = workerData;
let isOver = false;
parentPort.on('message', () => (isOver = true));
(async () => {
  const gaps = [];
  let [numStreams, numBroken] = [0, 0];
  do {
    const response = await fetch(url + '/v1/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + token },
      body: JSON.stringify(body),
    });
    let [last, text] = [null, ''];
    const decoder = new TextDecoder();
    for await (const part of response.body) {
      const now = performance.now();
      text = (text + decoder.decode(part, { stream: true })).slice(-64);
      if (last !== null) gaps.push(now - last);
      last = now;
      if (isOver) break;
    }
    numStreams++;
    if (!isOver && !text.endsWith('data: [DONE]\\n\\n')) numBroken++;
    if (numStreams === 1) parentPort.postMessage('started');
  } while (!isOver);
  parentPort.postMessage({ gaps, numStreams, numBroken });
  parentPort.close();
})();
`;

export interface Gaps {
  readonly numStreams: number;
  /** Streams that ended before their end. */
  readonly numBroken: number;
  /** Ascending, in ms. */
  readonly gaps: readonly number[];
}

export interface GapReader {
  stop(): Promise<Gaps>;
}

/** Streams again and again; resolves after the first one. */
export async function startGapReader(url: string, token: string, body: object): Promise<GapReader> {
  const worker = new Worker(PROGRAM, { eval: true, workerData: { url, token, body } });
  await once(worker, 'message');
  return {
    async stop() {
      worker.postMessage('over');
      const [result] = (await once(worker, 'message')) as [Gaps];
      return { ...result, gaps: result.gaps.toSorted((a, b) => a - b) };
    },
  };
}
