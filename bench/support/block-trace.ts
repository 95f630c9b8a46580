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

interface TracePrompt {
  readonly blockIds: readonly number[];
  /** Tokens of its pages: all pages but the last are full. */
  readonly numTokens: number;
}

/** Reads requests as `hash_ids` of blocks of 512 tokens; the last block of a prompt keeps its share of the page. */
export function readBlockTrace(file: string, pageTokens: number): BlockTrace {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const prompts = lines.map((line): TracePrompt => {
    const { input_length, hash_ids } = JSON.parse(line) as { input_length: number; hash_ids: number[] };
    const numWhole = hash_ids.length - 1;
    const numLast = Math.ceil(((input_length - numWhole * BLOCK_TOKENS) * pageTokens) / BLOCK_TOKENS);
    return { blockIds: hash_ids, numTokens: numWhole * pageTokens + Math.min(pageTokens, Math.max(1, numLast)) };
  });
  return createBlockTrace(prompts, pageTokens);
}

/** A block becomes a page with unique tokens, so that no two pages start alike. */
export function createBlockTrace(prompts: readonly TracePrompt[], pageTokens: number): BlockTrace {
  const nextSeen = new Map<number, number>();
  const nextUses = prompts
    .map(({ blockIds }, index) => ({ blockIds, index }))
    .toReversed()
    .map(({ blockIds, index }) => {
      const uses = blockIds.map((id) => nextSeen.get(id) ?? prompts.length);
      for (const id of blockIds) nextSeen.set(id, index);
      return uses;
    })
    .toReversed();

  const seenIds = new Set<number>();
  let numKnownTokens = 0;
  const requests = prompts.map(({ blockIds, numTokens }, index): TraceRequest => {
    const firstNew = blockIds.findIndex((id) => !seenIds.has(id));
    numKnownTokens += firstNew === -1 ? numTokens : firstNew * pageTokens;
    for (const id of blockIds) seenIds.add(id);
    const tokens = Int32Array.from({ length: numTokens }, (_, i) => blockIds[Math.floor(i / pageTokens)]! * pageTokens + (i % pageTokens)); // prettier-ignore
    return { blockIds, tokens, nextUses: nextUses[index]! };
  });
  const numTokens = requests.reduce((sum, { tokens }) => sum + tokens.length, 0);
  return { requests, numTokens, numBlocks: seenIds.size, numKnownTokens };
}
