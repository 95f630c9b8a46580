import { RuvLLMError } from '../../core/errors.ts';

/** Writers of one record meet in threes at most; who still loses after so many rounds has found a bug, not a rival. */
const MAX_TRIES = 16;

export function isConflict(error: unknown): boolean {
  return error instanceof RuvLLMError && error.code === 'conflict';
}

/** Runs a read-change-write again as long as another writer comes between; the last `conflict` is thrown. */
export async function retryConflict<T>(attempt: (numTries: number) => Promise<T>): Promise<T> {
  for (let numTries = 0; ; numTries++) {
    try {
      return await attempt(numTries);
    } catch (error) {
      if (!isConflict(error) || numTries + 1 >= MAX_TRIES) throw error;
    }
  }
}
