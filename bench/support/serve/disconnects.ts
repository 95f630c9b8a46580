import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { formatPost } from './raw-connection.ts';
import type { Served } from './served.ts';
import { openingOf } from './streams.ts';

export interface DisconnectsResult {
  readonly numDisconnects: number;
  /** Numbers by moment: with half a request, before the first byte, after some bytes. */
  readonly numHalf: number;
  readonly numSilent: number;
  readonly numMidStream: number;
  readonly pagesLeaked: number;
  readonly requestsLeft: number;
  /** From the last disconnect until everything was released. */
  readonly drainMs: number;
}

const NUM_AT_ONCE = 32;
const MAX_DRAIN_MS = 60_000;

/** A Park-Miller generator: the same moments in every run. */
function createDice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % sides;
  };
}

/** Clients that disconnect: in the middle of their request, while the prompt is computed, or while they read. */
export async function measureDisconnects(served: Served, count: number): Promise<DisconnectsResult> {
  const dice = createDice(7);
  const numLeft = { half: 0, silent: 0, midStream: 0 };
  const baseline = (await served.look()).engine!.numFreePages;
  let next = 0;
  await Promise.all(
    Array.from({ length: NUM_AT_ONCE }, async () => {
      while (next < count) numLeft[await leave(served.port, next++, dice)]++;
    }),
  );
  const began = performance.now();
  let { openRequests, engine } = await served.look();
  const isBusy = (): boolean => openRequests + engine!.numRunning + engine!.numWaiting > 0;
  while (isBusy() && performance.now() - began < MAX_DRAIN_MS) ({ openRequests, engine } = await served.look());
  return {
    numDisconnects: count,
    numHalf: numLeft.half,
    numSilent: numLeft.silent,
    numMidStream: numLeft.midStream,
    pagesLeaked: baseline - engine!.numFreePages,
    requestsLeft: openRequests + engine!.numRunning + engine!.numWaiting,
    drainMs: performance.now() - began,
  };
}

/** One client; returns when it left. */
async function leave(
  port: number,
  index: number,
  dice: (sides: number) => number,
): Promise<'half' | 'silent' | 'midStream'> {
  const isLong = dice(2) === 0;
  const prompt = openingOf(index) + (isLong ? ' and then he said hello to her'.repeat(15) : '');
  const body = { model: 'bench', prompt, temperature: 0, max_tokens: 80, ignore_eos: true, stream: dice(4) > 0 };
  const request = formatPost('/v1/completions', JSON.stringify(body), ['connection: close']);
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let numParts = 0;
  const moment = dice(3);
  const maxParts = 1 + dice(40);
  socket.on('error', () => {});
  socket.on('data', () => {
    if (++numParts >= maxParts && moment === 2) socket.destroy();
  });
  if (moment === 0 && dice(4) === 0) {
    socket.write(request.subarray(0, request.length - 1 - dice(50)));
    await setTimeout(dice(5));
    socket.destroy();
    await closed;
    return 'half';
  }
  socket.write(request);
  if (moment < 2) {
    await setTimeout(dice(30));
    socket.destroy();
  }
  await closed;
  return numParts === 0 ? 'silent' : 'midStream';
}
