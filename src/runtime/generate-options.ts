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
} from '../core/options.ts';
import { MAX_PRIORITY, MIN_PRIORITY } from '../engine/types.ts';
import {
  type GenerateParams,
  resolveGenerateParams,
  type ResolvedGenerateParams,
} from '../sampling/generate-params.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import { adapterWishOption, type AdapterWish, type ResolvedAdapterWish } from './adapters.ts';
import { CHAT_READERS, type ChatOptions, type ResolvedChatOptions, settleTools } from './chat-options.ts';
import { memoryWishOption, type MemoryWish, type ResolvedMemoryWish } from './memory/memory-wish.ts';
import type { TokenProgress } from './generation-types.ts';
import { isAbortSignal } from './model-config.ts';
import { nameOption } from './name-option.ts';
import type { PromptOptions } from './prompt.ts';

/** Sampling parameters, and how the call itself is done. */
export interface GenerateOptions extends GenerateParams, ChatOptions {
  /** Aborts the generation: the call fails with `aborted`. */
  signal?: AbortSignal;
  /** Spellings of control tokens in a text prompt become those tokens. Only for text you trust. Default false. */
  parseSpecial?: boolean;
  /** Whether known beginnings of the prompt are used, and this one becomes known to the tenant's later calls. Default true. */
  cachePrefix?: boolean;
  /** Whose call it is: tenants share nothing and are served in turns. 1 to 256 bytes of UTF-8. Default `local`. */
  tenant?: string;
  /** Higher goes first: an integer from -10 to 10. Default 0. */
  priority?: number;
  /** Milliseconds after which the call fails with `deadline_exceeded`. Default: never. */
  timeoutMs?: number;
  /** The conversation this call belongs to, for callers that send the whole history: its end is kept in memory longest. */
  session?: string;
  /**
   * What the text must be: a JSON object, an instance of a JSON schema, a text of a GBNF grammar or a pattern, or a skeleton of these
   * and free text. It is whole also when `maxTokens` are reached; what cannot be enforced is refused with the keyword. Default: anything.
   */
  grammar?: GrammarSource;
  /** Puts what the memory knows of the question into the prompt; the model was loaded with a memory. Default: nothing. */
  memory?: MemoryWish;
  /** By which the call is found in the audit log, and gets feedback: a UUID. Default: a new one. */
  requestId?: string;
  /** Who asks, for the memory's index of sessions. Default: nobody. */
  user?: string;
  /** Loaded adapters, by name, that this call is computed with; several add up, null is none. Default: what was learned for the tenant, if anything. */
  adapter?: AdapterWish | null;
  /** Whether a `maxTokens` beyond the context becomes what is left of it, or fails. Default: only where none is given. */
  clampMaxTokens?: boolean;
  /** Hears how many tokens the prompt has, before anything is generated. */
  onPrompt?: (numTokens: number) => void;
  /** Hears of each token when it comes, however slowly the answer is read. */
  onToken?: (progress: TokenProgress) => void;
}

/** Whoever names no tenant. */
export const DEFAULT_TENANT = 'local';

/** The longest delay a timer can have: 24.8 days. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

interface CallOptions extends ResolvedChatOptions {
  readonly signal: AbortSignal | null;
  readonly parseSpecial: boolean;
  readonly cachePrefix: boolean;
  readonly tenant: string;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly session: string | null;
  readonly grammar: GrammarSource | null;
  readonly memory: ResolvedMemoryWish | null;
  readonly requestId: string | null;
  readonly user: string | null;
  readonly adapter: ResolvedAdapterWish | null;
  readonly clampMaxTokens: boolean | null;
  readonly onPrompt: ((numTokens: number) => void) | null;
  readonly onToken: ((progress: TokenProgress) => void) | null;
}

/** Only its kind: what is in it is checked where it is compiled. */
const isGrammar = (value: unknown): value is GrammarSource =>
  typeof value === 'object' &&
  value !== null &&
  ['json_object', 'json_schema', 'gbnf', 'regex', 'structure'].includes((value as GrammarSource).type);

