import type { ErasurePart } from '../core/erasure.ts';
import { RuvLLMError } from '../core/errors.ts';
import { instanceOption, integerOption, resolveOptions } from '../core/options.ts';
import { openFolder } from '../platform/browser/files/model-folder.ts';
import type { SealingKey } from '../platform/browser/sealing/sealing-key.ts';

/** Sealed pages of the prefix cache in the storage of a page. */
export interface BrowserSpillConfig {
  /** From `openDeviceKey` or `openPassphraseKey`. */
  key: SealingKey;
  /** Maximum bytes of pages for each model, on disk and in memory; the least recently used are dropped first. Default 128 MiB. */
  limitBytes?: number;
}

export const KV_FOLDER = 'kv';
const DEFAULT_LIMIT_BYTES = 128 * 2 ** 20;

export const isSealingKey = (value: unknown): value is SealingKey =>
  typeof value === 'object' && value !== null && (value as Partial<SealingKey>).key instanceof CryptoKey;

export function resolveSpill(given: BrowserSpillConfig | null | undefined): Required<BrowserSpillConfig> | null {
  if (given === undefined || given === null) return null;
  return resolveOptions<Required<BrowserSpillConfig>>('kvSpill', given, {
    key: instanceOption('a key of openDeviceKey or openPassphraseKey', isSealingKey),
    limitBytes: integerOption(DEFAULT_LIMIT_BYTES, 0, Number.MAX_SAFE_INTEGER),
  });
}

/** Pages of models that are not loaded: whose they are cannot be seen without opening them, and they can be computed again. */
export function createPagesErasure(): ErasurePart {
  const names = async (): Promise<string[]> => {
    const folder = (await openFolder(KV_FOLDER)) as unknown as AsyncIterable<[string, FileSystemHandle]>;
    const found: string[] = [];
    for await (const [name] of folder) found.push(name);
    return found;
  };
  return {
    name: 'KV pages of this page',
    isLast: true,
    async erase() {
      const folder = await openFolder(KV_FOLDER);
      for (const name of await names()) {
        await folder.removeEntry(name).catch((error: unknown) => {
          // A loaded model, here or in another tab, erases its own.
          if (!(error instanceof DOMException) || error.name !== 'NoModificationAllowedError') {
            throw new RuvLLMError('io', `removing ${name} failed`, { cause: error });
          }
        });
      }
    },
    count: async () => 0,
  };
}
