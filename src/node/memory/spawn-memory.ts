import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { deserializeError, type RuvLLMError, type SerializedError } from '../../core/errors.ts';
import type { CallTransport, RemoteReply } from '../../core/remote-calls.ts';
import { connectWorker } from '../../platform/node/threads/worker-calls.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';

export interface MemoryWorkerData {
  readonly place: { readonly folder: string } | { readonly postgres: string };
  readonly masterKey: MasterSource;
  /** Whether a folder that cannot be read is replaced by a memory in this process. */
  readonly canReplace: boolean;
  /** API keys that a backup includes. */
  readonly apiKeyFolder: string;
}

/** The first message is `opened` or `failed`. */
export type MemoryWorkerMessage =
  /** `unavailable`: why the store cannot be reached; the thread runs without it. */
  | { readonly type: 'opened'; readonly unavailable: SerializedError | null }
  | { readonly type: 'failed'; readonly error: SerializedError }
  | { readonly type: 'report'; readonly message: string }
  /** Data that was lost or cannot be read. */
  | { readonly type: 'problem'; readonly message: string }
  | { readonly type: 'reply'; readonly reply: RemoteReply };

/**
 * Initial and largest size of a semi-space in MB. A collection pauses for a millisecond or more; with V8's default of 1 MB, one search in
 * eighty meets one, so with 4 about one in three hundred. An idle thread keeps two of the initial size.
 */
const YOUNG_MB = { first: 4, most: 32 };
/** V8 counts three semi-spaces. */
const YOUNG_PARTS = 3;

interface SpawnedMemory {
  readonly transport: CallTransport;
  /** Why the store cannot be reached. */
  readonly unavailable: RuvLLMError | null;
  /** What was lost or cannot be read; null: nothing known. */
  problem(): string | null;
}

/** Opens a memory in a thread of its own. Works in the built package only. */
export function spawnMemory(data: MemoryWorkerData, report: (message: string) => void): Promise<SpawnedMemory> {
  // V8 reads it when it creates the thread's heap; 0 is the default.
  setFlagsFromString(`--min-semi-space-size=${YOUNG_MB.first}`);
  const worker = new Worker(new URL('./memory-worker.js', import.meta.url), {
    name: 'ruvllm-memory',
    execArgv: [],
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_PARTS * YOUNG_MB.most },
  });
  for (const event of ['online', 'exit']) worker.once(event, () => setFlagsFromString('--min-semi-space-size=0'));
  const problems: string[] = [];
  return new Promise((resolve, reject: (error: RuvLLMError) => void) => {
    const { transport, receive } = connectWorker(
      worker,
      (reason) =>
      reject(deserializeError({ code: 'io', message: `the memory's thread ended: ${reason}`, data: {}, isRetryable: false })), // prettier-ignore
    );
    worker.on('message', (message: MemoryWorkerMessage) => {
      if (message.type === 'reply') receive(message.reply);
      else if (message.type === 'report') report(message.message);
      else if (message.type === 'problem') {
        problems.push(message.message);
        report(`data was lost or is damaged: ${message.message}`);
      } else if (message.type === 'failed') {
        reject(deserializeError(message.error));
        void worker.terminate();
      } else {
        worker.unref();
        const { unavailable } = message;
        resolve({
          transport,
          unavailable: unavailable === null ? null : deserializeError(unavailable),
          problem: () => (problems.length === 0 ? null : problems.join('; ')),
        });
      }
    });
  });
}
