import type { RuvLLMError } from '../core/errors.ts';

/**
 * Hands values from a callback to one reader. It holds what was not read yet; whoever fills it bounds how much that is
 * (here: a chunk a token, so maxTokens).
 */
export interface ChunkQueue<T> {
  push(value: T): void;
  /** No more values; the reader still gets those that are there. */
  end(): void;
  /** The reader fails after the values that are there. Later calls change nothing. */
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
