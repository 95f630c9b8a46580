import type { Embedder } from '../embedder-types.ts';
import type { MemoryStore, NearestQuery, NearRecord } from '../types.ts';
import type { EmbeddedText } from './embed-text.ts';
import { embedQuestion } from './follow-up.ts';
import type { MemoryQuery, MemorySearch, MemorySearchResult } from './search.ts';

/** Everything a request asks of the memory, in one call of its thread. */
export interface MemoryQuestion {
  readonly text: string;
  /** Default: the text is embedded, with the conversation that it refers to. */
  readonly embedded?: EmbeddedText;
  /** Nearest records, unranked. Default: none. */
  readonly near?: Pick<NearestQuery, 'kinds' | 'k'>;
  /** A search by the text and, for a follow-up question, the conversation before it. Default: none. */
  readonly search?: Omit<MemoryQuery, 'text' | 'vector' | 'space'>;
}

export interface MemoryReply {
  /** Null: the text has no tokens, or there is no embedder; then `near` is null and `found` has matches of words only. */
  readonly embedded: EmbeddedText | null;
  /** Null: not requested, or failed; the rest is answered all the same. */
  readonly near: readonly NearRecord[] | null;
  readonly found: MemorySearchResult | null;
  readonly embeddingMs: number;
  readonly nearMs: number;
  readonly searchMs: number;
}

interface AskContext {
  readonly store: Pick<MemoryStore, 'nearest'>;
  readonly search: MemorySearch;
  /** Null: searches by words only. Read by each call. */
  readonly embedder: Pick<Embedder, 'embed' | 'fingerprint'> | null;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
}

export type AskMemory = (tenant: string, question: MemoryQuestion) => Promise<MemoryReply>;

export function createAsk(context: AskContext): AskMemory {
  const { store, search, now } = context;
  return async (tenant, question) => {
    const startMs = now();
    const embedded =
      question.embedded ?? (await embedQuestion(context.embedder, question.text, question.search?.turns));
    const embeddedMs = now();
    const embeddingMs = embeddedMs - startMs;
    const near =
      question.near === undefined || embedded === null
        ? null
        : await store.nearest(tenant, { ...embedded, ...question.near, withVectors: false }).catch(() => null);
    const nearMs = now() - embeddedMs;
    const found =
      question.search === undefined
        ? null
        : await search.search(tenant, { ...question.search, text: question.text, ...embedded });
    return { embedded, near, found, embeddingMs, nearMs, searchMs: now() - embeddedMs - nearMs };
  };
}
