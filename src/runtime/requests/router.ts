import { systemClock } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { DEFAULT_TENANT, type GenerateOptions } from '../generate-options.ts';
import { collectChunks } from '../collect-chunks.ts';
import type { GenerateResult } from '../generation-types.ts';
import type { Learning } from '../learning/learning.ts';
import { createRequestMemory } from '../memory/request-memory.ts';
import type { Model } from '../model.ts';
import type { Prompt } from '../prompt.ts';
import { readRouteConfig } from '../routing/route-config.ts';
import { createRouting } from '../routing/routing.ts';
import type { RouteSummary } from '../routing/types.ts';
import { createAdmission } from './admission.ts';
import type { GenerationRequest } from './generation-request.ts';
import { type RequestLimits, resolveRequestLimits } from './limits.ts';
import { createLiveRequests } from './live-requests.ts';
import { createModelHost } from './model-host.ts';
import { createRequestMeter } from './request-meter.ts';
import { createRequestPipeline } from './request-pipeline.ts';
import { silentTracer } from './tracing.ts';

/** Several models behind one name. */
export interface RouterOptions {
  /** Loaded models by name. They belong to the router from now on, which disposes of them. */
  readonly models: Readonly<Record<string, Model>>;
  /** Candidates, default and weights, as in the file that `ruvllm serve --route-config` reads. */
  readonly routes: object;
  /** Stores requests and the router's training; without it every request goes to the default. Default none. */
  readonly memory?: Memory | null;
  /** Learns from the requests. Default none. */
  readonly learning?: Learning | null;
  /** Values of the variables that remote candidates name as `apiKeyEnv`. Default none. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly limits?: Partial<RequestLimits>;
  /** Called with errors from background work. Default: they are dropped. */
  readonly onError?: (message: string) => void;
}

/** As for a model, and which one. */
export interface RoutedOptions extends GenerateOptions {
  /** A model's name, or the alias under which the router chooses. Default: the alias. */
  model?: string;
}

/** A finished answer of a routed request. */
export interface RoutedResult extends GenerateResult {
  /** The model or candidate that answered. */
  readonly model: string;
  /** The router's decision; null if the request named a model. */
  readonly route: RouteSummary | null;
  /** Names this request in the audit log and in feedback. */
  readonly requestId: string;
}

/** Answers requests with whichever of its models the router chooses. */
export interface Router extends AsyncDisposable {
  generate(prompt: Prompt, options?: RoutedOptions): Promise<RoutedResult>;
  /** Aborts requests in progress and disposes of the models. The memory stays open. */
  dispose(): Promise<void>;
}

const UNMETERED = {
  firstToken() {},
  interToken() {},
  promptTokens() {},
  generatedTokens() {},
  finished() {},
  unfinished() {},
};

export function createRouter(options: RouterOptions): Router {
  const { memory = null, learning = null, environment = {}, onError = () => {} } = options;
  const clock = systemClock;
  const limits = resolveRequestLimits(options.limits);
  const config = readRouteConfig(options.routes, environment);
  const models = createModelHost({
    entries: Object.entries(options.models).map(([id, model]) => ({
      id,
      aliases: [],
      created: Math.floor(clock.wallClock() / 1000),
      sizeBytes: null,
      load: async () => model,
    })),
    budgetBytes: null,
    clock,
  });
  for (const candidate of config.candidates) {
    if (candidate.kind === 'remote' || models.find(candidate.model) !== null) continue;
    const names = Object.keys(options.models).join(', ');
    throw new RuvLLMError(
      'invalid_option',
      `candidate "${candidate.id}" needs the model "${candidate.model}"; models are: ${names}`,
      { data: { option: 'routes', candidate: candidate.id } },
    );
  }
  const { now, wallClock } = clock;
  const requestMemory =
    memory === null ? null : createRequestMemory(memory, { now, wallClock, report: onError, learning });
  const live = createLiveRequests(clock);
  const unregister = [live.erasure, models.erasure].map((part) => memory?.erasure.register(part));
  const pipeline = createRequestPipeline({
    models,
    admission: createAdmission(limits, clock),
    limits,
    meters: { openRequest: () => createRequestMeter(UNMETERED) },
    live,
    clock,
    tracer: silentTracer,
    memory: requestMemory,
    routing: createRouting({
      config,
      memory,
      now,
      seed: crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1,
      report: onError,
    }),
  });
  const ended = new AbortController();
  const dispose = async (): Promise<void> => {
    ended.abort();
    for (const stop of unregister) stop?.();
    await models.dispose();
    await requestMemory?.close();
  };
  return {
    async generate(prompt, { model = config.alias, tenant = DEFAULT_TENANT, signal = null, ...given } = {}) {
      const requestId = given.requestId ?? crypto.randomUUID();
      const anySignal = signal === null ? ended.signal : AbortSignal.any([signal, ended.signal]);
      const caller = { requestId, tenant, signal: anySignal, trace: null };
      const running = await pipeline.start(toRequest(model, prompt, given), caller);
      return { ...(await collectChunks(running.events)), model: running.modelId, route: running.route, requestId };
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

function toRequest(
  model: string,
  prompt: Prompt,
  given: Omit<GenerateOptions, 'signal' | 'tenant'>,
): GenerationRequest {
  const { tools = [], toolChoice = 'auto', parallelToolCalls = true, ...options } = given;
  return {
    model,
    prompts: [prompt],
    numChoices: 1,
    options,
    constraint: null,
    tools: tools.map(({ function: { name, description = null, parameters = null, strict = false } }) => ({
      name,
      description,
      parameters,
      isStrict: strict,
    })),
    toolChoice,
    canCallInParallel: parallelToolCalls,
  };
}
