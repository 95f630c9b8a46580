import { join } from 'node:path';
import { errnoOf } from '../files/file-errors.ts';
import { createFileOnce, isTemporary, listNames, makeFolder, readWhole, type Files } from '../sealing/atomic-files.ts';
import type { KeyRing } from '../sealing/key-ring.ts';

const VERSION = 1;
/** Many times what we write: something longer is not ours. */
const MAX_HEADER_BYTES = 4096;

/** What there may be in a folder whose header is missing, since whoever made it was killed before or is about to write it. */
const OWN_NAMES = new Set(['keys', 'v1', 'records', 'spill.json', 'records.json']);

/**
 * Looks whether a folder is ours: empty, or made with the same master key by a version we know; an empty one gets its header.
 * Returns null, or why nothing in there may be touched.
 */
export function claimFolder(files: Files, folder: string, headerName: string, keys: KeyRing): string | null {
  const path = join(folder, headerName);
  try {
    const stat = files.statSync(folder, { throwIfNoEntry: false });
    if (stat === undefined) makeFolder(files, folder, true);
    else if (!stat.isDirectory()) return `${folder} is not a folder`;
    if (!files.existsSync(path)) {
      const foreign = listNames(files, folder).find((name) => !OWN_NAMES.has(name) && !isTemporary(name));
      if (foreign !== undefined) return `${folder} has no ${headerName} and is not empty`;
      createFileOnce(files, path, Buffer.from(`${JSON.stringify({ version: VERSION, check: keys.checkValue })}\n`));
    }
    return judgeHeader(path, readWhole(files, path, MAX_HEADER_BYTES), keys);
  } catch (error) {
    return `${folder} cannot be used: ${errnoOf(error) ?? 'unknown error'}`;
  }
}

function judgeHeader(path: string, bytes: Uint8Array | null, keys: KeyRing): string | null {
  const header = parseHeader(bytes);
  if (header === null) return `${path} is not a RuvLLM header`;
  if (header.version > VERSION) return `${path} is of version ${header.version}, this one knows ${VERSION}`;
  if (header.version !== VERSION) return `${path} is not a RuvLLM header`;
  return header.check === keys.checkValue ? null : `${path} is encrypted with another master key`;
}

function parseHeader(bytes: Uint8Array | null): { version: number; check: unknown } | null {
  if (bytes === null) return null;
  try {
    const { version, check } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    return Number.isSafeInteger(version) ? { version: version as number, check } : null;
  } catch {
    return null;
  }
}
