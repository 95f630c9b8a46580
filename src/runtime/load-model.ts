import type { Adapter, AdapterBase } from '../adapters/types.ts';
import type { ErasurePart } from '../core/erasure.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { ModelReport, ModelSpec, SharedSpec, SpillSpec } from '../engine/protocol.ts';
import type { GgufFile, Metadata } from '../gguf/types.ts';
import { readClassifierHead } from '../models/classifier-head.ts';
import { createAdapterNames } from './adapters.ts';
import { createEngineClient, type EngineClient, type Transport } from './engine-client.ts';
import { abortError } from '../core/abort.ts';
import type { PrepareGrammar } from './generation.ts';
import { createLearningModel } from './learning/learning-model.ts';
import { createModel, type Model } from './model.ts';
import { createRequestMemory } from './memory/request-memory.ts';
import { type BlockEventConfig, planSpec, type ResolvedModelConfig } from './model-config.ts';
import type { ResolvedKvShared } from './kv-shared-option.ts';
import type { ResolvedKvSpill } from './kv-spill-option.ts';
import { createModelInfo, describeFile } from './model-info.ts';
import type { PromptContext } from './prompt.ts';
import type { Vision } from './prompt-images.ts';
import { createSessionTable, type SessionRecords } from './sessions/session-table.ts';
import { endIdsOf, readTextSide } from './text/text-side.ts';
import type { TextThread } from './text/text-thread.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import type { TableThread } from './vocabulary.ts';

/** The platform: files, a thread for the engine, clocks and randomness. */
export interface RuntimePlatform {
  /** Opens the header of a model file; the caller closes its source. */
  openModelFile(path: string): GgufFile;
  /** An engine in its own thread, or with `isProcess` in its own process. */
  startEngine(options: { readonly isProcess: boolean }): Transport;
  /** Monotonic milliseconds. */
  now(): number;
  /** A random integer from 0 to 2^53 - 1. */
  createSeed(): number;
  /** Milliseconds since 1970. */
  wallClock(): number;
  /** Reports a problem that does not stop the program. */
  warn(message: string): void;
  /** Opens the folder where pages and sessions survive a restart. */
  openKeptState(spill: ResolvedKvSpill): KeptState;
  /** Opens the storage of pages that other nodes use, too. Default: not supported. */
  openSharedTier?(shared: ResolvedKvShared): SharedTier;
  /** Reads an adapter of any supported format for a model of this shape. */
  readAdapter(path: string, base: AdapterBase): Promise<Adapter>;
  /** Compiles grammars in a separate thread. Default: in the engine, which pauses for it. */
  readonly prepareGrammar?: PrepareGrammar;
  /** A thread that renders and tokenizes long texts for the model at `path`. Default: the caller's thread. */
  openTextThread?(path: string, chatTemplate: string | null): TextThread;
  /** The image encoder of a projector; checks that its rows have `embeddingDim` values. Default: images are not supported. */
  openVision?(path: string, options: VisionOptions): Vision | Promise<Vision>;
  /** A thread that prepares the vocabulary of the model at `path` for grammars. Default: the engine. */
  openTableThread?(path: string): TableThread;
}

/** The model that an image encoder belongs to, and its resources. */
export interface VisionOptions extends Pick<ResolvedModelConfig, 'kernels' | 'numThreads'> {
  readonly embeddingDim: number;
  readonly tokenizer: Tokenizer;
}

/** Storage that several nodes use. */
export interface SharedTier {
  readonly spec: SharedSpec;
  /** Erases data of tenants in the storage, of all models. */
  readonly erasure: ErasurePart;
}

/** State that survives a restart. */
export interface KeptState {
  /** Null: its key cannot be read, which is reported. */
  readonly spill: SpillSpec | null;
  /** The sessions of one model; null if the folder cannot be used, which is reported. */
  openSessions(modelHash: string): SessionRecords | null;
  /** Erases data of tenants in the folder, of all models. */
  readonly erasure: ErasurePart;
}

