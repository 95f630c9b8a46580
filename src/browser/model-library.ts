import { abortError, onAbort } from '../core/abort.ts';
import { deserializeError, RuvLLMError } from '../core/errors.ts';
import { instanceOption, optional, resolveOptions, stringOption } from '../core/options.ts';
import { requireCapabilities } from '../platform/browser/capabilities.ts';
import type { ImportTask } from '../platform/browser/files/import-file.ts';
import {
  checkFileName,
  type FileRecord,
  fileExists,
  openModelFolder,
  PARTIAL,
  readRecord,
  RECORD,
  removeQuietly,
} from '../platform/browser/files/model-folder.ts';
import { toStorageError } from '../platform/browser/files/storage-errors.ts';
import { createWorkerLife } from '../platform/browser/threads/worker-life.ts';
import { onWorkerError } from '../platform/browser/worker-scope.ts';
import { isAbortSignal, type ModelProgress } from '../runtime/model-config.ts';
import type { FromStorageWorker, ToStorageWorker } from './storage-worker.ts';

/** A model as the page names it: an address, a file that the user chose or dropped, or the name of a stored model. */
export type ModelSource = string | URL | Blob;

/** A model in the storage of this page. */
export interface StoredModel {
  readonly name: string;
  readonly sizeBytes: number;
  /** SHA-256 of the file, in hex; null until the first load that needs it, if its record was lost. */
  readonly sha256: string | null;
  /** Its address, or the name of the chosen file. */
  readonly source: string | null;
  /** False: an interrupted import, which the next one of the same source continues. */
  readonly isComplete: boolean;
}

/** How a model is stored; every field has a default. */
export interface StoreModelOptions {
  /** Its name in the storage. Default: the last part of the address, or the name of the file. */
  name?: string;
  /** The expected SHA-256, in hex; other bytes fail with `hash_mismatch`. Default: that of the server's header `Repr-Digest`, if it sends one. */
  sha256?: string;
  /** Headers of requests for the address, such as `authorization`; they are not stored. Default: none. */
  headers?: Readonly<Record<string, string>>;
  onProgress?: (progress: ModelProgress) => void;
  /** Interrupts the import; the bytes so far are kept for the next attempt. */
  signal?: AbortSignal;
}

/** An address: absolute, or relative with a leading `/`, `./` or `../`. */
const ADDRESS = /^(https?:|blob:|\/|\.\.?\/)/i;

export const isStoredName = (source: ModelSource): source is string =>
  typeof source === 'string' && !ADDRESS.test(source);

/** Describes a file, so that an interrupted import continues only with the same one. */
function labelOf(blob: Blob): string {
  const { name = '', lastModified = 0 } = blob as Partial<File>;
  return `file ${name} of ${blob.size} bytes, changed ${lastModified}`;
}

function readSource(source: Exclude<ModelSource, never>): { task: ImportTask['source']; defaultName: string } {
  if (source instanceof Blob) {
    return { task: { blob: source, label: labelOf(source) }, defaultName: (source as Partial<File>).name ?? '' };
  }
  const url = new URL(source, location.href);
  url.hash = '';
  return { task: { url: url.href }, defaultName: decodeURIComponent(url.pathname.split('/').at(-1)!) };
}

/**
 * Streams a model into the storage of this page and returns it; one that is complete and from the same source is returned at once.
 * A closed tab or a broken connection leaves a part that the next call continues, never a model that looks complete.
 */
