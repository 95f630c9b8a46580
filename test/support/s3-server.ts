// An S3-compatible storage in memory. It verifies Signature Version 4 by itself, from the raw request.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface S3Server {
  readonly url: string;
  /** `<bucket>/<key>` and the object. */
  readonly objects: Map<string, { bytes: Uint8Array; writtenMs: number }>;
  /** Requests with a wrong signature. */
  readonly numRefused: number;
  /** Method and path of all requests. */
  readonly requests: string[];
  /** How it behaves: `hangs` answers nothing, `readOnly` and `full` refuse writes. */
  mode: 'works' | 'hangs' | 'readOnly' | 'full';
  /** Delay of each answer. */
  delayMs: number;
  close(): Promise<void>;
}

export const S3_KEYS = { accessKeyId: 'AKIDTEST', secretAccessKey: 'secret/of+the tests' };
export const S3_REGION = 'eu-test-1';

const hash = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

function isSigned({ method, url, headers }: IncomingMessage, body: Buffer): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/;
  const [, keyId, day, region, names, signature] = pattern.exec(headers.authorization ?? '') ?? [];
  if (keyId !== S3_KEYS.accessKeyId || region !== S3_REGION || day === undefined) return false;
  if (!['host', 'x-amz-content-sha256', 'x-amz-date'].every((name) => names!.split(';').includes(name))) return false;
  const stamp = String(headers['x-amz-date']);
  const sentMs = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!stamp.startsWith(day) || !(Math.abs(Date.now() - sentMs) < 15 * 60_000)) return false;
  if (headers['x-amz-content-sha256'] !== hash(body)) return false;
  const [path, query = ''] = url!.split('?');
  const canonical = [
    method,
    path,
    query.split('&').toSorted().join('&').replaceAll('+', '%20'),
    ...names!.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    hash(body),
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  let key = hmac(`AWS4${S3_KEYS.secretAccessKey}`, day);
  for (const part of [region, 's3', 'aws4_request']) key = hmac(key, part);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', stamp, scope, hash(canonical)].join('\n'));
  return timingSafeEqual(expected, Buffer.from(signature!, 'hex'));
}

/** `pageSize`: objects of one page of a list. */
export async function startS3Server({ pageSize = 1000 } = {}): Promise<S3Server> {
  const objects: S3Server['objects'] = new Map();
  const requests: string[] = [];
  const state = { mode: 'works' as S3Server['mode'], delayMs: 0, numRefused: 0 };
  const timers = new Set<NodeJS.Timeout>();

  function list(bucket: string, query: URLSearchParams): string {
    const prefix = `${bucket}/${query.get('prefix') ?? ''}`;
    const after = query.get('continuation-token') ?? '';
    const names = [...objects.keys()].filter((name) => name.startsWith(prefix) && name > after).toSorted();
    const page = names.slice(0, pageSize);
    const isTruncated = page.length < names.length;
    const entries = page.map((name) => {
      const { bytes, writtenMs } = objects.get(name)!;
      return `<Contents><Key>${name.slice(bucket.length + 1)}</Key><LastModified>${new Date(writtenMs).toISOString()}</LastModified><Size>${bytes.length}</Size></Contents>`;
    });
    const token = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${token}${entries.join('')}</ListBucketResult>`;
  }

  function answer(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const reply = (status: number, content: string | Uint8Array = ''): void => {
      const send = (): void => void response.writeHead(status).end(content);
      if (state.delayMs === 0) return send();
      const timer = setTimeout(() => (timers.delete(timer), send()), state.delayMs);
      timers.add(timer);
    };
    const error = (status: number, code: string): void => reply(status, `<Error><Code>${code}</Code></Error>`);
    const url = new URL(request.url!, 'http://s3');
    const name = decodeURIComponent(url.pathname.slice(1));
    requests.push(`${request.method} ${name}`);
    if (state.mode === 'hangs') return;
    if (!isSigned(request, body)) {
      state.numRefused++;
      return error(403, 'SignatureDoesNotMatch');
    }
    if (request.method === 'GET' && url.searchParams.has('list-type')) return reply(200, list(name, url.searchParams));
    if (request.method === 'PUT') {
      if (state.mode === 'readOnly') return error(403, 'AccessDenied');
      if (state.mode === 'full') return error(507, 'InsufficientStorage');
      objects.set(name, { bytes: new Uint8Array(body), writtenMs: Date.now() });
      return reply(200);
    }
    if (request.method === 'DELETE') {
      if (state.mode === 'readOnly') return error(403, 'AccessDenied');
      objects.delete(name);
      return reply(204);
    }
    const object = objects.get(name);
    if (object === undefined) return error(404, 'NoSuchKey');
    reply(200, request.method === 'HEAD' ? '' : object.bytes);
  }

  const http = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => answer(request, Buffer.concat(parts), response));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    objects,
    requests,
    get numRefused() {
      return state.numRefused;
    },
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
    },
    get delayMs() {
      return state.delayMs;
    },
    set delayMs(delayMs) {
      state.delayMs = delayMs;
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}
