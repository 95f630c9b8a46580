import { RuvLLMError } from '../core/errors.ts';
import { isUuid } from '../core/uuid.ts';
import {
  booleanOption,
  instanceOption,
  integerOption,
  numberOption,
  optional,
  type OptionReader,
  type OptionReaders,
  resolveOptions,
  stringOption,
} from '../core/options.ts';
import { showValue } from '../core/show-value.ts';
import { MAX_PRIORITY, MIN_PRIORITY } from '../engine/types.ts';
import {
  type GenerateParams,
  resolveGenerateParams,
  type ResolvedGenerateParams,
  type SamplingDefaults,
} from '../sampling/generate-params.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import { adapterWishOption, type AdapterWish, type ResolvedAdapterWish } from './adapters.ts';
import { CHAT_READERS, type ChatOptions, type ResolvedChatOptions, settleTools } from './chat-options.ts';
import { type FillIn, fillInOption, type ResolvedFillIn } from './fill-in.ts';
import { memoryWishOption, type MemoryWish, type ResolvedMemoryWish } from './memory/memory-wish.ts';
import { DEFAULT_TENANT } from './default-tenant.ts';
import type { TokenProgress } from './generation-types.ts';
import { isAbortSignal } from './model-config.ts';
import { nameOption } from './name-option.ts';
import type { PromptOptions } from './prompt.ts';
import { reflectionOption } from './reflection/options.ts';
import type { Reflection, ResolvedReflection } from './reflection/types.ts';

/** Options of one call: sampling parameters, chat options and scheduling. */
export interface GenerateOptions extends GenerateParams, ChatOptions {
  /** Aborts the generation: the call fails with `aborted`. */
  signal?: AbortSignal;
  /** Whether spelled-out control tokens in a text prompt become those tokens. Only for trusted text. Default false. */
  parseSpecial?: boolean;
  /** The answer fills a gap: the prompt is the text before it. Requires a model with tokens for that. Default: none. */
  fill?: FillIn;
  /** Whether the prefix cache of the tenant is read and extended. Default true. */
  cachePrefix?: boolean;
  /** Whether the pages of the prompt are evicted after those of other requests. Default: whether `session` is set. */
  keepPrefix?: boolean;
  /** The tenant: tenants share nothing and are served in turns. 1 to 256 bytes of UTF-8. Default `local`. */
  tenant?: string;
  /** Higher runs first: an integer from -10 to 10. Default 0. */
  priority?: number;
  /** Milliseconds after which the call fails with `deadline_exceeded`. Default: never. */
  timeoutMs?: number;
  /** The conversation, for callers that send the whole history: its last pages are evicted last. */
  session?: string;
  /**
   * Constrains the text: a JSON object, a JSON schema, a GBNF grammar, a regular expression, or a sequence of these and free text.
   * The text is complete even if `maxTokens` is reached; an error names keywords that cannot be enforced. Default: no constraint.
   */
  grammar?: GrammarSource;
  /** A text that the answer probably repeats in large parts, such as the file to be edited: it is then generated faster. Default: none. */
  prediction?: string;
  /** Recalls texts from the memory into the prompt; requires a model loaded with a memory. Default: no recall. */
  memory?: MemoryWish;
  /** Whether corrections that this user gave to near questions are recalled into the prompt. Default true. */
  corrections?: boolean;
  /**
   * Retries an answer that cannot be used, with its error in the prompt: a tool call in the wrong form, an empty value, an error of
   * `check`. Only the accepted answer is streamed, after it is complete. Requires messages. Default: off.
   */
  reflection?: boolean | Reflection;
  /** Identifies the call in the audit log and for feedback: a UUID. Default: a new one. */
  requestId?: string;
  /** The user, for the memory's index of sessions. Default: none. */
  user?: string;
  /** Names of loaded adapters to apply; several add up, null applies none. Default: the adapters learned for the tenant. */
  adapter?: AdapterWish | null;
  /** Whether `maxTokens` is reduced to the rest of the context instead of failing. Default: only if `maxTokens` is not set. */
  clampMaxTokens?: boolean;
  /**
   * Whether the summary has the log-probabilities of the prompt's tokens, with the alternatives of `topLogprobs`. Takes a step of the
   * engine for each token of the prompt. Default false.
   */
  promptLogprobs?: boolean;
  /** Called with the prompt's number of tokens, before generation. */
  onPrompt?: (numTokens: number) => void;
  /** Called for each token when it is generated, however slowly the answer is read. */
  onToken?: (progress: TokenProgress) => void;
}

export { DEFAULT_TENANT };

