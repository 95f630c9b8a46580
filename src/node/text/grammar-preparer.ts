import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { deserializeError, RuvLLMError, type SerializedError } from '../../core/errors.ts';
import { raceAbort } from '../../core/abort.ts';
import type { PrepareGrammar } from '../../runtime/generation.ts';
import type { GrammarSource } from '../../sampling/grammar/index.ts';
import { startComputeDeadline } from '../../platform/node/process/compute-deadline.ts';

export interface GrammarPreparerOptions {
  /** A thread that says `ready`, then answers each text with a `PreparerAnswer`. Default: grammar-worker.js, built. */
  readonly spawn?: () => Worker;
  /** Milliseconds of computing for one grammar; then its thread is ended. Default 2 000: code that never ran before. */
  readonly deadlineMs?: number;
  /** Grammars that wait; more are refused. Default 256. */
  readonly maxWaiting?: number;
  /** Milliseconds without work after which the thread is ended. Default 30 000. */
  readonly idleMs?: number;
  /** Bytes of automata that are kept for requests to come. Default 32 MiB. */
  readonly cacheBytes?: number;
}

export type PreparerAnswer = { readonly automata: Int32Array } | { readonly error: SerializedError };

interface Job {
  readonly key: string;
  readonly text: string;
  /** Those who wait, by tenant; a job that nobody waits for is not started. */
  readonly waiting: Map<string, number>;
  settle(answer: PreparerAnswer): void;
  readonly result: Promise<Int32Array>;
}

/** The heap of the thread: a grammar of 3 million steps takes some 50 MB. */
const MEMORY_MB = 128;
/** What a kept entry takes beside its automata. */
const ENTRY_BYTES = 512;

function spawnWorker(): Worker {
  return new Worker(new URL('./grammar-worker.js', import.meta.url), {
    name: 'ruvllm-grammar',
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, stackSizeMb: 4 },
  });
}

/** Compiles grammars one after the other in a thread that is ended when one takes too long. */
export function createGrammarPreparer(options: GrammarPreparerOptions = {}): PrepareGrammar {
  const { spawn = spawnWorker, deadlineMs = 2_000, maxWaiting = 256, idleMs = 30_000, cacheBytes = 32 << 20 } = options;
  const known = new Map<string, Int32Array>();
  const jobs = new Map<string, Job>(); // in the order they came
  /** When each tenant was served last, counted in turns: one that sends many has every other one between two of them. */
  const turns = new Map<string, number>();
  let numTurns = 0;
  let knownBytes = 0;
  let thread: { readonly worker: Worker; isReady: boolean } | null = null;
  let current: Job | null = null;
  let cancelTimer = (): void => {};

  function keep(key: string, automata: Int32Array): void {
    known.set(key, automata);
    knownBytes += automata.byteLength + ENTRY_BYTES;
    for (const [oldest, { byteLength }] of known) {
      if (knownBytes <= cacheBytes) break;
      known.delete(oldest);
      knownBytes -= byteLength + ENTRY_BYTES;
    }
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
    if ('automata' in answer) keep(job.key, answer.automata);
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
      if (thread !== own) return; // of a thread that was given up
      if (message !== 'ready') return finish(message);
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

  /** The first job of the tenant that was served longest ago, or never. */
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

  /** Not before the thread is there: its start is not the grammar's time. */
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
      const message = `${maxWaiting} grammars wait to be compiled`;
      throw new RuvLLMError('overloaded', message, { data: { limit: maxWaiting }, isRetryable: true });
    }
    let settle: Job['settle'] = () => {};
    const result = new Promise<Int32Array>((resolve, reject) => {
      settle = (answer) => ('automata' in answer ? resolve(answer.automata) : reject(deserializeError(answer.error)));
    });
    result.catch(() => {}); // those who wait may all have left
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
      return found;
    }
    const job = jobs.get(key) ?? enqueue(key, text);
    const count = (more: number): void => {
      const numWaiting = (job.waiting.get(tenant) ?? 0) + more;
      if (numWaiting === 0) job.waiting.delete(tenant);
      else job.waiting.set(tenant, numWaiting);
    };
    count(1);
    next();
    try {
      return await raceAbort(job.result, signal);
    } finally {
      count(-1);
    }
  };
}

/** Text, because a structured copy of what is nested deeply overflows the stack where nobody catches it. */
function writeSource(source: GrammarSource): string {
  try {
    return JSON.stringify(source);
  } catch (cause) {
    const reason = cause instanceof RangeError ? 'nested too deeply to write' : 'not plain JSON';
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
