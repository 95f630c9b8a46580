import { type Clock, within } from '../../core/clock.ts';
import { RuvLLMError, serializeError } from '../../core/errors.ts';
import { abortError, linkAbort, onAbort } from '../../core/abort.ts';
import { samplingOf } from '../../sampling/generate-params.ts';
import type { Tokenizer } from '../../tokenizers/types.ts';
import type { RequestMemory } from '../memory/request-memory.ts';
import { observeStream, type StreamObserver } from '../observe-stream.ts';
import type { SecondOpinions } from '../quality/second-opinions.ts';
import type { RouteSummary, Routing } from '../routing/types.ts';
import { withAdapterFile } from './adapter-file.ts';
import { adapterWishOption } from '../adapters.ts';
import { type AdapterScales, adaptersOfLease } from './adapter-scales.ts';
import type { Admission } from './admission.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import { type Backend, createLocalBackend } from './backend.ts';
import type { RequestCaller, TraceContext } from './caller.ts';
import type { TokenProgress } from '../generation-types.ts';
import { countPromptTokens, type GenerationCaller } from './generate-answers.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { RequestLimits } from './limits.ts';
import type { LiveRequests } from './live-requests.ts';
import type { ModelHost } from './model-host.ts';
import { rememberRequest, type RememberedRequest, type RequestIdentity } from './remember-request.ts';
import type { RequestMeter } from './request-meter.ts';
import { routeRequest, turnsOf } from './route-request.ts';
import { operationOf, startRequestSpan, traceAnswer, traceMemory, type Tracer } from './tracing.ts';

/** The one way from a request to tokens, for the library, the CLI and every wire format. */
export interface RequestPipeline {
  /** Resolves when the first event is there, or after `firstEventMs`; errors before that are thrown here. */
  start(request: GenerationRequest, caller: RequestCaller): Promise<RunningRequest>;
  /** Number of tokens in the prompt, without generating. Prompts longer than the context are counted too. */
  countTokens(request: GenerationRequest, caller: RequestCaller): Promise<number>;
}

/** A request that is admitted and has a loaded backend. */
export interface RunningRequest {
  readonly modelId: string;
  /** Name of the kernels, for clients that compare answers. */
  readonly kernels: string;
  readonly tokenizer: Tokenizer;
  /** As used, if no router chose it. */
  readonly sampling: { readonly temperature: number; readonly topP: number };
  /** Number of tokens in the first prompt; rejects if the request ends before it is tokenized. */
  readonly promptTokens: Promise<number>;
  /** Readable once. Call `abort` unless you read to the end. */
  readonly events: AsyncIterable<AnswerChunk>;
  /** Hashes of the first prompt's pages, once its first token is there; null: not known. */
  promptBlocks(): readonly string[] | null;
  /** Memories in the prompt. */
  readonly sources: RememberedRequest['sources'];
  /** The result of recall; null: not requested. */
  readonly recall: RememberedRequest['recall'];
  /** The router's decision; null if the request named a model. */
  readonly route: RouteSummary | null;
  /** Whether it was cancelled because its data is erased; nothing of it may be stored. */
  isErased(): boolean;
  /** Ends the sequences and frees their pages. Has no effect once they have ended. */
  abort(): void;
}

export interface RequestPipelineOptions {
  readonly models: ModelHost;
  readonly admission: Admission;
  readonly limits: RequestLimits;
  readonly meters: { openRequest(operation: string): RequestMeter };
  readonly live: LiveRequests;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Recalls context and writes the audit log; null to do neither. */
  readonly memory: RequestMemory | null;
  /** Chooses the backend of requests for its alias; null if every request must name a model. */
  readonly routing: Routing | null;
  /** Adapters of requests that choose none. Default: none. */
  readonly adapterScales?: AdapterScales;
  /** Further answers for the estimate of an answer's quality. Default: none. */
  readonly opinions?: SecondOpinions | null;
}

/** A request with a backend that has started on it. */
interface StartedAnswer {
  readonly backend: Backend;
  readonly recalled: RememberedRequest;
  readonly events: AsyncGenerator<AnswerChunk, void, undefined>;
  readonly observers: readonly StreamObserver<AnswerChunk>[];
  readonly route: RunningRequest['route'];
}

