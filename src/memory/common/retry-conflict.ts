import { RuvLLMError } from '../../core/errors.ts';

/** A record has few writers: more conflicts than this are a bug. */
const MAX_TRIES = 16;

export function isConflict(error: unknown): boolean {
  return error instanceof RuvLLMError && error.code === 'conflict';
}

/** Repeats a read-modify-write on `conflict`; throws the last one. */
export async function retryConflict<T>(attempt: (numTries: number) => Promise<T>): Promise<T> {
  for (let numTries = 0; ; numTries++) {
    try {
      return await attempt(numTries);
    } catch (error) {
      if (!isConflict(error) || numTries + 1 >= MAX_TRIES) throw error;
    }
  }
}
