import { type EmbedOptions, resolveEmbedOptions } from '../../runtime/embed-options.ts';
import type { CommandRunner } from '../command.ts';
import { collectOptions, type Flag, withFlagNames, withFlagNamesAsync } from '../flags.ts';
import { LOAD_FLAGS, readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { readInput } from '../read-input.ts';
import { usageError } from '../usage-error.ts';
import { readInteger } from '../values.ts';

const VECTOR_FLAGS: readonly Flag[] = [
  {
    name: '--pooling',
    value: 'mean|last|cls',
    option: 'pooling',
    description: 'what is made of the vectors of the tokens; default: as the file says, else their mean',
  },
  {
    name: '--dimensions',
    value: 'n',
    option: 'dimensions',
    read: readInteger,
    description: 'keep only the first n values',
  },
  { name: '--no-normalize', value: null, option: 'normalize', description: 'leave vectors as long as they are' },
];

/** Options of `embed`. */
export const EMBED_FLAGS: readonly Flag[] = [...VECTOR_FLAGS, ...LOAD_FLAGS];

/** Prints a line of JSON for each text, or one document with --json. */
export const embed: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const [reference, ...given] = context.args as [string, ...string[]];
  const config = readModelConfig(values, io.environment);
  const options = collectOptions(VECTOR_FLAGS, values) as EmbedOptions;
  // Checked before anything is loaded; how many values there are only the model knows.
  const widest = { embeddingDim: Number.MAX_SAFE_INTEGER, pooling: 'mean' } as const;
  withFlagNames(VECTOR_FLAGS, values, () => resolveEmbedOptions(options, widest));
  const texts = given.length > 0 ? given : (await readInput(io.stdin, io.signal)).split(/\r?\n/);
  if (texts.every((text) => text === '')) throw usageError('there is no text to embed', 'texts');
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
