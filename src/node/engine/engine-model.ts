import type { OpenedModel } from '../../engine/open-engine.ts';
import { loadPlanned, matrixTypes, type PlannedModel } from '../../engine/load-planned.ts';
import { openDraftModel } from '../../engine/open-draft-model.ts';
import type { LoadProgress, ModelSpec } from '../../engine/protocol.ts';
import type { GgufFile } from '../../gguf/types.ts';
import type { SharedStore } from '../../kv-cache/shared-store.ts';
import type { SpillStore } from '../../kv-cache/types.ts';
import type { LoadedModel } from '../../models/types.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { createKernelFactory, type KernelWarning } from '../../platform/node/kernels/kernel-factory.ts';
import { modelPartPaths, openModelFile } from '../../platform/node/files/open-model-file.ts';
import { listMatrices } from '../list-matrices.ts';
import { createRepackCache } from './repack-cache.ts';
import { splitWarning } from './split-warning.ts';

async function openSpill(spec: ModelSpec, warn: (warning: EngineWarning) => void): Promise<SpillStore | null> {
  if (spec.spill === null) return null;
  const { openSpillFolder } = await import('../../platform/node/spill/spill-folder.ts');
  return openSpillFolder({ ...spec.spill, warn: (message) => warn({ code: 'RUVLLM_KV_SPILL', message }) });
}

async function openShared({ shared }: ModelSpec, warn: (warning: EngineWarning) => void): Promise<SharedStore | null> {
  if (shared === null) return null;
  const { openObjects } = await import('../../platform/node/shared-pages/open-objects.ts');
  const { openSharedPages } = await import('../../platform/node/shared-pages/shared-page-store.ts');
  const { place, ...options } = shared;
  const report = (message: string): void => warn({ code: 'RUVLLM_KV_SHARED', message });
  return openSharedPages({ ...options, objects: openObjects(place), warn: report });
}

/** Pages on a device cannot be read between steps. */
function refuseStores({ spill, shared, kernels }: ModelSpec, warn: (warning: EngineWarning) => void): void {
  if (spill !== null) {
    warn({ code: 'RUVLLM_KV_SPILL', message: `KV pages are not written to disk with ${kernels} kernels` });
  }
  if (shared !== null) {
    warn({ code: 'RUVLLM_KV_SHARED', message: `KV pages are not shared with ${kernels} kernels` });
  }
}

/** Reports a problem that does not stop the program. */
export type EngineWarning =
  | KernelWarning
  | {
      readonly code: 'RUVLLM_KV_SPILL' | 'RUVLLM_KV_SHARED' | 'RUVLLM_DRAFT_MODEL' | 'RUVLLM_GPU_LAYERS';
      readonly message: string;
    };

/** Loads the model of a spec on the compute thread, with its draft model. */
export async function openEngineModel(
  spec: ModelSpec,
  onProgress: LoadProgress,
  warn: (warning: EngineWarning) => void = ({ message, code }) => process.emitWarning(message, { code }),
): Promise<OpenedModel> {
  const paths = modelPartPaths(spec.path);
  const warnOfDrafts = (message: string): void => warn({ code: 'RUVLLM_DRAFT_MODEL', message });
  const gguf = openModelFile(spec.path);
  try {
    const { model, kvPacking } = await load(spec, gguf, onProgress, warn);
    const message = splitWarning(spec, model.memory.split);
    if (message !== null) warn({ code: 'RUVLLM_GPU_LAYERS', message });
    const loadDraft = async (draftSpec: ModelSpec, draft: GgufFile): Promise<LoadedModel> =>
      (await load(withDraftLayers(draftSpec), draft, () => {}, warn)).model;
    const draftModel = await openDraftModel(spec, gguf, {
      openFile: openModelFile,
      load: loadDraft,
      warn: warnOfDrafts,
    });
    // Only state that other processes see needs the model's hash.
    const isSeen = spec.spill !== null || spec.shared !== null || spec.blockSalt !== null;
    const modelHash = isSeen ? rememberedContentHash(paths) : '';
    const { isReadable } = model.pages;
    if (!isReadable) refuseStores(spec, warn);
    return {
      model,
      draftModel,
      modelHash,
      kvPacking,
      spill: isReadable ? await openSpill(spec, warn) : null,
      shared: isReadable ? await openShared(spec, warn) : null,
      warn: warnOfDrafts,
    };
  } finally {
    gguf.source.close();
  }
}

/** The number of layers is that of the large model; memory that is limited for it has no part for drafts. */
function withDraftLayers(spec: ModelSpec): ModelSpec {
  const isFree = spec.gpuLayers === 'auto' && spec.gpuMemoryBytes === null;
  return isFree ? spec : { ...spec, gpuLayers: 0, gpuMemoryBytes: null };
}

async function load(
  spec: ModelSpec,
  gguf: GgufFile,
  onProgress: LoadProgress,
  warn: (warning: EngineWarning) => void,
): Promise<PlannedModel> {
  const { numThreads, repackCache: choice } = spec;
  const weightStore = choice === 'off' ? null : createRepackCache(modelPartPaths(spec.path), { choice, numThreads });
  const options = { numThreads, types: matrixTypes(gguf), matrices: listMatrices(gguf), warn };
  const factory = await createKernelFactory(spec.kernels, options);
  const cpuFactory = factory.device === undefined ? null : await createKernelFactory('auto', options);
  return loadPlanned(spec, gguf, { factory, cpuFactory, weightStore, onProgress });
}
