import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { SourceRecord } from '../../platform/node/files/content-identity.ts';

export interface StoredImage {
  readonly path: string;
  /** The start of its model's content hash. */
  readonly source: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

const IMAGE_NAME = /^([0-9a-f]{24})-[0-9a-f]{32}\.bin$/;
/** Longer than any write: older files are from processes that were killed. */
const ABANDONED_MS = 24 * 3600 * 1000;

function entriesOf(folder: string): { name: string; path: string; sizeBytes: number; usedMs: number }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stat = statSync(path, { throwIfNoEntry: false }); // another process may have removed it
    return stat?.isFile() ? [{ name, path, sizeBytes: stat.size, usedMs: stat.mtimeMs }] : [];
  });
}

/** The images in the folder, the least recently used first. */
export function listImages(folder: string): StoredImage[] {
  return entriesOf(folder)
    .flatMap(({ name, ...entry }) => {
      const source = IMAGE_NAME.exec(name)?.[1];
      return source === undefined ? [] : [{ ...entry, source }];
    })
    .sort((a, b) => a.usedMs - b.usedMs);
}

/** Removes the least recently used images until the rest fits, and files of interrupted writes. */
export function dropOldest(folder: string, maxTotalBytes: number): void {
  for (const { name, path, usedMs } of entriesOf(folder)) {
    if (name.endsWith('.tmp') && Date.now() - usedMs > ABANDONED_MS) rmSync(path, { force: true });
  }
  const images = listImages(folder);
  let total = images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  for (const { path, sizeBytes } of images) {
    if (total <= maxTotalBytes) return;
    rmSync(path, { force: true });
    total -= sizeBytes;
  }
}

/** Removes images of deleted models; returns the freed bytes. */
export function dropOrphans(folder: string): number {
  const living = new Set<string>();
  for (const { path } of entriesOf(join(folder, 'sources'))) {
    const record = readRecord(path);
    if (record !== null && record.paths.every((source) => existsSync(source)))
      living.add(record.contentHash.slice(0, 24));
    else rmSync(path, { force: true });
  }
  let freedBytes = 0;
  for (const { path, source, sizeBytes } of listImages(folder)) {
    if (living.has(source)) continue;
    rmSync(path, { force: true });
    freedBytes += sizeBytes;
  }
  return freedBytes;
}

function readRecord(path: string): SourceRecord | null {
  try {
    const { paths, contentHash } = JSON.parse(readFileSync(path, 'utf8')) as SourceRecord;
    return Array.isArray(paths) && typeof contentHash === 'string' ? { paths, contentHash } : null;
  } catch {
    return null;
  }
}
