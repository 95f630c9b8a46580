import type { Tokenizer, SampledToken, ChatMessage } from '../../../../runtime/lower-layers.ts';
import type { Usage } from '../../../../runtime/generation-types.ts';
import type { LastChunk } from '../../../../runtime/requests/answer-chunks.ts';
import type { OutputPart, PartEvent } from '../../../output-parts.ts';
import { toChatLogprobs } from '../logprobs.ts';
import { isMcpPart, mcpItemId, type McpPart, writeMcpItem } from './mcp-items.ts';

/** Fields of every form of a response. */
export interface ResponseHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
  readonly echo: object;
  /** For log-probabilities. */
  readonly tokenizer: Tokenizer;
}

/** A part of a response. */
export type ResponsePart = OutputPart | McpPart;

type WithPart<E> = E extends { readonly part: OutputPart } ? Omit<E, 'part'> & { readonly part: ResponsePart } : never;

/** The events of the parts of a response. `arguments`: those of an MCP call are complete, and the call begins. */
export type ResponsePartEvent =
  | WithPart<PartEvent>
  | { readonly type: 'arguments'; readonly index: number; readonly part: Extract<McpPart, { type: 'mcp_call' }> }
  | { readonly type: 'finished'; readonly parts: readonly ResponsePart[]; readonly finished: LastChunk };

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** The response before its answer. */
export function writeStarted({ id, created, model, echo }: ResponseHead) {
  return {
    id,
    object: 'response',
    created_at: created,
    completed_at: null as number | null,
    status: 'in_progress',
    error: null as object | null,
    incomplete_details: null as object | null,
    ...echo,
    model,
    output: [] as readonly object[],
  };
}

export function writeEnded(
  head: ResponseHead,
  parts: readonly ResponsePart[],
  { finishReason, usage }: LastChunk,
  nowSeconds: number,
) {
  const isCut = finishReason === 'length';
  const last = parts.length - 1;
  return {
    ...writeStarted(head),
    completed_at: isCut ? null : nowSeconds,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: parts.map((part, index) =>
      writeItem(head, part, index, isCut && index === last ? 'incomplete' : 'completed'),
    ),
    usage: toResponseUsage(usage),
  };
}

const ID_PREFIXES = { text: 'msg', reasoning: 'rs', tool_call: 'fc' } as const;

/** Ids of items are derived from the id of their response. */
export function itemId(head: ResponseHead, part: ResponsePart, index: number): string {
  if (isMcpPart(part)) return mcpItemId(head, part, index);
  const { id } = head;
  return `${ID_PREFIXES[part.type]}_${id.slice('resp_'.length)}_${index}`;
}

/** An item; empty while it is in progress. */
export function writeItem(head: ResponseHead, part: ResponsePart, index: number, status: ItemStatus): object {
  if (isMcpPart(part)) return writeMcpItem(head, part, index, status !== 'in_progress');
  const id = itemId(head, part, index);
  const isOpen = status === 'in_progress';
  if (part.type === 'text') {
    const content = isOpen ? [] : [writeTextPart(head, part.text, part.logprobs)];
    return { id, type: 'message', status, role: 'assistant', content };
  }
  if (part.type === 'reasoning') {
    return { id, type: 'reasoning', status, summary: [], content: isOpen ? [] : [writeThought(part.text)] };
  }
  const { id: callId, name, arguments: args } = part;
  return { id, type: 'function_call', status, call_id: callId, name, arguments: isOpen ? '' : args };
}

export const writeThought = (text: string) => ({ type: 'reasoning_text', text });

export function writeTextPart(head: ResponseHead, text: string, logprobs: readonly SampledToken[] | null) {
  return { type: 'output_text', text, annotations: [], logprobs: writeLogprobs(head, logprobs) };
}

/** Like in chats, but control tokens have an empty list of bytes instead of null. */
export function writeLogprobs({ tokenizer }: ResponseHead, tokens: readonly SampledToken[] | null): readonly object[] {
  const content = toChatLogprobs(tokens, tokenizer)?.content ?? [];
  const withBytes = <T extends { readonly bytes: readonly number[] | null }>(token: T) => ({
    ...token,
    bytes: token.bytes ?? [],
  });
  return content.map((token) => ({ ...withBytes(token), top_logprobs: token.top_logprobs.map(withBytes) }));
}

function toResponseUsage({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}

/** The answer as a turn of the conversation. */
export function toTurn(parts: readonly ResponsePart[]): ChatMessage {
  const calls = parts.filter((part) => part.type === 'tool_call');
  const join = (type: 'text' | 'reasoning'): string =>
    parts.map((part) => (part.type === type ? (part as { readonly text: string }).text : '')).join('');
  const reasoning = join('reasoning');
  return {
    role: 'assistant',
    content: join('text'),
    ...(reasoning === '' ? {} : { reasoning }),
    ...(calls.length === 0
      ? {}
      : { toolCalls: calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })) }),
  };
}

/** Reads the events of a response to their end. */
export async function collectResponse(
  events: AsyncIterable<ResponsePartEvent>,
): Promise<Pick<Extract<ResponsePartEvent, { type: 'finished' }>, 'parts' | 'finished'>> {
  let last: Extract<ResponsePartEvent, { type: 'finished' }> | null = null;
  for await (const event of events) if (event.type === 'finished') last = event;
  return { parts: last!.parts, finished: last!.finished };
}
