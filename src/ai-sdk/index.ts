import type {
  EmbeddingModelV3,
  LanguageModelV3,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { FinishReason, GenerateChunk, Usage } from '../runtime/generation-types.ts';
import type { Model } from '../runtime/model.ts';
import { PROVIDER, readOptions } from './read-options.ts';
import { readPrompt } from './read-prompt.ts';

const FINISH_REASONS = { stop: 'stop', length: 'length', tool_calls: 'tool-calls' } as const;

const toFinishReason = (reason: FinishReason): LanguageModelV3FinishReason => ({
  unified: FINISH_REASONS[reason],
  raw: reason,
});

const toUsage = ({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage): LanguageModelV3Usage => ({
  inputTokens: {
    total: promptTokens,
    noCache: promptTokens - cachedTokens,
    cacheRead: cachedTokens,
    cacheWrite: undefined,
  },
  outputTokens: {
    total: completionTokens,
    text: completionTokens - reasoningTokens,
    reasoning: reasoningTokens,
  },
});

/** A loaded model as a language model of the AI SDK (`ai` 6), in this process: `generateText({ model: languageModel(model), … })`. */
export function languageModel(model: Model): LanguageModelV3 {
  return {
    specificationVersion: 'v3',
    provider: PROVIDER,
    modelId: idOf(model),
    supportedUrls: {},
    async doGenerate(call) {
      const { options, warnings } = readOptions(call);
      const result = await model.generate(readPrompt(call.prompt), options);
      const content: LanguageModelV3Content[] = [];
      if (result.reasoning !== '') content.push({ type: 'reasoning', text: result.reasoning });
      if (result.text !== '') content.push({ type: 'text', text: result.text });
      for (const { id, name, arguments: input } of result.toolCalls) {
        content.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
      }
      const { finishReason, usage } = result;
      return { content, finishReason: toFinishReason(finishReason), usage: toUsage(usage), warnings };
    },
    async doStream(call) {
      const { options, warnings } = readOptions(call);
      const parts = writeParts(model.generateStream(readPrompt(call.prompt), options));
      const first: LanguageModelV3StreamPart = { type: 'stream-start', warnings };
      return { stream: toReadable(first, parts) };
    },
  };
}

/** A loaded model as an embedding model of the AI SDK: `embed({ model: embeddingModel(model), … })`. */
export function embeddingModel(model: Model): EmbeddingModelV3 {
  return {
    specificationVersion: 'v3',
    provider: PROVIDER,
    modelId: idOf(model),
    maxEmbeddingsPerCall: undefined,
    supportsParallelCalls: true,
    async doEmbed({ values, abortSignal }) {
      const { embeddings, usage } = await model.embed(values, abortSignal === undefined ? {} : { signal: abortSignal });
      return {
        embeddings: embeddings.map((vector) => Array.from(vector)),
        usage: { tokens: usage.totalTokens },
        warnings: [],
      };
    },
  };
}

function idOf(model: Model): string {
  const { name, path } = model.modelInfo();
  return name ?? path.split(/[\\/]/).at(-1)!;
}

/** A read of the stream reads a chunk; cancelling it ends the generation. */
function toReadable(
  first: LanguageModelV3StreamPart,
  parts: AsyncGenerator<LanguageModelV3StreamPart, void, undefined>,
): ReadableStream<LanguageModelV3StreamPart> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(first),
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void (await parts.return()),
  });
}

/** Text and reasoning are each one block at a time, between a start and an end. */
async function* writeParts(
  chunks: AsyncIterable<GenerateChunk>,
): AsyncGenerator<LanguageModelV3StreamPart, void, undefined> {
  let open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | null = null;
  let numBlocks = 0;
  const inputs = new Map<number, string>();
  function* switchTo(kind: 'text' | 'reasoning' | null): Generator<LanguageModelV3StreamPart, void, undefined> {
    if (open?.kind === kind) return;
    if (open !== null) yield { type: `${open.kind}-end`, id: open.id };
    open = kind === null ? null : { kind, id: String(numBlocks++) };
    if (open !== null) yield { type: `${open.kind}-start`, id: open.id };
  }
  for await (const { text, reasoning, toolCalls, ...rest } of chunks) {
    for (const [kind, delta] of [
      ['reasoning', reasoning],
      ['text', text],
    ] as const) {
      if (delta === '') continue;
      yield* switchTo(kind);
      yield { type: `${kind}-delta`, id: open!.id, delta };
    }
    for (const { index, id, name, isFirst, arguments: delta, outcome } of toolCalls) {
      yield* switchTo(null);
      if (isFirst) yield { type: 'tool-input-start', id, toolName: name };
      inputs.set(index, (inputs.get(index) ?? '') + delta);
      if (delta !== '') yield { type: 'tool-input-delta', id, delta };
      if (outcome === null) continue;
      yield { type: 'tool-input-end', id };
      yield { type: 'tool-call', toolCallId: id, toolName: name, input: inputs.get(index)! };
    }
    if (rest.finishReason === null) continue;
    yield* switchTo(null);
    yield { type: 'finish', finishReason: toFinishReason(rest.finishReason), usage: toUsage(rest.usage) };
  }
}
