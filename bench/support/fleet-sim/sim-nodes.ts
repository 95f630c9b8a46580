import { createLru, type Lru } from './lru.ts';
import type { SimOptions } from './sim-options.ts';
import type { SimTrace } from './trace.ts';

/** The run of a request on a node. */
export interface Run {
  readonly firstMs: number;
  readonly endMs: number;
  readonly cachedTokens: number;
  /** Changes of the cache. */
  readonly stored: readonly number[];
  readonly removed: readonly number[];
}

/** Pairs of a token to compute and one before it, for the last tokens of a prompt. */
export const attendedTokens = (tokens: number, promptTokens: number): number => tokens * (promptTokens - tokens / 2);

export interface SimNodes {
  readonly caches: readonly Lru[];
  /** When a node has computed all prompts that it has. */
  readonly freeMs: Float64Array;
  /** Requests in progress. */
  readonly numRunning: Int32Array;
  readonly busyMs: Float64Array;
  serviceMs(node: number, tokens: number, promptTokens: number): number;
  start(node: number, request: number, nowMs: number): Run;
  fail(node: number, untilMs: number): void;
}

/**
 * Nodes compute one prompt after the other, in the order of arrival. Therefore a cache changes in that order too, and each request
 * can be looked up and stored when it arrives.
 */
export function createSimNodes(trace: SimTrace, { numNodes, cacheBlocks, service }: SimOptions): SimNodes {
  const caches = Array.from({ length: numNodes }, () => createLru(cacheBlocks));
  const freeMs = new Float64Array(numNodes);
  const numRunning = new Int32Array(numNodes);
  const busyMs = new Float64Array(numNodes);
  const { starts, blocks, numTokens, outputTokens, blockTokens } = trace;

  const serviceMs: SimNodes['serviceMs'] = (node, tokens, promptTokens) =>
    service.fixedMs +
    attendedTokens(tokens, promptTokens) * service.attentionMs +
    (tokens + numRunning[node]! * service.delayTokens) * service.tokenMs;

  return {
    caches,
    freeMs,
    numRunning,
    busyMs,
    serviceMs,
    start(node, request, nowMs) {
      const cache = caches[node]!;
      const [from, to] = [starts[request]!, starts[request + 1]!];
      let numCached = 0;
      while (from + numCached < to && cache.has(blocks[from + numCached]!)) numCached++;
      // The last token is computed in any case: its logits are the answer.
      const cachedTokens = Math.min(numCached * blockTokens, numTokens[request]! - 1);
      const stored: number[] = [];
      const removed: number[] = [];
      // Cached blocks of the prompt are in use: others are dropped for its new ones.
      for (let at = from + numCached - 1; at >= from; at--) cache.touch(blocks[at]!);
      // Beginnings last: the ends of a prompt are evicted first.
      for (let at = to - 1; at >= from; at--) {
        const block = blocks[at]!;
        if (!cache.has(block)) stored.push(block);
        const dropped = cache.touch(block);
        if (dropped !== -1) removed.push(dropped);
      }
      const ms = serviceMs(node, numTokens[request]! - cachedTokens, numTokens[request]!);
      const firstMs = Math.max(nowMs, freeMs[node]!) + ms;
      freeMs[node] = firstMs;
      busyMs[node]! += ms;
      numRunning[node]!++;
      return {
        firstMs,
        endMs: firstMs + (outputTokens[request]! - 1) * service.decodeMs,
        cachedTokens,
        stored,
        removed,
      };
    },
    fail(node, untilMs) {
      caches[node]!.clear();
      freeMs[node] = untilMs;
      numRunning[node] = 0;
    },
  };
}
