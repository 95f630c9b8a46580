import { trimEndOf } from '../../core/trim.ts';
import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';

const ERROR_CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_option',
  401: 'invalid_option',
  403: 'invalid_option',
  404: 'not_found',
  409: 'conflict',
  413: 'invalid_option',
  422: 'invalid_option',
  429: 'overloaded',
  501: 'unsupported',
  503: 'overloaded',
};

const KEY_STEP = 'pass a permitted key with --api-key or RUVLLM_API_KEY; create one with ruvllm keys create NAME';

/** The server of --url. */
export interface NamedServer {
  readonly io: CommandContext['io'];
  readonly base: string;
  readonly key: string | null;
}

export function readServer({ io, values }: Pick<CommandContext, 'io' | 'values'>): NamedServer {
  const key = (values['--api-key'] as string | undefined) ?? (io.environment['RUVLLM_API_KEY'] || null);
  return { io, base: readUrl(values['--url'] as string), key };
}

interface ServerRequest {
  readonly method: string;
  readonly url: URL;
  readonly body: object | string | Uint8Array | null;
  /** Media type of a body that is not JSON. */
  readonly type?: string;
}

/** Sends one request and returns the JSON response; throws errors of the server with their codes. */
export async function askServer(server: NamedServer, request: ServerRequest): Promise<unknown> {
  const { status, text } = await send(server, request);
  return readResponse(status, text, server.base);
}

/** The same for a response that is not JSON. */
export async function askServerForText(server: NamedServer, request: ServerRequest): Promise<string> {
  const { status, text } = await send(server, request);
  if (status !== 200) readResponse(status, text, server.base);
  return text;
}

async function send(
  { io, base, key }: NamedServer,
  { method, url, body, type }: ServerRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const response = await fetch(url, {
      method,
      // A redirect would send the key to another server.
      redirect: 'error',
      headers: {
        ...(body === null ? {} : { 'content-type': type ?? 'application/json' }),
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === null ? {} : { body: type === undefined ? JSON.stringify(body) : (body as string) }),
      signal: io.signal,
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled', { cause: error });
    const cause = (error as Error).cause;
    const reason = (cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).message;
    throw new RuvLLMError('io', `cannot reach ${base}: ${reason}`, { cause: error, data: { url: base } });
  }
}

/** Removes `/v1`, the base path of OpenAI clients, which does not contain the memory. */
function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw usageError(`--url must be a URL such as http://127.0.0.1:8080, got ${JSON.stringify(text)}`, '--url');
  }
  return trimEndOf(`${url.origin}${url.pathname}`, '/').replace(/\/v1$/, '');
}

function readResponse(status: number, text: string, base: string): unknown {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Not a ruvllm server; reported below.
  }
  if ((status === 200 || status === 201) && typeof body === 'object' && body !== null) return body;
  const { error } = (body ?? {}) as { error?: { message?: unknown; code?: unknown; param?: unknown } };
  if (typeof error?.message !== 'string') {
    throw new RuvLLMError('io', `${base} sent an unexpected response: status ${status}, ${text.length} characters`);
  }
  const { message, param } = error;
  throw new RuvLLMError(ERROR_CODES[status] ?? 'io', message, {
    data: {
      status,
      ...(typeof param === 'string' ? { option: param } : {}),
      ...(status === 401 || status === 403 ? { next: KEY_STEP } : {}),
    },
  });
}

/** For lookups that a restricted API key may not make: null instead of a 403 error. */
export function ifForbidden(error: unknown): null {
  if (error instanceof RuvLLMError && error.data['status'] === 403) return null;
  throw error;
}
