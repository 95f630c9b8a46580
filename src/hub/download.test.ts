import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createTestPlatform, listing, sendFile } from './fake-hub.contract.ts';
import { createHub } from './hub.ts';
import type { HubOptions } from './hub-options.ts';
import type { HubPlatform } from './platform.ts';
import type { PullProgress } from './pull-context.ts';
import { BYTES, DONE, EMPTY, PARTIAL, failure, setUp } from './pull-setup.contract.ts';

describe('redirects and the token', () => {
  test('sends the token to the endpoint, but not along a redirect to another origin', async () => {
    const elsewhere: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      elsewhere.push(request.headers.authorization);
      sendFile(request, response, BYTES);
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      other.closeAllConnections();
      other.close();
    });
    const address = `http://localhost:${(other.address() as AddressInfo).port}/bytes`;
    const { hub, fake, platform } = await setUp(
      (_request, response) => !!response.writeHead(302, { location: address }).end(),
      undefined,
      { token: 'hf_secret' },
    );
    await hub.pullModel('owner/repo');
    expect(elsewhere).toEqual([undefined]);
    expect(fake.requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer hf_secret'));
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('keeps the token on a redirect within the origin, and stops after ten redirects', async () => {
    const { hub, fake } = await setUp(
      (request, response) => !!response.writeHead(307, { location: request.url }).end(),
      undefined,
      { token: 'hf_secret' },
    );
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.message).toMatch(/more than 10 redirects/);
    expect(fake.requests.filter(({ url }) => url.includes('/resolve/')).map((r) => r.headers.authorization)).toEqual(
      Array(11).fill('Bearer hf_secret'),
    );
  });

  test('rejects a redirect from https to http or to another scheme', async () => {
    const fetches: string[] = [];
    const answer = (location: string) => async (url: string) => {
      fetches.push(url);
      return new Response(null, { status: 302, headers: { location } });
    };
    for (const location of ['http://example.org/x', 'file:///etc/passwd', 'ftp://example.org/x']) {
      const platform = createTestPlatform({ fetch: answer(location) });
      const hub = createHub({ platform, endpoint: 'https://hub.example' });
      expect((await failure(hub.pullModel('owner/repo'))).code).toBe('download_failed');
    }
    expect(fetches.map((url) => new URL(url).host)).toEqual(Array(3).fill('hub.example'));
  });

  test('follows redirects of a public hub only to public addresses', async () => {
    const fetches: string[] = [];
    const answer = async (url: string): Promise<Response> => {
      fetches.push(url);
      return new Response(null, { status: 302, headers: { location: 'http://10.0.0.7/model' } });
    };
    const publicOnly = async (url: string): Promise<Response> => {
      throw new RuvLLMError('download_failed', `${url} is private`);
    };
    const open = (endpoint: string, isPrivate: boolean) =>
      createHub({
        platform: createTestPlatform({
          fetch: answer,
          fetchPublic: publicOnly,
          isPrivateHost: async () => isPrivate,
        }),
        endpoint,
        maxAttempts: 1,
      });
    expect((await failure(open('http://hub.example', false).pullModel('owner/repo'))).message).toMatch(/is private/);
    expect(fetches.map((url) => new URL(url).host)).toEqual(['hub.example']);
    // A hub of the user's own network may redirect within it; a name in a URL may not claim to be in it.
    expect((await failure(open('http://hub.example', true).pullModel('owner/repo'))).message).toMatch(/10 redirects/);
    const fromUrl = open('http://hub.example', true).pullModel('http://models.example/model.gguf');
    expect((await failure(fromUrl)).message).toMatch(/is private/);
  });

  test('reads the token from HF_TOKEN, then from the file; null means none', async () => {
    const sent = async (options: Partial<HubOptions>, environment: Record<string, string>, file: string | null) => {
      const { fake, platform } = await setUp();
      const tokenPlatform = { ...platform, environment };
      if (file !== null) writeFileSync(platform.tokenPath, file);
      await createHub({ platform: tokenPlatform, endpoint: fake.endpoint, ...options }).pullModel('owner/repo');
      return fake.requests[0]!.headers.authorization;
    };
    expect(await sent({}, { HF_TOKEN: 'from-env' }, 'from-file\n')).toBe('Bearer from-env');
    expect(await sent({}, {}, 'from-file\n')).toBe('Bearer from-file');
    expect(await sent({ token: 'option' }, { HF_TOKEN: 'from-env' }, null)).toBe('Bearer option');
    expect(await sent({ token: null }, { HF_TOKEN: 'from-env' }, 'from-file')).toBe(undefined);
    expect(await sent({}, {}, null)).toBe(undefined);
  });
});

