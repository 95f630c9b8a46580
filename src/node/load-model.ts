import { randomInt } from 'node:crypto';
import { createHub } from '../hub/hub.ts';
import { loadModelFile, type RuntimePlatform } from '../runtime/load-model.ts';
import type { Model } from '../runtime/model.ts';
import { type ModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { createNodeHubPlatform } from '../platform/node/process/hub-platform.ts';
import { createGrammarPreparer } from './text/grammar-preparer.ts';
import { findDraftModel } from './find-draft-model.ts';
import { openKeptState } from './kept-state.ts';
import { openSharedTier } from './shared-tier.ts';
import { openModelFile } from '../platform/node/files/open-model-file.ts';
import { spawnEngine } from './engine/spawn-engine.ts';
import { spawnEngineProcess } from './engine/spawn-engine-process.ts';
import { readSystemInfo } from '../platform/node/process/system-info.ts';
import { openTableThread } from './text/table-thread.ts';
import { openTextThread } from './text/text-thread.ts';

/** The limit of `randomInt`. */
const SEED_LIMIT = 2 ** 48 - 1;

const platform: RuntimePlatform = {
  openModelFile,
  startEngine: ({ isProcess }) => (isProcess ? spawnEngineProcess() : spawnEngine()),
  readAdapter: async (path, base) => (await import('./read-adapter.ts')).readAdapter(path, base),
  now: () => performance.now(),
  createSeed: () => randomInt(SEED_LIMIT),
  wallClock: () => Date.now(),
  warn: (message) => process.emitWarning(message, { code: 'RUVLLM_MEMORY' }),
  openKeptState,
  openSharedTier: (shared) => openSharedTier(shared),
  prepareGrammar: createGrammarPreparer(),
  openTextThread,
  openTableThread,
  openVision: async (path, options) => (await import('./vision/vision-thread.ts')).openVisionThread(path, options),
};

/**
 * Loads a model into its own thread. `pathOrReference` is the path of a GGUF file or a reference such as `owner/repo:Q4_K_M`,
 * which is downloaded unless it is in the cache.
 */
export async function loadModel(pathOrReference: string, config?: ModelConfig): Promise<Model> {
  const resolved = resolveModelConfig(config, { numCpus: readSystemInfo().numCpus });
  const { hfToken, signal, onProgress } = resolved;
  const hub = createHub({ platform: createNodeHubPlatform(), ...(hfToken === null ? {} : { token: hfToken }) });
  const path = await hub.resolveModelPath(pathOrReference, {
    download: true,
    signal,
    ...(onProgress === null ? {} : { onProgress }),
  });
  const draftModel = await findDraftModel(path, resolved.draftModel, hub, { signal });
  return loadModelFile(path, { ...resolved, draftModel }, platform);
}
