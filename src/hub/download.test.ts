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
      { token: 'hf_secret', origins: [new URL(address).origin] },
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

  test('[K11] asks only origins that the operator has named as they are, all others at public addresses', async () => {
    const asked: string[] = [];
    const answer =
      (how: string, location: string) =>
      async (url: string): Promise<Response> => {
        asked.push(`${how} ${new URL(url).host}`);
        if (how === 'public' && url.includes('10.')) {
          throw new RuvLLMError('download_failed', 'not public', { data: { isPrivate: true } });
        }
        return new Response(null, { status: 302, headers: { location } });
      };
    const pull = async (model: string, to: string, isFromClient = false): Promise<string> => {
      asked.length = 0;
      const platform = createTestPlatform({ fetch: answer('any', to), fetchPublic: answer('public', to) });
      const hub = createHub({ platform, endpoint: 'http://10.0.0.1', origins: ['http://10.0.0.2:90'], maxAttempts: 1 });
      return (await failure(hub.pullModel(model, { isFromClient }))).message;
    };
    const refusal = 'not public; to allow it, add http://10.0.0.7 to RUVLLM_HUB_ORIGINS';
    expect(await pull('owner/repo', 'http://10.0.0.7/model')).toBe(refusal);
    expect(asked).toEqual(['any 10.0.0.1', 'public 10.0.0.7']);
    expect(await pull('owner/repo', 'http://10.0.0.2:90/model')).toMatch(/10 redirects/);
    expect(new Set(asked)).toEqual(new Set(['any 10.0.0.1', 'any 10.0.0.2:90']));
    // The same URL, from the operator and from a client of a server.
    expect(await pull('http://10.0.0.7/model.gguf', 'http://10.0.0.8/')).toContain('add http://10.0.0.8 to');
    expect(asked).toEqual(['any 10.0.0.7', 'public 10.0.0.8']);
    expect(await pull('http://10.0.0.7/model.gguf', 'http://10.0.0.8/', true)).toBe(refusal);
    expect(asked).toEqual(['public 10.0.0.7']);
    expect(await pull('owner/repo', 'http://user:secret@10.0.0.2:90/model')).toContain('without a usable address');
  });

  test('[K11] a hub names no further pages of its list at private addresses', async () => {
    const { hub, fake } = await setUp(undefined, undefined, { maxAttempts: 1 });
    const secret = await setUp();
    fake.nextPage = `${secret.fake.endpoint.replace('127.0.0.1', 'localhost')}/api/models/x`;
    expect((await failure(hub.pullModel('owner/repo'))).message).toContain('its address is not public');
    expect(secret.fake.requests).toEqual([]);
  });

  test('origins are checked, and read from RUVLLM_HUB_ORIGINS', () => {
    const open = (environment: Record<string, string>) => createHub({ platform: createTestPlatform({ environment }) });
    expect(() => open({ RUVLLM_HUB_ORIGINS: 'http://10.0.0.1:9 https://store.example' })).not.toThrow();
    expect(() => open({ RUVLLM_HUB_ORIGINS: 'http://10.0.0.1/path' })).toThrow('is not an origin such as');
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
