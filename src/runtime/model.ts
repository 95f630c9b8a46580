import type { Adapter } from '../adapters/types.ts';
import { type ErasurePart, isWholeTenant } from '../core/erasure.ts';
import { RuvLLMError } from '../core/errors.ts';
import { resolveOptions } from '../core/options.ts';
import type { ClassifierHead } from '../models/classifier-head.ts';
import type { EngineStats, PrefixQuery, PrefixReport } from '../engine/types.ts';
import { CALL_FORM } from '../chat/tools/instruction.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import {
  type AdapterInfo,
  type AdapterNames,
  type AdapterWish,
  adapterWishOption,
  type LoadAdapterOptions,
  type StageAdapterOptions,
  type StagedAdapter,
} from './adapters.ts';
import { type EmbedOptions, resolveEmbedOptions } from './embed-options.ts';
import { type EmbedInput, type EmbedResult, embedTexts } from './embeddings.ts';
import {
  DEFAULT_TENANT,
  type EncodeOptions,
  type GenerateOptions,
  resolveGenerateOptions,
  resolvePromptOptions,
} from './generate-options.ts';
import { collectChunks } from './collect-chunks.ts';
import { generateChunks, type GenerationContext } from './generation.ts';
import type { GenerateChunk, GenerateResult } from './generation-types.ts';
import { JSON_OPTIONS } from './memory/json-options.ts';
import { createPromptReader } from './memory/prompt-reader.ts';
import { noMemory } from './memory/memory-wish.ts';
import { type RememberCall, rememberChunks } from './memory/remember-chunks.ts';
import type { RequestMemory } from './memory/request-memory.ts';
import { engineInfo, type ModelInfo } from './model-info.ts';
import type { GenerateJson } from './memory/types.ts';
import { nameOption } from './name-option.ts';
import { encodePrompt, type Prompt } from './prompt.ts';
import { type ReflectContext, reflectChunks } from './reflection/reflect.ts';
import { encodeImages } from './prompt-images.ts';
import { type PromptInput, readPrompt } from './read-prompt.ts';
import type { RerankOptions } from './rerank-options.ts';
import { rerankDocuments, type RerankResult } from './rerank.ts';
import { generateInHistory } from './sessions/history-session.ts';
import { createBusySessions, createSession, type Session } from './sessions/session.ts';
import type { SessionInfo, SessionTable } from './sessions/session-table.ts';
import { collectTools, type RunToolsOptions, type RunToolsResult, streamTools } from './tools/run-tools.ts';
import type { ToolEvent } from './tools/tool-loop.ts';
import { type AsideText, createAsideText } from './text/aside-text.ts';
import { preparePromptAside } from './text/text-thread.ts';

