import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { type Adapter, type AdapterBase, readGgufAdapter } from '../adapters/index.ts';
import { openGguf } from '../gguf/reader.ts';
import type { GgufFile } from '../gguf/types.ts';
import { readClassifierHead } from '../models/classifier-head.ts';
import { requireCapabilities } from '../platform/browser/capabilities.ts';
import { readBlob } from '../platform/browser/files/blob-source.ts';
import { openStoredFile } from '../platform/browser/files/model-folder.ts';
import type { SealingKey } from '../platform/browser/sealing/sealing-key.ts';
import { loadModelFile, type RuntimePlatform, type VisionOptions } from '../runtime/load-model.ts';
import type { Model } from '../runtime/model.ts';
import { type ModelConfig, type ResolvedModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { isStoredName, type ModelSource, storeModel, type StoreModelOptions } from './model-library.ts';
import { type BrowserSpillConfig, createPagesErasure, KV_FOLDER, resolveSpill } from './kv-spill.ts';
import { openVision, readProjector } from './open-vision.ts';
import { spawnEngine } from './spawn-engine.ts';

/** Options that need Node; a page gets `unsupported` for them. */
const NODE_OPTIONS = ['engineProcess', 'hfToken', 'kvShared', 'repackCache'] as const;

/** How a model is loaded in a page; every field has a default. */
export interface BrowserModelConfig
  extends
    Omit<ModelConfig, (typeof NODE_OPTIONS)[number] | 'kvSpill' | 'mmproj'>,
    Pick<StoreModelOptions, 'name' | 'sha256' | 'headers'> {
  /** The projector of a model that sees images: the name of a stored mmproj GGUF file, or its address. Default: none. */
  mmproj?: string;
  /** Keeps the pages of the prefix cache in the storage of this page, for the next load of the model. Default null: no. */
  kvSpill?: BrowserSpillConfig | null;
}

const warn = (message: string): void => console.warn(`RuvLLM: ${message}`);

/**
 * Loads a model into a worker of this page. `source` is the name of a stored model, an address, or a file that the user chose;
 * the last two are stored first, unless they are.
 */
export async function loadModel(source: ModelSource, config: BrowserModelConfig = {}): Promise<Model> {
  const capabilities = requireCapabilities();
  const { name, sha256, headers, kvSpill, ...rest } = config;
  const spill = resolveSpill(kvSpill);
  refuseNodeOptions(rest);
  const resolved = resolveModelConfig(
    { ...rest, ...(spill === null ? {} : { kvSpill: { folder: KV_FOLDER, limitBytes: spill.limitBytes } }) },
    { numCpus: capabilities.numThreads },
  );
  if (resolved.numThreads > 1 && !capabilities.isIsolated) {
    throw new RuvLLMError(
      'unsupported',
      `${resolved.numThreads} threads need a cross-origin isolated page (headers COOP and COEP); this one runs with 1`,
      { data: { numThreads: resolved.numThreads } },
    );
  }
  const stored = isStoredName(source) ? source : await storeFirst(source, { name, sha256, headers }, resolved);
  const file = await openStoredFile(stored);
  const gguf = await readBlob(file, stored, readHeader);
  const { mmproj } = resolved;
  if (mmproj === null) return loadModelFile(stored, resolved, createPlatform(gguf, spill?.key ?? null, null));
  const projectorName = isStoredName(mmproj) ? mmproj : await storeFirst(mmproj, { headers }, resolved);
  const projector = await readBlob(await openStoredFile(projectorName), projectorName, (source) => {
    const opened = openGguf(source);
    readProjector(opened);
    return opened;
  });
  return loadModelFile(
    stored,
    { ...resolved, mmproj: projectorName },
    createPlatform(gguf, spill?.key ?? null, projector),
  );
}

async function storeFirst(
  source: Exclude<ModelSource, never>,
  { name, sha256, headers }: { [Key in 'name' | 'sha256' | 'headers']?: StoreModelOptions[Key] | undefined },
  { onProgress, signal }: ResolvedModelConfig,
): Promise<string> {
  const stored = await storeModel(source, {
    ...(name === undefined ? {} : { name }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(headers === undefined ? {} : { headers }),
    ...(onProgress === null ? {} : { onProgress }),
    ...(signal === null ? {} : { signal }),
  });
  return stored.name;
}

/** Everything that the page reads of a model file: afterwards its source has all these bytes. */
function readHeader(source: Parameters<typeof openGguf>[0]): GgufFile {
  const gguf = openGguf(source);
  readClassifierHead(gguf);
  return gguf;
}

function refuseNodeOptions(config: object): void {
  const option = NODE_OPTIONS.find((key) => (config as Record<string, unknown>)[key] !== undefined);
  if (option === undefined) return;
  throw new RuvLLMError('unsupported', `option "${option}" is not available in a browser`, { data: { option } });
}

function createPlatform(gguf: GgufFile, spillKey: SealingKey | null, projector: GgufFile | null): RuntimePlatform {
  return {
    openModelFile: () => gguf,
    startEngine: () => spawnEngine(spillKey?.key ?? null, warn),
    now: () => performance.now(),
    createSeed: () => Number(crypto.getRandomValues(new BigUint64Array(1))[0]! >> 11n),
    wallClock: () => Date.now(),
    warn,
    openKeptState: ({ folder, limitBytes }) => ({
      // The key goes to the worker on a way of its own: it has no bytes that could be sent.
      spill: { folder, limitBytes, masterKey: new Uint8Array(0) },
      openSessions: () => null,
      erasure: createPagesErasure(),
    }),
    readAdapter,
    ...(projector === null
      ? {}
      : { openVision: (name: string, options: VisionOptions) => openVision(name, projector, options) }),
  };
}

/** Reads a stored GGUF adapter. */
async function readAdapter(name: string, base: AdapterBase): Promise<Adapter> {
  if (!/\.gguf$/i.test(name)) {
    const message = `${JSON.stringify(name.slice(0, 80))} is not a GGUF file: PEFT adapters cannot be read in a browser; ruvllm adapters export FOLDER NAME.gguf --model MODEL writes one as GGUF`;
    throw new RuvLLMError('unsupported', message, { data: { name } });
  }
  const file = await openStoredFile(name);
  const bytes = new Uint8Array(await file.arrayBuffer());
  return readGgufAdapter(openGguf(createMemorySource(bytes, name)), base);
}
