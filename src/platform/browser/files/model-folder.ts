import { RuvLLMError } from '../../../core/errors.ts';
import { toStorageError } from './storage-errors.ts';

/** Facts about a stored file that only a full read would tell. */
export interface FileRecord {
  readonly sizeBytes: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
  /** Its address, or a description of the dropped file. */
  readonly source: string;
}

export const PARTIAL = '.partial';
export const RECORD = '.json';
const MAX_NAME_LENGTH = 200;

/** A folder of the origin-private file system, created if needed. */
export async function openFolder(...path: readonly string[]): Promise<FileSystemDirectoryHandle> {
  try {
    let folder = await navigator.storage.getDirectory();
    for (const name of ['ruvllm', ...path]) folder = await folder.getDirectoryHandle(name, { create: true });
    return folder;
  } catch (error) {
    throw toStorageError(error, 'opening the storage of this page');
  }
}

export const openModelFolder = (): Promise<FileSystemDirectoryHandle> => openFolder('models');

/** `invalid_option` for names that are paths or that this folder uses itself. */
export function checkFileName(name: unknown): string {
  const isName =
    typeof name === 'string' &&
    name.length <= MAX_NAME_LENGTH &&
    /^[^/\\\0]+\.gguf$/i.test(name) &&
    name.isWellFormed();
  if (isName) return name;
  const got = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : typeof name;
  throw new RuvLLMError('invalid_option', `a stored file must be named NAME.gguf, got ${got}`, {
    data: { option: 'name' },
  });
}

/** The content of a small JSON file; null: missing or damaged. */
export async function readJson(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<Record<string, unknown> | null> {
  try {
    const file = await (await folder.getFileHandle(name)).getFile();
    const value: unknown = JSON.parse(await file.text());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Replaces a small JSON file as a whole: the browser swaps it in on close. */
export async function writeJson(folder: FileSystemDirectoryHandle, name: string, value: object): Promise<void> {
  const handle = await folder.getFileHandle(name, { create: true });
  const stream = await handle.createWritable();
  await stream.write(JSON.stringify(value));
  await stream.close();
}

export async function removeQuietly(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  await folder.removeEntry(name).catch(() => {});
}

export async function fileExists(folder: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  return folder.getFileHandle(name).then(
    () => true,
    () => false,
  );
}

/** The bytes of a stored file; `not_found` without one. */
export async function openStoredFile(name: string): Promise<File> {
  const folder = await openModelFolder();
  try {
    return await (await folder.getFileHandle(checkFileName(name))).getFile();
  } catch (error) {
    throw toStorageError(error, `opening ${name}`);
  }
}

/** The record of a complete file; null: none, or one that does not fit the file. */
export async function readRecord(folder: FileSystemDirectoryHandle, name: string): Promise<FileRecord | null> {
  const record = await readJson(folder, name + RECORD);
  const { sizeBytes, sha256, source } = record ?? {};
  if (typeof sizeBytes !== 'number' || typeof sha256 !== 'string' || typeof source !== 'string') return null;
  return { sizeBytes, sha256, source };
}
