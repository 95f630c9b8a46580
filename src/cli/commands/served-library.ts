import { statSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import type { Hub } from '../../hub/hub.ts';
import { isModelName, shortNameOf } from '../../hub/model-names.ts';
import type { GgufDetails } from '../../hub/gguf-summary.ts';
import type { LibraryModel, ModelFileFacts, ModelLibrary } from '../../server/model-library.ts';
import { requireReference } from './served-catalog.ts';

/** Headers that are kept in memory; a listing reads each file once. */
const MAX_READ = 256;

/** The models of the cache and those that the user has saved, for Ollama's API. */
export function createServedLibrary(
  hub: Pick<Hub, 'listModels' | 'resolveModelPath' | 'removeModel' | 'expandName' | 'saved' | 'readDetails'>,
): ModelLibrary {
  const read = new Map<string, { readonly identity: string; readonly facts: ModelFileFacts | null }>();

  /** The references of a name; text that is no name must be a reference, not a path. */
  async function referencesOf(name: string): Promise<readonly string[]> {
    return isModelName(name) ? await hub.expandName(name, { isFileAllowed: false }) : [requireReference(name)];
  }

  return {
    async list() {
      return (await hub.listModels()).map(({ reference, path, sizeBytes, modifiedMs, sha256 }) => ({
        name: shortNameOf(reference) ?? reference,
        path,
        sizeBytes,
        modifiedMs,
        sha256,
      }));
    },
    async locate(name): Promise<LibraryModel> {
      for (const reference of await referencesOf(name)) {
        try {
          const path = await hub.resolveModelPath(reference);
          const { size: sizeBytes, mtimeMs: modifiedMs } = statSync(path);
          const sha256 = (await hub.listModels()).find((model) => model.path === path)?.sha256 ?? null;
          return { name, path, sizeBytes, modifiedMs, sha256 };
        } catch (error) {
          if (!(error instanceof RuvLLMError) || error.code !== 'not_found') throw error;
        }
      }
      throw new RuvLLMError('not_found', `model ${name} is not in the cache; pull it first`);
    },
    describe(path) {
      const { size, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { size: -1, mtimeMs: -1 };
      const identity = `${size} ${mtimeMs}`;
      const cached = read.get(path);
      if (cached?.identity === identity) return cached.facts;
      const summary = hub.readDetails(path);
      const facts = summary === null ? null : toFacts(summary);
      if (read.size >= MAX_READ) read.clear();
      read.set(path, { identity, facts });
      return facts;
    },
    async remove(name) {
      if (!isModelName(name)) requireReference(name);
      await hub.removeModel(name, { isFromClient: true });
    },
    requireReference: (name) => void (isModelName(name) ? name : requireReference(name)),
    saved: hub.saved,
  };
}

function toFacts(summary: GgufDetails): ModelFileFacts {
  const { architecture, numParameters, contextLength, displayName, template, license, metadata } = summary;
  return {
    displayName,
    architecture,
    numParameters,
    quantization: summary.quantization ?? 'unknown',
    canGenerate: async () => (await import('../../models/registry.ts')).isDecoder(architecture),
    contextLength,
    template,
    license,
    metadata,
  };
}
