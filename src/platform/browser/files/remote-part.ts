import { RuvLLMError } from '../../../core/errors.ts';
import { toHex } from '../../../core/sha256.ts';

/** A source from some byte on. */
export interface SourcePart {
  /** Byte of the first chunk; 0 where the source could not be continued. */
  readonly offset: number;
  /** null: unknown. */
  readonly totalBytes: number | null;
  /** Names these bytes, so that a later attempt continues the same ones; null: it cannot be known. */
  readonly version: string | null;
  /** SHA-256 of the whole file that its server names, in hex; null: none. */
  readonly sha256: string | null;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Requests a file from `offset` on, if it still has that version; otherwise from the start. */
export async function openRemotePart(
  { url, headers = {} }: { readonly url: string; readonly headers?: Readonly<Record<string, string>> },
  { offset, version }: { readonly offset: number; readonly version: string | null },
  signal: AbortSignal,
): Promise<SourcePart> {
  // Only `Range`: it needs no permission from another origin, and `If-Range` does.
  if (offset > 0 && version !== null) {
    const response = await request(url, { ...headers, range: `bytes=${offset}-` }, signal);
    const isSame = response.status === 206 && versionOf(response) === version && startOf(response) === offset;
    if (isSame) return toPart(response, offset, url);
    await response.body!.cancel();
  }
  return toPart(await request(url, headers, signal), 0, url);
}

async function request(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { headers, signal, cache: 'no-store' });
  } catch (cause) {
    if (signal.aborted) throw new RuvLLMError('aborted', 'aborted by the caller', { cause });
    const message = `${url} cannot be downloaded: no connection, or the server does not allow this page to read it (CORS)`;
    throw new RuvLLMError('download_failed', message, { cause, data: { url }, isRetryable: true });
  }
  // 416: the file has become shorter; it is requested again as a whole.
  if ((response.ok || response.status === 416) && response.body !== null) return response;
  await response.body?.cancel();
  throw new RuvLLMError('download_failed', `${url}: the server answered ${response.status}`, {
    data: { url, status: response.status },
    isRetryable: response.status >= 500,
  });
}

function toPart(response: Response, offset: number, url: string): SourcePart {
  const { headers } = response;
  const length = Number(headers.get('content-length') ?? Number.NaN);
  // With an encoding, the length counts compressed bytes.
  const isKnown = Number.isSafeInteger(length) && headers.get('content-encoding') === null;
  return {
    offset,
    totalBytes: isKnown ? offset + length : null,
    version: versionOf(response),
    sha256: digestOf(response),
    chunks: readDownload(response.body!, url),
  };
}

const versionOf = ({ headers }: Response): string | null => headers.get('etag') ?? headers.get('last-modified');

/** RFC 9530: `Repr-Digest: sha-256=:BASE64:`. */
function digestOf({ headers }: Response): string | null {
  const base64 = /(?:^|[,\s])sha-256=:([A-Za-z0-9+/]{43}=):/.exec(headers.get('repr-digest') ?? '')?.[1];
  return base64 === undefined ? null : toHex(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

const startOf = ({ headers }: Response): number =>
  Number(/^bytes (\d+)-/.exec(headers.get('content-range') ?? '')?.[1] ?? Number.NaN);

async function* readDownload(stream: ReadableStream<Uint8Array>, url: string): AsyncIterable<Uint8Array> {
  try {
    yield* readChunks(stream);
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') {
      throw new RuvLLMError('aborted', 'aborted by the caller', { cause });
    }
    if (!(cause instanceof TypeError)) throw cause;
    const message = `${url}: the connection broke; the next attempt continues`;
    throw new RuvLLMError('download_failed', message, { cause, data: { url }, isRetryable: true });
  }
}

/** Not every browser can iterate a stream. */
export async function* readChunks(stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
