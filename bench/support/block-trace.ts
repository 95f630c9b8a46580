import { readFileSync } from 'node:fs';

/** One request of a trace, scaled down to one page of tokens per block. */
export interface TraceRequest {
  readonly blockIds: readonly number[];
  readonly tokens: Int32Array;
  /** For each block the next request with it, or the number of requests if there is none. */
  readonly nextUses: readonly number[];
}

export interface BlockTrace {
  readonly requests: readonly TraceRequest[];
  readonly numTokens: number;
  readonly numBlocks: number;
  /** Tokens of each request's leading blocks that earlier requests had: the maximum for a cache of any size. */
  readonly numKnownTokens: number;
}

/** Tokens in a block of the trace. */
const BLOCK_TOKENS = 512;

/**
 * Reads requests as `hash_ids` of blocks of 512 tokens. A block becomes a page with unique tokens, so that no two pages
 * start alike; the last block of a prompt keeps its share of the page, at least one token.
 */
export function readBlockTrace(file: string, pageTokens: number): BlockTrace {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const raw = lines.map((line) => JSON.parse(line) as { input_length: number; hash_ids: number[] });
  const nextSeen = new Map<number, number>();
  const nextUses = raw
    .map(({ hash_ids }, index) => ({ hash_ids, index }))
    .toReversed()
    .map(({ hash_ids, index }) => {
      const uses = hash_ids.map((id) => nextSeen.get(id) ?? raw.length);
      for (const id of hash_ids) nextSeen.set(id, index);
      return uses;
    })
    .toReversed();

  const knownIds = new Set<number>();
  let numKnownTokens = 0;
  const requests = raw.map(({ input_length, hash_ids }, index): TraceRequest => {
    const tokens: number[] = [];
    let isKnown = true;
    hash_ids.forEach((id, block) => {
      const blockTokens = Math.min(BLOCK_TOKENS, input_length - block * BLOCK_TOKENS);
      const count = Math.max(1, Math.ceil((blockTokens * pageTokens) / BLOCK_TOKENS));
      for (let i = 0; i < count; i++) tokens.push(id * pageTokens + i);
      isKnown &&= knownIds.has(id);
      if (isKnown) numKnownTokens += count;
    });
    for (const id of hash_ids) knownIds.add(id);
    return { blockIds: hash_ids, tokens: Int32Array.from(tokens), nextUses: nextUses[index]! };
  });
  const numTokens = requests.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return { requests, numTokens, numBlocks: knownIds.size, numKnownTokens };
}
