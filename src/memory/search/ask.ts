import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import type { MemoryStore, NearestQuery, NearRecord } from '../types.ts';
import type { MemoryQuery, MemorySearch, MemorySearchResult } from './search.ts';

/** A text as a vector, and whose. */
export interface EmbeddedText {
  readonly vector: Float32Array;
  readonly space: string;
}

/** What is asked of the memory before a request is answered, in one go: each call of another thread is a wait of its own. */
export interface MemoryQuestion {
  readonly text: string;
  /** The text as it was embedded already. Default: it is embedded. */
  readonly embedded?: EmbeddedText;
  /** Records that are near, as they are. Default: none. */
  readonly near?: Pick<NearestQuery, 'kinds' | 'k'>;
  /** What is looked for by the text. Default: nothing. */
  readonly search?: Omit<MemoryQuery, 'text' | 'vector' | 'space'>;
}

export interface MemoryReply {
  /** Null: the text has nothing to embed; then nothing is near and nothing was found. */
  readonly embedded: EmbeddedText | null;
  /** Null: not asked for, or it failed, which is no reason to fail the rest. */
  readonly near: readonly NearRecord[] | null;
  readonly found: MemorySearchResult | null;
  readonly embeddingMs: number;
  readonly nearMs: number;
  readonly searchMs: number;
}

export interface AskContext {
  readonly store: Pick<MemoryStore, 'nearest'>;
  readonly search: MemorySearch;
  readonly embedder: Pick<Embedder, 'embed' | 'fingerprint'>;
  /** Milliseconds on a clock that does not jump. */
  readonly now: () => number;
}

export type AskMemory = (tenant: string, question: MemoryQuestion) => Promise<MemoryReply>;

/** Null where the text has nothing to embed. */
export async function embedText(
  embedder: Pick<Embedder, 'embed' | 'fingerprint'>,
  text: string,
): Promise<EmbeddedText | null> {
  try {
    return { vector: await embedder.embed(text), space: embedder.fingerprint };
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'invalid_text') return null;
    throw error;
  }
}

/** Answers questions beside the store, wherever that is. */
export function createAsk({ store, search, embedder, now }: AskContext): AskMemory {
  return async (tenant, question) => {
    const startMs = now();
    const embedded = question.embedded ?? (await embedText(embedder, question.text));
    const embeddedMs = now();
    const embeddingMs = embeddedMs - startMs;
    if (embedded === null) return { embedded, near: null, found: null, embeddingMs, nearMs: 0, searchMs: 0 };
    const near =
      question.near === undefined
        ? null
        : await store.nearest(tenant, { ...embedded, ...question.near, withVectors: false }).catch(() => null);
    const nearMs = now() - embeddedMs;
    const found =
      question.search === undefined ? null : await search.search(tenant, { ...question.search, ...embedded });
    return { embedded, near, found, embeddingMs, nearMs, searchMs: now() - embeddedMs - nearMs };
  };
}
