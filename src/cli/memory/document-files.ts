import { opendir, readFile, stat } from 'node:fs/promises';
import { basename, join, normalize, relative, resolve, sep } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { DOCUMENT_LIMITS } from '../../memory/documents/limits.ts';
import { DOCUMENT_EXTENSIONS } from '../../memory/documents/read-document.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { requireRegularFile } from '../../platform/node/files/regular-file.ts';

/** A file on disk and the name of its document. */
export interface DocumentPath {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

const MAX_FILES = 10_000;
const MAX_DEPTH = 32;
/** Other people's code and build outputs. */
const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'build', 'target', 'vendor', '__pycache__']);

const toName = (path: string): string => path.split(sep).join('/');
const hasKnownExtension = (name: string): boolean =>
  DOCUMENT_EXTENSIONS.includes(/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? '');

/** The kind of a path; null: it does not exist. Throws for pipes, devices and sockets. */
export async function kindOfPath(path: string): Promise<'file' | 'folder' | null> {
  const found = await stat(path).catch(() => null);
  if (found === null) return null;
  if (found.isDirectory()) return 'folder';
  requireRegularFile(path, 'cannot add');
  return 'file';
}

/** A file that the user named; its document has the same name. */
export async function describeFile(path: string): Promise<DocumentPath> {
  const { size, mtimeMs } = await stat(path);
  return { path, name: toName(normalize(path)), sizeBytes: size, modifiedMs: mtimeMs };
}

/**
 * The files of a folder that can be read, in order of their names. Hidden files, links and folders of installed packages and
 * build outputs are skipped.
 */
export async function listFolder(folder: string): Promise<DocumentPath[]> {
  const root = resolve(folder);
  const files: DocumentPath[] = [];
  const walk = async (path: string, depth: number): Promise<void> => {
    for await (const entry of await opendir(path)) {
      if (entry.name.startsWith('.')) continue;
      const inside = join(path, entry.name);
      if (entry.isDirectory()) {
        if (depth < MAX_DEPTH && !SKIPPED_FOLDERS.has(entry.name)) await walk(inside, depth + 1);
      } else if (entry.isFile() && hasKnownExtension(entry.name)) {
        const found = await stat(inside).catch(() => null); // it may be gone already
        if (found === null) continue;
        const name = toName(join(basename(root), relative(root, inside)));
        files.push({ path: inside, name, sizeBytes: found.size, modifiedMs: found.mtimeMs });
        if (files.length > MAX_FILES) {
          throw new RuvLLMError('limit_exceeded', `${folder} has more than ${MAX_FILES} documents; add its folders one by one`); // prettier-ignore
        }
      }
    }
  };
  try {
    await walk(root, 0);
  } catch (error) {
    throw error instanceof RuvLLMError ? error : toFileError(error, 'reading the folder', folder);
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The bytes of a document; files that are too large are not read. */
export async function readDocumentFile({ path, name, sizeBytes }: DocumentPath): Promise<Uint8Array> {
  const limit = DOCUMENT_LIMITS.sizeBytes;
  if (sizeBytes > limit) {
    throw new RuvLLMError('limit_exceeded', `${JSON.stringify(name)} has ${sizeBytes} bytes; the limit is ${limit}`, { data: { size: sizeBytes, limit } }); // prettier-ignore
  }
  try {
    requireRegularFile(path, 'reading the document');
    return await readFile(path);
  } catch (error) {
    throw toFileError(error, 'reading the document', path);
  }
}
