import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { LoadProgress, ModelSpec } from '../../engine/protocol.ts';
import type { GgufFile } from '../../gguf/types.ts';
import { loadModel } from '../../models/load-model.ts';
import type { LoadedModel } from '../../models/types.ts';
import { createKernelFactory, type KernelWarning } from './kernel-factory.ts';
import { modelPartPaths, openModelFile } from './open-model-file.ts';
import { createRepackCache } from './repack-cache.ts';

/** The types kernels will have to compute; tensors of one dimension (norms, biases) are read as plain floats. */
function matrixTypes(gguf: GgufFile): TensorTypeName[] {
  const matrices = [...gguf.tensors.values()].filter(({ dims }) => dims.length > 1);
  return [...new Set(matrices.map(({ type }) => type))];
}

/** Loads the model a spec names, on the thread that will compute it. */
export async function openEngineModel(
  spec: ModelSpec,
  onProgress: LoadProgress,
  warn: (warning: KernelWarning) => void = ({ message, code }) => process.emitWarning(message, { code }),
): Promise<LoadedModel> {
  const { numThreads, repackCache: choice } = spec;
  const weightStore = choice === 'off' ? null : createRepackCache(modelPartPaths(spec.path), { choice, numThreads });
  const gguf = openModelFile(spec.path);
  try {
    const check = { numThreads: spec.numThreads, types: matrixTypes(gguf) };
    return await loadModel(gguf, await createKernelFactory(spec.kernels, { ...check, warn }), {
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
      weightStore,
      onProgress: ({ loadedBytes, totalBytes }) => onProgress(loadedBytes, totalBytes),
    });
  } finally {
    gguf.source.close();
  }
}
