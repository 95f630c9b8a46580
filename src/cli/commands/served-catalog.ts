import { RuvLLMError } from '../../core/errors.ts';
import type { Hub } from '../../hub/hub.ts';
import { isModelName } from '../../hub/model-names.ts';
import { parseModelReference } from '../../hub/reference.ts';
import { suggestModels, WORKING_BYTES } from '../../hub/suggested-models.ts';
import { measureReadSpeed } from '../../platform/node/process/read-speed.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelCatalog } from '../../server/model-catalog.ts';
import { describeModelFile } from './served-models.ts';

/** Shares of the memory bandwidth that decoding uses, as docs/benchmarks.md has them. */
const BANDWIDTH_SHARE = { native: 0.75, wasm: 0.4 } as const;
/** Bandwidth grows more slowly than the number of threads, and no further from here on. */
const MAX_MEMORY_THREADS = 16;

/** Bytes of weights per second that decoding reads here, from a short measurement of one thread; an estimate. */
async function estimateReadSpeed({
  kernels = 'auto',
  numThreads = readSystemInfo().numCpus,
}: ModelConfig): Promise<number> {
  const { createSizingFactory } = await import('../../platform/node/kernels/sizing-factory.ts');
  const share = createSizingFactory(kernels).name.startsWith('native') ? BANDWIDTH_SHARE.native : BANDWIDTH_SHARE.wasm;
  return measureReadSpeed() * Math.sqrt(Math.min(numThreads, MAX_MEMORY_THREADS)) * share;
}

/** Rejects paths: clients must not open local files, not even one named like a reference. */
export function requireReference(text: string): string {
  const { kind } = parseModelReference(text, () => false);
  if (kind === 'npm' || kind === 'url') return text;
  if (kind === 'huggingface')
    return /^(?:hf:|hf\.co|(?:www\.)?huggingface\.co|https?:)/.test(text) ? text : `hf:${text}`;
  throw new RuvLLMError('invalid_option', `"model" must be a reference such as owner/repo:QUANT, not a path`, {
    data: { option: 'model' },
  });
}

/** The model cache and the hub, for clients of a running server. */
export function createServedCatalog(
  hub: Pick<Hub, 'listModels' | 'resolveModelPath' | 'pullModel' | 'expandName' | 'isHubReachable'>,
  /** The config that decides the memory of every model. */
  plan: ModelConfig,
  configOf: (id: string) => ModelConfig,
): ModelCatalog {
  /** The first downloaded file among the sources of a name. */
  async function findFile(reference: string): Promise<string> {
    if (!isModelName(reference)) return await hub.resolveModelPath(requireReference(reference));
    const references = await hub.expandName(reference, { isFileAllowed: false });
    for (const [index, one] of references.entries()) {
      try {
        return await hub.resolveModelPath(one);
      } catch (error) {
        if (index === references.length - 1) throw error;
      }
    }
    throw new RuvLLMError('not_found', `model ${reference} has no source`);
  }

  /** Each file is read once: pages poll the list. */
  const required = new Map<string, { readonly identity: string; readonly bytes: number | null }>();
  async function requiredBytesOf(path: string, identity: string): Promise<number | null> {
    const cached = required.get(path);
    if (cached?.identity === identity) return cached.bytes;
    const { estimateMemory } = await import('../../node/engine/estimate-memory.ts');
    const bytes = estimateMemory(path, plan)?.totalBytes ?? null;
    required.set(path, { identity, bytes });
    return bytes;
  }

  return {
    async list() {
      const models = (await hub.listModels()).map(async ({ reference, path, sizeBytes, modifiedMs }) => ({
        reference,
        sizeBytes,
        requiredBytes: await requiredBytesOf(path, `${sizeBytes} ${modifiedMs}`),
        modifiedMs,
      }));
      return await Promise.all(models);
    },
    async open(reference, name, maxContext = null) {
      const path = await findFile(reference);
      const id = name ?? reference;
      return describeModelFile(id, path, { maxContext, plan, config: () => configOf(id) });
    },
    async pull(reference, { signal, onProgress }) {
      const { sizeBytes, isDownloaded } = await hub.pullModel(
        isModelName(reference) ? reference : requireReference(reference),
        { signal, onProgress, isFromClient: true },
      );
      return { sizeBytes, isDownloaded };
    },
    async suggest() {
      const isHubReachable = await hub.isHubReachable();
      const bytesPerSecond = await estimateReadSpeed(plan);
      const models = suggestModels(isHubReachable).map(async ({ name, sizeBytes, weightBytes }) => ({
        name,
        sizeBytes,
        requiredBytes: weightBytes + WORKING_BYTES,
        tokensPerSecond: bytesPerSecond / weightBytes,
        isDownloaded: await findFile(name).then(
          () => true,
          () => false,
        ),
      }));
      return { isHubReachable, models: await Promise.all(models) };
    },
    freeBytes: () => readSystemInfo().availableMemoryBytes,
  };
}
