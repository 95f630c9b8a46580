/** Size and hash of a model file. */
export interface ModelFileInfo {
  readonly sizeBytes: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
}

/** Reads the files of served models; paths come from the list of models, never from clients. */
export interface ModelFiles {
  /** Hashes the file at first; `not_found` if it is missing, `unsupported` for one part of several. */
  describe(path: string): Promise<ModelFileInfo>;
  /** The bytes from `start` up to `end`; the file is opened with the first read. `onChunk` is called before each chunk and may throw. */
  read(
    path: string,
    range: { readonly start: number; readonly end: number },
    onChunk: () => void,
  ): ReadableStream<Uint8Array>;
}

/** The bytes that a request asks for: `end` is the byte after the last. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The range of a header; null: the whole file, also for headers that name several ranges; `unsatisfiable`: none of its bytes exist. */
export function readRange(header: string | null, sizeBytes: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return null;
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1);
  if (first !== '' && last !== '' && Number(last) < start) return null;
  return start < end ? { start, end } : 'unsatisfiable';
}

/** The response for a file: whole, one range of it (206), or 416. */
export function modelFileResponse(
  { sizeBytes, sha256 }: ModelFileInfo,
  headers: Headers,
  read: (range: ByteRange) => ReadableStream<Uint8Array>,
): Response {
  const etag = `"${sha256}"`;
  // A range of another version would be joined with the bytes of this one.
  const isSameVersion = [null, etag].includes(headers.get('if-range'));
  const range = isSameVersion ? readRange(headers.get('range'), sizeBytes) : null;
  const common = {
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    etag,
    'repr-digest': `sha-256=:${toBase64(sha256)}:`,
    // Kept by the page itself, which has its hash; a copy in the browser's cache would double it.
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  };
  if (range === 'unsatisfiable') {
    return new Response(null, { status: 416, headers: { ...common, 'content-range': `bytes */${sizeBytes}` } });
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes };
  return new Response(read({ start, end }), {
    status: range === null ? 200 : 206,
    headers: {
      ...common,
      'content-length': String(end - start),
      ...(range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` }),
    },
  });
}

const toBase64 = (hex: string): string =>
  btoa(String.fromCharCode(...hex.match(/../g)!.map((digits) => Number.parseInt(digits, 16))));
