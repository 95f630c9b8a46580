import type { Usage } from '../../../runtime/generation-types.ts';

type Tokens = Pick<Usage, 'promptTokens' | 'cachedTokens' | 'completionTokens'>;

/**
 * `usage` of a message: a prompt token counts as input, as read from the cache or as written to it. Everything computed is
 * cached except the last token, which every request computes; it counts as written if the client marked the prompt.
 */
export function toMessageUsage({ promptTokens, cachedTokens, completionTokens }: Tokens, hasCacheControl: boolean) {
  const numWritten = hasCacheControl ? Math.max(0, promptTokens - cachedTokens - 1) : 0;
  return {
    input_tokens: promptTokens - cachedTokens - numWritten,
    cache_creation_input_tokens: numWritten,
    cache_read_input_tokens: cachedTokens,
    cache_creation: { ephemeral_5m_input_tokens: numWritten, ephemeral_1h_input_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: null,
    speed: null,
  };
}

/** `usage` of the event `message_delta`: totals of the whole message. */
export function toDeltaUsage(tokens: Tokens, hasCacheControl: boolean) {
  const usage = toMessageUsage(tokens, hasCacheControl);
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = usage;
  return {
    input_tokens,
    cache_creation_input_tokens,
    cache_read_input_tokens,
    output_tokens,
    output_tokens_details: null,
    server_tool_use: null,
  };
}
