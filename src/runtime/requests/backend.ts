import { RuvLLMError } from '../../core/errors.ts';
import type { RouteConfig, RouteCandidate } from '../routing/route-config.ts';
import { DEFAULT_SAMPLING, type SamplingDefaults } from '../../sampling/generate-params.ts';
import type { Tokenizer } from '../../tokenizers/types.ts';
import type { Clock } from '../../core/clock.ts';
import type { AdapterWish } from '../adapters.ts';
import { type AdapterScales, adaptersOfLease } from './adapter-scales.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { RequestLimits } from './limits.ts';
import type { ModelHost, ModelLease } from './model-host.ts';
import { isChat } from '../prompt.ts';
import { runRemote } from './remote/remote-engine.ts';
import { type GenerationCaller, generateAnswers } from './generate-answers.ts';

/** Who answers a request: a model of this machine, or an engine elsewhere. */
export interface Backend {
  /** As answers, the log and what is learned call it. */
  readonly id: string;
  readonly kernels: string;
  /** For log probabilities, and for prompts of token ids. */
  readonly tokenizer: Tokenizer;
  /** Sampling of requests that set none of it. */
  readonly sampling: Pick<SamplingDefaults, 'temperature' | 'topP'>;
  run(request: GenerationRequest, caller: GenerationCaller): AsyncGenerator<AnswerChunk, void, undefined>;
  /** May be called twice. */
  release(): void;
}

export function createLocalBackend(lease: ModelLease, limits: RequestLimits, scales?: AdapterScales): Backend {
  const { id, model, release } = lease;
  const adapter = adaptersOfLease(lease, scales);
  return {
    id,
    kernels: model.modelInfo().kernels,
    tokenizer: model.tokenizer,
    sampling: model.modelInfo().sampling,
    run: (request, caller) => generateAnswers(model, withAdapter(request, adapter), caller, limits),
    release,
  };
}

/** The adapter of the request wins, `null` included. */
function withAdapter(request: GenerationRequest, adapter: AdapterWish | null): GenerationRequest {
  return adapter === null ? request : { ...request, options: { adapter, ...request.options } };
}

export interface BackendContext {
  readonly config: RouteConfig;
  readonly models: ModelHost;
  readonly limits: RequestLimits;
  readonly clock: Clock;
  /** Default: none. */
  readonly adapterScales?: AdapterScales;
}

/** The backend of a candidate, ready to answer. */
export async function openCandidate(
  { config, models, limits, clock, adapterScales }: BackendContext,
  candidate: RouteCandidate,
  signal: AbortSignal,
): Promise<Backend> {
  if (candidate.kind !== 'remote') {
    const lease = await models.acquire(candidate.model, { signal, waitMs: limits.modelWaitMs });
    const adapter = candidate.kind === 'adapter' ? candidate.adapter : lease.adapter;
    return createLocalBackend({ ...lease, adapter }, limits, adapterScales);
  }
  return {
    id: candidate.id,
    kernels: 'remote',
    tokenizer: NO_TOKENS,
    sampling: DEFAULT_SAMPLING,
    run(request, caller) {
      caller.onPrompt?.(estimatePromptTokens(request));
      return runRemote(candidate, request, {
        key: config.keyOf(candidate),
        signal: caller.signal,
        trace: caller.trace ?? null,
        clock,
      });
    },
    release() {},
  };
}

/** Characters of the first prompt, or token ids. */
export const lengthOfPrompt = ({ prompts: [prompt] }: GenerationRequest): number =>
  isChat(prompt!) ? JSON.stringify(prompt).length : prompt!.length;

/** Of the first prompt, before a tokenizer has read it. */
export const estimatePromptTokens = (request: GenerationRequest): number =>
  Math.ceil(lengthOfPrompt(request) / (Number.isInteger(request.prompts[0]![0]) ? 1 : 4));

function refuse(): never {
  throw new RuvLLMError('unsupported', 'the engine that answers is elsewhere, and its tokens are not known here');
}

/** Remote engines have no tokenizer: requests that need tokens are never sent there. */
const NO_TOKENS: Tokenizer = {
  kind: 'bpe',
  vocabSize: 0,
  bosId: null,
  eosId: null,
  addsBos: false,
  addsEos: false,
  encode: refuse,
  encodeTemplate: refuse,
  decode: refuse,
  createStreamDecoder: () => ({ push: refuse, flush: () => '' }),
  tokenBytes: refuse,
  piece: refuse,
  idOf: () => null,
  isControl: () => false,
  isEndOfGeneration: () => false,
  fillIn: null,
  specialSpellings: [],
};