/** Loads the model file at `path`: the tokenizer in this thread, the engine behind the platform's transport. */
export async function loadModelFile(
  path: string,
  config: ResolvedModelConfig,
  platform: RuntimePlatform,
): Promise<Model> {
  const startMs = platform.now();
  if (config.signal?.aborted) throw abortError(config.signal);
  const gguf = platform.openModelFile(path);
  try {
    const contextLength = readContextLength(gguf.metadata);
    const kept = config.kvSpill === null ? null : platform.openKeptState(config.kvSpill);
    const shared = openShared(config, platform);
    const spec = planSpec(config, { path, contextLength }, kept?.spill ?? null, shared?.spec ?? null);
    const client = createEngineClient(platform.startEngine({ isProcess: config.engineProcess }), {
      stepTimeoutMs: config.stepTimeoutMs,
    });
    if (config.blockEvents !== null) followBlocks(client, config.blockEvents);
    const loading = startLoad(client, spec, config);
    // Meanwhile the engine reads the weights.
    const { tokenizer, chatTemplate } = await readOwnSide(gguf.metadata, config.chatTemplate, client);
    const report = await loading;
    config.blockEvents?.onLoaded?.(report.modelHash);
    const { vocabSize } = report.shape;
    const vision = await openVision(config, platform, { client, tokenizer, embeddingDim: report.shape.embeddingDim });
    const { now, createSeed, wallClock } = platform;
    const head = readClassifierHead(gguf);
    const info = createModelInfo(describeFile(gguf, config.sampling), report, {
      path,
      canRerank: head !== null,
      canSeeImages: vision !== null,
      chatTemplate: chatTemplate.origin,
      loadMs: now() - startMs,
    });
    const name = config.modelName ?? info.name ?? path;
    const { learning } = config;
    const base = {
      client,
      adapters: createAdapterNames({ client, base: report.shape, readAdapter: platform.readAdapter }),
      tokenizer,
      chatTemplate,
      images: vision?.prompt ?? null,
      vision,
      maxContext: report.maxContext,
      sampling: info.sampling,
      endIds: endIdsOf(tokenizer, vocabSize),
      textThread: platform.openTextThread?.(path, config.chatTemplate) ?? null,
    };
    const detach = learning?.attach(
      createLearningModel(base, {
        id: name,
        path,
        architecture: report.shape.architecture,
        hiddenDim: report.shape.embeddingDim,
        vocabSize,
        numParameters: info.numParameters,
      }),
    );
    const model = createModel({
      name,
      onDispose() {
        detach?.();
        unregister?.();
        unregisterShared?.();
        config.blockEvents?.onEvents([{ type: 'cleared' }]);
      },
      context: {
        ...base,
        prepareLearned: learning && ((tenant) => learning.prepare(tenant, name)),
        vocabSize,
        now,
        createSeed,
        prepareGrammar: platform.prepareGrammar ?? null,
        tableThread: platform.openTableThread?.(path) ?? null,
      },
      info,
      head,
      sessions: createSessionTable({
        maxSessions: config.maxSessions,
        vocabSize,
        records: kept?.openSessions(report.modelHash) ?? null,
        wallClock,
      }),
      requests:
        config.memory &&
        createRequestMemory(config.memory, { now, wallClock, report: (message) => platform.warn(message), learning }),
    });
    const unregister = config.memory?.erasure.register(model.erasure);
    const unregisterShared = shared === null ? undefined : config.memory?.erasure.register(shared.erasure);
    // The folder outlives the model, and its part does so too.
    const { memory } = config;
    if (kept !== null && memory) await memory.eventually(() => memory.erasure.addPlace(kept.erasure));
    return model;
  } finally {
    gguf.source.close();
  }
}

function openShared({ kvShared }: ResolvedModelConfig, platform: RuntimePlatform): SharedTier | null {
  if (kvShared === null) return null;
  if (platform.openSharedTier === undefined) throw new RuvLLMError('unsupported', 'KV pages are not shared here');
  return platform.openSharedTier(kvShared);
}

/** The pages of an engine that ended are gone. */
function followBlocks(client: EngineClient, { onEvents }: BlockEventConfig): void {
  client.onBlocks(onEvents);
  client.onLost(() => onEvents([{ type: 'cleared' }]));
}

function startLoad(client: EngineClient, spec: ModelSpec, config: ResolvedModelConfig): Promise<ModelReport> {
  const { onProgress, signal } = config;
  const loading = client.load(spec, {
    ...(signal === null ? {} : { signal }),
    ...(onProgress === null
      ? {}
      : { onProgress: (doneBytes, totalBytes) => onProgress({ phase: 'load', doneBytes, totalBytes }) }),
  });
  // It may fail before it is awaited; that must not end the process.
  loading.catch(() => {});
  return loading;
}

/** Opens the projector; disposes of the engine if that fails. */
async function openVision(
  { mmproj, kernels, numThreads }: ResolvedModelConfig,
  platform: RuntimePlatform,
  { client, tokenizer, embeddingDim }: { client: EngineClient; tokenizer: Tokenizer; embeddingDim: number },
): Promise<Vision | null> {
  if (mmproj === null) return null;
  try {
    if (platform.openVision === undefined) throw new RuvLLMError('unsupported', 'images are not supported here');
    return await platform.openVision(mmproj, { kernels, numThreads, embeddingDim, tokenizer });
  } catch (error) {
    await client.dispose();
    throw error;
  }
}

/** Reads tokenizer and template; disposes of the engine if that fails. */
async function readOwnSide(
  metadata: Metadata,
  chatTemplate: string | null,
  client: EngineClient,
): Promise<PromptContext> {
  try {
    return readTextSide(metadata, chatTemplate);
  } catch (error) {
    await client.dispose();
    throw error;
  }
}

function readContextLength(metadata: Metadata): number {
  const key = `${metadata.string('general.architecture')}.context_length`;
  const contextLength = metadata.number(key);
  // Checked here: an option derived from it would blame the caller.
  if (!Number.isSafeInteger(contextLength) || contextLength < 1) {
    throw new RuvLLMError('invalid_model_file', `metadata key "${key}" is ${contextLength}, must be 1 or more`, {
      data: { key, contextLength },
    });
  }
  return contextLength;
}
