import { RuvLLMError } from '../../core/errors.ts';
import { planEngine } from '../../engine/plan-engine.ts';
import { startPages } from '../../engine/start-pages.ts';
import { chooseSplit, planModel } from '../../models/index.ts';
import { readShape } from '../../models/shape.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createSizingFactory } from '../../platform/node/kernels/sizing-factory.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import { type ModelConfig, planSpec, resolveModelConfig } from '../../runtime/model-config.ts';
import type { ModelInfo } from '../../runtime/model-info.ts';

/** The memory that loading a model with this config takes, from its header; null: the file cannot be loaded. */
export function estimateMemory(path: string, config?: ModelConfig): ModelInfo['memory'] | null {
  const resolved = resolveModelConfig(config, { numCpus: readSystemInfo().numCpus });
  try {
    const gguf = openModelFile(path);
    try {
      const spec = planSpec(resolved, { path, contextLength: readShape(gguf).contextLength }, null);
      const { numPages, leastPages, limitsOf } = planEngine(spec, gguf);
      const factory = createSizingFactory(spec.kernels);
      const choose = (pages: number) => {
        const { gpuLayers, gpuMemoryBytes, maxContext } = spec;
        if (factory.device === undefined) return { factory, split: null };
        const wish = { gpu: factory, cpu: createSizingFactory('auto'), gpuLayers, gpuMemoryBytes };
        return chooseSplit(gguf, wish, limitsOf(pages), maxContext);
      };
      const plan = (pages: number) => {
        const chosen = choose(pages);
        const model = planModel(gguf, chosen.factory, limitsOf(pages), spec.maxContext, chosen.split);
        return { ...model, ...('report' in chosen ? { report: chosen.report } : {}) };
      };
      const most = plan(
        startPages({ numPages, leastPages }, (pages) => plan(pages).totalBytes, factory.fastArenaBytes),
      );
      const isTooMuch = most.totalBytes > Math.min(factory.maxArenaBytes, spec.memoryLimitBytes ?? Infinity);
      const { weightBytes, statesBytes, activationBytes, report, ...sizes } = isTooMuch ? plan(leastPages) : most;
      const kvBytes = Math.max(sizes.kvBytes, sizes.gpuKvBytes) + statesBytes;
      const totalBytes = weightBytes + kvBytes + activationBytes;
      return { weightBytes, kvBytes, activationBytes, totalBytes, ...(report === undefined ? {} : { split: report }) };
    } finally {
      gguf.source.close();
    }
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}
