import { RuvLLMError } from '../core/errors.ts';
import type { RequestMemory } from '../runtime/memory/request-memory.ts';
import type { Model } from '../runtime/model.ts';
import type { Caller } from './caller.ts';
import { type Clock, within } from './clock.ts';
import { describeFailure } from './errors.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';
import type { ServerLimits } from './limits.ts';
import { linkAbort } from './linked-abort.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { ModelHost, ModelLease } from './model-host.ts';
import type { RequestLog } from './request-log.ts';
import { rememberJob, type RememberedJob } from './remember-job.ts';
import { countPromptTokens, runJob } from './run-job.ts';
import type { TenantGate } from './tenant-gate.ts';
import { type Span, startJobSpan, traceJob, type Tracer } from './tracing.ts';

/** A job that is admitted, on a loaded model, and past its first chance to fail. */
export interface RunningJob {
  readonly modelId: string;
  readonly model: Model;
  /** How many tokens the first prompt has; fails when the job ends before that is known. */
  readonly promptTokens: Promise<number>;
  /** To be read once; whoever does not read to the end calls `abort`. */
  readonly events: AsyncIterable<JobEvent>;
  /** What of the memory is in the prompt. */
  readonly sources: RememberedJob['sources'];
  /** Ends the sequences and frees their pages; does nothing when they have ended. */
  abort(): void;
}

/** The one way from a request to tokens, for every wire format. */
export interface GenerationService {
  /** Admits the caller, waits for the model and starts; what is wrong with the request is thrown here where it can be. */
  start(job: GenerateJob, caller: Caller): Promise<RunningJob>;
  /** The tokens the model would read, without generating; longer than the context is no mistake here. */
  countTokens(job: GenerateJob, caller: Caller): Promise<number>;
}

export interface GenerationServiceOptions {
  readonly models: ModelHost;
  readonly gate: TenantGate;
  readonly limits: ServerLimits;
  readonly metrics: ServerMetrics;
  readonly requests: RequestLog;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Where requests are written down, and what they may recall; null: nowhere. */
  readonly requestMemory: RequestMemory | null;
}

/** One for all: most jobs end with their prompt read, and each would make an exception with a stack of its own. */
const UNREAD = new RuvLLMError('aborted', 'the job ended before its prompt was read');

export function createGenerationService(options: GenerationServiceOptions): GenerationService {
  const { models, gate, limits, metrics, requests, clock, tracer, requestMemory } = options;

  async function acquire(job: GenerateJob, { signal }: Caller, span: Span): Promise<ModelLease> {
    try {
      return await models.acquire(job.model, { signal, waitMs: limits.modelWaitMs });
    } catch (error) {
      span.end(describeFailure(error).code); // from here on the events end it
      throw error;
    }
  }

  async function open(job: GenerateJob, caller: Caller, span: Span, onEnd: () => void): Promise<RunningJob> {
    const { tenant, requestId } = caller;
    const lease = await acquire(job, caller, span);
    const own = linkAbort(caller.signal);
    const { signal } = own;
    const prompt = createPromise<number>();
    const end = (): void => {
      prompt.reject(UNREAD);
      own.unlink();
      lease.release();
      onEnd();
    };
    let remembered: RememberedJob;
    try {
      remembered = await rememberJob(
        requestMemory,
        withAdapter(job, lease),
        { tenant, requestId, modelId: lease.id },
        clock.now,
      );
    } catch (error) {
      span.end(describeFailure(error).code);
      end();
      throw error;
    }
    const running = runJob(lease.model, remembered.job, { tenant, signal, onPrompt: prompt.resolve }, limits);
    const events = traceJob(span, metrics.observe(lease.id, remembered.record(running)));
    const first = events.next();
    first.catch(prompt.reject); // read below, or by the reader of the events
    try {
      await within(clock, limits.firstEventMs, first);
    } catch (error) {
      end();
      throw error;
    }
    requests.add({ requestId, tenant, model: lease.id, createdMs: clock.wallClock() });
    const abort = (): void => {
      own.abort();
      events.return().catch(() => {}); // one that waits at its last event would never tell how it ended
      end();
    };
    return {
      modelId: lease.id,
      model: lease.model,
      promptTokens: prompt.promise,
      events: readOn(first, events, abort),
      sources: remembered.sources,
      abort,
    };
  }

  return {
    async start(job, caller) {
      const leave = gate.enter(caller.tenant);
      try {
        return await open(job, caller, startJobSpan(tracer, job, caller), leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
    async countTokens(job, caller) {
      const leave = gate.enter(caller.tenant);
      try {
        const lease = await models.acquire(job.model, { signal: caller.signal, waitMs: limits.modelWaitMs });
        try {
          return await countPromptTokens(lease.model, job, limits, caller.signal);
        } finally {
          lease.release();
        }
      } finally {
        leave();
      }
    },
  };
}

/** A model's name may say which adapter; where the request says it, too, that one wins. */
function withAdapter(job: GenerateJob, { adapter }: ModelLease): GenerateJob {
  return adapter === null ? job : { ...job, options: { adapter, ...job.options } };
}

/** A promise and its ends; a failure that nobody waits for is not unheard. */
function createPromise<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((...ends) => ([resolve, reject] = ends));
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** The events with the first one that was waited for already in front. */
async function* readOn<T>(
  first: Promise<IteratorResult<T, void>>,
  rest: AsyncIterator<T, void, undefined>,
  abort: () => void,
): AsyncGenerator<T, void, undefined> {
  try {
    for (let next = await first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    abort();
  }
}