/** The longest delay a timer can have: 24.8 days. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

interface CallOptions extends ResolvedChatOptions {
  readonly signal: AbortSignal | null;
  readonly parseSpecial: boolean;
  readonly fill: ResolvedFillIn | null;
  readonly cachePrefix: boolean;
  readonly keepPrefix: boolean;
  readonly tenant: string;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly session: string | null;
  readonly grammar: GrammarSource | null;
  readonly prediction: string | null;
  readonly memory: ResolvedMemoryWish | null;
  readonly corrections: boolean;
  readonly reflection: ResolvedReflection | null;
  readonly requestId: string | null;
  readonly user: string | null;
  readonly adapter: ResolvedAdapterWish | null;
  readonly clampMaxTokens: boolean | null;
  readonly promptLogprobs: boolean;
  readonly onPrompt: ((numTokens: number) => void) | null;
  readonly onToken: ((progress: TokenProgress) => void) | null;
}

/** Checks only the type; the compiler checks the content. */
const isGrammar = (value: unknown): value is GrammarSource =>
  typeof value === 'object' &&
  value !== null &&
  ['json_object', 'json_schema', 'gbnf', 'regex', 'structure'].includes((value as GrammarSource).type);

const listenerOption = optional(instanceOption('a function', (value) => typeof value === 'function'));

const CALL_READERS: OptionReaders<CallOptions> = {
  signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  parseSpecial: booleanOption(false),
  fill: fillInOption,
  cachePrefix: booleanOption(true),
  keepPrefix: booleanOption(false),
  // Not null: a server that lost a credential must not become the default tenant.
  tenant: (value, name) => nameOption(value === undefined ? DEFAULT_TENANT : value, name),
  priority: integerOption(0, MIN_PRIORITY, MAX_PRIORITY),
  timeoutMs: optional(numberOption(0, 1, MAX_TIMEOUT_MS)),
  session: optional(nameOption),
  grammar: optional(instanceOption('a grammar: { type: … }', isGrammar)),
  prediction: stringOption(null),
  memory: optional(memoryWishOption),
  corrections: booleanOption(true),
  reflection: reflectionOption,
  requestId: optional(instanceOption('a UUID', isUuid)),
  user: optional(nameOption),
  adapter: adapterWishOption,
  clampMaxTokens: optional(booleanOption(false)),
  promptLogprobs: booleanOption(false),
  onPrompt: listenerOption as OptionReader<CallOptions['onPrompt']>,
  onToken: listenerOption as OptionReader<CallOptions['onToken']>,
  ...CHAT_READERS,
};

export interface ResolvedGenerateOptions extends CallOptions {
  readonly params: ResolvedGenerateParams;
  /** Whether `maxTokens` is reduced to the rest of the context. */
  readonly clampMaxTokens: boolean;
}

/** Checks the options of one call. */
export function resolveGenerateOptions(
  options: GenerateOptions = {},
  defaults?: SamplingDefaults,
): ResolvedGenerateOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RuvLLMError('invalid_option', `generate: options must be an object, got ${showValue(options)}`);
  }
  const own: Record<string, unknown> = {};
  const params: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    (Object.hasOwn(CALL_READERS, name) ? own : params)[name] = value as unknown;
  }
  const call = settleTools(resolveOptions<CallOptions>('generate', own, CALL_READERS));
  return {
    params: resolveGenerateParams(params, defaults),
    ...call,
    clampMaxTokens: call.clampMaxTokens ?? params['maxTokens'] === undefined,
  };
}

/** Checks the options of `encodePrompt`. */
export function resolvePromptOptions(options: EncodeOptions | undefined): PromptOptions {
  const readers = { parseSpecial: CALL_READERS.parseSpecial, fill: CALL_READERS.fill, ...CHAT_READERS };
  return settleTools(
    resolveOptions<Pick<CallOptions, 'parseSpecial' | 'fill'> & ResolvedChatOptions>('encodePrompt', options, readers),
  );
}

/** The options that change the encoded prompt. */
export type EncodeOptions = Pick<GenerateOptions, 'parseSpecial' | 'fill'> & ChatOptions;

/** The number of tokens to generate; `context_overflow` if they do not fit. */
export function fitMaxTokens(
  { params, clampMaxTokens }: Pick<ResolvedGenerateOptions, 'params' | 'clampMaxTokens'>,
  promptTokens: number,
  maxContext: number,
): number {
  const numLeft = maxContext - promptTokens;
  if (numLeft < 1) {
    throw new RuvLLMError(
      'context_overflow',
      `the prompt has ${promptTokens} tokens; the context holds ${maxContext}, and the answer needs some of them`,
      { data: { promptTokens, maxContext } },
    );
  }
  if (clampMaxTokens) return Math.min(params.maxTokens, numLeft);
  if (params.maxTokens > numLeft) {
    throw new RuvLLMError(
      'context_overflow',
      `a prompt of ${promptTokens} tokens and ${params.maxTokens} to generate exceed the context of ${maxContext}`,
      { data: { promptTokens, maxTokens: params.maxTokens, maxContext } },
    );
  }
  return params.maxTokens;
}

/** An unknown token would silently have no effect. */
export function checkTokenIds({ logitBias, stopTokenIds }: ResolvedGenerateParams, vocabSize: number): void {
  for (const [option, ids] of [
    ['logitBias', logitBias.keys()],
    ['stopTokenIds', stopTokenIds],
  ] as const) {
    for (const id of ids) {
      if (id < vocabSize) continue;
      throw new RuvLLMError('invalid_token', `option "${option}" names token ${id}; the vocabulary has ${vocabSize}`, {
        data: { option, tokenId: id, vocabSize },
      });
    }
  }
}
