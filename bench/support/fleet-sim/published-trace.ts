import { readFileSync } from 'node:fs';
import { createSimTrace, type SimTrace } from './trace.ts';

const BLOCK_TOKENS = 512;

interface Line {
  readonly timestamp: number;
  readonly input_length: number;
  readonly output_length: number;
  readonly hash_ids: readonly number[];
}

/** Reads requests as `hash_ids` of blocks of 512 tokens. `speed` divides their times; requests whose first own block is equal are a session. */
export function readPublishedTrace(file: string, speed: number): SimTrace {
  const lines = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  const requests = lines.map(({ timestamp, input_length, output_length, hash_ids }) => ({
    atMs: timestamp / speed,
    blocks: hash_ids,
    numTokens: Math.max(1, input_length),
    outputTokens: Math.max(1, output_length),
    session: hash_ids[Math.min(1, hash_ids.length - 1)] ?? 0,
  }));
  return createSimTrace(requests, BLOCK_TOKENS);
}
