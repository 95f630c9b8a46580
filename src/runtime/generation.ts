import { deserializeError, RuvLLMError, serializeError } from '../core/errors.ts';
import type { SlowGrammar } from '../engine/protocol.ts';
import type { EngineEvent } from '../engine/types.ts';
import type { SamplingDefaults } from '../sampling/generate-params.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import { planAnswer } from './answers/answer-plan.ts';
import type { AdapterNames } from './adapters.ts';
import { createChunkQueue } from './chunk-queue.ts';
import type { EngineClient } from './engine-client.ts';
import { abortError, onAbort, raceAbort } from '../core/abort.ts';
import { checkTokenIds, fitMaxTokens, type ResolvedGenerateOptions } from './generate-options.ts';
import type { GenerateChunk } from './generation-types.ts';
import type { Prompt } from './prompt.ts';
import { encodeImages, type Vision } from './prompt-images.ts';
import { scoreTokens } from './score-tokens.ts';
import { doTextTask, preparePromptAside, type TextCaller, type TextContext } from './text/text-thread.ts';
import { createTextAssembler, type TextAssembler } from './text-assembler.ts';
import { sendVocabulary, type TableThread } from './vocabulary.ts';
import { isChat } from './prompt.ts';
import type { Tokenizer } from '../tokenizers/types.ts';

/**
 * Compiles a grammar in another thread, for `compileGrammar`. Fails with a typed error if the grammar cannot be enforced or exceeds
 * the time, memory or steps of one request. Tenants take turns.
 */
export type PrepareGrammar = (
  source: GrammarSource,
  caller: { readonly tenant: string; readonly signal: AbortSignal | null },
) => Promise<PreparedGrammar>;

export interface PreparedGrammar {
  readonly automata: Int32Array;
  /** The JSON text of a grammar that takes long in the engine, too; null: it does not. */
  readonly slowText: string | null;
}

export interface GenerationContext extends TextContext {
  readonly client: EngineClient;
  readonly adapters: Pick<AdapterNames, 'resolve'>;
  /** Loads the adapters learned for a tenant; null: learning is off. */
  readonly prepareLearned: ((tenant: string) => Promise<void>) | null;
  readonly maxContext: number;
  /** Sampling of calls that set none of it. */
  readonly sampling: SamplingDefaults;
  readonly vocabSize: number;
  /** Ids that end an answer. */
  readonly endIds: readonly number[];
  readonly now: () => number;
  /** The seed of a request that names none: an integer from 0 to 2^53 - 1. */
  readonly createSeed: () => number;
  /** null: the engine compiles grammars between two steps. */
  readonly prepareGrammar: PrepareGrammar | null;
  /** Encodes images; null: the model has no projector. */
  readonly vision: Vision | null;
  /** null: the engine prepares the vocabulary between two steps. */
  readonly tableThread: TableThread | null;
}