export function createRequestPipeline(options: RequestPipelineOptions): RequestPipeline {
  const { models, admission, limits, clock, tracer, memory, routing, adapterScales, opinions = null } = options;

  const remember = (request: GenerationRequest, identity: RequestIdentity, trace: TraceContext | null) => {
    const recall = () => rememberRequest(memory, request, identity, clock.now);
    return memory === null ? recall() : traceMemory(tracer, trace, recall);
  };

  /** Recall and generate with the model that the request names. */
  async function answerNamed(
    request: GenerationRequest,
    caller: RequestCaller,
    call: GenerationCaller,
  ): Promise<StartedAnswer> {
    const lease = await models.acquire(request.model, {
      signal: call.signal,
      waitMs: limits.modelWaitMs,
      tenant: caller.tenant,
    });
    const backend = createLocalBackend(lease, limits, adapterScales);
    try {
      const identity = {
        tenant: caller.tenant,
        requestId: caller.requestId,
        modelId: lease.id,
        adapter: adapterWishOption(adaptersOfLease(lease, adapterScales) ?? undefined, 'adapter')?.[0]?.name ?? null,
        model: lease.model,
        opinions,
      };
      const adapted = await withAdapterFile(request, lease.model);
      const recalled = await remember(adapted, identity, call.trace ?? null);
      return { backend, recalled, events: backend.run(recalled.request, call), observers: [], route: null };
    } catch (error) {
      backend.release();
      throw error;
    }
  }

  /** Recall, route, and generate with the backend that the router chose. */
  async function answerRouted(
    router: Routing,
    request: GenerationRequest,
    { tenant, requestId }: RequestCaller,
    call: GenerationCaller,
  ): Promise<StartedAnswer> {
    // The model is chosen after recall, because the router looks at what was found: the default one counts.
    const counting = models.find(modelForCounting(request.model, router))?.model ?? null;
    const identity = { tenant, requestId, opinions, modelId: request.model, isRouted: true, near: router.nearQuery(tenant), model: counting?.isLoaded() === true ? counting : null }; // prettier-ignore
    const recalling = remember(request, identity, call.trace ?? null);
    router.foresee(tenant, turnsOf(request)); // computes features while the memory's thread searches
    const recalled = await recalling;
    try {
      const { backend, choice, events, observer } = await routeRequest(
        { routing: router, models, limits, clock, ...(adapterScales === undefined ? {} : { adapterScales }) },
        request,
        recalled,
        call,
      );
      const { confidence, contextSize, sampling } = choice;
      const route = { candidate: choice.candidate.id, reason: choice.why.kind, confidence, contextSize, sampling };
      return { backend, recalled, events, observers: [observer], route };
    } catch (error) {
      recalled.observer?.onEnd(error);
      throw error;
    }
  }

  return {
    async start(request, caller) {
      const run = openRun(options, request, caller, admission.enter(caller.tenant));
      try {
        const isRouted = routing !== null && request.model === routing.config.alias;
        const answer = await (isRouted
          ? answerRouted(routing, request, caller, run.call)
          : answerNamed(request, caller, run.call));
        return await run.stream(answer);
      } catch (error) {
        run.end(error);
        throw error;
      }
    },
    async countTokens(request, caller) {
      const leave = admission.enter(caller.tenant);
      try {
        const name = routing === null ? request.model : modelForCounting(request.model, routing);
        const { signal, tenant } = caller;
        const lease = await models.acquire(name, { signal, waitMs: limits.modelWaitMs, tenant });
        try {
          return await countPromptTokens(lease.model, request, limits, caller);
        } finally {
          lease.release();
        }
      } finally {
        leave();
      }
    },
  };
}

/** Tokens are counted before a decision: by the safe default, or else the first local candidate. */
function modelForCounting(name: string, { config }: Routing): string {
  if (name !== config.alias) return name;
  const order = [config.candidates[config.safeDefault]!, ...config.candidates];
  return order.flatMap((candidate) => (candidate.kind === 'remote' ? [] : [candidate.model]))[0] ?? name;
}

