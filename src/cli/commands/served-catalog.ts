import { RuvLLMError } from '../../core/errors.ts';
import type { Hub } from '../../hub/hub.ts';
import { isModelName } from '../../hub/model-names.ts';
import { parseModelReference } from '../../hub/reference.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelCatalog } from '../../server/model-catalog.ts';
import { describeModelFile } from './served-models.ts';

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
  hub: Pick<Hub, 'listModels' | 'resolveModelPath' | 'pullModel' | 'expandName'>,
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

  return {
    async list() {
      return (await hub.listModels()).map(({ reference, sizeBytes, modifiedMs }) => ({
        reference,
        sizeBytes,
        modifiedMs,
      }));
    },
    async open(reference, name, maxContext = null) {
      const path = await findFile(reference);
      const id = name ?? reference;
      return describeModelFile(id, path, { maxContext, config: () => configOf(id) });
    },
    async pull(reference, { signal, onProgress }) {
      const { sizeBytes, isDownloaded } = await hub.pullModel(
        isModelName(reference) ? reference : requireReference(reference),
        { signal, onProgress },
      );
      return { sizeBytes, isDownloaded };
    },
    freeBytes: () => readSystemInfo().availableMemoryBytes,
  };
}
