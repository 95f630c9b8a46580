import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMIT, listing, sha256, type FakeFile, type FileReply } from './fake-hub.contract.ts';
import { createHub } from './hub.ts';
import type { PullProgress } from './pull-context.ts';
import { BYTES, DONE, EMPTY, FILE, OID, PARTIAL, REPO, failure, setUp, writePartial } from './pull-setup.contract.ts';

describe('pull', () => {
  test('writes the exact cache layout and the right bytes', async () => {
    const { hub, platform } = await setUp();
    const reports: PullProgress[] = [];
    const pulled = await hub.pullModel('owner/repo:Q4_K_M', { onProgress: (progress) => reports.push(progress) });
    expect(pulled).toEqual({
      path: join(platform.cacheRoot, REPO, 'snapshots', COMMIT, FILE),
      file: FILE,
      commit: COMMIT,
      sizeBytes: BYTES.length,
      sha256: OID,
      isDownloaded: true,
    });
    expect(listing(platform.cacheRoot)).toEqual(DONE);
    expect(sha256(readFileSync(pulled.path))).toBe(OID);
    expect(readFileSync(join(platform.cacheRoot, REPO, 'refs/main'), 'utf8')).toBe(COMMIT);
    expect(reports[0]).toEqual({ phase: 'resolve', item: 'owner/repo', doneBytes: 0, totalBytes: null });
    expect(reports.at(-1)).toEqual({
      phase: 'download',
      item: FILE,
      doneBytes: BYTES.length,
      totalBytes: BYTES.length,
    });
  });

  test('does not download a file twice', async () => {
    const { hub, fake } = await setUp();
    await hub.pullModel('owner/repo');
    const before = fake.requests.length;
    expect((await hub.pullModel('owner/repo')).isDownloaded).toBe(false);
    expect(fake.requests.slice(before).filter(({ url }) => url.includes('/resolve/'))).toEqual([]);
  });

  test('links a file in a folder two levels higher, and checks a small file by its git id', async () => {
    const { hub, platform } = await setUp(undefined, [{ path: 'sub/tiny.gguf', bytes: BYTES, isSmall: true }]);
    const { path, sha256: hash } = await hub.pullModel('owner/repo');
    expect(hash).toBe(null);
    expect(sha256(readFileSync(path))).toBe(OID);
    expect(listing(platform.cacheRoot).find((line) => line.includes(' -> '))).toMatch(
      /sub\/tiny\.gguf -> \.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/,
    );
  });

  test('resumes after a disconnect and requests only the missing bytes', async () => {
    const { hub, fake, platform } = await setUp((_request, response, file, count) => {
      if (count > 0) return false;
      response.writeHead(200, { 'content-length': file.bytes.length });
      response.write(file.bytes.subarray(0, 100_000), () => response.destroy());
      return true;
    });
    const { path } = await hub.pullModel('owner/repo');
    expect(sha256(readFileSync(path))).toBe(OID);
    const ranges = fake.requests.filter(({ url }) => url.includes('/resolve/')).map(({ headers }) => headers.range);
    expect(ranges.length).toBe(2);
    expect(ranges[0]).toBe(undefined);
    expect(ranges[1]).toMatch(/^bytes=[1-9]\d*-$/);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('resumes and rehashes the partial file of an earlier process', async () => {
    const { hub, fake, platform } = await setUp();
    writePartial(platform, BYTES.subarray(0, 200_000));
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toBe('bytes=200000-');
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('sends no request for a complete partial file, and downloads a corrupt one again', async () => {
    const whole = await setUp();
    writePartial(whole.platform, BYTES);
    await whole.hub.pullModel('owner/repo');
    expect(whole.fake.requests.filter(({ url }) => url.includes('/resolve/'))).toEqual([]);
    expect(listing(whole.platform.cacheRoot)).toEqual(DONE);

    const damaged = await setUp();
    writePartial(damaged.platform, BYTES.slice(0, 200_000).fill(0, 5, 6));
    const { path } = await damaged.hub.pullModel('owner/repo');
    expect(sha256(readFileSync(path))).toBe(OID);
    expect(damaged.fake.requests.filter(({ url }) => url.includes('/resolve/')).map((r) => r.headers.range)).toEqual([
      'bytes=200000-',
      undefined,
    ]);
  });

  test('drops a partial file longer than the file', async () => {
    const { hub, fake, platform } = await setUp();
    writePartial(platform, new Uint8Array(BYTES.length + 1));
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toBe(undefined);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('restarts from byte 0 on a 200 to a range request', async () => {
    const { hub, platform } = await setUp((_request, response, file) => {
      response.writeHead(200, { 'content-length': file.bytes.length }).end(file.bytes);
      return true;
    });
    writePartial(platform, BYTES.subarray(0, 123_456));
    const { path } = await hub.pullModel('owner/repo');
    expect(sha256(readFileSync(path))).toBe(OID);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('retries after 500 and Retry-After, with the requested waits', async () => {
    const { hub, platform } = await setUp((_request, response, _file, count) => {
      if (count === 0) response.writeHead(500).end();
      if (count === 1) response.writeHead(429, { 'retry-after': '7' }).end();
      return count < 2;
    });
    await hub.pullModel('owner/repo');
    expect(platform.waits).toEqual([500, 7000]);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });
});

describe('a lying or failing hub', () => {
  const cases: [
    name: string,
    reply: FileReply,
    file: Partial<FakeFile>,
    code: string,
    message: RegExp,
    left: string[],
  ][] = [
    [
      'wrong hash',
      (_request, response, file) => {
        response.end(Buffer.from(file.bytes).fill(9, 1000, 1001));
        return true;
      },
      {},
      'hash_mismatch',
      new RegExp(`sha256 is [0-9a-f]{64}, expected ${OID}`),
      EMPTY,
    ],
    [
      'body longer than expected, without a length header',
      (_request, response, file) => {
        response.write(file.bytes);
        response.end('more');
        return true;
      },
      {},
      'download_failed',
      /the body continues past the expected 300000 bytes \(at 300004\)/,
      EMPTY,
    ],
    [
      'length header too large',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 300_001 }).end(Buffer.alloc(300_001));
        return true;
      },
      {},
      'download_failed',
      /announces 300001 bytes, expected 300000/,
      EMPTY,
    ],
    [
      'length header too small',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 10 }).end(Buffer.alloc(10));
        return true;
      },
      {},
      'download_failed',
      /announces 10 bytes, expected 300000/,
      EMPTY,
    ],
    [
      'body shorter than expected on every attempt',
      (request, response, file) => {
        const start = Number(/\d+/.exec(request.headers.range ?? '0')![0]);
        const headers = { 'content-range': `bytes ${start}-299999/300000` };
        response.writeHead(start === 0 ? 200 : 206, headers).write(file.bytes.subarray(start, 50_000));
        response.end();
        return true;
      },
      {},
      'download_failed',
      /the body ended after 50000 of 300000 bytes/,
      PARTIAL,
    ],
    [
      'compressed reply',
      (_request, response) => {
        response.writeHead(200, { 'content-encoding': 'br' }).end('x');
        return true;
      },
      {},
      'download_failed',
      /br-encoded/,
      EMPTY,
    ],
    ['404', (_request, response) => !!response.writeHead(404).end(), {}, 'not_found', /\(404\)/, EMPTY],
    [
      '401',
      (_request, response) => !!response.writeHead(401).end(),
      {},
      'download_failed',
      /answered 401.*HF_TOKEN/,
      EMPTY,
    ],
    [
      'status 500 forever',
      (_request, response) => !!response.writeHead(500).end(),
      {},
      'download_failed',
      /answered 500/,
      EMPTY,
    ],
  ];
  test.each(cases)('%s', async (_name, reply, file, code, message, left) => {
    const { hub, platform, fake } = await setUp(reply, [{ path: FILE, bytes: BYTES, ...file }], { maxAttempts: 3 });
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(listing(platform.cacheRoot)).toEqual(left);
    expect(fake.requests.filter(({ url }) => url.includes('/resolve/')).length).toBeLessThanOrEqual(4);
    expect(await hub.listModels()).toEqual([]);
  });

  test.each([
    ['another start', 'bytes 99999-299999/300000'],
    ['another end', 'bytes 100000-299998/300000'],
    ['another size', 'bytes 100000-299999/300001'],
    ['nonsense', 'bytes */300000'],
  ])('rejects a false Content-Range: %s', async (_name, range) => {
    const { hub, platform } = await setUp((_request, response, file) => {
      response.writeHead(206, { 'content-range': range }).end(file.bytes.subarray(100_000));
      return true;
    });
    writePartial(platform, BYTES.subarray(0, 100_000));
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.code).toBe('download_failed');
    expect(error.message).toContain(`requested "bytes 100000-299999/300000", the response claims "${range}"`);
    expect(listing(platform.cacheRoot)).toEqual(PARTIAL);
    expect(readFileSync(join(platform.cacheRoot, REPO, 'blobs', `${OID}.incomplete`)).length).toBe(100_000);
  });

  test.each(['../../evil.gguf', '/etc/evil.gguf', 'a\\..\\evil.gguf', 'a\0.gguf', 'a//b.gguf', './x.gguf', 'c:x.gguf'])(
    'rejects the file name %j before writing anything',
    async (path) => {
      const { hub, platform } = await setUp(undefined, [{ path, bytes: BYTES }]);
      const error = await failure(hub.pullModel('owner/repo'));
      expect(error.code).toBe('download_failed');
      expect(error.message).toContain('unsafe file name');
      expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
    },
  );

  test('does not accept a path as a hash', async () => {
    const { hub, platform } = await setUp(undefined, [{ path: FILE, bytes: BYTES, sha256: '../../../evil' }]);
    expect((await failure(hub.pullModel('owner/repo'))).code).toBe('not_found');
    expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
  });

  test('rejects a repository of only split files as unsupported', async () => {
    const { hub } = await setUp(undefined, [{ path: 'm-q4_0-00001-of-00002.gguf', bytes: BYTES }]);
    expect((await failure(hub.pullModel('owner/repo:q4_0'))).code).toBe('unsupported');
    expect((await failure(hub.pullModel('owner/repo'))).code).toBe('unsupported');
  });

  test('reports not_found for an unknown repository and the reason for an unreachable hub', async () => {
    const { hub, platform } = await setUp();
    expect((await failure(hub.pullModel('other/repo'))).code).toBe('not_found');
    const gone = createHub({ platform, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 });
    const error = await failure(gone.pullModel('owner/repo'));
    expect(error.code).toBe('download_failed');
    expect(error.message).toMatch(/^127\.0\.0\.1:1: \S/);
  });
});