/** A loaded model. Concurrent calls run in one batch; each gets the same answer as alone. */
export interface Model extends AsyncDisposable {
  readonly tokenizer: Tokenizer;
  /** The token ids of this prompt, with chat template and BOS. */
  encodePrompt(prompt: PromptInput, options?: EncodeOptions): readonly number[];
  /** Encoding and decoding that does not block the caller's thread, for servers. */
  readonly aside: AsideText;
  /** Returns the whole answer. */
  generate(prompt: PromptInput, options?: GenerateOptions): Promise<GenerateResult>;
  /** Streams the answer token by token; leaving the loop aborts it. Starts with the first read. */
  generateStream(prompt: PromptInput, options?: GenerateOptions): AsyncGenerator<GenerateChunk, void, undefined>;
  /** Answers with the help of tools: calls those that the model names and goes on, until an answer calls none. */
  runTools(options: RunToolsOptions): Promise<RunToolsResult>;
  /** The same as events, while it happens; leaving the loop aborts it. The last event is the answer. */
  runToolsStream(options: RunToolsOptions): AsyncGenerator<ToolEvent, void, undefined>;
  /** Embeds texts for similarity search. Works with every model; encoders (`canGenerate` false) are made for it. */
  embed(input: EmbedInput, options?: EmbedOptions): Promise<EmbedResult>;
  /** Scores documents by their relevance to a query. Requires a cross-encoder (`canRerank`) or the method `embeddings`. */
  rerank(query: string, documents: readonly string[], options?: RerankOptions): Promise<RerankResult>;
  /** Opens a conversation by id, new or existing; with `kvSpill` it survives restarts. */
  session(id: string, options?: TenantOptions): Session;
  /** Whether sessions survive restarts: requires `kvSpill` with a usable folder. */
  readonly keepsSessions: boolean;
  /** The sessions of a tenant, the most recently used first. */
  sessions(options?: TenantOptions): readonly SessionInfo[];
  /** Deletes a session; false if not found, `conflict` during a turn. */
  deleteSession(id: string, options?: TenantOptions): boolean;
  /**
   * Loads a LoRA adapter under a name: a GGUF file, a PEFT folder, or an adapter in memory. Replaces an adapter of the same name:
   * calls in progress keep the old one, calls after this resolves use the new one.
   */
  loadAdapter(source: string | Adapter, options: LoadAdapterOptions): Promise<AdapterInfo>;
  /** Loads an adapter without a name: calls use it once it is activated. */
  stageAdapter(source: string | Adapter, options: StageAdapterOptions): Promise<StagedAdapter>;
  /** Unloads an adapter; its memory is freed when its last call ends. False if not found. */
  unloadAdapter(name: string, options?: { readonly tenant?: string | null }): boolean;
  adapters(): readonly AdapterInfo[];
  modelInfo(): ModelInfo;
  /** False after `dispose`, or after the engine crashed or stalled. */
  isLoaded(): boolean;
  /** Calls back when the engine crashed or stalled; not after `dispose`. */
  onLost(listener: (error: RuvLLMError) => void): void;
  /** Current state and totals of the engine. */
  stats(): Promise<EngineStats>;
  /** The tokens of a prompt, and how many of them a call of this tenant would find in the prefix cache now. */
  cachedTokens(prompt: PromptInput, options?: CachedTokensOptions): Promise<CachedTokens>;
  /** The most used prefixes in the cache, bounded by the query. */
  prefixes(query: PrefixQuery): Promise<PrefixReport>;
  /** Its cached pages, sessions and adapters of tenants; a model with a memory is erased with it. */
  readonly erasure: ErasurePart;
  /** Ends the engine and frees its memory; calls in progress fail with `not_loaded`. May be called twice. */
  dispose(): Promise<void>;
}

/** How a prompt is read, and for whom. */
export interface CachedTokensOptions extends EncodeOptions, TenantOptions {
  /** As for `generate`. Default: the tenant's learned adapter, if any. */
  adapter?: AdapterWish | null;
  signal?: AbortSignal;
}

/** How much of a prompt is in the prefix cache. */
export interface CachedTokens {
  readonly promptTokens: number;
  /** In memory; pages on disk do not count. */
  readonly cachedTokens: number;
}

/** Selects the tenant. */
export interface TenantOptions {
  /** 1 to 256 bytes of UTF-8. Default `local`. */
  tenant?: string;
}

export interface ModelParts {
  /** The model's name in memory and learning. */
  readonly name: string;
  readonly onDispose: () => void;
  readonly context: GenerationContext & { readonly adapters: AdapterNames };
  readonly info: ModelInfo;
  /** The head of a cross-encoder; null: none. */
  readonly head: ClassifierHead | null;
  readonly sessions: SessionTable;
  /** Recall and audit log; null: none. */
  readonly requests: RequestMemory | null;
}

