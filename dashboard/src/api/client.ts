import { ApiError, isAbort, readFailure } from './errors.ts';
import { messages } from '../messages/index.ts';

export interface ClientOptions {
  /** Returns the API key to send; null: none. */
  readonly key: () => string | null;
  /** Called when the server rejects the current API key. */
  readonly onUnauthorized: (error: ApiError) => void;
  /** Default: the browser's `fetch`. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  /** Whether the request goes on when the page is left; a browser allows that only for small ones. Default false. */
  readonly outlivesPage?: boolean;
}

/** Browsers allow 64 KiB for all such requests together. */
const MAX_OUTLIVING_BYTES = 60_000;

/** Sends requests to the server that served this page. */
export interface Client {
  get<T>(path: string, options?: CallOptions): Promise<T>;
  /** Sends JSON, or a file as it is. */
  post<T>(path: string, body: unknown, options?: CallOptions): Promise<T>;
  remove<T>(path: string, options?: CallOptions): Promise<T>;
  /** Headers that identify this page to the server, for requests that the engine of the tab sends. */
  headers(): Readonly<Record<string, string>>;
  /** Returns the raw response, for bodies that are not JSON. Throws on failure like the others. */
  open(method: 'GET' | 'HEAD' | 'POST', path: string, body: unknown, options?: CallOptions): Promise<Response>;
}

export function createClient({
  key,
  onUnauthorized,
  fetch: send = (...args) => fetch(...args),
}: ClientOptions): Client {
  function headers(): Readonly<Record<string, string>> {
    const token = key();
    return token === null ? {} : { authorization: `Bearer ${token}` };
  }
  let outlivingBytes = 0;
  async function call(
    method: string,
    path: string,
    body: unknown,
    { signal, query, outlivesPage = false }: CallOptions = {},
  ): Promise<Response> {
    const token = key();
    const content = body === undefined || isFile(body) ? body : JSON.stringify(body);
    const sizeBytes = outlivesPage && typeof content === 'string' ? new TextEncoder().encode(content).length : Infinity;
    const keepalive = outlivingBytes + sizeBytes <= MAX_OUTLIVING_BYTES;
    if (keepalive) outlivingBytes += sizeBytes;
    let response: Response;
    try {
      response = await send(path + writeQuery(query), {
        method,
        headers: {
          ...headers(),
          ...(body === undefined ? {} : { 'content-type': isFile(body) ? FILE_TYPE : 'application/json' }),
        },
        ...(content === undefined ? {} : { body: content }),
        ...(signal === undefined ? {} : { signal }),
        ...(keepalive ? { keepalive } : {}),
        credentials: 'omit',
        redirect: 'error',
        cache: 'no-store',
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      // The reason of a browser, such as "Failed to fetch", explains nothing.
      throw new ApiError(messages.api.unreachable, { status: 0, code: 'unreachable' });
    } finally {
      if (keepalive) outlivingBytes -= sizeBytes;
    }
    if (response.ok) return response;
    const failure = await readFailure(response);
    // A late 401 for a previous key must not sign out the current one.
    if (failure.status === 401 && token === key()) onUnauthorized(failure);
    throw failure;
  }
  const json = async <T>(response: Promise<Response>): Promise<T> => (await (await response).json()) as T;
  return {
    headers,
    get: (path, options) => json(call('GET', path, undefined, options)),
    post: (path, body, options) => json(call('POST', path, body, options)),
    remove: (path, options) => json(call('DELETE', path, undefined, options)),
    open: (method, path, body, options) => call(method, path, body, options),
  };
}

/** The server finds the type by the name, which it knows better than the browser. */
const FILE_TYPE = 'application/octet-stream';
const isFile = (body: unknown): body is Blob => typeof Blob !== 'undefined' && body instanceof Blob;

function writeQuery(query: CallOptions['query'] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) search.set(name, String(value));
  }
  return search.size === 0 ? '' : `?${search}`;
}
