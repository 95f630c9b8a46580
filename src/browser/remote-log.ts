import { createRemote, type MethodList } from '../core/remote-calls.ts';
import type { StoreLog } from '../memory/store/logged/logged-store.ts';
import { connectWorker } from '../platform/browser/threads/worker-calls.ts';

/** A sealed log in a worker; writes return its size. */
export interface RemoteLog {
  open(
    folder: string,
    name: string,
    key: CryptoKey,
  ): Promise<{ records: readonly Uint8Array[]; sizeBytes: number; numDamaged: number }>;
  append(entry: Uint8Array): Promise<number>;
  rewrite(entries: readonly Uint8Array[]): Promise<number>;
  close(): Promise<void>;
}

export const LOG_METHODS: MethodList<RemoteLog> = { open: true, append: true, rewrite: true, close: true };

/** Opens a sealed log in a worker of its own. */
export async function openRemoteLog(
  folder: string,
  name: string,
  key: CryptoKey,
): Promise<{ readonly log: StoreLog; readonly records: readonly Uint8Array[]; readonly numDamaged: number }> {
  const worker = new Worker(new URL('./log-worker.js', import.meta.url), { type: 'module', name: 'ruvllm-log' });
  const { object, end } = createRemote<RemoteLog>(connectWorker(worker), LOG_METHODS, { name });
  try {
    const { records, numDamaged, ...opened } = await object.open(folder, name, key);
    let { sizeBytes } = opened;
    return {
      records,
      numDamaged,
      log: {
        get sizeBytes() {
          return sizeBytes;
        },
        async append(entry) {
          sizeBytes = await object.append(entry);
        },
        async rewrite(entries) {
          sizeBytes = await object.rewrite(entries);
        },
        async close() {
          await object.close();
          await end();
        },
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
