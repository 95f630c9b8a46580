import { trimEndOf } from '../../../core/trim.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import type { SharedPlace } from '../../../kv-cache/shared-store.ts';
import type { ObjectEntry, ObjectStore } from './object-store.ts';
import { encodePart, hashHex, signRequest } from './sigv4.ts';

export type S3Place = Extract<SharedPlace, { type: 's3' }>;

const EMPTY_HASH = hashHex('');
/** A list page has at most 1000 objects; more bytes than that are no list. */
const MAX_LIST_BYTES = 8 * 2 ** 20;
const MAX_LIST_PAGES = 10_000;
const MAX_ERROR_BYTES = 2 ** 16;

/** Objects of a bucket, with path-style addresses: other storages than that of AWS have no domain per bucket. */
export function createS3Objects(place: S3Place): ObjectStore {
  const { endpoint, bucket, prefix, region, credentials } = place;
  const base = `${trimEndOf(endpoint, '/')}/${encodePart(bucket)}`;
  const urlOf = (name: string): URL => new URL(`${base}/${(prefix + name).split('/').map(encodePart).join('/')}`);

  async function send(method: string, url: URL, signal: AbortSignal, body?: Uint8Array): Promise<Response> {
    const bodyHash = body === undefined ? EMPTY_HASH : hashHex(body);
    const headers = signRequest({ method, url, headers: {}, bodyHash }, { ...credentials, region }, new Date());
    return fetch(url, {
      method,
      headers,
      signal,
      // A signature is for one address: a redirect means another region or a wrong endpoint.
      redirect: 'manual',
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    });
  }

  /** Throws what the storage answered; a storage behind a proxy may answer anything. */
  async function fail(method: string, response: Response): Promise<never> {
    const text = Buffer.from((await readBody(response, MAX_ERROR_BYTES)) ?? []).toString('utf8');
    const code = /<Code>([\w.-]{1,80})<\/Code>/.exec(text)?.[1];
    const message = `${method} was answered with ${response.status}${code === undefined ? '' : ` ${code}`}`;
    throw new RuvLLMError('remote_failed', message, { data: { status: response.status, code: code ?? null } });
  }

  async function check(method: string, response: Response): Promise<void> {
    if (!response.ok) await fail(method, response);
    await response.body?.cancel();
  }

  return {
    async get(name, maxBytes, signal) {
      const response = await send('GET', urlOf(name), signal);
      if (response.status === 404) {
        await response.body?.cancel();
        return null;
      }
      if (!response.ok) await fail('GET', response);
      return (await readBody(response, maxBytes)) ?? new Uint8Array(0); // too large for a page: it fails its check
    },
    async has(name, signal) {
      const response = await send('HEAD', urlOf(name), signal);
      if (response.status === 404) return false;
      await check('HEAD', response);
      return true;
    },
    async put(name, bytes, signal) {
      await check('PUT', await send('PUT', urlOf(name), signal, bytes));
    },
    async delete(name, signal) {
      const response = await send('DELETE', urlOf(name), signal);
      if (response.status !== 404) await check('DELETE', response);
    },
    async list(below, signal) {
      const entries: ObjectEntry[] = [];
      let token: string | null = null;
      for (let page = 0; page < MAX_LIST_PAGES; page++) {
        const url = new URL(base);
        url.searchParams.set('list-type', '2');
        url.searchParams.set('prefix', prefix + below);
        if (token !== null) url.searchParams.set('continuation-token', token);
        const response = await send('GET', url, signal);
        if (!response.ok) await fail('LIST', response);
        const text = Buffer.from((await readBody(response, MAX_LIST_BYTES)) ?? []).toString('utf8');
        entries.push(...readEntries(text, prefix));
        token = /<NextContinuationToken>([^<]+)</.exec(text)?.[1] ?? null;
        if (token === null || !/<IsTruncated>true</.test(text)) return entries;
        token = unescapeXml(token);
      }
      return entries;
    },
  };
}

function readEntries(text: string, prefix: string): ObjectEntry[] {
  return [...text.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)].flatMap(([, fields]) => {
    const field = (name: string): string => unescapeXml(new RegExp(`<${name}>([^<]*)<`).exec(fields!)?.[1] ?? '');
    const name = field('Key');
    const entry = { name: name.slice(prefix.length), sizeBytes: Number(field('Size')), writtenMs: Date.parse(field('LastModified')) }; // prettier-ignore
    return name.startsWith(prefix) && entry.sizeBytes >= 0 && Number.isFinite(entry.writtenMs) ? [entry] : [];
  });
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
const unescapeXml = (text: string): string =>
  text.replaceAll(/&(lt|gt|amp|quot|apos);/g, (_, name: string) => ENTITIES[name]!);

/** Null: it has more than `maxBytes`. */
async function readBody(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let numBytes = 0;
  for await (const part of response.body ?? []) {
    numBytes += part.length;
    if (numBytes > maxBytes) return null;
    parts.push(part as Uint8Array);
  }
  return Buffer.concat(parts);
}
