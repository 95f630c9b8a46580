import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFileSink } from './file-sink.ts';
import { cacheFolder } from './paths.ts';

/** What the system says of files: when none of it has changed, neither has their content. */
export interface FileIdentity {
  readonly paths: readonly string[];
  readonly digest: string;
}

/** Where the content hash of files is remembered, so that gigabytes are hashed once and not at every start. */
export interface SourceRecord {
  readonly paths: readonly string[];
  readonly contentHash: string;
}

const READ_BYTES = 4 << 20;

export function identifyFiles(paths: readonly string[]): FileIdentity {
  const real = paths.map((path) => realpathSync(path));
  const facts = real.map((path) => {
    const { size, mtimeNs, ctimeNs, ino, dev } = statSync(path, { bigint: true });
    return [path, size, mtimeNs, ctimeNs, ino, dev].map(String);
  });
  return { paths: real, digest: createHash('sha256').update(JSON.stringify(facts)).digest('hex') };
}

/** SHA-256 of the SHA-256 of each file. */
export function hashFiles(paths: readonly string[]): string {
  const all = createHash('sha256');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (const path of paths) {
    const hash = createHash('sha256');
    const file = openSync(path, 'r');
    try {
      for (let count; (count = readSync(file, buffer, 0, READ_BYTES, null)) > 0;)
        hash.update(buffer.subarray(0, count));
    } finally {
      closeSync(file);
    }
    all.update(hash.digest());
  }
  return all.digest('hex');
}

/** The content hash of files, from the record of an earlier start where they have not changed since. */
export function rememberedContentHash(paths: readonly string[], folder = join(cacheFolder(), 'identities')): string {
  const { digest, paths: real } = identifyFiles(paths);
  const known = readSourceRecord(folder, digest);
  if (known !== null) return known.contentHash;
  const contentHash = hashFiles(real);
  try {
    writeSourceRecord(folder, digest, { paths: real, contentHash });
  } catch {
    // A folder that cannot be written: the next start hashes again.
  }
  return contentHash;
}

const recordPath = (folder: string, digest: string): string => join(folder, 'sources', `${digest}.json`);

/** A remembered content hash, or null. */
export function readSourceRecord(folder: string, digest: string): SourceRecord | null {
  try {
    const { paths, contentHash } = JSON.parse(readFileSync(recordPath(folder, digest), 'utf8')) as SourceRecord;
    const isRecord = Array.isArray(paths) && /^[0-9a-f]{64}$/.test(contentHash);
    return isRecord ? { paths, contentHash } : null;
  } catch {
    return null; // none, or half of one: it is written again
  }
}

export function writeSourceRecord(folder: string, digest: string, record: SourceRecord): void {
  const path = recordPath(folder, digest);
  mkdirSync(dirname(path), { recursive: true });
  const sink = createFileSink(path);
  try {
    sink.write(Buffer.from(JSON.stringify(record)));
    sink.commit();
  } finally {
    sink.abort();
  }
}
