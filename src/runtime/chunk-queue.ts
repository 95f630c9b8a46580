import type { RuvLLMError } from '../core/errors.ts';

/**
 * Passes values from a callback to one reader. Unread values stay in memory; the writer bounds their number (one chunk per
 * token, so maxTokens).
 */
export interface ChunkQueue<T> {
  push(value: T): void;
  /** Ends the stream after the queued values. */
  end(): void;
  /** Fails the reader after the queued values. Later calls have no effect. */
  fail(error: RuvLLMError): void;
  read(): AsyncGenerator<T, void, undefined>;
}

export function createChunkQueue<T>(): ChunkQueue<T> {
  const values: T[] = [];
  let outcome: { error: RuvLLMError | null } | null = null;
  let wake = (): void => {};
  const finish = (error: RuvLLMError | null): void => {
    outcome ??= { error };
    wake();
  };
  return {
    push(value) {
      if (outcome !== null) return;
      values.push(value);
      wake();
    },
    end: () => finish(null),
    fail: (error) => finish(error),
    async *read() {
      for (;;) {
        while (values.length > 0) yield values.shift()!;
        if (outcome !== null) break;
        await new Promise<void>((resolve) => (wake = resolve));
      }
      if (outcome.error !== null) throw outcome.error;
    },
  };
}
