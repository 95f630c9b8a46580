import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { deserializeError, RuvLLMError, type SerializedError } from '../../core/errors.ts';
import { raceAbort } from '../../core/abort.ts';
import type { PreparedGrammar, PrepareGrammar } from '../../runtime/generation.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import { startComputeDeadline } from '../../platform/node/process/compute-deadline.ts';

export interface GrammarPreparerOptions {
  /** Starts a thread that sends `ready`, then a `PreparerAnswer` per text. Default: the built grammar-worker.js. */
  readonly spawn?: () => Worker;
  /** Compute time of one grammar in milliseconds; then its thread is terminated. Default 5 000, enough for cold code. */
  readonly deadlineMs?: number;
  /** Maximum queued grammars. Default 256. */
  readonly maxWaiting?: number;
  /** Idle milliseconds after which the thread is ended. Default 30 000. */
  readonly idleMs?: number;
  /** Cache size for automata, in bytes. Default 32 MiB. */
  readonly cacheBytes?: number;
}

/** `isSlow`: the grammar takes long in the engine, too. */
export type PreparerAnswer =
  { readonly automata: Int32Array; readonly isSlow: boolean } | { readonly error: SerializedError };

type Compiled = Exclude<PreparerAnswer, { readonly error: SerializedError }>;

interface Job {
  readonly key: string;
  readonly text: string;
  /** Waiting requests by tenant; a job without any is not started. */
  readonly waiting: Map<string, number>;
  settle(answer: PreparerAnswer): void;
  readonly result: Promise<Compiled>;
}

/** Heap of the thread: a grammar of 3 million steps takes some 50 MB. */
const MEMORY_MB = 256;
const MAX_REFUSALS = 256;
/** Overhead of a cache entry. */
const ENTRY_BYTES = 512;

function spawnWorker(): Worker {
  return new Worker(new URL('./grammar-worker.js', import.meta.url), {
    name: 'ruvllm-grammar',
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, stackSizeMb: 4 },
  });
}

