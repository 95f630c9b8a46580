import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { createOnDemand } from '../../core/on-demand.ts';
import { schedule } from '../../platform/node/process/schedule.ts';
import { createLruMap } from '../../memory/common/lru-map.ts';
import type { Embedder } from '../../memory/embedder-types.ts';
import { checkProjection, type EmbeddingProjection } from '../../memory/embedder/projection.ts';
import { createModelEmbedder } from '../../memory/embedder/model-embedder.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import { describeFile } from '../../runtime/model-info.ts';
import type { Model } from '../../runtime/model.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { loadModel } from '../load-model.ts';
import { modelPartPaths, openModelFile } from '../../platform/node/files/open-model-file.ts';

/** The training length of sentence encoders; longer texts give worse vectors, and take a decoder seconds. */
const MAX_TOKENS = 256;

/** Its engine takes 55 MB and is ended after this time without a text. The next text waits until it is loaded again. */
const IDLE_MS = 180_000;

/** Vectors by text; 3 kB each. A question is often asked twice, and recalled and stored. */
const CACHED_TEXTS = 2048;

type OpenedEmbedder = Embedder & { close(): Promise<void> };

/** Pooled hidden states of texts by a model in its own engine. */
export interface Pooler {
  readonly width: number;
  readonly pooling: string;
  readonly maxTokens: number;
  readonly modelHash: string;
  /** Throws `invalid_text` for text without tokens; longer texts are cut. */
  pool(text: string): Promise<Float32Array>;
  /** Aborts running calls. */
  close(): Promise<void>;
}

/** The model is loaded at the first text, and again after an idle time. */
export function openPooler(path: string, config: ModelConfig = {}, idleMs = IDLE_MS): Pooler {
  const { width, pooling, maxTokens } = readFacts(path);
  let isClosed = false;
  const engine = createOnDemand<Model>({
    async open() {
      if (isClosed) throw new RuvLLMError('not_loaded', `the embedder of ${path} is closed`);
      // A batch of one text of the longest is as fast as a larger one, and 8 MB smaller.
      return loadModel(path, { ...config, maxContext: maxTokens, maxBatchTokens: maxTokens });
    },
    end: (model) => model.dispose(),
    idleMs,
    schedule,
  });
  return {
    width,
    pooling,
    maxTokens,
    modelHash: rememberedContentHash(modelPartPaths(path)),
    pool: (text) =>
      engine.use(async (model) => {
        const ids = await model.aside.encode(text, { addSpecial: true });
        if (ids.length <= model.tokenizer.encode('', { addSpecial: true }).length) {
          throw new RuvLLMError('invalid_text', `a text of ${text.length} characters has no token to embed`);
        }
        // Keeps the last token: encoders end every text with the same one.
        const cut = ids.length <= maxTokens ? ids : [...ids.slice(0, maxTokens - 1), ids.at(-1)!];
        const { embeddings } = await model.embed([cut], { pooling });
        return embeddings[0]!;
      }),
    async close() {
      isClosed = true;
      await engine.end();
    },
  };
}

/**
 * Embeds by running a model in its own engine, which is loaded at the first text: the memory opens before any model that uses
 * it. Closing it aborts running calls. A projection changes the vectors, and with them the space.
 */
export function openModelEmbedder(
  path: string,
  config: ModelConfig = {},
  projection: EmbeddingProjection | null = null,
): OpenedEmbedder {
  const { close, ...pooler } = openPooler(path, config);
  if (projection !== null) checkProjection(projection, pooler);
  const embedder = createModelEmbedder({
    ...pooler,
    projection,
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  });
  const cache = createLruMap<Promise<Float32Array>>(CACHED_TEXTS);
  return {
    ...embedder,
    name: `${basename(path)}, run as an encoder${projection === null ? '' : ', projected'}`,
    async embed(text) {
      const key = createHash('sha256').update(text).digest('base64');
      let made = cache.get(key);
      if (made === undefined) {
        made = Promise.resolve(embedder.embed(text));
        cache.set(key, made);
        made.catch(() => cache.delete(key));
      }
      return (await made).slice(); // callers own their vectors
    },
    forget() {
      for (const [key] of cache.entries()) cache.delete(key);
    },
    close,
  };
}

/** Reads the header only, because opening a memory must not load weights. */
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