const listenerOption = optional(instanceOption('a function', (value) => typeof value === 'function'));

const CALL_READERS: OptionReaders<CallOptions> = {
  signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  parseSpecial: booleanOption(false),
  cachePrefix: booleanOption(true),
  // Not null: a server that lost a credential must not become the default tenant.
  tenant: (value, name) => nameOption(value === undefined ? DEFAULT_TENANT : value, name),
  priority: integerOption(0, MIN_PRIORITY, MAX_PRIORITY),
  timeoutMs: optional(numberOption(0, 1, MAX_TIMEOUT_MS)),
  session: optional(nameOption),
  grammar: optional(instanceOption('a grammar: { type: … }', isGrammar)),
  memory: optional(memoryWishOption),
  requestId: optional(instanceOption('a UUID', isUuid)),
  user: optional(nameOption),
  adapter: adapterWishOption,
  clampMaxTokens: optional(booleanOption(false)),
  onPrompt: listenerOption as OptionReader<CallOptions['onPrompt']>,
  onToken: listenerOption as OptionReader<CallOptions['onToken']>,
  ...CHAT_READERS,
};

export interface ResolvedGenerateOptions extends CallOptions {
  readonly params: ResolvedGenerateParams;
  /** True: `maxTokens` shrinks to what is left of the context. */
  readonly clampMaxTokens: boolean;
}

/** Checks the options of one call. */
export function resolveGenerateOptions(options: GenerateOptions = {}): ResolvedGenerateOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RuvLLMError('invalid_option', `generate: options must be an object, got ${describe(options)}`);
  }
  const own: Record<string, unknown> = {};
  const params: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    (Object.hasOwn(CALL_READERS, name) ? own : params)[name] = value as unknown;
  }
  const call = settleTools(resolveOptions<CallOptions>('generate', own, CALL_READERS));
  return {
    params: resolveGenerateParams(params),
    ...call,
    clampMaxTokens: call.clampMaxTokens ?? params['maxTokens'] === undefined,
  };
}

/** Checks what a prompt is read with. */
export function resolvePromptOptions(options: EncodeOptions | undefined): PromptOptions {
  const readers = { parseSpecial: CALL_READERS.parseSpecial, ...CHAT_READERS };
  return settleTools(
    resolveOptions<Pick<CallOptions, 'parseSpecial'> & ResolvedChatOptions>('encodePrompt', options, readers),
  );
}

/** Those of the options that change what the model reads. */
export type EncodeOptions = Pick<GenerateOptions, 'parseSpecial'> & ChatOptions;

const describe = (value: unknown): string => (Array.isArray(value) ? 'a list' : value === null ? 'null' : typeof value);

/** The tokens to generate: what was asked for, or what fits of the default; `context_overflow` with both numbers. */
export function fitMaxTokens(
  { params, clampMaxTokens }: Pick<ResolvedGenerateOptions, 'params' | 'clampMaxTokens'>,
  promptTokens: number,
  maxContext: number,
): number {
  const room = maxContext - promptTokens;
  if (room < 1) {
    throw new RuvLLMError(
      'context_overflow',
      `prompt of ${promptTokens} tokens leaves no room in the context of ${maxContext}`,
      { data: { promptTokens, maxContext } },
    );
  }
  if (clampMaxTokens) return Math.min(params.maxTokens, room);
  if (params.maxTokens > room) {
    throw new RuvLLMError(
      'context_overflow',
      `prompt of ${promptTokens} tokens and ${params.maxTokens} to generate exceed the context of ${maxContext}`,
      { data: { promptTokens, maxTokens: params.maxTokens, maxContext } },
    );
  }
  return params.maxTokens;
}

/** A bias on a token that does not exist would do nothing, silently. */
export function checkLogitBias({ logitBias }: ResolvedGenerateParams, vocabSize: number): void {
  for (const id of logitBias.keys()) {
    if (id < vocabSize) continue;
    throw new RuvLLMError('invalid_token', `option "logitBias" names token ${id}, the vocabulary has ${vocabSize}`, {
      data: { option: 'logitBias', tokenId: id, vocabSize },
    });
  }
}
