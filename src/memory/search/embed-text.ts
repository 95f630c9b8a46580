import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';

/** A vector and its space. */
export interface EmbeddedText {
  readonly vector: Float32Array;
  readonly space: string;
}

/** Null: the text has no tokens, or there is no embedder. */
export async function embedText(
  embedder: Pick<Embedder, 'embed' | 'fingerprint'> | null,
  text: string,
): Promise<EmbeddedText | null> {
  if (embedder === null) return null;
  try {
    return { vector: await embedder.embed(text), space: embedder.fingerprint };
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'invalid_text') return null;
    throw error;
  }
}
