import { deserializeError, RuvLLMError, serializeError } from '../core/errors.ts';
import type { EngineEvent } from '../engine/types.ts';
import type { GrammarSource } from '../sampling/grammar/index.ts';
import { createStopMatcher } from '../sampling/stop-matcher.ts';
import { createChunkQueue } from './chunk-queue.ts';
import { abortError, type EngineClient } from './engine-client.ts';
import { checkLogitBias, fitMaxTokens, type ResolvedGenerateOptions } from './generate-options.ts';
import type { GenerateChunk, GenerateResult } from './generation-types.ts';
import { encodePrompt, isChat, type Prompt, type PromptContext } from './prompt.ts';
import { createTextAssembler } from './text-assembler.ts';
import { sendVocabulary } from './vocabulary.ts';

/**
 * Compiles a grammar where nobody waits for it, and gives what `compileGrammar` can use of that. Fails with a typed error for
 * what cannot be enforced, or takes more time, memory or steps than one request may.
 */
export type PrepareGrammar = (source: GrammarSource, signal: AbortSignal | null) => Promise<Int32Array>;

export interface GenerationContext extends PromptContext {
  readonly client: EngineClient;
  readonly maxContext: number;
  readonly vocabSize: number;
  /** Ids after which the model has nothing more to say. */
  readonly endIds: readonly number[];
  readonly now: () => number;
  /** A seed for a request that names none: an integer from 0 to 2^53 - 1. */
  readonly createSeed: () => number;
  /** null: the engine compiles grammars by itself, between two steps. */
  readonly prepareGrammar: PrepareGrammar | null;
}

/** Generates as the reader reads; leaving early, an error or the signal aborts the sequence and frees its pages. */
export async function* generateChunks(
  context: GenerationContext,
  prompt: Prompt,
  options: ResolvedGenerateOptions,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const startMs = context.now();
  const { params, signal } = options;
  if (signal?.aborted) throw abortError(signal);
  checkLogitBias(params, context.vocabSize);
  if (options.grammar !== null && params.ignoreEos) {
    throw new RuvLLMError('invalid_option', 'ignoreEos cannot go with a grammar: its text ends when it is whole');
  }
  const promptIds = encodePrompt(prompt, context, options);
  const seed = params.seed ?? context.createSeed();
  const assembler = createTextAssembler({
    decoder: context.tokenizer.createStreamDecoder({ keepLeadingSpace: !isChat(prompt) }),
    stopMatcher: createStopMatcher(params.stop),
    numPromptTokens: promptIds.length,
    seed,
    hasLogprobs: params.topLogprobs !== null,
    elapsedMs: () => context.now() - startMs,
  });
  const queue = createChunkQueue<GenerateChunk>();
  const fail = (error: RuvLLMError): void => {
    queue.fail(error);
    call.abort();
  };
  const onEvent = (event: EngineEvent): void => {
    if (event.type === 'failed') return fail(deserializeError(event.error));
    if (event.type === 'embedded') return; // of other calls only
    try {
      const chunk = assembler.handle(event);
      queue.push(chunk);
      if (chunk.finishReason === null) return;
      queue.end();
      call.abort(); // after a stop string the engine does not know yet that it is done
    } catch (error) {
      // Thrown from here it would reach the event loop, and end the process instead of the call.
      fail(deserializeError(serializeError(error)));
    }
  };
  let automata: Int32Array | null = null;
  if (options.grammar !== null) {
    automata = (await context.prepareGrammar?.(options.grammar, signal)) ?? null;
    sendVocabulary(context.client, context.tokenizer, context.endIds);
  }
  const call = context.client.generate(
    {
      promptIds,
      maxTokens: fitMaxTokens(options, promptIds.length, context.maxContext),
      stopIds: params.ignoreEos ? [] : context.endIds,
      sampling: { ...params, seed },
      tenant: options.tenant,
      cachePrefix: options.cachePrefix,
      retention: options.session === null ? 'ordinary' : 'session',
      priority: options.priority,
      timeoutMs: options.timeoutMs,
      grammar: options.grammar,
      automata,
    },
    onEvent,
  );
  const onAbort = (): void => fail(abortError(signal!));
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    yield* queue.read();
  } finally {
    signal?.removeEventListener('abort', onAbort);
    call.abort();
  }
}

/** Reads a generation to its end. */
export async function collectChunks(chunks: AsyncIterable<GenerateChunk>): Promise<GenerateResult> {
  let text = '';
  const tokenIds: number[] = [];
  const logprobs: NonNullable<GenerateChunk['logprobs']>[number][] = [];
  for await (const chunk of chunks) {
    text += chunk.text;
    tokenIds.push(...chunk.tokenIds);
    logprobs.push(...(chunk.logprobs ?? []));
    if (chunk.finishReason === null) continue;
    const { finishReason, usage, timings, seed, stopString } = chunk;
    const hasLogprobs = chunk.logprobs !== null;
    return {
      text,
      tokenIds,
      finishReason,
      usage,
      timings,
      logprobs: hasLogprobs ? logprobs : null,
      seed,
      stopString,
    };
  }
  throw new Error('unreachable: a generation ends with a finish reason or an error');
}
