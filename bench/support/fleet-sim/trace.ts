import { createRandom, type Random } from '../../../src/core/random.ts';

/** Requests in the order of their time. A prompt is a list of blocks: equal blocks have equal tokens before and in them. */
export interface SimTrace {
  readonly numRequests: number;
  readonly numBlocks: number;
  readonly blockTokens: number;
  readonly atMs: Float64Array;
  /** The prompt of request i has the blocks from `starts[i]` to `starts[i + 1]`. */
  readonly starts: Int32Array;
  readonly blocks: Int32Array;
  /** Of the prompts. The last block may be partly filled. */
  readonly numTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Requests of a session go to the same gateway. */
  readonly sessions: Int32Array;
}

export interface SimRequest {
  readonly atMs: number;
  readonly blocks: readonly number[];
  readonly numTokens: number;
  readonly outputTokens: number;
  readonly session: number;
}

/** A trace from a list of requests in any order. */
export function createSimTrace(given: readonly SimRequest[], blockTokens: number): SimTrace {
  const requests = given.toSorted((a, b) => a.atMs - b.atMs);
  const starts = new Int32Array(requests.length + 1);
  for (const [i, { blocks }] of requests.entries()) starts[i + 1] = starts[i]! + blocks.length;
  const blocks = new Int32Array(starts.at(-1)!);
  for (const [i, request] of requests.entries()) blocks.set(request.blocks, starts[i]);
  return {
    numRequests: requests.length,
    numBlocks: blocks.reduce((most, block) => Math.max(most, block), -1) + 1,
    blockTokens,
    atMs: Float64Array.from(requests, ({ atMs }) => atMs),
    starts,
    blocks,
    numTokens: Int32Array.from(requests, ({ numTokens }) => numTokens),
    outputTokens: Int32Array.from(requests, ({ outputTokens }) => outputTokens),
    sessions: Int32Array.from(requests, ({ session }) => session),
  };
}

export interface SessionTraceOptions {
  readonly numSessions: number;
  readonly requestsPerSecond: number;
  readonly seed: number;
  /** From this time on for a minute, this share of new sessions starts with one new prefix of 16 blocks. Default: none. */
  readonly hotPrefix?: { readonly atMs: number; readonly share: number };
}

const BLOCK_TOKENS = 512;
const NUM_SYSTEMS = 2000;
const MAX_SYSTEM_BLOCKS = 8;
const HOT_BLOCKS = 16;
const MEAN_TURNS = 4;
const MEAN_THINK_MS = 20_000;
const MEAN_OUTPUT_TOKENS = 150;

/**
 * Sessions that grow turn by turn after one of 2000 system prompts of 1 to 8 blocks, whose popularity falls like 1/rank. Times do not
 * depend on answers, so that all policies get the same load. Ends with the beginning of the last session.
 */
export function createSessionTrace({ numSessions, requestsPerSecond, seed, hotPrefix }: SessionTraceOptions): SimTrace {
  const random = createRandom(seed);
  const integer = (from: number, to: number): number => from + Math.floor(random.next() * (to - from + 1));
  const waiting = (mean: number): number => -Math.log(1 - random.next()) * mean;
  const drawSystem = zipf(NUM_SYSTEMS, random);
  const sizes = Array.from({ length: NUM_SYSTEMS }, () => integer(1, MAX_SYSTEM_BLOCKS));
  const gapMs = (1000 * MEAN_TURNS) / requestsPerSecond;
  const numShared = NUM_SYSTEMS * MAX_SYSTEM_BLOCKS + HOT_BLOCKS;

  // Turns of all sessions, first in the order of sessions.
  const times: number[] = [];
  const sessionOf: number[] = [];
  const lengthOf: number[] = [];
  const outputs: number[] = [];
  const firstOwn = new Int32Array(numSessions);
  const systemOf = new Int32Array(numSessions);
  let startMs = 0;
  let numBlocks = numShared;
  for (let session = 0; session < numSessions; session++) {
    startMs += waiting(gapMs);
    const isHot = hotPrefix !== undefined && startMs >= hotPrefix.atMs && startMs < hotPrefix.atMs + 60_000 && random.next() < hotPrefix.share; // prettier-ignore
    systemOf[session] = isHot ? -1 : drawSystem();
    firstOwn[session] = numBlocks;
    let atMs = startMs;
    let own = integer(1, 4);
    for (;;) {
      const output = Math.max(1, Math.round(waiting(MEAN_OUTPUT_TOKENS)));
      times.push(atMs);
      sessionOf.push(session);
      lengthOf.push(own);
      outputs.push(output);
      if (random.next() < 1 / MEAN_TURNS) break;
      atMs += 5000 + waiting(MEAN_THINK_MS);
      own += integer(1, 3);
    }
    numBlocks += own;
  }

  const order = Uint32Array.from(times, (_, i) => i)
    .filter((turn) => times[turn]! <= startMs)
    .sort((a, b) => times[a]! - times[b]! || a - b);
  const systemBlocks = (session: number): number =>
    systemOf[session] === -1 ? HOT_BLOCKS : sizes[systemOf[session]!]!;
  const starts = new Int32Array(order.length + 1);
  order.forEach((turn, i) => (starts[i + 1] = starts[i]! + systemBlocks(sessionOf[turn]!) + lengthOf[turn]!));
  const blocks = new Int32Array(starts[order.length]!);
  order.forEach((turn, i) => {
    const session = sessionOf[turn]!;
    const numSystem = systemBlocks(session);
    const firstSystem =
      systemOf[session] === -1 ? NUM_SYSTEMS * MAX_SYSTEM_BLOCKS : systemOf[session]! * MAX_SYSTEM_BLOCKS;
    for (let j = 0; j < numSystem; j++) blocks[starts[i]! + j] = firstSystem + j;
    for (let j = 0; j < lengthOf[turn]!; j++) blocks[starts[i]! + numSystem + j] = firstOwn[session]! + j;
  });
  return {
    numRequests: order.length,
    numBlocks,
    blockTokens: BLOCK_TOKENS,
    atMs: Float64Array.from(order, (turn) => times[turn]!),
    starts,
    blocks,
    numTokens: Int32Array.from(order, (_, i) => (starts[i + 1]! - starts[i]!) * BLOCK_TOKENS),
    outputTokens: Int32Array.from(order, (turn) => outputs[turn]!),
    sessions: Int32Array.from(order, (turn) => sessionOf[turn]!),
  };
}

/** Draws 0 to count - 1, number i with a weight of 1 / (i + 1). */
function zipf(count: number, random: Random): () => number {
  const sums = new Float64Array(count);
  for (let i = 0; i < count; i++) sums[i] = (sums[i - 1] ?? 0) + 1 / (i + 1);
  return () => {
    const at = random.next() * sums[count - 1]!;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
