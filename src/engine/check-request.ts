import { RuvLLMError } from '../core/errors.ts';
import type { DecoderShape } from '../models/types.ts';
import { checkImages } from './image-rows.ts';
import { type EngineRequest, MAX_PRIORITY, MIN_PRIORITY } from './types.ts';

/** Rejects a request that is malformed or can never be served. */
export function checkRequest(
  request: EngineRequest,
  { maxContext, shape }: { maxContext: number; shape: Pick<DecoderShape, 'vocabSize' | 'isCausal' | 'embeddingDim'> },
): void {
  const { promptIds, maxTokens, pooling, priority, timeoutMs } = request;
  const { vocabSize, isCausal } = shape;
  if (promptIds.length === 0) throw new RuvLLMError('empty_prompt', 'the prompt has no tokens');
  if (pooling === undefined && !isCausal) {
    throw new RuvLLMError('unsupported', 'this model is an encoder: it can embed text but not generate it');
  }
  if (pooling === undefined && !(Number.isSafeInteger(maxTokens) && maxTokens >= 1)) {
    throw new RuvLLMError('invalid_option', `maxTokens must be a positive integer, got ${maxTokens}`);
  }
  if (!Number.isInteger(priority) || priority < MIN_PRIORITY || priority > MAX_PRIORITY) {
    throw new RuvLLMError('invalid_option', `priority must be ${MIN_PRIORITY} to ${MAX_PRIORITY}, got ${priority}`);
  }
  if (timeoutMs !== null && !(timeoutMs >= 0)) {
    throw new RuvLLMError('invalid_option', `timeoutMs must not be negative, got ${timeoutMs}`);
  }
  if (pooling !== undefined && promptIds.length > maxContext) {
    throw new RuvLLMError(
      'context_overflow',
      `a text of ${promptIds.length} tokens exceeds the context of ${maxContext}; shorten or split it`,
      { data: { promptTokens: promptIds.length, maxContext } },
    );
  }
  if (pooling === undefined && promptIds.length + maxTokens > maxContext) {
    throw new RuvLLMError(
      'context_overflow',
      `a prompt of ${promptIds.length} tokens and ${maxTokens} to generate exceed the context of ${maxContext}; shorten the prompt, lower maxTokens or load the model with a larger context`,
      { data: { promptTokens: promptIds.length, maxTokens, maxContext } },
    );
  }
  checkImages(request, shape.embeddingDim);
  for (let position = 0; position < promptIds.length; position++) {
    const id = promptIds[position]!;
    if (!Number.isInteger(id) || id < 0 || id >= vocabSize) {
      throw new RuvLLMError(
        'invalid_token',
        `token ${id} at position ${position} is outside the vocabulary of ${vocabSize}`,
        {
          data: { tokenId: id, position, vocabSize },
        },
      );
    }
  }
}
