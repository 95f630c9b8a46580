import { showValue } from './show-value.ts';

/** Every error a caller can get, by cause. Closed on purpose: a new cause is a new line here. */
export type ErrorCode =
  | 'invalid_option' // an option is unknown, of the wrong type or out of range
  | 'invalid_model_file' // GGUF, safetensors or checkpoint bytes that violate their format
  | 'unsupported' // valid input that this version does not implement
  | 'unknown_architecture' // no forward pass for the file's architecture
  | 'out_of_memory' // model or KV cache does not fit; the message has both sizes
  | 'context_overflow' // prompt longer than the context; the message has both lengths
  | 'empty_prompt' // nothing to condition on
  | 'invalid_text' // text that is not valid Unicode, or too large
  | 'invalid_token' // token id outside the vocabulary
  | 'template_error' // a chat template failed, or ran over its step, time or byte budget
  | 'bad_logits' // NaN or no finite logit: sampling is impossible
  | 'bad_gradient' // a loss or gradient that is not finite: learning from it is impossible
  | 'not_loaded' // no model is loaded
  | 'not_found' // a model, file or package does not exist
  | 'model_not_found' // a request names a model that is not served
  | 'limit_exceeded' // a request asks for more than the configured limits allow
  | 'too_many_requests' // the tenant has too many requests in progress
  | 'rate_limit_exceeded' // the tenant sends requests faster than its rate allows
  | 'shutting_down' // no new requests are accepted
  | 'overloaded' // the queue is full; retry later
  | 'conflict' // another operation uses the same resource; retry later
  | 'in_use' // another tab or process holds the file; close it there
  | 'deadline_exceeded' // the request's time limit passed
  | 'aborted' // the caller's AbortSignal fired
  | 'download_failed' // network or hub failure
  | 'upload_failed' // a hub refused a file, or the connection to it failed
  | 'remote_failed' // a remote engine is unreachable or its reply is invalid
  | 'tool_failed' // a tool failed, or its MCP server is unreachable, crashed or broke the protocol
  | 'hash_mismatch' // downloaded bytes do not match the expected hash
  | 'disk_full' // not enough disk space
  | 'io' // any other file-system failure
  | 'engine_stalled' // no step of the engine finished within its time limit; the engine is ended
  | 'engine_crashed' // the engine's process ended unexpectedly; its requests can be sent again
  | 'device_lost' // the GPU is gone, out of memory or stuck; the engine continues on the processor
  | 'untrusted' // code without the signature of a trusted key, or changed since it was allowed
  | 'kernel_failed' // a kernel pack failed its self-check or crashed
  | 'internal'; // a bug in RuvLLM

/** Values that survive `postMessage` and JSON, so that an error keeps its numbers across threads. */
export type ErrorData = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export interface ErrorOptions {
  cause?: unknown;
  data?: ErrorData;
  isRetryable?: boolean;
}

/** An error in serializable form. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  data: ErrorData;
  isRetryable: boolean;
}

/** The library's only error class; `code` is the cause, `data` has the numbers. */
export class RuvLLMError extends Error {
  readonly code: ErrorCode;
  readonly data: ErrorData;
  readonly isRetryable: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RuvLLMError';
    this.code = code;
    this.data = options.data ?? {};
    this.isRetryable = options.isRetryable ?? false;
  }
}

/** The message of an error. A thrown value that is no error is described, not converted, which could throw again. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === 'string' ? error : showValue(error);
}

/** An error with its stack trace, for the operator's log. */
export const traceOf = (error: unknown): string => (error instanceof Error && error.stack) || messageOf(error);

export function serializeError(error: unknown): SerializedError {
  if (error instanceof RuvLLMError) {
    return { code: error.code, message: error.message, data: error.data, isRetryable: error.isRetryable };
  }
  return { code: 'internal', message: messageOf(error), data: {}, isRetryable: false };
}

export function deserializeError(error: SerializedError): RuvLLMError {
  return new RuvLLMError(error.code, error.message, { data: error.data, isRetryable: error.isRetryable });
}

/** For bugs only, never for input: invalid input gets a typed error. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new RuvLLMError('internal', `assertion failed: ${message}`);
}
