import type { ChatMessage } from '../../chat/types.ts';
import { within } from '../../core/clock.ts';
import { type ErrorCode, serializeError } from '../../core/errors.ts';
import { turnsOfMessages } from '../../learning/router-training/rated-routes.ts';
import { samplingOf } from '../../sampling/generate-params.ts';
import type { StreamObserver } from '../observe-stream.ts';
import { isChat } from '../prompt.ts';
import type { RouteCandidate, RouteConfig } from '../routing/route-config.ts';
import type { CandidateModel, RouteChoice, RouteQuestion, Routing } from '../routing/types.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import { type Backend, type BackendContext, estimatePromptTokens, lengthOfPrompt, openCandidate } from './backend.ts';
import { type GenerationCaller, promptOptions } from './generate-answers.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { ModelHost } from './model-host.ts';
import type { RememberedRequest } from './remember-request.ts';
import { isLocalOnly } from './remote/remote-body.ts';

/** A request with the backend that was chosen for it. */
export interface RoutedRequest {
  readonly backend: Backend;
  readonly choice: RouteChoice;
  readonly events: AsyncGenerator<AnswerChunk, void, undefined>;
  /** Reports the time to the first event to the router. */
  readonly observer: StreamObserver<AnswerChunk>;
}

export interface RouteRequestContext extends Omit<BackendContext, 'config'> {
  readonly routing: Routing;
}

/** The router's view of a request. */
export function questionOf(
  request: GenerationRequest,
  recalled: Pick<RememberedRequest, 'embedded' | 'similarities'> & Partial<Pick<RememberedRequest, 'near'>>,
  load: number,
): RouteQuestion {
  const { embedded, similarities, near = null } = recalled;
  const { temperature, topP, maxTokens = null } = request.options;
  const isOpen = request.isSamplingOpen ?? (temperature === undefined && topP === undefined);
  return {
    turns: turnsOf(request),
    embedded,
    near,
    similarities,
    isLocalOnly: isLocalOnly(request),
    load,
    sampling: { ...samplingOf(request.options), isOpen },
    numPromptTokens: estimatePromptTokens(request),
    maxTokens,
  };
}

/** A busy engine answers between two steps; a request does not wait longer than this to know what is cached. */
const PROBE_MS = 50;
const UNKNOWN: CandidateModel = { maxContext: null, promptTokens: null, cachedTokens: 0 };

/** Probes the loaded models of the candidates without loading any. Counts prompt tokens and looks them up in the prefix cache only if needed. */
export function probeCandidates(
  { models, clock }: Pick<BackendContext, 'models' | 'clock'>,
  { candidates, weights }: RouteConfig,
  request: GenerationRequest,
  { tenant, signal }: Pick<GenerationCaller, 'tenant' | 'signal'>,
): Promise<readonly CandidateModel[]> {
  const probe = async (candidate: RouteCandidate): Promise<CandidateModel> => {
    const model = candidate.kind === 'remote' ? null : (models.find(candidate.model)?.model ?? null);
    if (!model?.isLoaded()) return UNKNOWN;
    const { maxContext } = model.modelInfo();
    const loaded = { ...UNKNOWN, maxContext };
    // A token has a character or more: a prompt this short fits, however it is counted.
    const isShort = lengthOfPrompt(request) + (request.options.maxTokens ?? 1) <= maxContext;
    if (weights.perSecond === 0 && isShort) return loaded;
    const adapter = request.options.adapter ?? (candidate.kind === 'adapter' ? candidate.adapter : null);
    const looking = model.cachedTokens(request.prompts[0]!, { ...promptOptions(request), tenant, adapter, signal });
    // A prompt that cannot be read fails where it is answered.
    const probed = await within(clock, PROBE_MS, looking).catch(() => null);
    return { ...loaded, ...probed?.value };
  };
  return Promise.all(candidates.map(probe));
}

/** The text of a prompt, turn by turn; empty for token ids. */
export function turnsOf({ prompts: [prompt] }: GenerationRequest): readonly string[] {
  if (typeof prompt === 'string') return [prompt];
  return isChat(prompt!) ? turnsOfMessages(prompt as readonly ChatMessage[]) : [];
}

/** Share of the admitted requests that are in progress, 0 to 1. */
export function loadOf(models: ModelHost, maxRequests: number): number {
  return Math.min(1, models.numUsers / maxRequests);
}

/** Errors of the request itself: they say nothing about the health of the backend. */
const REQUEST_ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid_option',
  'unsupported',
  'context_overflow',
  'empty_prompt',
  'invalid_text',
  'invalid_token',
  'template_error',
]);

/**
 * Chooses a backend and, if it is remote, waits for its first event: when it fails before that, the safe default answers instead.
 * `original` is the request without recalled context, which the router must not see.
 */
export async function routeRequest(
  context: RouteRequestContext,
  original: GenerationRequest,
  recalled: RememberedRequest,
  caller: GenerationCaller,
): Promise<RoutedRequest> {
  const { routing, clock, limits, models } = context;
  const asked = questionOf(original, recalled, loadOf(models, limits.maxRequests));
  const question = {
    ...asked,
    isLocalOnly: asked.isLocalOnly || (routing.config.memoryStaysLocal && recalled.sources.length > 0),
    numPromptTokens: estimatePromptTokens(recalled.request),
    models: await probeCandidates(context, routing.config, recalled.request, caller),
  };
  let choice = await routing.decide(caller.tenant, question);
  for (;;) {
    const { candidate } = choice;
    const backend = await openCandidate({ ...context, config: routing.config }, candidate, caller.signal);
    const startMs = clock.now();
    recalled.serve({ model: backend.id, choice });
    const events = backend.run(withSampling(recalled.request, choice), caller);
    const note = (ttftMs: number | null): void => routing.note(candidate.id, ttftMs);
    if (candidate.kind !== 'remote') return { backend, choice, events, observer: onFirst(() => note(clock.now() - startMs)) }; // prettier-ignore
    try {
      const first = await events.next();
      note(clock.now() - startMs);
      return { backend, choice, events: withFirst(first, events), observer: onFirst(() => {}) };
    } catch (error) {
      backend.release();
      const { code, message } = serializeError(error);
      if (code === 'aborted') throw error;
      if (!REQUEST_ERRORS.has(code)) note(null);
      const next = routing.fallBack(choice, question, `${code}: ${code === 'internal' ? 'internal error' : message}`);
      if (next === null) throw error;
      choice = next;
    }
  }
}

/** Fills sampling options the client did not set with the router's choice. */
function withSampling(request: GenerationRequest, { sampling }: RouteChoice): GenerationRequest {
  if (sampling.source !== 'learned') return request;
  const { temperature, topP } = sampling;
  return { ...request, options: { ...request.options, temperature, topP } };
}

async function* withFirst<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  try {
    if (first.done === true) return;
    yield first.value;
    yield* rest;
  } finally {
    await rest.return();
  }
}

function onFirst(report: () => void): StreamObserver<AnswerChunk> {
  let isFirst = true;
  return {
    onEvent() {
      if (isFirst) report();
      isFirst = false;
    },
    onEnd() {},
  };
}
