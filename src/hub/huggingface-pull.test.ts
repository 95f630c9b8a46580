import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import {
  COMMIT,
  createTestPlatform,
  listing,
  sendFile,
  sha256,
  startFakeHub,
  type FakeFile,
  type FakeHub,
  type FileReply,
} from './fake-hub.contract.ts';
import { createHub, type Hub } from './hub.ts';
import type { HubOptions } from './hub-options.ts';
import type { HubPlatform } from './platform.ts';
import type { PullProgress } from './pull-context.ts';

const BYTES = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7 + (i >> 8)) & 255);
const OID = sha256(BYTES);
const FILE = 'model-q4_k_m.gguf';
const REPO = 'models--owner--repo';
const LINK = `${REPO}/snapshots/${COMMIT}/${FILE} -> ../../blobs/${OID}`;
const DONE = [
  `${REPO}/`,
  `${REPO}/blobs/`,
  `${REPO}/blobs/${OID}`,
  `${REPO}/refs/`,
  `${REPO}/refs/main`,
  `${REPO}/snapshots/`,
  `${REPO}/snapshots/${COMMIT}/`,
  LINK,
];
const EMPTY = [`${REPO}/`, `${REPO}/blobs/`];
const PARTIAL = [...EMPTY, `${REPO}/blobs/${OID}.incomplete`];

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Setup {
  hub: Hub;
  fake: FakeHub;
  platform: HubPlatform & { waits: number[] };
}

async function setUp(
  reply?: FileReply,
  files: FakeFile[] = [{ path: FILE, bytes: BYTES }],
  options: Partial<HubOptions> & { changes?: Partial<HubPlatform> } = {},
): Promise<Setup> {
  const { changes, ...rest } = options;
  const fake = await startFakeHub(files, reply);
  closers.push(fake.close);
  const platform = createTestPlatform(changes);
  return { hub: createHub({ platform, endpoint: fake.endpoint, ...rest }), fake, platform };
}

async function failure(work: Promise<unknown>): Promise<RuvLLMError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RuvLLMError);
  return error as RuvLLMError;
}

function writePartial(platform: HubPlatform, bytes: Uint8Array): void {
  mkdirSync(join(platform.cacheRoot, REPO, 'blobs'), { recursive: true });
  writeFileSync(join(platform.cacheRoot, REPO, 'blobs', `${OID}.incomplete`), bytes);
}

