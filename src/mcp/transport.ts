import type { RuvLLMError } from '../core/errors.ts';
import type { JsonRpcId, JsonRpcMessage } from './json-rpc.ts';

/** The events of a connection to an MCP server. */
export interface TransportEvents {
  /** A JSON value that the server sent, and its bytes; it may be no message. */
  onMessage(value: unknown, numBytes: number): void;
  /** A message beyond the limits, which was not parsed. */
  onExcess(id: JsonRpcId | null, what: string, limit: number): void;
  /** The connection is gone; all open calls fail with this error. */
  onClose(error: RuvLLMError): void;
}

/** A connection to an MCP server: a process, or an HTTP endpoint. */
export interface McpTransport {
  /** Call once, before `send`. */
  open(events: TransportEvents): Promise<void>;
  /** Resolves when the message is delivered; an HTTP transport reports the reply first. */
  send(message: JsonRpcMessage, signal: AbortSignal): Promise<void>;
  /** The protocol version that the server chose. */
  useVersion?(version: string): void;
  /** Ends the connection and its process. May be called twice. */
  close(): Promise<void>;
}
