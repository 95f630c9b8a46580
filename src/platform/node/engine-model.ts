import { RuvLLMError } from '../../core/errors.ts';
import type { KernelChoice, LoadProgress, ModelSpec } from '../../engine/protocol.ts';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import { createNativePackFactory } from '../../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../../kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../../kernels/wasm/wasm-pack.ts';
import { loadModel } from '../../models/load-model.ts';
import type { LoadedModel } from '../../models/types.ts';
import { loadNativeBuilds } from './native-addon.ts';
import { openModelFile } from './open-model-file.ts';
import { createNodeWasmPlatform } from './wasm-platform.ts';

const FACTORIES: Readonly<Record<KernelChoice, () => Promise<KernelPackFactory>>> = {
  reference: async () => createReferencePackFactory(),
  async native() {
    const [best] = loadNativeBuilds();
    if (best === undefined) {
      throw new RuvLLMError('unsupported', 'native kernels are not built for this machine: npm run build:native');
    }
    return createNativePackFactory(best);
  },
  wasm: async () => createWasmPackFactory(createNodeWasmPlatform()),
  async auto() {
    const platform = createNodeWasmPlatform();
    try {
      await platform.loadModule();
      return createWasmPackFactory(platform);
    } catch (error) {
      if (error instanceof RuvLLMError && error.code === 'unsupported') return createReferencePackFactory();
      throw error;
    }
  },
};

/** Loads the model a spec names, on the thread that will compute it. */
export async function openEngineModel(spec: ModelSpec, onProgress: LoadProgress): Promise<LoadedModel> {
  const factory = await FACTORIES[spec.kernels]();
  const gguf = openModelFile(spec.path);
  try {
    return await loadModel(gguf, factory, {
      limits: {
        maxBatchTokens: spec.maxBatchTokens,
        maxSequences: spec.maxSequences,
        maxLogitRows: spec.maxSequences,
        numPages: spec.numPages,
        kvPrecision: spec.kvPrecision,
      },
      numThreads: spec.numThreads,
      maxContextTokens: spec.maxContext,
      memoryLimitBytes: spec.memoryLimitBytes,
      onProgress: ({ loadedBytes, totalBytes }) => onProgress(loadedBytes, totalBytes),
    });
  } finally {
    gguf.source.close();
  }
}
