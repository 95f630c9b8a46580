import { applyProjection, checkProjection } from '../../memory/embedder/projection.ts';
import { readProjectionFile } from '../../node/projection-file.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { modelPartPaths } from '../../platform/node/files/open-model-file.ts';
import { type EmbedOptions, resolveEmbedOptions } from '../../runtime/embed-options.ts';
import { normalizeVector } from '../../runtime/embeddings.ts';
import type { ModelInfo } from '../../runtime/model-info.ts';
import type { CommandRunner } from '../command.ts';
import {
  collectOptions,
  defineFlags,
  type Flag,
  type FlagValues,
  withFlagNames,
  withFlagNamesAsync,
} from '../flags.ts';
import { LOAD_FLAGS, readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { readInput } from '../read-input.ts';
import { conflictError, usageError } from '../usage-error.ts';

const VECTOR_FLAGS = defineFlags({
  '--pooling <mean|last|cls> pooling': 'pooling of token vectors; default: that of the file, else mean',
  '--dimensions <n> dimensions': 'keep only the first n values',
  '--no-normalize normalize': 'do not scale embeddings to unit length',
});

const PROJECTION_FLAGS = defineFlags({
  '--projection <file>': 'apply a projection of ruvllm train embeddings',
});

export const flags: readonly Flag[] = [...VECTOR_FLAGS, ...PROJECTION_FLAGS, ...LOAD_FLAGS];

/** Projects whole vectors of the pooling that the projection was trained on, then cuts and normalizes them. */
function readProjector(values: FlagValues, options: EmbedOptions) {
  const path = values['--projection'] as string | undefined;
  if (path === undefined) return null;
  if (options.pooling !== undefined) throw conflictError('--pooling', '--projection');
  const projection = readProjectionFile(path);
  return {
    check({ embeddingDim, path: modelPath }: ModelInfo): void {
      checkProjection(projection, { width: embeddingDim, modelHash: rememberedContentHash(modelPartPaths(modelPath)) });
    },
    apply(vector: Float32Array): Float32Array {
      const projected = applyProjection(projection, vector).slice(0, options.dimensions);
      return options.normalize === false ? projected : normalizeVector(projected);
    },
  };
}

/** Prints a JSON line per text, or one document with --json. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const [reference, ...textArgs] = context.args as [string, ...string[]];
  const config = readModelConfig(values, io.environment);
  const options = collectOptions(VECTOR_FLAGS, values) as EmbedOptions;
  // Validated before loading, except for the dimensions, which depend on the model.
  const anyModel = { embeddingDim: Number.MAX_SAFE_INTEGER, pooling: 'mean' } as const;
  withFlagNames(VECTOR_FLAGS, values, () => resolveEmbedOptions(options, anyModel));
  const projector = readProjector(values, options);
  const texts = textArgs.length > 0 ? textArgs : (await readInput(io.stdin, io.signal)).split(/\r?\n/);
  if (texts.every((text) => text === '')) throw usageError('no text to embed', 'texts');
  const model = await loadWithProgress(context, reference, config, values);
  try {
    projector?.check(model.modelInfo());
    const { dimensions: _, ...whole } = options;
    const { embeddings, usage } = await withFlagNamesAsync(VECTOR_FLAGS, values, () =>
      model.embed(texts, { ...(projector === null ? options : whole), signal: io.signal }),
    );
    const vectors = embeddings.map((vector) => Array.from(projector === null ? vector : projector.apply(vector)));
    output.document({ model: { reference, ...model.modelInfo() }, embeddings: vectors, usage });
    for (const [index, embedding] of vectors.entries()) {
      output.text(`${JSON.stringify({ text: texts[index], embedding })}\n`);
    }
    output.aside(`${texts.length} texts, ${usage.promptTokens} tokens`);
  } finally {
    await model.dispose();
  }
};
