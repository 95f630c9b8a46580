import type { KvCache } from '../kv-cache/kv-cache.ts';
import type { SequencePages } from '../kv-cache/sequence-pages.ts';
import { hashPages } from './page-hashes.ts';
import { keysOf } from './image-rows.ts';
import { createPooler, type Pooler } from './pooling.ts';
import type { AdmittedRequest, EngineRequest } from './types.ts';

/**
 * A request in progress. tokenIds = prompt, then generated; cacheKeys = the same with the keys of images. The first `numComputed` of them have K and V in `pages`:
 *
 *   0 ········ numComputed ········ tokenIds.length
 *   in pages   to be computed
 */
export interface Sequence {
  readonly request: AdmittedRequest;
  readonly tokenIds: number[];
  /** The same list where the prompt has no images. */
  readonly cacheKeys: number[];
  readonly pages: SequencePages;
  /** null: tokens are sampled. */
  readonly pooler: Pooler | null;
  /** Chained hashes of the prompt's whole pages: equal hashes, equal prefixes. */
  readonly pageHashes: Uint32Array;
  numComputed: number;
  /** Cached tokens of the prompt when it first ran; null before. */
  numCached: number | null;
  readonly addedAtMs: number;
  /** When a step first computed some of it; null before. */
  startedAtMs: number | null;
  /** Its order among the running and its priority when it last started; null before the first time. */
  turn: { readonly priority: number; readonly order: number } | null;
  /** It once ran out of pages with no victim left: nothing runs below it any more. */
  needsAllPages: boolean;
  /** After giving its slot to another tenant: not preempted for that again below this token count. */
  sliceEnd: number;
  /** Drafted tokens so far, and those that were right. */
  readonly drafts: { numProposed: number; numAccepted: number };
  /** Preemptions for it did not free enough: it waits for running sequences to end. */
  hasNoRoom: boolean;
}

export function createSequence(request: AdmittedRequest, cache: KvCache, pageTokens: number, nowMs: number): Sequence {
  const { tenant, adapterHash, cachePrefix, retention, pooling } = request;
  const tokenIds = [...request.promptIds];
  const cacheKeys = (request.images ?? []).length === 0 ? tokenIds : keysOf(request, cache);
  return {
    request,
    tokenIds,
    cacheKeys,
    pages: cache.openSequence({ tenant, adapterHash, cachePrefix, retention }),
    pooler: pooling === undefined ? null : createPooler(pooling, request.promptIds.length),
    pageHashes: hashPages(cacheKeys, pageTokens),
    numComputed: 0,
    numCached: null,
    addedAtMs: nowMs,
    startedAtMs: null,
    turn: null,
    needsAllPages: false,
    sliceEnd: 0,
    drafts: { numProposed: 0, numAccepted: 0 },
    hasNoRoom: false,
  };
}

/** The part of a sequence that is not generated yet, as a request: the tokens so far are its prompt. */
export function restOf({ request, tokenIds, addedAtMs }: Sequence, nowMs: number): EngineRequest {
  const { promptIds, maxTokens, timeoutMs } = request;
  return {
    ...request,
    promptIds: [...tokenIds],
    maxTokens: maxTokens - (tokenIds.length - promptIds.length),
    timeoutMs: timeoutMs === null ? null : Math.max(1, timeoutMs - (nowMs - addedAtMs)),
  };
}

export function addToken({ tokenIds, cacheKeys }: Sequence, tokenId: number): void {
  tokenIds.push(tokenId);
  if (cacheKeys !== tokenIds) cacheKeys.push(tokenId);
}

/** Tokens that are not computed yet. */
export function numBehind(sequence: Sequence): number {
  return sequence.tokenIds.length - sequence.numComputed;
}

export function numGenerated(sequence: Sequence): number {
  return sequence.tokenIds.length - sequence.request.promptIds.length;
}