describe('pull', () => {
  test('plain: the cache layout is exact and the bytes are right', async () => {
    const { hub, platform } = await setUp();
    const seen: PullProgress[] = [];
    const pulled = await hub.pullModel('owner/repo:Q4_K_M', { onProgress: (progress) => seen.push(progress) });
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
    expect(seen[0]).toEqual({ phase: 'resolve', item: 'owner/repo', doneBytes: 0, totalBytes: null });
    expect(seen.at(-1)).toEqual({
      phase: 'download',
      item: FILE,
      doneBytes: BYTES.length,
      totalBytes: BYTES.length,
    });
  });

  test('again: nothing is downloaded twice', async () => {
    const { hub, fake } = await setUp();
    await hub.pullModel('owner/repo');
    const before = fake.requests.length;
    expect((await hub.pullModel('owner/repo')).isDownloaded).toBe(false);
    expect(fake.requests.slice(before).filter(({ url }) => url.includes('/resolve/'))).toEqual([]);
  });

  test('a file in a folder links two levels higher, and a small file is checked by its git id', async () => {
    const { hub, platform } = await setUp(undefined, [{ path: 'sub/tiny.gguf', bytes: BYTES, isSmall: true }]);
    const { path, sha256: hash } = await hub.pullModel('owner/repo');
    expect(hash).toBe(null);
    expect(sha256(readFileSync(path))).toBe(OID);
    expect(listing(platform.cacheRoot).find((line) => line.includes(' -> '))).toMatch(
      /sub\/tiny\.gguf -> \.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/,
    );
  });

  test('resumes after a cut, asking only for the rest', async () => {
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

  test('resumes what an earlier process left, and rehashes it', async () => {
    const { hub, fake, platform } = await setUp();
    writePartial(platform, BYTES.subarray(0, 200_000));
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toBe('bytes=200000-');
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('a complete partial needs no request; a damaged one is fetched anew', async () => {
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

  test('a partial longer than the file is dropped', async () => {
    const { hub, fake, platform } = await setUp();
    writePartial(platform, new Uint8Array(BYTES.length + 1));
    await hub.pullModel('owner/repo');
    expect(fake.requests.at(-1)!.headers.range).toBe(undefined);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('a 200 to a range request restarts from byte 0', async () => {
    const { hub, platform } = await setUp((_request, response, file) => {
      response.writeHead(200, { 'content-length': file.bytes.length }).end(file.bytes);
      return true;
    });
    writePartial(platform, BYTES.subarray(0, 123_456));
    const { path } = await hub.pullModel('owner/repo');
    expect(sha256(readFileSync(path))).toBe(OID);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });

  test('500 and a Retry-After pass; the waits are those asked for', async () => {
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

describe('a hub that lies or fails', () => {
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
      new RegExp(`sha256 is [0-9a-f]{64}, promised was ${OID}`),
      EMPTY,
    ],
    [
      'body longer than promised, no length announced',
      (_request, response, file) => {
        response.write(file.bytes);
        response.end('more');
        return true;
      },
      {},
      'download_failed',
      /body goes on past the 300000 bytes promised \(at 300004\)/,
      EMPTY,
    ],
    [
      'length announced too long',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 300_001 }).end(Buffer.alloc(300_001));
        return true;
      },
      {},
      'download_failed',
      /announces 300001 bytes, 300000 were promised/,
      EMPTY,
    ],
    [
      'length announced too short',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 10 }).end(Buffer.alloc(10));
        return true;
      },
      {},
      'download_failed',
      /announces 10 bytes, 300000 were promised/,
      EMPTY,
    ],
    [
      'body shorter than promised on every try',
      (request, response, file) => {
        const start = Number(/\d+/.exec(request.headers.range ?? '0')![0]);
        const headers = { 'content-range': `bytes ${start}-299999/300000` };
        response.writeHead(start === 0 ? 200 : 206, headers).write(file.bytes.subarray(start, 50_000));
        response.end();
        return true;
      },
      {},
      'download_failed',
      /body ended after 50000 of 300000 bytes/,
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
      '500 for ever',
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
  ])('lying Content-Range: %s', async (_name, range) => {
    const { hub, platform } = await setUp((_request, response, file) => {
      response.writeHead(206, { 'content-range': range }).end(file.bytes.subarray(100_000));
      return true;
    });
    writePartial(platform, BYTES.subarray(0, 100_000));
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.code).toBe('download_failed');
    expect(error.message).toContain(`asked for "bytes 100000-299999/300000", the reply claims "${range}"`);
    expect(listing(platform.cacheRoot)).toEqual(PARTIAL);
    expect(readFileSync(join(platform.cacheRoot, REPO, 'blobs', `${OID}.incomplete`)).length).toBe(100_000);
  });

  test.each(['../../evil.gguf', '/etc/evil.gguf', 'a\\..\\evil.gguf', 'a\0.gguf', 'a//b.gguf', './x.gguf', 'c:x.gguf'])(
    'file name %j is refused before anything is written',
    async (path) => {
      const { hub, platform } = await setUp(undefined, [{ path, bytes: BYTES }]);
      const error = await failure(hub.pullModel('owner/repo'));
      expect(error.code).toBe('download_failed');
      expect(error.message).toContain('refused the file name');
      expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
    },
  );

  test('a hash that is a path is not taken for a hash', async () => {
    const { hub, platform } = await setUp(undefined, [{ path: FILE, bytes: BYTES, sha256: '../../../evil' }]);
    expect((await failure(hub.pullModel('owner/repo'))).code).toBe('not_found');
    expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
  });

  test('only split files: unsupported', async () => {
    const { hub } = await setUp(undefined, [{ path: 'm-q4_0-00001-of-00002.gguf', bytes: BYTES }]);
    expect((await failure(hub.pullModel('owner/repo:q4_0'))).code).toBe('unsupported');
    expect((await failure(hub.pullModel('owner/repo'))).code).toBe('unsupported');
  });

  test('an unknown repository is not_found, an unreachable hub says why', async () => {
    const { hub, platform } = await setUp();
    expect((await failure(hub.pullModel('other/repo'))).code).toBe('not_found');
    const gone = createHub({ platform, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 });
    const error = await failure(gone.pullModel('owner/repo'));
    expect(error.code).toBe('download_failed');
    expect(error.message).toMatch(/^127\.0\.0\.1:1: \S/);
  });
});

describe('redirects and the token', () => {
  test('the token goes to the endpoint and not along a redirect to another origin', async () => {
    const elsewhere: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      elsewhere.push(request.headers.authorization);
      sendFile(request, response, BYTES);
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => (other.closeAllConnections(), other.close(resolve))));
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

  test('a redirect on the same origin keeps it; more than ten redirects end', async () => {
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

  test('https to http is refused, and so is another scheme', async () => {
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

  test('the token comes from HF_TOKEN, then the file; null means none', async () => {
    const sent = async (options: Partial<HubOptions>, environment: Record<string, string>, file: string | null) => {
      const { fake, platform } = await setUp();
      const own = { ...platform, environment };
      if (file !== null) writeFileSync(platform.tokenPath, file);
      await createHub({ platform: own, endpoint: fake.endpoint, ...options }).pullModel('owner/repo');
      return fake.requests[0]!.headers.authorization;
    };
    expect(await sent({}, { HF_TOKEN: 'from-env' }, 'from-file\n')).toBe('Bearer from-env');
    expect(await sent({}, {}, 'from-file\n')).toBe('Bearer from-file');
    expect(await sent({ token: 'given' }, { HF_TOKEN: 'from-env' }, null)).toBe('Bearer given');
    expect(await sent({ token: null }, { HF_TOKEN: 'from-env' }, 'from-file')).toBe(undefined);
    expect(await sent({}, {}, null)).toBe(undefined);
  });
});

describe('disk, cancellation, concurrency', () => {
  test('a disk that fills up in the middle: disk_full, and the partial is resumed later', async () => {
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

  test('too little free space is refused up front, with both numbers', async () => {
    const { platform, fake } = await setUp();
    const full = { ...platform, files: { ...platform.files, freeBytes: async () => 299_999 } };
    const error = await failure(createHub({ platform: full, endpoint: fake.endpoint }).pullModel('owner/repo'));
    expect(error.code).toBe('disk_full');
    expect(error.data).toEqual({ neededBytes: 300_000, freeBytes: 299_999 });
    expect(listing(platform.cacheRoot)).toEqual(EMPTY);
  });

  test('abort keeps what came, and the next pull goes on from there', async () => {
    const abort = new AbortController();
    const { hub, fake, platform } = await setUp((_request, response, file, count) => {
      if (count > 0) return false;
      response.writeHead(200, { 'content-length': file.bytes.length });
      response.write(file.bytes.subarray(0, 65_536));
      return true; // and then silence
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

  test('a signal that has fired already stops before the first request', async () => {
    const { hub, fake, platform } = await setUp();
    expect((await failure(hub.pullModel('owner/repo', { signal: AbortSignal.abort() }))).code).toBe('aborted');
    expect(fake.requests).toEqual([]);
    expect(listing(platform.cacheRoot)).toEqual(['(nothing)']);
  });

  test('a hub that goes silent is left after the deadline', async () => {
    const { hub, platform } = await setUp(() => true, undefined, { connectTimeoutMs: 40, maxAttempts: 2 });
    const error = await failure(hub.pullModel('owner/repo'));
    expect(error.message).toMatch(/nothing came for 40 ms/);
    expect(listing(platform.cacheRoot)).toEqual(EMPTY);
  });

  test('concurrent pulls of one file download it once', async () => {
    const { hub, fake, platform } = await setUp();
    const pulled = await Promise.all(Array.from({ length: 5 }, () => hub.pullModel('owner/repo')));
    expect(pulled.filter(({ isDownloaded }) => isDownloaded).length).toBe(1);
    expect(new Set(pulled.map(({ path }) => path)).size).toBe(1);
    expect(fake.requests.filter(({ url }) => url.includes('/resolve/')).length).toBe(1);
    expect(listing(platform.cacheRoot)).toEqual(DONE);
  });
});