/** One instance for all: most requests end with their prompt read, and each would build an exception with its own stack. */
const PROMPT_UNREAD = new RuvLLMError('aborted', 'the request ended before its prompt was read');

/** Everything that follows one request from admission to its end: signal, meter, live view, trace. */
function openRun(
  { limits, meters, live, clock, tracer }: RequestPipelineOptions,
  request: GenerationRequest,
  caller: RequestCaller,
  leave: () => void,
) {
  const { tenant, requestId } = caller;
  const abortion = linkAbort(caller.signal);
  const prompt = createPromise<number>();
  const meter = meters.openRequest(operationOf(request));
  const userId = request.options.user ?? null;
  const entry = live.open({ id: requestId, tenant, userId, asked: request.model, abort: abortion.abort }, meter);
  const span = startRequestSpan(tracer, request, caller);
  let backend: Backend | null = null;
  let promptBlocks: readonly string[] | null = null;

  let unsubscribe = (): void => {};

  function close(): void {
    unsubscribe();
    prompt.reject(PROMPT_UNREAD);
    abortion.unlink();
    entry.end();
    backend?.release();
    leave();
  }

  return {
    call: {
      tenant,
      signal: abortion.signal,
      trace: span.context,
      ...(caller.priority === undefined ? {} : { priority: caller.priority }),
      onPrompt(numTokens: number) {
        prompt.resolve(numTokens);
        meter.prompt(numTokens);
      },
      onToken(choice: number, progress: TokenProgress) {
        if (choice === 0) promptBlocks ??= progress.promptBlocks ?? null;
        meter.token(choice, progress);
      },
    } satisfies GenerationCaller,
    /** Ends a request that failed before its events could be read. */
    end(error: unknown) {
      if (backend === null) span.end(serializeError(error).code); // otherwise the observers have ended it
      close();
    },
    /** Hands the events to the caller, after the first one or `firstEventMs`. */
    async stream(answer: StartedAnswer): Promise<RunningRequest> {
      const { recalled, route } = answer;
      backend = answer.backend;
      entry.serve(backend.id);
      meter.serve(backend.id);
      const observers = [recalled.observer, ...answer.observers, meter, traceAnswer(span, backend.id)].filter(
        (one) => one !== null,
      );
      let numOpen = request.prompts.length * request.numChoices;
      const isLast = ({ finishReason }: AnswerChunk): boolean => finishReason !== null && --numOpen === 0;
      const events = observeStream(answer.events, isLast, observers);
      const first = events.next();
      first.catch(prompt.reject); // awaited below, or by the reader of the events
      await within(clock, limits.firstEventMs, first);
      const abort = (): void => {
        abortion.abort();
        events.return().catch(() => {}); // a generator that waits at its last event would never call its observers
        close();
      };
      // A client that leaves before its response starts neither reads nor cancels it.
      unsubscribe = onAbort(caller.signal, abort);
      return {
        modelId: backend.id,
        kernels: backend.kernels,
        tokenizer: backend.tokenizer,
        sampling: samplingOf(request.options, backend.sampling),
        promptTokens: prompt.promise,
        events: withFirst(first, events, caller.signal, { close, abort }),
        promptBlocks: () => promptBlocks,
        sources: recalled.sources,
        recall: recalled.recall,
        route,
        isErased: () => entry.isErased,
        abort,
      };
    },
  };
}

/** A promise with its ends. A rejection without a listener is not reported as unhandled. */
function createPromise<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((...ends) => ([resolve, reject] = ends));
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** The events, beginning with the one that was already requested. */
async function* withFirst<T>(
  first: Promise<IteratorResult<T, void>>,
  rest: AsyncIterator<T, void, undefined>,
  signal: AbortSignal,
  end: { close(): void; abort(): void },
): AsyncGenerator<T, void, undefined> {
  let isAtEnd = false;
  try {
    for (let next = await first; next.done !== true; next = await rest.next()) {
      yield next.value;
      // The events have ended while the reader was busy; it must not take that for the end of the answer.
      if (signal.aborted) throw abortError(signal);
    }
    isAtEnd = true;
  } finally {
    // Nothing is left to abort after the last event, and firing a signal costs 0.1 ms.
    if (isAtEnd) end.close();
    else end.abort();
  }
}
