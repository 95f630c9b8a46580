import { RuvLLMError } from '../core/errors.ts';
import type { RouteConfig, RouteCandidate } from '../runtime/routing/route-config.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import type { Clock } from './clock.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';
import type { ServerLimits } from './limits.ts';
import type { ModelHost, ModelLease } from './model-host.ts';
import { runRemote } from './remote/remote-engine.ts';
import { type JobCaller, runJob } from './run-job.ts';

/** Who answers a job: a model of this machine, or an engine elsewhere. */
export interface Answerer {
  /** As answers, the log and what is learned call it. */
  readonly id: string;
  /** What computes. */
  readonly kernels: string;
  /** For log probabilities, and for prompts of token ids. */
  readonly tokenizer: Tokenizer;
  run(job: GenerateJob, caller: JobCaller): AsyncGenerator<JobEvent, void, undefined>;
  /** May be called twice. */
  release(): void;
}

export function createLocalAnswerer(lease: ModelLease, limits: ServerLimits): Answerer {
  const { id, model, release } = lease;
  return {
    id,
    kernels: model.modelInfo().kernels,
    tokenizer: model.tokenizer,
    run: (job, caller) => runJob(model, withAdapter(job, lease.adapter), caller, limits),
    release,
  };
}

/** A model's name may say which adapter; where the request says it, too, that one wins. */
function withAdapter(job: GenerateJob, adapter: string | null): GenerateJob {
  return adapter === null ? job : { ...job, options: { adapter, ...job.options } };
}

export interface AnswererContext {
  readonly config: RouteConfig;
  readonly models: ModelHost;
  readonly limits: ServerLimits;
  readonly clock: Clock;
}

/** Whoever a candidate stands for, ready to answer. */
export async function openCandidate(
  { config, models, limits, clock }: AnswererContext,
  candidate: RouteCandidate,
  signal: AbortSignal,
): Promise<Answerer> {
  if (candidate.kind !== 'remote') {
    const lease = await models.acquire(candidate.model, { signal, waitMs: limits.modelWaitMs });
    const adapter = candidate.kind === 'adapter' ? candidate.adapter : lease.adapter;
    return createLocalAnswerer({ ...lease, adapter }, limits);
  }
  return {
    id: candidate.id,
    kernels: 'remote',
    tokenizer: NO_TOKENS,
    run(job, caller) {
      caller.onPrompt?.(estimateTokens(job));
      return runRemote(candidate, job, { key: config.keyOf(candidate), signal: caller.signal, clock });
    },
    release() {},
  };
}

/** Its own count comes with the end of its answer; some formats need one before the beginning. */
function estimateTokens({ prompts }: GenerateJob): number {
  const [prompt] = prompts;
  const length = typeof prompt === 'string' ? prompt.length : JSON.stringify(prompt).length;
  return Math.ceil(length / 4);
}

function refuse(): never {
  throw new RuvLLMError('unsupported', 'the engine that answers is elsewhere, and its tokens are not known here');
}

/** What needs tokens is never sent elsewhere; whoever asks all the same is told so. */
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
  specialSpellings: [],
};
