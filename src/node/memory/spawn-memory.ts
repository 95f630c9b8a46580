import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { deserializeError, type RuvLLMError, type SerializedError } from '../../core/errors.ts';
import type { CallTransport, RemoteReply } from '../../core/remote-calls.ts';
import { connectWorker } from '../../platform/node/threads/worker-calls.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';

/** What the thread is told when it starts. */
export interface MemoryWorkerData {
  readonly place: { readonly folder: string } | { readonly postgres: string };
  readonly masterKey: MasterSource;
  /** The model whose token rows make vectors of texts; null: none. */
  readonly modelPath: string | null;
}

/** The first message says whether the memory is open; what comes later are replies, and words for the operator. */
export type MemoryWorkerMessage =
  /** `unavailable`: nobody answers where the memory should be; the thread goes on without it. */
  | { readonly type: 'opened'; readonly unavailable: SerializedError | null }
  | { readonly type: 'failed'; readonly error: SerializedError }
  | { readonly type: 'report'; readonly message: string }
  | { readonly type: 'reply'; readonly reply: RemoteReply };

/**
 * Megabytes for what searches and writes throw away, of each of V8's two halves: what it starts with, and how far it goes in use. A
 * collection is a pause of a millisecond or more, and with V8's own first megabytes one search in eighty meets one.
 */
const YOUNG_MB = { first: 16, most: 32 };
/** V8 counts both halves and one more. */
const YOUNG_PARTS = 3;

export interface SpawnedMemory {
  readonly transport: CallTransport;
  /** Why there is no store behind it, but all the rest. */
  readonly unavailable: RuvLLMError | null;
}

/** Opens a memory in a thread of its own; rejects with why it cannot be opened. Runs from the built package only. */
export function spawnMemory(data: MemoryWorkerData, report: (message: string) => void): Promise<SpawnedMemory> {
  // Read when the thread's heap is made, and there is no other way to tell it; 0 is V8's own.
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
      reject(deserializeError({ code: 'io', message: `the memory's thread ended: ${reason}`, data: {}, isRetryable: false })), // prettier-ignore
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
