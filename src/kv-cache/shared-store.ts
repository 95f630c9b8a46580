import type { CacheNamespace } from './cache-namespace.ts';
import type { PageContent } from './page-content.ts';
import type { NamingSpace, PageTier } from './types.ts';

/** Encrypted pages in storage that several nodes use. Slow, and it may fail: nothing of it throws, rejects or blocks. */
export interface SharedStore {
  /** False while reads fail: no request should wait for one. */
  readonly canRead: boolean;
  /** False while writes fail. */
  readonly canWrite: boolean;
  /** The part of the store that belongs to one namespace. */
  open(namespace: CacheNamespace): SharedSpace;
  stats(): SharedStoreStats;
  /** Brings the storage below its limit, within a time limit, and ends what is still under way. */
  close(): Promise<void>;
}

export interface SharedSpace extends NamingSpace {
  /** Whether the page is known to be stored or is being written; asks no storage. */
  isStored(key: string): boolean;
  /** Stores a page unless it is stored already; true if it is stored now. */
  write(key: string, tier: PageTier, bytes: Uint8Array): Promise<boolean>;
  /** Null: missing, damaged, larger than `maxBytes`, or out of reach. */
  read(key: string, maxBytes: number, signal: AbortSignal): Promise<PageContent | null>;
}

/** Traffic and failures of a shared store since the start of this process. */
export interface SharedStoreStats {
  /** Pages that were read, their bytes, and the milliseconds until each was there, added up. */
  readonly numHits: number;
  readonly readBytes: number;
  readonly readMs: number;
  /** Reads that found no page. */
  readonly numMisses: number;
  /** Pages that failed verification; each was deleted. */
  readonly numCorrupt: number;
  readonly numFailedReads: number;
  readonly numWrites: number;
  readonly writtenBytes: number;
  readonly writeMs: number;
  readonly numFailedWrites: number;
  /** Pages deleted because the limit was exceeded. */
  readonly numEvictions: number;
  /** Bytes of all pages when they were last listed, and those written since; null: not listed yet. */
  readonly sizeBytes: number | null;
  readonly limitBytes: number;
  readonly lastFailure: string | null;
  /** Whether reads, or writes, are suspended after failures. */
  readonly isReadSuspended: boolean;
  readonly isWriteSuspended: boolean;
}

/** The name of a reason for `AbortSignal`: the request did not wait any longer. */
export const TOO_LATE = 'the request did not wait any longer';

/** A folder that nodes share, or a bucket of an S3-compatible storage. */
export type SharedPlace =
  | { readonly type: 'folder'; readonly path: string }
  | {
      readonly type: 's3';
      /** Without the bucket. */
      readonly endpoint: string;
      readonly region: string;
      readonly bucket: string;
      /** Of all names in the bucket; empty, or ending with a slash. */
      readonly prefix: string;
      readonly credentials: {
        readonly accessKeyId: string;
        readonly secretAccessKey: string;
        readonly sessionToken: string | null;
      };
    };