describe('disk, cancellation, concurrency', () => {
  test('reports disk_full when the disk fills up, and resumes the partial file later', async () => {
    const { hub, fake, platform } = await setUp();
    let room = 150_000;
    const openWriter: HubPlatform['files']['openWriter'] = async (path, start) => {
      const writer = await platform.files.openWriter(path, start);
      return {
        ...writer,
        async write(bytes) {
          if (bytes.length > room) throw new RuvLLMError('disk_full', `cannot write ${path}: ENOSPC`);
          room -= bytes.length;
          await writer.write(bytes);
        },
      };
    };
    const small = { ...platform, files: { ...platform.files, openWriter } };
    const error = await failure(createHub({ platform: small, endpoint: fake.endpoint }).pullModel('owner/repo'));
    expect(error.code).toBe('disk_full');
    expect(listing(platform.cacheRoot)).toEqual(PARTIAL);
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toMatch(/^bytes=[1-9]/);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('rejects a download larger than the free space, with both numbers', async () => {
    const { platform, fake } = await setUp();
    const full = { ...platform, files: { ...platform.files, freeBytes: async () => 299_999 } };
    const error = await failure(createHub({ platform: full, endpoint: fake.endpoint }).pullModel('owner/repo'));
    expect(error.code).toBe('disk_full');
    expect(error.data).toEqual({ neededBytes: 300_000, freeBytes: 299_999 });
    expect(listing(platform.cacheRoot)).toEqual(EMPTY);
  });

  test('keeps received bytes after an abort and resumes from there', async () => {
    const abort = new AbortController();
    const { hub, fake, platform } = await setUp((_request, response, file, count) => {
      if (count > 0) return false;
      response.writeHead(200, { 'content-length': file.bytes.length });
      response.write(file.bytes.subarray(0, 65_536));
      return true; // Then silence.
    });
    const onProgress = (progress: PullProgress): void => {
      if (progress.phase === 'download') abort.abort();
    };
    const error = await failure(hub.pullModel('owner/repo', { signal: abort.signal, onProgress }));
    expect(error.code).toBe('aborted');
    expect(listing(platform.cacheRoot)).toEqual(PARTIAL);
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toMatch(/^bytes=[1-9]/);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('stops before the first request if the signal is already aborted', async () => {
    const { hub, fake, platform } = await setUp();
    expect((await failure(hub.pullModel('owner/repo', { signal: AbortSignal.abort() }))).code).toBe('aborted');
    expect(fake.requests).toEqual([]);
    expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
  });

  test('gives up on a silent hub after the timeout', async () => {
    const { hub, platform } = await setUp(() => true, undefined, { connectTimeoutMs: 40, maxAttempts: 2 });
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.message).toMatch(/no data for 40 ms/);
    expect(listing(platform.cacheRoot)).toEqual(EMPTY);
  });

  test('downloads a file once for concurrent pulls', async () => {
    const { hub, fake, platform } = await setUp();
    const pulled = await Promise.all(Array.from({ length: 5 }, () => hub.pullModel('owner/repo')));
    expect(pulled.filter(({ isDownloaded }) => isDownloaded).length).toBe(1);
    expect(new Set(pulled.map(({ path }) => path)).size).toBe(1);
    expect(fake.requests.filter(({ url }) => url.includes('/resolve/')).length).toBe(1);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });
});
