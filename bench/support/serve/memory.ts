import { formatPost, openConnection } from './raw-connection.ts';
import type { Served } from './served.ts';
import { openingOf } from './streams.ts';

export interface MemoryPoint {
  readonly numRequests: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** The longest stall of the main thread since the previous point. */
  readonly loopMaxMs: number;
}

const NUM_CONNECTIONS = 16;
const short = { model: 'bench', max_tokens: 2, temperature: 0 };

interface Kind {
  readonly path: string;
  readonly status: number;
  body(index: number): unknown;
}

const chat = (index: number): object => ({ ...short, messages: [{ role: 'user', content: openingOf(index) }] });

/** Requests of clients, including mistakes: each kind has stores and counters that could grow. */
const KINDS: readonly Kind[] = [
  { path: '/v1/chat/completions', status: 200, body: chat },
  { path: '/v1/chat/completions', status: 200, body: (index) => ({ ...chat(index), stream: true, user: `u${index}` }) },
  { path: '/v1/completions', status: 200, body: (index) => ({ ...short, prompt: openingOf(index) }) },
  {
    path: '/v1/responses',
    status: 200,
    body: (index) => ({ model: 'bench', max_output_tokens: 2, input: openingOf(index) }),
  },
  { path: '/v1/messages', status: 200, body: chat },
  { path: '/tokenize', status: 200, body: (index) => ({ content: openingOf(index) }) },
  { path: '/v1/chat/completions', status: 404, body: (index) => ({ ...chat(index), model: `model-${index}` }) },
  { path: '/v1/chat/completions', status: 400, body: (index) => ({ ...chat(index), [`unknown_${index}`]: 1 }) },
];

async function sendMany(port: number, from: number, count: number): Promise<void> {
  let next = from;
  await Promise.all(
    Array.from({ length: NUM_CONNECTIONS }, async () => {
      const connection = await openConnection(port);
      while (next < from + count) {
        const index = next++;
        const { path, status, body } = KINDS[index % KINDS.length]!;
        const answer = await connection.send(formatPost(path, JSON.stringify(body(index))));
        if (answer.status !== status) throw new Error(`${path}: ${answer.status} ${answer.body}`);
      }
      connection.socket.destroy();
    }),
  );
}

/** Memory after each quarter of the requests; the first point follows as many requests again, when every bounded store is full. */
export async function measureMemory(served: Served, numRequests: number): Promise<readonly MemoryPoint[]> {
  const points: MemoryPoint[] = [];
  const numWarmUp = numRequests;
  let sent = 0;
  const send = async (count: number): Promise<void> => {
    await sendMany(served.port, sent, count);
    sent += count;
    const { rssBytes, heapBytes, loopMaxMs } = await served.measure();
    points.push({ numRequests: sent - numWarmUp, rssBytes, heapBytes, loopMaxMs });
  };
  await send(numWarmUp);
  for (let quarter = 0; quarter < 4; quarter++) await send(Math.floor(numRequests / 4));
  return points;
}