/** Generates chunks; leaving early, an error or the signal aborts the sequence and frees its pages. */
export async function* generateChunks(
  context: GenerationContext,
  prompt: Prompt,
  options: ResolvedGenerateOptions,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const startMs = context.now();
  const { params, signal } = options;
  if (signal?.aborted) throw abortError(signal);
  checkTokenIds(params, context.vocabSize);
  if (options.adapter === null) await context.prepareLearned?.(options.tenant);
  context.adapters.resolve(options.adapter, options.tenant);
  const prepared = await preparePromptAside(context, prompt, options, options);
  let plan = planAnswer(context, prepared, options);
  if (plan.grammar !== null && params.ignoreEos) {
    throw new RuvLLMError(
      'invalid_option',
      'ignoreEos cannot be combined with a grammar, whose text ends when it is complete',
    );
  }
  const { promptIds } = plan;
  const maxTokens = fitMaxTokens(options, promptIds.length, context.maxContext);
  options.onPrompt?.(promptIds.length);
  const images = await encodeImages(context, prompt, promptIds, options);
  if (images.length > 0 && options.promptLogprobs) {
    const message = 'option "promptLogprobs" cannot be combined with images';
    throw new RuvLLMError('unsupported', message, { data: { option: 'promptLogprobs' } });
  }
  const scored = options.promptLogprobs
    ? await scoreTokens(context.client, promptIds, {
        ...options,
        adapters: context.adapters.resolve(options.adapter, options.tenant),
        numTop: params.topLogprobs ?? 0,
      })
    : null;
  const expectedIds = await encodeExpected(context, options.prediction, options);
  const stopIds = [...(params.ignoreEos ? [] : context.endIds), ...params.stopTokenIds];
  const ban = params.minTokens === 0 ? {} : { endBan: { ids: stopIds, length: promptIds.length + params.minTokens } };
  const seed = params.seed ?? context.createSeed();
  const queue = createChunkQueue<GenerateChunk>();
  let assembler: TextAssembler;
  let call = { abort(): void {} };
  let hasBegun = false;
  const fail = (error: RuvLLMError): void => {
    queue.fail(error);
    call.abort();
  };
  const onEvent = (event: EngineEvent): void => {
    if (event.type === 'embedded' || event.type === 'examined') return; // of other calls only
    try {
      if (event.type === 'failed') {
        if (hasBegun || plan.fallback === null || event.error.code !== 'unsupported') {
          return fail(deserializeError(event.error));
        }
        plan = plan.fallback;
        preparedGrammar = null;
        return begin();
      }
      hasBegun = true;
      for (const chunk of assembler.handle(event)) {
        queue.push(scored === null || chunk.finishReason === null ? chunk : { ...chunk, promptLogprobs: scored });
        if (chunk.finishReason === null) continue;
        queue.end();
        call.abort(); // the engine does not know about stop strings
      }
    } catch (error) {
      // Thrown from here, it would end the process instead of the call.
      fail(deserializeError(serializeError(error)));
    }
  };
  let preparedGrammar: PreparedGrammar | null = null;
  const begin = (): void => {
    assembler = createTextAssembler({
      reader: plan.createReader(),
      numPromptTokens: promptIds.length,
      seed,
      hasLogprobs: params.topLogprobs !== null,
      sizeOf: isChat(prompt) ? spelledBytes(context.tokenizer) : null,
      elapsedMs: () => context.now() - startMs,
      onToken: options.onToken,
    });
    call = context.client.generate(
      {
        promptIds,
        images,
        expectedIds,
        maxTokens,
        stopIds,
        sampling: { ...params, ...ban, seed },
        tenant: options.tenant,
        cachePrefix: options.cachePrefix,
        retention: options.session === null && !options.keepPrefix ? 'ordinary' : 'session',
        priority: options.priority,
        timeoutMs: options.timeoutMs,
        grammar: toEngineGrammar(plan.grammar, preparedGrammar),
        automata: preparedGrammar?.automata ?? null,
        // Synchronous with sending: if the adapter is replaced later, this request keeps its version.
        adapters: context.adapters.resolve(options.adapter, options.tenant),
      },
      onEvent,
    );
  };
  if (plan.grammar !== null) {
    const sent = sendVocabulary(context); // while the grammar is compiled
    try {
      preparedGrammar = (await context.prepareGrammar?.(plan.grammar, { tenant: options.tenant, signal })) ?? null;
      await raceAbort(sent, signal);
    } catch (error) {
      if (plan.fallback === null || !(error instanceof RuvLLMError) || error.code !== 'unsupported') throw error;
      plan = plan.fallback;
      preparedGrammar = null;
    }
  }
  if (signal?.aborted) throw abortError(signal); // aborted during the preparation
  begin();
  const unsubscribe = signal === null ? null : onAbort(signal, () => fail(abortError(signal)));
  try {
    yield* queue.read();
  } finally {
    unsubscribe?.();
    call.abort();
  }
}

function toEngineGrammar(
  grammar: GrammarSource | null,
  prepared: PreparedGrammar | null,
): GrammarSource | SlowGrammar | null {
  return prepared === null || prepared.slowText === null ? grammar : { type: 'slow', text: prepared.slowText };
}

const CONTINUATION = { parseSpecial: false, isContinuation: true } as const;

/** Longer than any answer: the rest would only take memory. */
const MAX_EXPECTED_CHARS = 1_000_000;

async function encodeExpected(
  context: GenerationContext,
  prediction: string | null,
  caller: TextCaller,
): Promise<readonly number[]> {
  if (prediction === null || prediction === '') return [];
  if (prediction.length > MAX_EXPECTED_CHARS) {
    const message = `option "prediction" has ${prediction.length} characters; the limit is ${MAX_EXPECTED_CHARS}`;
    throw new RuvLLMError('invalid_option', message, { data: { option: 'prediction', limit: MAX_EXPECTED_CHARS } });
  }
  const { lists } = await doTextTask(
    context,
    { kind: 'continuation', text: prediction, options: CONTINUATION },
    caller,
  );
  return lists[0]!;
}

/** Control tokens are spelled out where the chat format makes them part of an answer. */
function spelledBytes(tokenizer: Tokenizer): (tokenId: number) => number {
  return (tokenId) =>
    tokenizer.isControl(tokenId) ? tokenizer.piece(tokenId).length : tokenizer.tokenBytes(tokenId).length;
}