export async function storeModel(
  source: Exclude<ModelSource, never>,
  options?: StoreModelOptions,
): Promise<StoredModel> {
  requireCapabilities();
  const {
    name: given,
    sha256,
    headers,
    onProgress,
    signal,
  } = resolveOptions<{
    name: string | null;
    sha256: string | null;
    headers: Readonly<Record<string, string>> | null;
    onProgress: ((progress: ModelProgress) => void) | null;
    signal: AbortSignal | null;
  }>('storeModel', options, {
    name: stringOption(null),
    sha256: stringOption(null),
    headers: optional(instanceOption('an object of strings', isHeaders)),
    onProgress: optional(
      instanceOption('a function', (value): value is (progress: ModelProgress) => void => typeof value === 'function'),
    ),
    signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  });
  if (sha256 !== null && !/^[0-9a-f]{64}$/.test(sha256)) {
    throw new RuvLLMError('invalid_option', 'option "sha256" must have 64 hexadecimal digits', {
      data: { option: 'sha256' },
    });
  }
  if (signal?.aborted) throw abortError(signal);
  const { task, defaultName } = readSource(source);
  const name = checkFileName(given ?? defaultName);
  const folder = await openModelFolder();
  const record = (await fileExists(folder, name)) ? await readRecord(folder, name) : null;
  const sourceName = 'url' in task ? task.url : task.label;
  if (record?.source === sourceName && (sha256 === null || record.sha256 === sha256)) return toStored(name, record);
  return navigator.locks.request(`ruvllm store ${name}`, { ifAvailable: true }, async (lock) => {
    if (lock === null) throw new RuvLLMError('in_use', `another tab is storing ${name}`, { data: { name } });
    return toStored(name, await runImport({ name, source: withHeaders(task, headers), sha256 }, onProgress, signal));
  });
}

const isHeaders = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && Object.values(value).every((text) => typeof text === 'string');

function withHeaders(
  source: ImportTask['source'],
  headers: Readonly<Record<string, string>> | null,
): ImportTask['source'] {
  return headers === null || !('url' in source) ? source : { ...source, headers: { ...headers } };
}

const toStored = (name: string, { sizeBytes, sha256, source }: FileRecord): StoredModel => ({
  name,
  sizeBytes,
  sha256,
  source,
  isComplete: true,
});

function runImport(
  task: ImportTask,
  onProgress: ((progress: ModelProgress) => void) | null,
  signal: AbortSignal | null,
): Promise<FileRecord> {
  const worker = new Worker(new URL('./storage-worker.js', import.meta.url), {
    type: 'module',
    name: 'ruvllm-storage',
  });
  const post = (message: ToStorageWorker): void => worker.postMessage(message);
  const life = createWorkerLife();
  const unsubscribe = signal === null ? () => {} : onAbort(signal, () => post({ type: 'abort' }));
  return new Promise<FileRecord>((resolve, reject) => {
    const lose = (reason: string): void =>
      reject(new RuvLLMError('io', `storing ${task.name}: its worker ${reason}; the next attempt continues`, { isRetryable: true })); // prettier-ignore
    onWorkerError(worker, lose);
    worker.addEventListener('message', ({ data }: MessageEvent<FromStorageWorker>) => {
      if (data.type === 'started') life.watch(() => lose('was ended by the browser'));
      else if (data.type === 'done') resolve(data.record);
      else if (data.type === 'failed') reject(deserializeError(data.error));
      else onProgress?.({ phase: 'download', doneBytes: data.doneBytes, totalBytes: data.totalBytes });
    });
    post({ type: 'import', task, lock: life.lock });
  }).finally(() => {
    unsubscribe();
    life.release();
    worker.terminate();
  });
}

/** The models in the storage of this page, also interrupted imports. */
export async function listModels(): Promise<StoredModel[]> {
  requireCapabilities();
  const folder = await openModelFolder();
  const models: StoredModel[] = [];
  for await (const [entry, handle] of folder as unknown as AsyncIterable<[string, FileSystemFileHandle]>) {
    const name = entry.endsWith(PARTIAL) ? entry.slice(0, -PARTIAL.length) : entry;
    if (handle.kind !== 'file' || entry.endsWith(RECORD)) continue;
    const record = await readRecord(folder, entry);
    const { size } = await handle.getFile();
    models.push({
      name,
      sizeBytes: size,
      sha256: record?.sha256 ?? null,
      source: record?.source ?? null,
      isComplete: name === entry,
    });
  }
  return models.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Removes a stored model or what an interrupted import left of it; false if there is none. */
export async function removeModel(name: string): Promise<boolean> {
  requireCapabilities();
  const folder = await openModelFolder();
  const entries = [checkFileName(name), name + PARTIAL];
  let isFound = false;
  for (const entry of entries) {
    if (!(await fileExists(folder, entry))) continue;
    isFound = true;
    await folder.removeEntry(entry).catch((error: unknown) => {
      throw toStorageError(error, `removing ${name}`);
    });
    await removeQuietly(folder, entry + RECORD);
  }
  return isFound;
}
