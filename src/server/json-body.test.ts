import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import { describeFailure, type Failure } from './errors.ts';
import { readJsonBody } from './json-body.ts';

const LIMITS = { maxBodyBytes: 1000, maxJsonDepth: 5, maxJsonValues: 50 };
const post = (body: BodyInit, headers: Record<string, string> = {}): Request =>
  new Request('http://localhost/', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  } as RequestInit);

async function refusalOf(request: Request, limits = LIMITS): Promise<Failure> {
  return describeFailure(
    await readJsonBody(request, limits).then(
      () => null,
      (error: unknown) => error,
    ),
  );
}

test('[S3] limits bytes, depth and values, and names the limit in the error', async () => {
  expect(await readJsonBody(post('[[[[[1]]]]]'), LIMITS)).toEqual([[[[[1]]]]]);
  expect(await refusalOf(post('[[[[[[1]]]]]]'))).toMatchObject({
    status: 422,
    code: 'json_too_deep',
    message: 'the body nests deeper than 5 levels, at byte 5',
  });
  expect(await refusalOf(post(JSON.stringify('x'.repeat(999)), { 'content-length': '1001' }))).toMatchObject({
    status: 413,
    code: 'body_too_large',
    message: 'the body has 1001 bytes; the limit is 1000',
  });
  expect(await refusalOf(post(JSON.stringify(Array(60).fill(0))))).toMatchObject({
    status: 422,
    code: 'json_too_large',
    message: 'the body has more than 50 values, at byte 88; a list, an object and a key count 6',
  });
  // Brackets and commas inside strings are text, whatever is escaped.
  const text = { 'a\\"[[[[[[': '{{{{{{{,,,"\\' };
  expect(await readJsonBody(post(JSON.stringify(text)), LIMITS)).toEqual(text);
});

test('[S3] counts lists, objects and keys as six values', async () => {
  // One for the body, six for each of `{`, `:`, `[` and a seventh for the comma between.
  const bodies = ['{"a":[]}', '{"a":1,"b":2}', '[[],[]]'];
  for (const [index, cost] of [19, 20, 20].entries()) {
    const body = bodies[index]!;
    expect(await readJsonBody(post(body), { ...LIMITS, maxJsonValues: cost })).toEqual(JSON.parse(body));
    expect(await refusalOf(post(body), { ...LIMITS, maxJsonValues: cost - 1 })).toMatchObject({ status: 422 });
  }
});

test('[S3] reads a body of known length without its stream, up to the limit', async () => {
  let numStreams = 0;
  const watched = (request: Request): Request =>
    new Proxy(request, {
      get(target, name) {
        if (name === 'body') numStreams++;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  expect(await readJsonBody(watched(post('[1]', { 'content-length': '3' })), LIMITS)).toEqual([1]);
  expect(numStreams).toBe(0);
  // A wrong length, which a socket would prevent: nothing larger is parsed.
  const lying = post(JSON.stringify('x'.repeat(2000)), { 'content-length': '5' });
  expect(await refusalOf(lying)).toMatchObject({ status: 413, message: expect.stringContaining('2002 bytes') });
});

test('[S3] rejects 60,000 nested lists and an endless body', async () => {
  const deep = '['.repeat(60_000);
  expect(await refusalOf(post(deep), { ...LIMITS, maxBodyBytes: 1e6 })).toMatchObject({ code: 'json_too_deep' });
  let isCancelled = false;
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(100).fill(32)),
    cancel: () => void (isCancelled = true),
  });
  expect(await refusalOf(post(endless))).toMatchObject({
    status: 413,
    message: expect.stringContaining('1100 or more'),
  });
  expect(isCancelled).toBe(true);
});

test('[S3] rejects bytes that are not UTF-8 instead of replacing them', async () => {
  const bytes = new Uint8Array([0x22, 0xff, 0x22]);
  expect(await refusalOf(post(bytes))).toMatchObject({ status: 400, message: 'the body of 3 bytes is not UTF-8' });
});

