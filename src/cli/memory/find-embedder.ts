import type { OpenMemoryOptions } from '../../node/memory/open-memory.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel, type OnProgress, withProgress } from '../load-model.ts';
import { readEmbedderChoice, readProjectionPath } from './embedder-flag.ts';
import { messageOf } from '../../core/errors.ts';

export interface FoundEmbedder {
  readonly options: Pick<OpenMemoryOptions, 'modelPath' | 'embedder' | 'projection' | 'reindex'>;
  /** Why the default encoder is not used; null: it is, or another embedder was chosen. */
  readonly fallbackReason: string | null;
}

/** The embedder of `--memory-embedder`; by default the sentence encoder, or the token rows of the chat model without it. */
export async function findEmbedder(
  context: Pick<CommandContext, 'io' | 'output' | 'values'>,
  /** Null: no chat model is there. */
  chatModelPath: () => Promise<string | null>,
  /** Of the sentence encoder. Default: a progress bar. */
  onProgress?: OnProgress,
): Promise<FoundEmbedder> {
  const { embedder, reference } = readEmbedderChoice(context);
  const path = readProjectionPath(context);
  const projection = path === undefined ? {} : { projection: path };
  if (embedder !== 'encoder') {
    const modelPath = reference === null ? await chatModelPath() : await fetchModel(context, reference);
    if (modelPath === null) return { options: { modelPath }, fallbackReason: 'no chat model is served' };
    return { options: { modelPath, embedder, ...projection }, fallbackReason: null };
  }
  const { findEncoder } = await import('../../node/memory/find-encoder.ts');
  try {
    const { signal } = context.io;
    const modelPath =
      onProgress === undefined
        ? await withProgress(context, 'the sentence encoder of the memory', (show) =>
            findEncoder({ signal, onProgress: show }),
          )
        : await findEncoder({ signal, onProgress });
    return { options: { modelPath, embedder: 'model', ...projection }, fallbackReason: null };
  } catch (error) {
    if (context.io.signal?.aborted === true) throw error;
    const fallbackReason = messageOf(error);
    // The encoder comes back: its vectors must not be replaced meanwhile.
    const modelPath = await chatModelPath();
    if (modelPath === null) return { options: { modelPath }, fallbackReason };
    return { options: { modelPath, embedder: 'static', reindex: false }, fallbackReason };
  }
}

/** For the user, who may expect searches by meaning. */
export const describeFallback = (reason: string): string =>
  `the sentence encoder is unavailable (${reason}); using the token embeddings of the chat model, which find less`;
