import { createHash, createHmac } from 'node:crypto';

/** Signature Version 4 of AWS, as S3-compatible storages verify it. */
export interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  /** Signed, all of them; without `host`. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string;
}

export interface SigningKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials; null: none. */
  readonly sessionToken: string | null;
  readonly region: string;
}

const SERVICE = 's3';
const ALGORITHM = 'AWS4-HMAC-SHA256';

export const hashHex = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: string | Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** RFC 3986: `encodeURIComponent` leaves more characters as they are. */
export const encodePart = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

const byCode = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : a > b ? 1 : 0);

function canonicalQuery(url: URL): string {
  const pairs = [...url.searchParams].map(([name, value]) => [encodePart(name), encodePart(value)] as const);
  return pairs.toSorted(byCode).map(([name, value]) => `${name}=${value}`).join('&'); // prettier-ignore
}

/** The headers to send, with `authorization`. `time` is the time of the request. */
export function signRequest(request: SignedRequest, keys: SigningKeys, time: Date): Record<string, string> {
  const stamp = time.toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
  const day = stamp.slice(0, 8);
  const headers: Record<string, string> = {
    ...request.headers,
    'x-amz-content-sha256': request.bodyHash,
    'x-amz-date': stamp,
    ...(keys.sessionToken === null ? {} : { 'x-amz-security-token': keys.sessionToken }),
  };
  const signed = Object.entries({ ...headers, host: request.url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replaceAll(/ +/g, ' ')] as const)
    .toSorted(byCode);
  const names = signed.map(([name]) => name).join(';');
  const path = request.url.pathname.split('/').map((part) => encodePart(decodeURIComponent(part))).join('/'); // prettier-ignore
  const canonical = [
    request.method,
    path,
    canonicalQuery(request.url),
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    request.bodyHash,
  ].join('\n');
  const scope = `${day}/${keys.region}/${SERVICE}/aws4_request`;
  const text = [ALGORITHM, stamp, scope, hashHex(canonical)].join('\n');
  const parts = [day, keys.region, SERVICE, 'aws4_request'];
  const key = parts.reduce<string | Uint8Array>((secret, part) => hmac(secret, part), `AWS4${keys.secretAccessKey}`);
  const signature = hmac(key as Uint8Array, text).toString('hex');
  headers['authorization'] =
    `${ALGORITHM} Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return headers;
}
