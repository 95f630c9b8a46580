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
 * Processor time of each thread from which a start is slow enough for `auto` to make an image: that takes as long as
 * several starts from it save, and room on the disk.
 */
const SLOW_START_MS = 2000;
const MAX_TOTAL_BYTES = 20 * 2 ** 30;
/** Of the disk's free space. */
const MAX_SHARE = 0.1;

export interface RepackCacheOptions {
  /** 'auto': an image is used where there is one, and made where a start without takes long. */
  readonly choice: Exclude<RepackCacheChoice, 'off'>;
  readonly numThreads: number;
  readonly folder?: string;
  readonly maxTotalBytes?: number;
}

export const repackFolder = (): string => join(cacheFolder(), 'repacked');

/** Keeps the packed weights of the model in these files. To be made before they are opened: see `isUnchanged`. */
export function createRepackCache(
  modelPaths: readonly string[],
  { choice, numThreads, folder = repackFolder(), maxTotalBytes = MAX_TOTAL_BYTES }: RepackCacheOptions,
): WeightStore {
  const identity = attempt(() => identifyFiles(modelPaths));
  // A file that was replaced meanwhile is not the one whose weights are in memory.
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
    attempt(() => utimesSync(path, new Date(), new Date())); // the longest unused is the first to go
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
      // No image, or a folder that cannot be read: the model's own file has everything.
      return attempt(() => restore(range)) ?? false;
    },
    save(range) {
      // A full disk or a folder that cannot be written: the next start is as slow as this one was.
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
