import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { deserializeError, type RuvLLMError, type SerializedError } from '../../core/errors.ts';
import type { CallTransport, RemoteReply } from '../../core/remote-calls.ts';
import { connectWorker } from '../../platform/node/threads/worker-calls.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';

/** Start parameters of the thread. */
export interface MemoryWorkerData {
  readonly place: { readonly folder: string } | { readonly postgres: string };
  readonly masterKey: MasterSource;
  /** The model for static embeddings; null: none. */
  readonly modelPath: string | null;
}

/** The first message says whether the memory is open; later ones are replies and reports. */
export type MemoryWorkerMessage =
  /** `unavailable`: the server does not respond; the thread continues without a store. */
  | { readonly type: 'opened'; readonly unavailable: SerializedError | null }
  | { readonly type: 'failed'; readonly error: SerializedError }
  | { readonly type: 'report'; readonly message: string }
  | { readonly type: 'reply'; readonly reply: RemoteReply };

/**
 * Initial and maximum size in MB of each half of V8's young generation. A collection pauses for a millisecond or more; with V8's
 * default, one search in eighty is delayed by one.
 */
const YOUNG_MB = { first: 16, most: 32 };
/** V8 counts both halves plus one. */
const YOUNG_PARTS = 3;

export interface SpawnedMemory {
  readonly transport: CallTransport;
  /** Why the store is unavailable; null: it is open. */
  readonly unavailable: RuvLLMError | null;
}

/** Opens a memory in its own thread. Works only in the built package. */
export function spawnMemory(data: MemoryWorkerData, report: (message: string) => void): Promise<SpawnedMemory> {
  // V8 reads the flag when it creates the thread's heap; there is no option for it. 0 is the default.
  setFlagsFromString(`--min-semi-space-size=${YOUNG_MB.first}`);
  const worker = new Worker(new URL('./memory-worker.js', import.meta.url), {
    name: 'ruvllm-memory',
    execArgv: [],
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_PARTS * YOUNG_MB.most },
  });
  for (const event of ['online', 'exit']) worker.once(event, () => setFlagsFromString('--min-semi-space-size=0'));
  return new Promise((resolve, reject: (error: RuvLLMError) => void) => {
    const { transport, receive } = connectWorker(
      worker,
      (reason) =>
      reject(deserializeError({ code: 'io', message: `the memory thread ended: ${reason}`, data: {}, isRetryable: false })), // prettier-ignore
    );
    worker.on('message', (message: MemoryWorkerMessage) => {
      if (message.type === 'reply') receive(message.reply);
      else if (message.type === 'report') report(message.message);
      else if (message.type === 'failed') {
        reject(deserializeError(message.error));
        void worker.terminate();
      } else {
        worker.unref();
        const { unavailable } = message;
        resolve({ transport, unavailable: unavailable === null ? null : deserializeError(unavailable) });
      }
    });
  });
}
