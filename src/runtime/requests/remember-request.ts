import { samplingOf } from '../../sampling/generate-params.ts';
import { adapterWishOption } from '../adapters.ts';
import { createCallRecorder } from '../memory/call-recorder.ts';
import { memoryWishOption, noMemory } from '../memory/memory-wish.ts';
import { JSON_OPTIONS } from '../memory/json-options.ts';
import { createPromptReader } from '../memory/prompt-reader.ts';
import type { OpenCall, RequestMemory } from '../memory/request-memory.ts';
import type { GenerateJson, PromptReader, RememberedCall, ServedCall } from '../memory/types.ts';
import type { Model } from '../model.ts';
import type { SecondOpinions } from '../quality/second-opinions.ts';
import type { StreamObserver } from '../observe-stream.ts';
import type { PromptInput } from '../read-prompt.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import { promptOptions } from './generate-answers.ts';
import type { GenerationRequest } from './generation-request.ts';

/** A request after recall. */
export interface RememberedRequest extends Omit<OpenCall, 'prompt' | 'finish'> {
  /** With the recalled context in its prompt. */
  readonly request: GenerationRequest;
  /** Which backend answers a routed request; times count from here. */
  serve(served: ServedCall): void;
  /** Writes the request to the memory when its answer ends; null without a memory. */
  readonly observer: StreamObserver<AnswerChunk> | null;
}

export interface RequestIdentity {
  readonly tenant: string;
  readonly requestId: string;
  readonly modelId: string;
  /** From the model's name, or set for all requests; an adapter in the options wins. Default null. */
  readonly adapter?: string | null;
  /** Whether a router will choose the backend. Default false. */
  readonly isRouted?: boolean;
  /** Neighbours that the router wants to know. Default none. */
  readonly near?: RememberedCall['near'];
  /** Further answers for the estimate of its quality. Default: none. */
  readonly opinions?: SecondOpinions | null;
  /** The model that counts tokens: that of the answer, where it is known. Default: none, tokens are estimated. */
  readonly model?: Model | null;
}

const NOTHING_RECALLED = {
  sources: [],
  recall: null,
  embedded: null,
  similarities: [],
  near: null,
  serve() {},
  observer: null,
};

/** Recalls before a request is answered. One request is one audit entry, however many answers it has: the first is kept. */
export async function rememberRequest(
  memory: RequestMemory | null,
  incoming: GenerationRequest,
  {
    tenant,
    requestId,
    modelId,
    adapter = null,
    isRouted = false,
    near = null,
    model = null,
    opinions = null,
  }: RequestIdentity,
  now: () => number,
): Promise<RememberedRequest> {
  const { memory: memoryOption, corrections = true, user, ...options } = incoming.options;
  const request = { ...incoming, options };
  const wish = memoryOption === undefined ? null : memoryWishOption(memoryOption, 'memory');
  if (memory === null) {
    if (wish !== null) throw noMemory();
    return { request, ...NOTHING_RECALLED };
  }
  const identity = {
    tenant,
    requestId,
    model: modelId,
    session: options.session ?? null,
    user: user ?? null,
    adapter:
      options.adapter === undefined ? adapter : (adapterWishOption(options.adapter, 'adapter')?.[0]?.name ?? null),
  };
  const open = await memory.begin({ ...identity, prompt: request.prompts[0]!, sampling: samplingOf(options, model?.modelInfo().sampling), wish, corrections, isRouted, near, opinion: opinions?.of(request, tenant) ?? null, reader: model === null ? null : readerOf(model, request, tenant), generateJson: model === null || wish?.remember !== true ? null : jsonFrom(model, tenant) }); // prettier-ignore
  const { prompt, finish: _, ...recalled } = open;
  const kind = request.constraint?.kind;
  const recorder = createCallRecorder(open, now, kind === 'json_object' || kind === 'json_schema');
  return {
    ...recalled,
    request: withErrorPatterns({ ...request, prompts: request.prompts.with(0, prompt) }, memory),
    serve: recorder.serve,
    observer: { onEvent: (chunk) => recorder.add(chunk, chunk.choice === 0), onEnd: recorder.end },
  };
}

/** The models of a server have no memory of their own. */
function withErrorPatterns(request: GenerationRequest, { errorPatterns }: RequestMemory): GenerationRequest {
  const { reflection } = request.options;
  if (reflection === undefined || reflection === false) return request;
  const wish = reflection === true ? {} : reflection;
  return { ...request, options: { ...request.options, reflection: { patterns: errorPatterns, ...wish } } };
}

function jsonFrom(model: Model, tenant: string): GenerateJson {
  return async (prompt, schema, { maxTokens, signal }) => {
    const grammar = { type: 'json_schema', schema } as const;
    return (await model.generate(prompt as PromptInput, { tenant, maxTokens, signal, grammar, ...JSON_OPTIONS })).text;
  };
}

function readerOf(model: Model, request: GenerationRequest, tenant: string): PromptReader {
  return createPromptReader({
    tokenizer: model.tokenizer,
    maxContext: model.modelInfo().maxContext,
    maxTokens: request.options.maxTokens ?? null,
    encodePrompt: (prompt) => model.aside.encodePrompt(prompt, { ...promptOptions(request), tenant }),
  });
}