test('accepts only JSON, which pages of other sites cannot send without a preflight', async () => {
  const others = [
    'text/plain',
    'application/x-www-form-urlencoded',
    '',
    'application/jsonx',
    'application/reports+json',
    'application/x+json',
    'application/json, text/plain',
  ];
  for (const type of others) {
    expect(await refusalOf(post('{}', { 'content-type': type })), type).toMatchObject({ status: 415 });
  }
  for (const type of ['application/json', 'Application/JSON ; Charset="utf-8"', 'application/ld+json']) {
    expect(await readJsonBody(post('{}', { 'content-type': type }), LIMITS)).toEqual({});
  }
  expect(await refusalOf(post('{}', { 'content-encoding': 'gzip' }))).toMatchObject({ status: 415 });
});

const suite = fileURLToPath(new URL('../../../shared/suites/json-test-suite/test_parsing', import.meta.url));
const hasSuite = existsSync(suite);
if (!hasSuite) console.log(`JSON suite skipped: ${suite} does not exist`);

test.skipIf(!hasSuite)('[S3] bodies of the JSON test suite: 200 for the valid, 400 for the others', async () => {
  const { model } = await createToyRuntime();
  const server = createTestServer([entryOf('toy', async () => model)]);
  const send = async (body: Uint8Array<ArrayBuffer>): Promise<{ status: number; code: string | null }> => {
    const url = 'http://localhost/v1/chat/completions';
    const headers = { 'content-type': 'application/json' };
    const response = await server.fetch(new Request(url, { method: 'POST', body, headers }));
    const { error } = (await response.json()) as { error?: { code: string } };
    return { status: response.status, code: error?.code ?? null };
  };
  const head = Buffer.from(
    '{"model":"toy","max_tokens":1,"messages":[{"role":"user","content":"a"}],"prompt_cache_options":',
  );
  const counts = { y: 0, n: 0, i: 0 };
  for (const name of readdirSync(suite)) {
    const bytes = readFileSync(join(suite, name));
    const kind = name[0] as keyof typeof counts;
    counts[kind]++;
    const whole = await send(new Uint8Array(bytes));
    const inside = await send(new Uint8Array(Buffer.concat([head, bytes, Buffer.from('}')])));
    // None is a complete request, so valid JSON fails by its fields, never because it could not be read.
    if (kind === 'y') {
      expect(whole, name).toMatchObject({ status: 400 });
      expect(whole.code, name).not.toBe('invalid_json');
      expect(inside, name).toEqual({ status: 200, code: null });
    } else if (kind === 'n') {
      expect([400, 422], name).toContain(whole.status);
      expect(['invalid_json', 'json_too_deep'], name).toContain(whole.code);
      expect([400, 422], name).toContain(inside.status);
    } else {
      expect([200, 400, 422], name).toContain(inside.status);
    }
  }
  expect(counts).toEqual({ y: 95, n: 188, i: 35 });
});

test('other work gets a turn between the parts of a large body, not of a small one', async () => {
  const turns: (() => void)[] = [];
  const clock = { setTimer: (_delayMs: number, run: () => void) => (turns.push(run), () => {}) };
  expect(await readJsonBody(post('[1]'), LIMITS, clock)).toEqual([1]);
  expect(turns).toEqual([]);
  const text = 'x'.repeat(200_000);
  let value: unknown = null;
  const read = readJsonBody(post(JSON.stringify(text)), { ...LIMITS, maxBodyBytes: 1 << 20 }, clock);
  void read.then((parsed) => (value = parsed));
  // Before the check, before the parser, and after it.
  for (let numTurns = 1; numTurns <= 3; numTurns++) {
    await vi.waitFor(() => expect(turns).toHaveLength(1));
    expect(value).toBeNull();
    turns.shift()!();
  }
  expect(await read).toBe(text);
  expect(turns).toEqual([]);
});
