import { createPageList, type PageList } from '../kv-cache/page-list.ts';
import type { PagePool } from '../kv-cache/page-pool.ts';
import type { EngineRequest } from './types.ts';

/**
 * A request in progress. tokenIds = prompt, then generated; the first `numComputed` of them have K and V in `pages`:
 *
 *   0 ········ numComputed ········ tokenIds.length
 *   in pages   known, to be computed
 */
export interface Sequence {
  readonly request: EngineRequest;
  readonly tokenIds: number[];
  readonly pages: PageList;
  numComputed: number;
  readonly addedAtMs: number;
  /** When a step first computed some of it; null before. */
  startedAtMs: number | null;
}

export function createSequence(request: EngineRequest, pool: PagePool, nowMs: number): Sequence {
  return {
    request,
    tokenIds: [...request.promptIds],
    pages: createPageList(pool),
    numComputed: 0,
    addedAtMs: nowMs,
    startedAtMs: null,
  };
}

/** Known tokens that are not computed yet. */
export function numBehind(sequence: Sequence): number {
  return sequence.tokenIds.length - sequence.numComputed;
}

export function numGenerated(sequence: Sequence): number {
  return sequence.tokenIds.length - sequence.request.promptIds.length;
}
