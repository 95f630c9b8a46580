import type { OpenedModel } from '../engine/open-engine.ts';
import { loadPlanned, type PlannedModel } from '../engine/load-planned.ts';
import { openDraftModel } from '../engine/open-draft-model.ts';
import type { LoadProgress, ModelSpec } from '../engine/protocol.ts';
import { openGguf } from '../gguf/reader.ts';
import type { GgufFile } from '../gguf/types.ts';
import type { SpillStore } from '../kv-cache/types.ts';
import { createBlobSource, hashBlob } from '../platform/browser/files/blob-source.ts';
import {
  openFolder,
  openModelFolder,
  openStoredFile,
  readRecord,
  RECORD,
  writeJson,
} from '../platform/browser/files/model-folder.ts';
import { openSealedLog } from '../platform/browser/sealing/sealed-log.ts';
import { createSpillLog } from '../platform/browser/spill-log.ts';
import { createKernelFactory } from './kernel-factory.ts';

export interface BrowserModelOptions {
  readonly onProgress: LoadProgress;
  readonly warn: (message: string) => void;
  readonly spillKey: CryptoKey | null;
  /** Called with work that must end before the worker does. */
  readonly beforeEnd: (finish: () => Promise<void>) => void;
}

/** Loads the model of a spec in the engine's worker, with its draft model. Paths are names of stored files. */
export async function openBrowserModel(spec: ModelSpec, options: BrowserModelOptions): Promise<OpenedModel> {
  const { onProgress, warn } = options;
  const openFile = async (name: string): Promise<GgufFile> =>
    openGguf(createBlobSource(await openStoredFile(name), name));
  const factory = await createKernelFactory(spec.kernels);
  const cpuFactory = factory.device === undefined ? null : await createKernelFactory('wasm');
  const load = (wanted: ModelSpec, file: GgufFile, progress: LoadProgress): Promise<PlannedModel> =>
    loadPlanned(wanted, file, { factory, cpuFactory, weightStore: null, onProgress: progress });
  const gguf = await openFile(spec.path);
  // First: a tab that may not have it is told before gigabytes are read.
  const modelHash = spec.spill === null ? '' : await readModelHash(spec.path);
  const spill = await openSpill(spec, modelHash, options);
  const { model, kvPacking } = await load(spec, gguf, onProgress);
  const draftModel = await openDraftModel(spec, gguf, {
    openFile,
    load: async (draftSpec, draft) => (await load(draftSpec, draft, () => {})).model,
    warn,
  });
  return { model, draftModel, modelHash, kvPacking, spill, shared: null, warn };
}

async function openSpill(
  { spill }: ModelSpec,
  modelHash: string,
  { warn, spillKey, beforeEnd }: BrowserModelOptions,
): Promise<SpillStore | null> {
  if (spill === null || spillKey === null) return null;
  const folder = await openFolder(spill.folder);
  const { log, records } = await openSealedLog(folder, `${modelHash.slice(0, 32)}.kv`, spillKey);
  beforeEnd(log.settled);
  return createSpillLog({ log, records, limitBytes: spill.limitBytes, warn });
}

/** From the record of the import; a file without one is read again. */
async function readModelHash(name: string): Promise<string> {
  const [folder, file] = await Promise.all([openModelFolder(), openStoredFile(name)]);
  const record = await readRecord(folder, name);
  if (record !== null && record.sizeBytes === file.size) return record.sha256;
  const sha256 = hashBlob(file, name);
  await writeJson(folder, name + RECORD, { sizeBytes: file.size, sha256, source: record?.source ?? name });
  return sha256;
}
