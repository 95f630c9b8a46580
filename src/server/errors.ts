import { type ErrorCode, RuvLLMError, serializeError } from '../core/errors.ts';

/** A failure, independent of the wire format. */
export interface Failure {
  readonly status: number;
  /** OpenAI's error type. */
  readonly type: string;
  /** Machine-readable error code. */
  readonly code: string;
  /** The invalid field of the request; null: none. */
  readonly param: string | null;
  readonly message: string;
  /** Seconds after which the same request may succeed; null: it cannot. */
  readonly retryAfterSeconds: number | null;
}

interface StatusRow {
  readonly status: number;
  readonly type: string;
  readonly retryAfterSeconds?: number;
}

const INVALID: StatusRow = { status: 400, type: 'invalid_request_error' };
const BROKEN: StatusRow = { status: 500, type: 'server_error' };
const AWAY: StatusRow = { status: 503, type: 'server_error', retryAfterSeconds: 5 };

/** A new code in `core/errors.ts` does not compile without a row. */
const STATUS: Readonly<Record<ErrorCode, StatusRow>> = {
  invalid_option: INVALID,
  unsupported: INVALID,
  context_overflow: INVALID,
  empty_prompt: INVALID,
  invalid_text: INVALID,
  invalid_token: INVALID,
  template_error: INVALID,
  not_found: { status: 404, type: 'invalid_request_error' },
  model_not_found: { status: 404, type: 'invalid_request_error' },
  limit_exceeded: { status: 422, type: 'invalid_request_error' },
  too_many_requests: { status: 429, type: 'rate_limit_error', retryAfterSeconds: 1 },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retryAfterSeconds: 1 },
  shutting_down: { status: 503, type: 'server_error', retryAfterSeconds: 5 },
  conflict: { status: 409, type: 'conflict_error', retryAfterSeconds: 1 },
  in_use: { status: 409, type: 'conflict_error', retryAfterSeconds: 5 },
  overloaded: { status: 503, type: 'server_error', retryAfterSeconds: 2 },
  not_loaded: { status: 503, type: 'server_error', retryAfterSeconds: 5 },
  out_of_memory: { status: 503, type: 'server_error', retryAfterSeconds: 30 },
  deadline_exceeded: { status: 504, type: 'timeout_error' },
  // The client is gone; the status is for the log, as in nginx.
  aborted: { status: 499, type: 'client_closed_request' },
  invalid_model_file: BROKEN,
  unknown_architecture: BROKEN,
  bad_logits: BROKEN,
  bad_gradient: BROKEN,
  upload_failed: { status: 502, type: 'server_error', retryAfterSeconds: 30 },
  download_failed: { status: 502, type: 'server_error', retryAfterSeconds: 30 },
  remote_failed: { status: 502, type: 'server_error', retryAfterSeconds: 10 },
  tool_failed: { status: 502, type: 'server_error' },
  hash_mismatch: BROKEN,
  disk_full: { status: 507, type: 'server_error', retryAfterSeconds: 30 },
  io: BROKEN,
  untrusted: { status: 422, type: 'invalid_request_error' },
  engine_stalled: { status: 503, type: 'server_error', retryAfterSeconds: 10 },
  engine_crashed: { status: 503, type: 'server_error', retryAfterSeconds: 2 },
  kernel_failed: BROKEN,
  device_lost: BROKEN,
  internal: BROKEN,
};

/** OpenAI's codes that clients check for. */
const WIRE_CODES: Partial<Record<ErrorCode, string>> = {
  context_overflow: 'context_length_exceeded',
  invalid_option: 'invalid_value',
  not_found: 'not_found',
  internal: 'internal_error',
};

/** Wire names of library options, where they differ. */
const PARAMS: Readonly<Record<string, string>> = {
  maxTokens: 'max_tokens',
  topP: 'top_p',
  topK: 'top_k',
  minP: 'min_p',
  logitBias: 'logit_bias',
  topLogprobs: 'top_logprobs',
  toolChoice: 'tool_choice',
  templateVariables: 'chat_template_kwargs',
  reasoning: 'reasoning_effort',
  stopTokenIds: 'stop_token_ids',
  continueFinalMessage: 'continue_final_message',
};

function wireNameOf(option: string): string {
  // Clients choose field names: `__proto__` must not match.
  return Object.hasOwn(PARAMS, option) ? PARAMS[option]! : option;
}

export interface RefusalOptions {
  readonly param?: string | null;
  readonly type?: string;
  readonly retryAfterSeconds?: number | null;
  readonly cause?: unknown;
  /** The rejected caller, for the log. */
  readonly caller?: { readonly tenant: string; readonly keyId: string };
}

/** An error with its own HTTP status, for keys, routes, sizes and rates. */
export function refusal(status: number, code: string, message: string, options: RefusalOptions = {}): RuvLLMError {
  const { param = null, type = 'invalid_request_error', retryAfterSeconds = null, cause, caller } = options;
  return new RuvLLMError('invalid_option', message, {
    cause,
    data: { httpStatus: status, httpType: type, httpCode: code, option: param, retryAfterSeconds, ...caller },
    isRetryable: retryAfterSeconds !== null,
  });
}

/** Whether the server rejected the request on purpose, whatever the status. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof RuvLLMError &&
    (typeof error.data['httpStatus'] === 'number' || typeof error.data['retryAfterSeconds'] === 'number')
  );
}

/** The rejected caller, if known. */
export function refusedCaller(error: unknown): RefusalOptions['caller'] {
  const { tenant, keyId } = serializeError(error).data;
  return isRefusal(error) && typeof tenant === 'string' && typeof keyId === 'string' ? { tenant, keyId } : undefined;
}

/** The failure that a client sees. Messages of bugs appear only in the log. */
export function describeFailure(error: unknown): Failure {
  const { code, message: text, data } = serializeError(error);
  const option = typeof data['option'] === 'string' ? data['option'] : null;
  const isRefused = typeof data['httpStatus'] === 'number';
  // A refusal has the name on the wire already: `reasoning` is a field of responses.
  const param = option === null || isRefused ? option : wireNameOf(option);
  const message =
    option === null
      ? text.replace(/^(messages\[\d+\])\.toolCalls(?=\[)/, '$1.tool_calls')
      : text.replace(`option "${option}"`, () => `'${param}'`);
  if (isRefused) {
    return {
      status: data['httpStatus'] as number,
      type: String(data['httpType']),
      code: String(data['httpCode']),
      param,
      message,
      retryAfterSeconds: typeof data['retryAfterSeconds'] === 'number' ? data['retryAfterSeconds'] : null,
    };
  }
  // A disk or database that may work again; a damaged file does not repair itself.
  const isAway = code === 'io' && error instanceof RuvLLMError && error.isRetryable;
  const { status, type, retryAfterSeconds = null } = isAway ? AWAY : STATUS[code];
  const waitSeconds = data['retryAfterSeconds'];
  const isBug = !(error instanceof RuvLLMError) || code === 'internal';
  return {
    status,
    type,
    code: WIRE_CODES[code] ?? code,
    param,
    message: isBug ? 'internal error; the server log has the details under the request id' : message,
    retryAfterSeconds: typeof waitSeconds === 'number' ? waitSeconds : retryAfterSeconds,
  };
}