export function createModel({ name, onDispose, context, info, head, sessions: table, requests }: ModelParts): Model {
  const { client, tokenizer } = context;
  const busy = createBusySessions();
  const aside = createAsideText(context);

  function requireLoaded(): void {
    if (!client.isAlive) throw new RuvLLMError('not_loaded', `${info.path} is no longer loaded`);
  }

  const remember: RememberCall = (prompt, options, generate, numHistoryTokens = 0) => {
    requireLoaded();
    const { tenant, session, memory: wish, corrections, user, adapter, params: sampling } = options;
    if (requests === null) {
      if (wish !== null) throw noMemory();
      return generate(prompt);
    }
    const call = {
      tenant,
      requestId: options.requestId ?? crypto.randomUUID(),
      model: name,
      session,
      user,
      adapter: adapter?.[0]?.name ?? null,
      prompt,
      hasHistory: numHistoryTokens > 0,
      sampling,
      wish,
      reader: createPromptReader({
        tokenizer,
        maxContext: context.maxContext,
        maxTokens: options.clampMaxTokens ? null : options.params.maxTokens,
        numHistoryTokens,
        encodePrompt: async (whole) => (await preparePromptAside(context, whole, options, options)).ids,
      }),
      corrections,
      generateJson: wish?.remember === true ? createGenerateJson(context, tenant) : null,
    };
    const isJson = options.grammar?.type === 'json_object' || options.grammar?.type === 'json_schema';
    return rememberChunks(requests, call, context.now, generate, isJson);
  };

  const reflecting: ReflectContext = {
    now: context.now,
    callForm: () => (context.chatTemplate.dialect.showsCalls ? null : CALL_FORM),
    understandsErrors: info.size === 'medium' || info.size === 'large',
    generate: (prompt, options) => generateChunks(context, prompt, options),
  };

  const start = (input: PromptInput, given: GenerateOptions | undefined) => {
    const prompt = readPrompt(input);
    const options = resolveGenerateOptions(given, context.sampling);
    const { tenant, session: id, reflection } = options;
    const answer = (recalled: Prompt): AsyncGenerator<GenerateChunk, void, undefined> =>
      reflection === null
        ? generateChunks(context, recalled, options)
        : reflectChunks(reflecting, recalled, { ...options, reflection: { ...reflection, patterns: reflection.patterns ?? requests?.errorPatterns ?? null } }); // prettier-ignore
    return remember(prompt, options, (recalled) =>
      id === null ? answer(recalled) : generateInHistory(table, { tenant, id }, () => answer(recalled)),
    );
  };

  async function* runToolsStream(given: RunToolsOptions): AsyncGenerator<ToolEvent, void, undefined> {
    // All rounds have one id, so that feedback reaches the last answer.
    const { requestId = crypto.randomUUID(), tenant = DEFAULT_TENANT, user = null, session = null } = given;
    const recorder = requests?.openTools({ tenant, requestId, user, session }) ?? null;
    try {
      yield* streamTools(
        {
          generate: start,
          now: context.now,
          record: (finished) => recorder?.record(finished),
          reuse: recorder?.reuse ?? null,
        },
        { ...given, requestId },
      );
    } finally {
      recorder?.close();
    }
  }

  const nameSession = (what: string, id: string, options: TenantOptions | undefined) => {
    requireLoaded();
    return { ...readTenant(what, options), id: nameOption(id, 'id') };
  };

  const ownAdapters = (tenant: string) => context.adapters.list().filter((adapter) => adapter.tenant === tenant);

  const dispose = async (): Promise<void> => {
    onDispose();
    const { textThread, tableThread, vision } = context;
    await Promise.all([client.dispose(), textThread?.dispose(), tableThread?.dispose(), vision?.dispose()]);
    await requests?.close(); // aborted calls get audit entries, too
  };

  return {
    tokenizer,
    encodePrompt: (prompt, options) => encodePrompt(readPrompt(prompt), context, resolvePromptOptions(options)),
    aside,
    generate: async (prompt, options) => collectChunks(start(prompt, options)),
    async *generateStream(prompt, options) {
      yield* start(prompt, options); // options are checked at the first read
    },
    runTools: (options) => collectTools(runToolsStream(options)),
    runToolsStream,
    async embed(input, options) {
      requireLoaded();
      return embedTexts(context, input, resolveEmbedOptions(options, info));
    },
    async rerank(query, documents, options) {
      requireLoaded();
      return rerankDocuments({ ...context, head, pooling: info.pooling }, query, documents, options);
    },
    session: (id, options) => createSession({ context, table, busy, remember }, nameSession('session', id, options)),
    keepsSessions: table.isKept,
    sessions(options) {
      requireLoaded();
      return table.list(readTenant('sessions', options).tenant);
    },
    deleteSession(id, options) {
      const name = nameSession('deleteSession', id, options);
      busy.requireIdle(name);
      return table.delete(name);
    },
    async loadAdapter(source, options) {
      requireLoaded();
      return context.adapters.load(source, options);
    },
    async stageAdapter(source, options) {
      requireLoaded();
      return context.adapters.stage(source, options);
    },
    unloadAdapter(name, { tenant = null } = {}) {
      requireLoaded();
      return context.adapters.unload(name, tenant);
    },
    adapters() {
      requireLoaded();
      return context.adapters.list();
    },
    modelInfo() {
      requireLoaded();
      return client.report === null ? info : Object.freeze({ ...info, ...engineInfo(client.report) });
    },
    isLoaded: () => client.isAlive,
    onLost: client.onLost,
    stats: () => client.stats(),
    async cachedTokens(prompt, { tenant: named, adapter, ...options } = {}) {
      requireLoaded();
      const { tenant } = readTenant('cachedTokens', named === undefined ? {} : { tenant: named });
      const read = readPrompt(prompt);
      const promptIds = await aside.encodePrompt(read, { ...options, tenant });
      const images = await encodeImages(context, read, promptIds, { signal: options.signal ?? null, tenant });
      const adapters = context.adapters.resolve(adapterWishOption(adapter, 'adapter'), tenant);
      const cachedTokens = await client.cachedTokens({ tenant, promptIds, images, adapters });
      return { promptTokens: promptIds.length, cachedTokens };
    },
    prefixes: (query) => client.prefixes(query),
    erasure: {
      name: `pages and sessions of ${name}`,
      isLast: true,
      async erase(subject) {
        if (!client.isAlive) return; // its memory is gone; its folder is erased as a place of its own
        const { tenant, sessionIds } = subject;
        const isWhole = isWholeTenant(subject);
        await client.eraseTenant(tenant, isWhole);
        for (const id of isWhole ? [] : sessionIds) table.delete({ tenant, id });
        if (!isWhole) return;
        table.eraseTenant(tenant);
        for (const adapter of ownAdapters(tenant)) context.adapters.unload(adapter.name, tenant);
      },
      async count(subject) {
        if (!client.isAlive) return 0;
        const { tenant, sessionIds } = subject;
        // Other users of the tenant may have filled the cache again.
        if (!isWholeTenant(subject)) return table.list(tenant).filter(({ id }) => sessionIds.has(id)).length;
        return (await client.countTenant(tenant)) + table.countTenant(tenant) + ownAdapters(tenant).length;
      },
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Generates in the background without recall and audit entry. */
function createGenerateJson(context: GenerationContext, tenant: string): GenerateJson {
  return async (prompt, schema, { maxTokens, signal }) => {
    const options = { tenant, maxTokens, signal, ...JSON_OPTIONS, grammar: { type: 'json_schema', schema } } as const;
    return (await collectChunks(generateChunks(context, prompt, resolveGenerateOptions(options, context.sampling))))
      .text;
  };
}

function readTenant(what: string, options: TenantOptions | undefined): { readonly tenant: string } {
  return resolveOptions<{ tenant: string }>(what, options, {
    tenant: (value, name) => nameOption(value ?? DEFAULT_TENANT, name),
  });
}
