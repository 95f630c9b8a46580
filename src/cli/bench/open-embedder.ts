import type { Embedder } from '../../memory/embedder-types.ts';
import { findEncoder } from '../../node/memory/find-encoder.ts';
import { openModelEmbedder } from '../../node/memory/model-embedder.ts';
import { readProjectionFile } from '../../node/projection-file.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel, withProgress } from '../load-model.ts';

/** Embedders to compare, by name; the second one applies --projection to the vectors of the first. */
export interface BenchEmbedders {
  readonly model: string;
  readonly byName: Readonly<Record<string, Embedder>>;
  close(): Promise<void>;
}

/** The model of --model, else the sentence encoder, downloaded if necessary. */
export async function findEmbeddingModel(context: CommandContext): Promise<{ reference: string; path: string }> {
  const reference = context.values['--model'] as string | undefined;
  if (reference !== undefined) return { reference, path: await fetchModel(context, reference) };
  const path = await withProgress(context, 'the sentence encoder', (onProgress) =>
    findEncoder({ signal: context.io.signal, onProgress }),
  );
  return { reference: 'sentence encoder', path };
}

export async function openBenchEmbedders(context: CommandContext): Promise<BenchEmbedders> {
  const { reference, path } = await findEmbeddingModel(context);
  const projectionPath = context.values['--projection'] as string | undefined;
  const projection = projectionPath === undefined ? null : readProjectionFile(projectionPath);
  const plain = openModelEmbedder(path);
  const projected = projection === null ? null : openModelEmbedder(path, {}, projection);
  return {
    model: reference,
    byName: { vectors: plain, ...(projected === null ? {} : { 'projected vectors': projected }) },
    async close() {
      await plain.close();
      await projected?.close();
    },
  };
}

/** Embeds texts in order, some at a time; stops when the command is aborted. */
export async function embedAll(
  { io, output }: CommandContext,
  embedder: Embedder,
  texts: readonly string[],
): Promise<Float32Array[]> {
  const AT_ONCE = 32;
  const vectors: Float32Array[] = [];
  const progress = output.progress();
  try {
    for (let from = 0; from < texts.length; from += AT_ONCE) {
      io.signal.throwIfAborted();
      vectors.push(...(await Promise.all(texts.slice(from, from + AT_ONCE).map((text) => embedder.embed(text)))));
      progress.update({
        label: `embedding: ${vectors.length} of ${texts.length} texts`,
        doneBytes: 0,
        totalBytes: null,
      });
    }
  } finally {
    progress.finish();
  }
  return vectors;
}