/** Compiles grammars one by one in a thread, which is terminated if one takes too long. */
export function createGrammarPreparer(options: GrammarPreparerOptions = {}): PrepareGrammar {
  const { spawn = spawnWorker, deadlineMs = 5_000, maxWaiting = 256, idleMs = 30_000, cacheBytes = 32 << 20 } = options;
  const known = new Map<string, Compiled>();
  /** Refused grammars: they would take as long again. Other failures may pass. */
  const refused = new Map<string, SerializedError>();
  const jobs = new Map<string, Job>(); // in order of arrival
  /** The last turn of each tenant: tenants take turns, however many grammars they send. */
  const turns = new Map<string, number>();
  let numTurns = 0;
  let knownBytes = 0;
  let thread: { readonly worker: Worker; isReady: boolean } | null = null;
  let current: Job | null = null;
  let cancelTimer = (): void => {};

  function keep(key: string, compiled: Compiled): void {
    known.set(key, compiled);
    knownBytes += compiled.automata.byteLength + ENTRY_BYTES;
    for (const [oldest, { automata }] of known) {
      if (knownBytes <= cacheBytes) break;
      known.delete(oldest);
      knownBytes -= automata.byteLength + ENTRY_BYTES;
    }
  }

  function keepRefusal(key: string, error: SerializedError): void {
    if (refused.size >= MAX_REFUSALS) refused.delete(refused.keys().next().value!);
    refused.set(key, error);
  }

  function endThread(): void {
    const ended = thread;
    thread = null;
    cancelTimer();
    void ended?.worker.terminate();
  }

  function finish(answer: PreparerAnswer): void {
    const job = current;
    current = null;
    cancelTimer();
    if (job === null) return;
    jobs.delete(job.key);
    if ('automata' in answer) keep(job.key, answer);
    job.settle(answer);
    next();
  }

  function fail(error: RuvLLMError): void {
    endThread();
    const { code, message, data, isRetryable } = error;
    finish({ error: { code, message, data, isRetryable } });
  }

  function startThread(): void {
    const worker = spawn();
    const own = { worker, isReady: false };
    thread = own;
    worker.on('message', (message: PreparerAnswer | 'ready') => {
      if (thread !== own) return; // from a terminated thread
      if (message !== 'ready') {
        if ('error' in message && current !== null) keepRefusal(current.key, message.error);
        return finish(message);
      }
      own.isReady = true;
      begin();
    });
    worker.on('error', (error: Error & { code?: string }) => {
      if (thread === own) fail(describeLoss(error));
    });
    worker.on('exit', (exitCode) => {
      if (thread === own) fail(new RuvLLMError('internal', `the grammar thread exited with code ${exitCode}`));
    });
  }

  function next(): void {
    if (current !== null) return;
    current = takeTurn();
    if (current === null) return rest();
    if (thread === null) startThread();
    thread!.worker.ref();
    cancelTimer();
    if (thread!.isReady) begin();
  }

  /** The first job of the tenant that has waited longest for its turn. */
  function takeTurn(): Job | null {
    let [first, tenant, turn]: [Job | null, string, number] = [null, '', Infinity];
    for (const job of jobs.values()) {
      if (job.waiting.size === 0) jobs.delete(job.key);
      for (const name of job.waiting.keys()) {
        const last = turns.get(name) ?? -1;
        if (last < turn) [first, tenant, turn] = [job, name, last];
      }
    }
    if (first !== null) turns.set(tenant, numTurns++);
    return first;
  }

  /** Starts the deadline only when the thread is ready. */
  function begin(): void {
    if (current === null) return;
    cancelTimer = startComputeDeadline(deadlineMs, () => fail(tooLong(deadlineMs)));
    thread!.worker.postMessage(current.text);
  }

  function rest(): void {
    turns.clear();
    thread?.worker.unref();
    cancelTimer();
    const idle = setTimeout(endThread, idleMs).unref();
    cancelTimer = () => clearTimeout(idle);
  }

  function enqueue(key: string, text: string): Job {
    if (jobs.size > maxWaiting) {
      const message = `the queue of ${maxWaiting} grammars is full`;
      throw new RuvLLMError('overloaded', message, { data: { limit: maxWaiting }, isRetryable: true });
    }
    let settle: Job['settle'] = () => {};
    const result = new Promise<Compiled>((resolve, reject) => {
      settle = (answer) => ('automata' in answer ? resolve(answer) : reject(deserializeError(answer.error)));
    });
    result.catch(() => {}); // all callers may have left
    const job: Job = { key, text, waiting: new Map(), settle, result };
    jobs.set(key, job);
    return job;
  }

  return async (source, { tenant, signal }) => {
    const text = writeSource(source);
    const key = createHash('sha256').update(text).digest('base64');
    const found = known.get(key);
    if (found !== undefined) {
      known.delete(key);
      known.set(key, found);
      return toPrepared(found, text);
    }
    const refusal = refused.get(key);
    if (refusal !== undefined) throw deserializeError(refusal);
    const job = jobs.get(key) ?? enqueue(key, text);
    const count = (more: number): void => {
      const numWaiting = (job.waiting.get(tenant) ?? 0) + more;
      if (numWaiting === 0) job.waiting.delete(tenant);
      else job.waiting.set(tenant, numWaiting);
    };
    count(1);
    next();
    try {
      return toPrepared(await raceAbort(job.result, signal), text);
    } finally {
      count(-1);
    }
  };
}

const toPrepared = ({ automata, isSlow }: Compiled, text: string): PreparedGrammar => ({
  automata,
  slowText: isSlow ? text : null,
});

/** Sent as text, because cloning deeply nested data overflows the stack, and that cannot be caught. */
function writeSource(source: GrammarSource): string {
  try {
    return JSON.stringify(source);
  } catch (cause) {
    const reason = cause instanceof RangeError ? 'nested too deeply' : 'not plain JSON';
    throw new RuvLLMError('invalid_option', `grammar: ${reason}`, { cause, data: { option: 'grammar' } });
  }
}

function tooLong(deadlineMs: number): RuvLLMError {
  return new RuvLLMError('unsupported', `grammar: compiling it takes longer than ${deadlineMs} ms`, {
    data: { reason: 'deadline', limit: deadlineMs },
  });
}

function describeLoss(cause: Error & { code?: string }): RuvLLMError {
  if (cause.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new RuvLLMError('unsupported', `grammar: compiling it takes more than ${MEMORY_MB} MB`, {
      cause,
      data: { reason: 'memory', limit: MEMORY_MB },
    });
  }
  return new RuvLLMError('internal', `the grammar thread failed: ${cause.message}`, { cause });
}
