import type { Usage } from '../../../runtime/generation-types.ts';

/** `usage` of a message: a prompt token counts either as input or as cached. */
export function toMessageUsage({ promptTokens, cachedTokens, completionTokens }: Omit<Usage, 'totalTokens'>) {
  return {
    input_tokens: promptTokens - cachedTokens,
    // Caching is automatic: clients do not request cache entries.
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: 'standard',
    inference_geo: null,
    speed: null,
  };
}

/** `usage` of the event `message_delta`: totals of the whole message. */
export function toDeltaUsage(usage: Omit<Usage, 'totalTokens'>) {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = toMessageUsage(usage);
  return {
    input_tokens,
    cache_creation_input_tokens,
    cache_read_input_tokens,
    output_tokens,
    output_tokens_details: null,
    server_tool_use: null,
  };
}
