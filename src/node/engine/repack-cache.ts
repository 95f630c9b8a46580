import { mkdirSync, rmSync, statfsSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import type { RepackCacheChoice } from '../../engine/protocol.ts';
import type { WeightRange, WeightStore } from '../../models/weight-store.ts';
import {
  hashFiles,
  identifyFiles,
  readSourceRecord,
  writeSourceRecord,
} from '../../platform/node/files/content-identity.ts';
import { cacheFolder } from '../../platform/node/files/paths.ts';
import { dropOldest, listImages } from './repack-folder.ts';
import { imageBytes, imageName, readImage, writeImage } from './repack-image.ts';

/**
 * CPU time per thread above which `auto` writes an image: writing takes as long as several starts from it save, and disk
 * space.
 */
const SLOW_START_MS = 2000;
const MAX_TOTAL_BYTES = 20 * 2 ** 30;
/** Share of the free disk space. */
const MAX_SHARE = 0.1;

export interface RepackCacheOptions {
  /** 'auto': uses an existing image, and writes one if the start was slow. */
  readonly choice: Exclude<RepackCacheChoice, 'off'>;
  readonly numThreads: number;
  readonly folder?: string;
  readonly maxTotalBytes?: number;
}

export const repackFolder = (): string => join(cacheFolder(), 'repacked');

/** Caches the packed weights of these model files. Create it before they are opened: see `isUnchanged`. */
export function createRepackCache(
  modelPaths: readonly string[],
  { choice, numThreads, folder = repackFolder(), maxTotalBytes = MAX_TOTAL_BYTES }: RepackCacheOptions,
): WeightStore {
  const identity = attempt(() => identifyFiles(modelPaths));
  // The weights in memory are not from a file that was replaced meanwhile.
  const isUnchanged = (): boolean => identifyFiles(modelPaths).digest === identity?.digest;
  let start = process.cpuUsage();
  const pathOf = (range: WeightRange, contentHash: string): string => join(folder, imageName(range, contentHash));

  function restore(range: WeightRange): boolean {
    if (identity === null || !isUnchanged()) return false;
    const record = readSourceRecord(folder, identity.digest);
    if (record === null) return false;
    const path = pathOf(range, record.contentHash);
    if (!readImage(path, range, record.contentHash)) {
      rmSync(path, { force: true });
      return false;
    }
    attempt(() => utimesSync(path, new Date(), new Date())); // images are deleted by last use
    return true;
  }

  function save(range: WeightRange): void {
    if (identity === null) return;
    const { user, system } = process.cpuUsage(start);
    if (choice === 'auto' && (user + system) / 1000 < SLOW_START_MS * numThreads) return;
    mkdirSync(folder, { recursive: true });
    const { bavail, bsize } = statfsSync(folder);
    const total = listImages(folder).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const bound = Math.min(maxTotalBytes, (bavail * bsize + total) * MAX_SHARE);
    if (imageBytes(range) > bound) return;
    const known = readSourceRecord(folder, identity.digest);
    const contentHash = known?.contentHash ?? hashFiles(identity.paths);
    if (!isUnchanged()) return;
    dropOldest(folder, bound - imageBytes(range));
    writeImage(pathOf(range, contentHash), range, contentHash);
    if (known === null) writeSourceRecord(folder, identity.digest, { paths: identity.paths, contentHash });
  }

  return {
    restore(range) {
      start = process.cpuUsage();
      // Without a readable image, the model file is used.
      return attempt(() => restore(range)) ?? false;
    },
    save(range) {
      // Disk full or not writable: the next start is as slow as this one.
      attempt(() => save(range));
    },
  };
}

function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}
