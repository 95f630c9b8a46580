import { deserializeError, RuvLLMError } from '../core/errors.ts';
import type { ResolvedEmbedOptions } from './embed-options.ts';
import type { EngineClient } from './engine-client.ts';
import { abortError, onAbort } from '../core/abort.ts';
import { doTextTask, type TextCaller, type TextContext } from './text/text-thread.ts';

/** One text, several texts, or lists of token ids. */
export type EmbedInput = string | readonly string[] | readonly (readonly number[])[];

/** The embeddings of all texts, in order. */
export interface EmbedResult {
  readonly embeddings: readonly Float32Array[];
  readonly usage: { readonly promptTokens: number; readonly totalTokens: number };
}

export interface EmbedContext extends TextContext {
  readonly client: EngineClient;
  readonly maxContext: number;
}

/** Texts in the engine at a time: its queue is shared with other requests, so the rest waits here. */
const MAX_IN_FLIGHT = 64;

/** Embeds all texts, or fails and aborts the rest. */
export async function embedTexts(
  context: EmbedContext,
  input: EmbedInput,
  options: ResolvedEmbedOptions,
): Promise<EmbedResult> {
  const { signal } = options;
  if (signal?.aborted) throw abortError(signal);
  const lists = await encodeInputs(context, input, options);
  if (signal?.aborted) throw abortError(signal); // aborted during the preparation
  const embeddings = await poolAll(context.client, lists, options, (pooled) => finishVector(pooled, options));
  const promptTokens = lists.reduce((sum, { length }) => sum + length, 0);
  return { embeddings, usage: { promptTokens, totalTokens: promptTokens } };
}

/** Everything is checked before anything is computed. */
async function encodeInputs(
  context: EmbedContext,
  input: EmbedInput,
  caller: TextCaller,
): Promise<(readonly number[])[]> {
  const items: readonly unknown[] = typeof input === 'string' ? [input] : input;
  if (!Array.isArray(items)) {
    throw new RuvLLMError('invalid_option', 'embed requires a text, a list of texts or a list of lists of token ids');
  }
  if (items.length === 0) throw new RuvLLMError('empty_prompt', 'no text to embed');
  items.forEach(checkInput);
  // The tokens around an empty text would get an embedding.
  const texts = items.filter((item): item is string => typeof item === 'string' && item !== '');
  const { lists } = await doTextTask(context, { kind: 'encode', texts, options: { addSpecial: true } }, caller);
  const encoded = lists.values();
  return items.map((item: string | readonly number[], index) => {
    const ids = typeof item !== 'string' ? item : item === '' ? [] : encoded.next().value!;
    checkLength(ids.length, index, context.maxContext);
    return ids;
  });
}

function checkInput(item: unknown, index: number): void {
  if (typeof item === 'string' || (Array.isArray(item) && item.every((id) => typeof id === 'number'))) return;
  throw new RuvLLMError('invalid_option', `input[${index}] must be a text or a list of token ids`, { data: { index } });
}

function checkLength(promptTokens: number, index: number, maxContext: number): void {
  if (promptTokens === 0) throw new RuvLLMError('empty_prompt', `input[${index}] is empty`, { data: { index } });
  if (promptTokens <= maxContext) return;
  throw new RuvLLMError(
    'context_overflow',
    `input[${index}] has ${promptTokens} tokens; the context holds ${maxContext}`,
    {
      data: { index, promptTokens, maxContext },
    },
  );
}

/** Pools each sequence, and finishes its vector as soon as it arrives: a long list must not block the thread at its end. */
export function poolAll<T>(
  client: EngineClient,
  lists: readonly (readonly number[])[],
  options: Pick<ResolvedEmbedOptions, 'signal' | 'pooling' | 'tenant' | 'priority' | 'timeoutMs'>,
  finish: (pooled: Float32Array) => T,
): Promise<T[]> {
  const { signal, pooling, tenant, priority, timeoutMs } = options;
  const results: T[] = [];
  const running = new Map<number, { abort(): void }>();
  let next = 0;
  let unsubscribe = (): void => {};
  return new Promise<T[]>((resolve, reject) => {
    const fail = (error: unknown): void => {
      next = lists.length;
      for (const call of running.values()) call.abort();
      running.clear();
      reject(error);
    };
    const startMore = (): void => {
      while (next < lists.length && running.size < MAX_IN_FLIGHT) {
        const index = next++;
        const call = client.embed({ promptIds: lists[index]!, pooling, tenant, priority, timeoutMs }, (event) => {
          running.delete(index);
          if (event.type === 'failed') return fail(deserializeError(event.error));
          if (event.type !== 'embedded') return;
          try {
            results[index] = finish(event.embedding);
            startMore();
          } catch (error) {
            fail(error);
          }
          if (next === lists.length && running.size === 0) resolve(results);
        });
        running.set(index, call);
      }
    };
    if (signal !== null) unsubscribe = onAbort(signal, () => fail(abortError(signal)));
    startMore();
  }).finally(() => unsubscribe());
}

/** Truncates, and normalizes if requested. */
function finishVector(pooled: Float32Array, { dimensions, normalize }: ResolvedEmbedOptions): Float32Array {
  const vector = pooled.slice(0, dimensions);
  return normalize ? normalizeVector(vector) : vector;
}

/** The vector with length 1. */
export function normalizeVector(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length > 0 ? vector.map((value) => value / length) : vector;
}
