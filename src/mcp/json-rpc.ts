import { showValue } from '../core/show-value.ts';
import { MCP_LIMITS } from './limits.ts';
import { cutChars } from './own-text.ts';

/** A message of JSON-RPC 2.0. MCP has no batches since its version 2025-06-18. */
export type JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResult | JsonRpcFailure;

export type JsonRpcId = string | number;

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0';
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface JsonRpcNotification {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface JsonRpcResult {
  readonly jsonrpc: '2.0';
  readonly id: JsonRpcId;
  readonly result: Readonly<Record<string, unknown>>;
}

export interface JsonRpcFailure {
  readonly jsonrpc: '2.0';
  /** Null: the request was not readable. */
  readonly id: JsonRpcId | null;
  readonly error: { readonly code: number; readonly message: string };
}

/** The codes of JSON-RPC 2.0. */
export const RPC_CODES = {
  parse: -32_700,
  invalidRequest: -32_600,
  unknownMethod: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** Of the range for servers: too many requests at once. */
  busy: -32_000,
} as const;

const MAX_MESSAGE_CHARS = 4096;

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isId = (value: unknown): value is JsonRpcId =>
  typeof value === 'string' ? value.length <= MCP_LIMITS.maxIdChars : Number.isSafeInteger(value);

/** The id to which a reply can be sent, of a value that may be no message. */
export function idOf(value: unknown): JsonRpcId | null {
  const id = isRecord(value) ? value['id'] : null;
  return isId(id) ? id : null;
}

const isParams = (value: unknown): boolean => value === undefined || isRecord(value);

/** The message in a value that the other side sent; null: it is none. */
export function readMessage(value: unknown): JsonRpcMessage | null {
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return null;
  const { id, method, params, result, error } = value;
  if (typeof method === 'string') {
    if (!isParams(params)) return null;
    return id === undefined || isId(id) ? (value as unknown as JsonRpcRequest | JsonRpcNotification) : null;
  }
  if (isRecord(error)) {
    if (id !== null && id !== undefined && !isId(id)) return null;
    const code = Number.isSafeInteger(error['code']) ? (error['code'] as number) : RPC_CODES.internal;
    const { message: given } = error;
    const text = typeof given === 'string' ? cutChars(given, MAX_MESSAGE_CHARS) : showValue(given);
    return { jsonrpc: '2.0', id: id ?? null, error: { code, message: text } };
  }
  return isId(id) && isRecord(result) ? { jsonrpc: '2.0', id, result } : null;
}

export const isRequest = (message: JsonRpcMessage): message is JsonRpcRequest => 'method' in message && 'id' in message;

export const isReply = (message: JsonRpcMessage): message is JsonRpcResult | JsonRpcFailure => !('method' in message);

export const replyTo = (id: JsonRpcId, result: object): JsonRpcResult => ({
  jsonrpc: '2.0',
  id,
  result: result as JsonRpcResult['result'],
});

export const failureOf = (id: JsonRpcId | null, code: number, message: string): JsonRpcFailure => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});
