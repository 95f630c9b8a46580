import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import { operationOf, operationPath } from '../../memory/operations/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import type { MemoryClient } from './client.ts';

/** What a status means for whoever typed the command. */
const CODES: Readonly<Record<number, ErrorCode>> = {
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

const KEY_STEP = '--api-key or RUVLLM_API_KEY with a key that allows it; ruvllm keys create NAME makes one';

/** The memory of a running server. */
export function openHttpClient(
  { io, values }: Pick<CommandContext, 'io' | 'values'>,
  pathOf = (name: string): string => operationPath(operationOf(name)),
): MemoryClient {
  const { base, key } = readServer({ io, values });
  const tenant = values['--tenant'] as string | undefined;
  return {
    async call<T>(name: string, input: object): Promise<T> {
      const url = new URL(`${base}${pathOf(name)}`);
      if (tenant !== undefined) url.searchParams.set('tenant', tenant);
      return (await askServer({ io, base, key }, { method: 'POST', url, body: input })) as T;
    },
    async close() {},
  };
}

/** A server that was named on the command line. */
export interface NamedServer {
  readonly io: CommandContext['io'];
  readonly base: string;
  readonly key: string | null;
}

export function readServer({ io, values }: Pick<CommandContext, 'io' | 'values'>): NamedServer {
  const key = (values['--api-key'] as string | undefined) ?? (io.environment['RUVLLM_API_KEY'] || null);
  return { io, base: readUrl(values['--url'] as string), key };
}

/** One request and its answer as JSON; what the server refuses becomes an error of its own kind. */
export async function askServer(
  { io, base, key }: NamedServer,
  { method, url, body }: { method: string; url: URL; body: object | null },
): Promise<unknown> {
  try {
    const response = await fetch(url, {
      method,
      // A redirect would take the key to a place nobody named.
      redirect: 'error',
      headers: {
        ...(body === null ? {} : { 'content-type': 'application/json' }),
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal: io.signal,
    });
    return readAnswer(response.status, await response.text(), base);
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled', { cause: error });
    const cause = (error as Error).cause;
    const reason = (cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).message;
    throw new RuvLLMError('io', `${base} cannot be reached: ${reason}`, { cause: error, data: { url: base } });
  }
}

/** `/v1` is where OpenAI's clients are told to go; the memory is not below it. */
function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw usageError(`--url must be such as http://127.0.0.1:8080, got ${JSON.stringify(text)}`, '--url');
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function readAnswer(status: number, text: string, base: string): unknown {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Whatever speaks there is no server of ours.
  }
  if ((status === 200 || status === 201) && typeof body === 'object' && body !== null) return body;
  const { error } = (body ?? {}) as { error?: { message?: unknown; code?: unknown; param?: unknown } };
  if (typeof error?.message !== 'string') {
    throw new RuvLLMError('io', `${base} answered ${status} with ${text.length} characters that are no answer`);
  }
  const { message, param } = error;
  throw new RuvLLMError(CODES[status] ?? 'io', message, {
    data: {
      status,
      ...(typeof param === 'string' ? { option: param } : {}),
      ...(status === 401 || status === 403 ? { next: KEY_STEP } : {}),
    },
  });
}
