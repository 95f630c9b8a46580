import { RuvLLMError } from '../core/errors.ts';
import type { RequestMemory } from '../runtime/memory/request-memory.ts';
import type { Routing } from '../runtime/routing/types.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import { type Answerer, createLocalAnswerer } from './answerer.ts';
import type { Caller } from './caller.ts';
import { type Clock, within } from './clock.ts';
import { describeFailure } from './errors.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';
import type { ServerLimits } from './limits.ts';
import { linkAbort } from './linked-abort.ts';
import type { LiveRequests } from './live/live-requests.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { ModelHost } from './model-host.ts';
import type { RequestLog } from './request-log.ts';
import { rememberJob, type RememberedJob } from './remember-job.ts';
import { type RoutedJob, routeJob, turnsOf } from './route-job.ts';
import { countPromptTokens, type JobCaller } from './run-job.ts';
import type { TenantGate } from './tenant-gate.ts';
import { type Span, startJobSpan, traceJob, type Tracer } from './tracing.ts';

/** A job that is admitted, on a loaded model, and past its first chance to fail. */
export interface RunningJob {
  readonly modelId: string;
  /** What computes, for clients that compare answers. */
  readonly kernels: string;
  readonly tokenizer: Tokenizer;
  /** How many tokens the first prompt has; fails when the job ends before that is known. */
  readonly promptTokens: Promise<number>;
  /** To be read once; whoever does not read to the end calls `abort`. */
  readonly events: AsyncIterable<JobEvent>;
  /** What of the memory is in the prompt. */
  readonly sources: RememberedJob['sources'];
  /** Who was chosen and why; null: the client named the model. */
  readonly route: { readonly candidate: string; readonly reason: string } | null;
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
  readonly live: LiveRequests;
  readonly requests: RequestLog;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Where requests are written down, and what they may recall; null: nowhere. */
  readonly requestMemory: RequestMemory | null;
  /** Who chooses where a client names no model; null: nobody. */
  readonly routing: Routing | null;
}

/** One for all: most jobs end with their prompt read, and each would make an exception with a stack of its own. */
const UNREAD = new RuvLLMError('aborted', 'the job ended before its prompt was read');

export function createGenerationService(options: GenerationServiceOptions): GenerationService {
  const { models, gate, limits, metrics, live, requests, clock, tracer, requestMemory, routing } = options;

  /** The model that was named, or whoever is chosen in the place of one. */
  async function begin(job: GenerateJob, { requestId }: Caller, caller: JobCaller): Promise<BegunJob> {
    const { tenant, signal } = caller;
    if (routing === null || job.model !== routing.config.alias) {
      const lease = await models.acquire(job.model, { signal, waitMs: limits.modelWaitMs });
      const answerer = createLocalAnswerer(lease, limits);
      try {
        const remembered = await rememberJob(
          requestMemory,
          job,
          { tenant, requestId, modelId: lease.id, adapter: lease.adapter },
          clock.now,
        );
        return { answerer, remembered, events: answerer.run(remembered.job, caller), route: null };
      } catch (error) {
        answerer.release();
        throw error;
      }
    }
    const who = { tenant, requestId, modelId: job.model, isRouted: true, near: routing.nearQuery(tenant) };
    const remembering = rememberJob(requestMemory, job, who, clock.now);
    routing.foresee(tenant, turnsOf(job)); // while the memory's thread looks
    const remembered = await remembering;
    let routed: RoutedJob;
    try {
      routed = await routeJob({ routing, models, limits, clock }, job, remembered, caller);
    } catch (error) {
      remembered.fail(error);
      throw error;
    }
    const { answerer, choice, events } = routed;
    return { answerer, remembered, events, route: { candidate: choice.candidate.id, reason: choice.why.kind } };
  }

  async function open(job: GenerateJob, caller: Caller, span: Span, onEnd: () => void): Promise<RunningJob> {
    const { tenant, requestId } = caller;
    const own = linkAbort(caller.signal);
    const prompt = createPromise<number>();
    const meter = metrics.openJob();
    const entry = live.open({ id: requestId, tenant, asked: job.model }, meter);
    const onPrompt = (numTokens: number): void => {
      prompt.resolve(numTokens);
      meter.prompt(numTokens);
    };
    let begun: BegunJob | null = null;
    const end = (): void => {
      prompt.reject(UNREAD);
      own.unlink();
      entry.end();
      begun?.answerer.release();
      onEnd();
    };
    try {
      begun = await begin(job, caller, { tenant, signal: own.signal, onPrompt, onToken: meter.token });
    } catch (error) {
      span.end(describeFailure(error).code); // from here on the events end it
      end();
      throw error;
    }
    const { answerer, remembered, route } = begun;
    entry.serve(answerer.id);
    const events = traceJob(span, meter.observe(answerer.id, remembered.record(begun.events)));
    const first = events.next();
    first.catch(prompt.reject); // read below, or by the reader of the events
    try {
      await within(clock, limits.firstEventMs, first);
    } catch (error) {
      end();
      throw error;
    }
    requests.add({ requestId, tenant, model: answerer.id, createdMs: clock.wallClock() });
    const abort = (): void => {
      own.abort();
      events.return().catch(() => {}); // one that waits at its last event would never tell how it ended
      end();
    };
    return {
      modelId: answerer.id,
      kernels: answerer.kernels,
      tokenizer: answerer.tokenizer,
      promptTokens: prompt.promise,
      events: readOn(first, events, abort),
      sources: remembered.sources,
      route,
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
        const name = routing === null ? job.model : countedModel(job.model, routing);
        const lease = await models.acquire(name, { signal: caller.signal, waitMs: limits.modelWaitMs });
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

/** Tokens are counted before anybody chooses: by the safe default, or the first candidate that is here. */
function countedModel(name: string, { config }: Routing): string {
  if (name !== config.alias) return name;
  const order = [config.candidates[config.safeDefault]!, ...config.candidates];
  return order.flatMap((one) => (one.kind === 'remote' ? [] : [one.model]))[0] ?? name;
}

/** A job that somebody has begun to answer. */
interface BegunJob {
  readonly answerer: Answerer;
  readonly remembered: RememberedJob;
  readonly events: AsyncGenerator<JobEvent, void, undefined>;
  readonly route: RunningJob['route'];
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
