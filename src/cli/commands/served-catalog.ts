import { RuvLLMError } from '../../core/errors.ts';
import type { Hub } from '../../hub/hub.ts';
import { parseModelReference } from '../../hub/reference.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelCatalog } from '../../server/model-catalog.ts';
import { describeModelFile } from './served-models.ts';

/** Rejects paths: clients must not open local files, not even one named like a reference. */
function requireReference(text: string): string {
  const { kind } = parseModelReference(text, () => false);
  if (kind === 'npm') return text;
  if (kind === 'huggingface') return text.startsWith('hf:') ? text : `hf:${text}`;
  throw new RuvLLMError('invalid_option', `"model" must be a reference such as owner/repo:QUANT, not a path`, {
    data: { option: 'model' },
  });
}

/** The model cache and the hub, for clients of a running server. */
export function createServedCatalog(
  hub: Pick<Hub, 'listModels' | 'resolveModelPath' | 'pullModel'>,
  configOf: (id: string) => ModelConfig,
): ModelCatalog {
  return {
    async list() {
      return (await hub.listModels()).map(({ reference, sizeBytes, modifiedMs }) => ({
        reference,
        sizeBytes,
        modifiedMs,
      }));
    },
    async open(reference, name) {
      const path = await hub.resolveModelPath(requireReference(reference));
      const id = name ?? reference;
      return describeModelFile(id, path, () => configOf(id));
    },
    async pull(reference, { signal, onProgress }) {
      const { sizeBytes, isDownloaded } = await hub.pullModel(requireReference(reference), { signal, onProgress });
      return { sizeBytes, isDownloaded };
    },
    freeBytes: () => readSystemInfo().availableMemoryBytes,
  };
}
