import { type EmbedOptions, resolveEmbedOptions } from '../../runtime/embed-options.ts';
import type { CommandRunner } from '../command.ts';
import { collectOptions, defineFlags, type Flag, withFlagNames, withFlagNamesAsync } from '../flags.ts';
import { LOAD_FLAGS, readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { readInput } from '../read-input.ts';
import { usageError } from '../usage-error.ts';

const VECTOR_FLAGS = defineFlags({
  '--pooling <mean|last|cls> pooling': 'pooling of token vectors; default: that of the file, else mean',
  '--dimensions <n> dimensions': 'keep only the first n values',
  '--no-normalize normalize': 'do not scale embeddings to unit length',
});

export const flags: readonly Flag[] = [...VECTOR_FLAGS, ...LOAD_FLAGS];

/** Prints a JSON line per text, or one document with --json. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const [reference, ...textArgs] = context.args as [string, ...string[]];
  const config = readModelConfig(values, io.environment);
  const options = collectOptions(VECTOR_FLAGS, values) as EmbedOptions;
  // Validated before loading, except for the dimensions, which depend on the model.
  const anyModel = { embeddingDim: Number.MAX_SAFE_INTEGER, pooling: 'mean' } as const;
  withFlagNames(VECTOR_FLAGS, values, () => resolveEmbedOptions(options, anyModel));
  const texts = textArgs.length > 0 ? textArgs : (await readInput(io.stdin, io.signal)).split(/\r?\n/);
  if (texts.every((text) => text === '')) throw usageError('no text to embed', 'texts');
  const model = await loadWithProgress(context, reference, config, values);
  try {
    const { embeddings, usage } = await withFlagNamesAsync(VECTOR_FLAGS, values, () =>
      model.embed(texts, { ...options, signal: io.signal }),
    );
    const vectors = embeddings.map((vector) => Array.from(vector));
    output.document({ model: { reference, ...model.modelInfo() }, embeddings: vectors, usage });
    for (const [index, embedding] of vectors.entries()) {
      output.text(`${JSON.stringify({ text: texts[index], embedding })}\n`);
    }
    output.aside(`${texts.length} texts, ${usage.promptTokens} tokens`);
  } finally {
    await model.dispose();
  }
};
