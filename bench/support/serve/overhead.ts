import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { percentile } from '../report.ts';
import { formatPost, openConnection, type RawConnection } from './raw-connection.ts';
import { type Served, startServed } from './served.ts';

export interface Contender {
  readonly name: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requestsPerSecond: number;
}

const BODY = JSON.stringify({
  model: 'bench',
  messages: [
    { role: 'system', content: 'You answer in one word.' },
    { role: 'user', content: 'Is the sky blue on a clear day, as far as you know?' },
  ],
  temperature: 0,
  max_tokens: 16,
});
const NUM_CONNECTIONS = 16;

interface Racer {
  readonly name: string;
  readonly served: Served;
  readonly request: Uint8Array;
  readonly connections: readonly RawConnection[];
  readonly timesMs: number[];
  readonly rates: number[];
}

/**
 * The same small chat request, sequentially on one connection for the times and on sixteen for the rate: to Hono alone,
 * to our server, and to our server with a key. They take turns, so that other load affects all of them.
 */
export async function measureOverhead(numRounds: number, perRound: number): Promise<readonly Contender[]> {
  const keyFolder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-keys-'));
  const racers: Racer[] = [];
  try {
    racers.push(await enter('plain Hono', await startServed({ kind: 'plain' })));
    racers.push(await enter('ruvllm, open', await startServed({ kind: 'echo', keyFolder: null })));
    racers.push(await enter('ruvllm, with a key', await startServed({ kind: 'echo', keyFolder })));
    for (const racer of racers) await sendMany(racer, 3000); // Warm-up of all compilers.
    for (let round = 0; round < numRounds; round++) {
      for (const racer of racers) {
        for (let index = 0; index < perRound; index++) racer.timesMs.push(await sendOne(racer, 0));
        const began = performance.now();
        await sendMany(racer, perRound);
        racer.rates.push((perRound * 1000) / (performance.now() - began));
      }
    }
    return racers.map(({ name, timesMs, rates }) => {
      timesMs.sort((a, b) => a - b);
      rates.sort((a, b) => a - b);
      return {
        name,
        p50Ms: percentile(timesMs, 0.5),
        p99Ms: percentile(timesMs, 0.99),
        requestsPerSecond: percentile(rates, 0.5),
      };
    });
  } finally {
    for (const { connections } of racers) for (const { socket } of connections) socket.destroy();
    await Promise.all(racers.map(({ served }) => served.stop()));
    rmSync(keyFolder, { recursive: true, force: true });
  }
}

async function enter(name: string, served: Served): Promise<Racer> {
  const { port, token } = served;
  const request = formatPost('/v1/chat/completions', BODY, token === null ? [] : [`authorization: Bearer ${token}`]);
  const connections = await Promise.all(Array.from({ length: NUM_CONNECTIONS }, () => openConnection(port)));
  return { name, served, request, connections, timesMs: [], rates: [] };
}

async function sendOne({ name, request, connections }: Racer, connection: number): Promise<number> {
  const began = performance.now();
  const { status, body } = await connections[connection]!.send(request);
  const ms = performance.now() - began;
  if (status !== 200) throw new Error(`${name}: ${status} ${body}`);
  return ms;
}

async function sendMany(racer: Racer, count: number): Promise<void> {
  let left = count;
  await Promise.all(
    racer.connections.map(async (_, index) => {
      while (left-- > 0) await sendOne(racer, index);
    }),
  );
}
