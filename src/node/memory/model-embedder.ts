import { createHash } from 'node:crypto';
import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../../memory/embedder-types.ts';
import { createModelEmbedder } from '../../memory/embedder/model-embedder.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import { describeFile } from '../../runtime/model-info.ts';
import type { Model } from '../../runtime/model.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { loadModel } from '../load-model.ts';
import { modelPartPaths, openModelFile } from '../../platform/node/files/open-model-file.ts';

/** The training length of sentence encoders; longer texts get worse embeddings, and a decoder would take seconds. */
const MAX_TOKENS = 256;

export type OpenedEmbedder = Embedder & { close(): Promise<void> };

/**
 * Embeds with a model in its own engine, loaded with the first text, because the memory opens before any model that uses it.
 * Closing it fails calls in progress.
 */
export function openModelEmbedder(path: string, config: ModelConfig = {}): OpenedEmbedder {
  const { width, pooling, maxTokens } = readFacts(path);
  let loading: Promise<Model> | null = null;
  let isClosed = false;
  const load = (): Promise<Model> => {
    if (isClosed) return Promise.reject(new RuvLLMError('not_loaded', `the embedder of ${path} is closed`));
    loading ??= loadModel(path, { ...config, maxContext: maxTokens }).catch((error: unknown) => {
      loading = null; // the file may be readable later
      throw error;
    });
    return loading;
  };

  async function pool(text: string): Promise<Float32Array> {
    const model = await load();
    const ids = await model.aside.encode(text, { addSpecial: true });
    if (ids.length <= model.tokenizer.encode('', { addSpecial: true }).length) {
      throw new RuvLLMError('invalid_text', `a text of ${text.length} characters has no token to embed`);
    }
    // Keeps the last token, because encoders end every text with the same one.
    const cut = ids.length <= maxTokens ? ids : [...ids.slice(0, maxTokens - 1), ids.at(-1)!];
    const { embeddings } = await model.embed([cut], { pooling });
    return embeddings[0]!;
  }

  const embedder = createModelEmbedder({
    width,
    pool,
    modelHash: rememberedContentHash(modelPartPaths(path)),
    pooling,
    maxTokens,
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  });
  return {
    ...embedder,
    async close() {
      isClosed = true;
      const model = await loading?.catch(() => null);
      await model?.dispose();
    },
  };
}

/** Read from the header, so that opening a memory does not wait for weights. */
function readFacts(path: string) {
  const file = openModelFile(path);
  try {
    const { metadata } = file;
    const architecture = metadata.string('general.architecture');
    const contextLength = metadata.number(`${architecture}.context_length`);
    return {
      width: metadata.number(`${architecture}.embedding_length`),
      pooling: describeFile(file).pooling,
      maxTokens: Math.min(MAX_TOKENS, contextLength),
    };
  } finally {
    file.source.close();
  }
}
