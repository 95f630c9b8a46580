// A whole memory on disk, small enough to be killed often: graphs from 40 vectors on, saved every 60 changes, segments of a few entries.
import { createHash, randomBytes } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createRandom } from '../../../core/random.ts';
import { createUuidV7 } from '../../../core/uuid.ts';
import { createReferencePackFactory } from '../../../kernels/reference/reference-pack.ts';
import type { MemoryServices } from '../../../memory/common/services.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import {
  type BlockFile,
  createVectorIndex,
  openVectorIndex,
  type VectorIndexOptions,
} from '../../../memory/vector-index/index.ts';
import { openAuditLog, type AuditLog } from '../../../memory/audit/index.ts';
import type { Files } from '../sealing/atomic-files.ts';
import { openArchiveFiles } from './archive-files.ts';
import { openIndexFiles } from './index-files.ts';
import type { MemoryFolder } from './memory-folder.ts';
import {
  openMemoryStore,
  type MemoryStoreFolderOptions,
  type OpenedMemoryStore,
} from '../../../node/memory/open-memory-store.ts';

export const DIM = 6;
export const SPACE = 'space';
/** What the audit log may keep in the store before it is archived. */
const MAX_LIVE_BYTES = 12_000;
const GRAPH_FROM = 40;

export interface WholeMemory extends OpenedMemoryStore {
  readonly audit: AuditLog;
  close(): Promise<void>;
}

export interface WholeMemoryOptions extends Partial<MemoryStoreFolderOptions> {
  readonly folder: string;
  /** Around each save of an index and each write of a segment: those are where it shall be killed, too. */
  readonly onStep?: (step: 'save' | 'saved' | 'archive' | 'archived') => void;
  /** Hears whether an index that was loaded had been saved as a graph. */
  readonly onLoad?: (hasGraph: boolean) => void;
  /** Changes after which an index is saved. */
  readonly saveIndexEvery?: number;
}

/** A direction that no other seed has. */
export function seededVector(seed: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: DIM }, () => random.next() * 2 - 1);
}

/** The store, its indexes in files, and the audit log with its archive, all in one folder. */
export async function openWholeMemory(options: WholeMemoryOptions): Promise<WholeMemory> {
  const { folder, files = nodeFiles, onStep = () => {}, onLoad = () => {}, ...rest } = options;
  const indexOptions = (dim: number): VectorIndexOptions => ({
    kernels: createReferencePackFactory(),
    dim,
    storage: 'int8',
    graphFrom: GRAPH_FROM,
    m: 8,
    efConstruction: 32,
  });
  const indexes = async () => ({
    create: (dim: number) => createVectorIndex(indexOptions(dim)),
    open: (dim: number, file: BlockFile) => openVectorIndex(indexOptions(dim), file),
  });
  let opened: MemoryFolder | null = null;
  const memory = openMemoryStore({
    masterKey: { key: new Uint8Array(32).fill(7) },
    saveIndexEvery: 60,
    ...rest,
    folder,
    files,
    createIndex: (dim) => createVectorIndex(indexOptions(dim)),
    openIndexFiles(memoryFolder) {
      opened = memoryFolder;
      const inner = openIndexFiles({ folder, files, sealingKeyOf: memoryFolder.sealingKeyOf, indexes });
      return {
        ...inner,
        async load(set) {
          const loaded = await inner.load(set);
          if (loaded !== null) onLoad(loaded.index.hasGraph);
          return loaded;
        },
        async save(set, index, seq) {
          onStep('save');
          await inner.save(set, index, seq);
          onStep('saved');
        },
      };
    },
  });
  try {
    const audit = await openAudit(memory.store, folder, files, opened!, onStep);
    return {
      ...memory,
      audit,
      async close() {
        await audit.close().finally(() => memory.store.close());
      },
    };
  } catch (error) {
    await memory.store.close();
    throw error;
  }
}

function openAudit(
  store: MemoryStore,
  folder: string,
  files: Files,
  { keys }: MemoryFolder,
  onStep: NonNullable<WholeMemoryOptions['onStep']>,
): Promise<AuditLog> {
  const archive = openArchiveFiles(files, folder, keys);
  const services: MemoryServices = {
    now: Date.now,
    newId: createUuidV7({ now: Date.now, randomBytes }),
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  };
  return openAuditLog({
    store,
    services,
    schedule(task, delayMs) {
      const timer = setTimeout(task, delayMs).unref();
      return () => clearTimeout(timer);
    },
    archive: {
      ...archive,
      async write(name, bytes, tenant) {
        onStep('archive');
        await archive.write(name, bytes, tenant);
        onStep('archived');
      },
      gzip: async (bytes) => gzipSync(bytes),
      gunzip: async (bytes, maxBytes) => gunzipSync(bytes, { maxOutputLength: Math.max(1, maxBytes) }),
    },
    retention: { maxBytes: MAX_LIVE_BYTES },
    log: { batchEntries: 10, batchMs: 5, numSimilar: 0 },
  });
}
