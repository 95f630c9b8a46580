// Pages in shared storage: a conversation of one `ruvllm serve` goes on at another one without being computed again.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { S3_KEYS, S3_REGION, type S3Server, startS3Server } from './support/s3-server.ts';
import {
  createServeFolder,
  type Served,
  type ServedHere,
  type ServeFolder,
  type ServeProcess,
} from './support/serve-process.ts';

const SECRET = 'a secret that all nodes of this fleet share';
let fleet: ServeFolder;
let s3: S3Server;
let shared: string;

beforeAll(async () => {
  s3 = await startS3Server({ pageSize: 5 });
  fleet = createServeFolder({
    contextLength: 1024,
    environment: {
      RUVLLM_FLEET_SECRET: SECRET,
      RUVLLM_KV_PACKING: 'off', // packed pages round: the same tokens as computed are only promised without
      AWS_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
      AWS_REGION: S3_REGION,
      AWS_ENDPOINT_URL: s3.url,
    },
  });
  shared = join(fleet.path, 'shared');
});
afterEach(async () => {
  fleet.killAll();
  await fleet.here.stopAll();
  rmSync(shared, { recursive: true, force: true });
  s3.objects.clear();
  s3.mode = 'works';
  s3.delayMs = 0;
});
afterAll(async () => {
  fleet.dispose();
  await s3.close();
});

/** A long wait: no test may depend on the speed of the machine. */
const PATIENT = ['--kv-shared-timeout', '120'];

const argsOf = (place: string | null, ...args: string[]): string[] =>
  ['tiny=' + fleet.model, '--no-memory', ...(place === null ? [] : ['--kv-shared', place, ...PATIENT]), ...args]; // prettier-ignore
const startNode = (place: string | null, ...args: string[]): Promise<ServedHere> =>
  fleet.here.start(...argsOf(place, ...args));
/** As a process that a test can kill. */
const launchNode = (place: string): Promise<ServeProcess> => fleet.start(...argsOf(place));

interface Answer {
  readonly text: string;
  readonly logprobs: readonly number[];
  readonly numPromptTokens: number;
  readonly numCached: number;
}

async function complete({ url }: Pick<Served, 'url'>, prompt: string): Promise<Answer> {
  const body = { model: 'tiny', prompt, max_tokens: 24, temperature: 0, logprobs: 1 };
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { choices, usage } = (await response.json()) as {
    choices: [{ text: string; logprobs: { token_logprobs: number[] } }];
    usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  };
  expect(response.status).toBe(200);
  return {
    text: choices[0].text,
    logprobs: choices[0].logprobs.token_logprobs,
    numPromptTokens: usage.prompt_tokens,
    numCached: usage.prompt_tokens_details.cached_tokens,
  };
}

/** All samples of a metric by their labels, without that of the model. */
async function metrics({ url }: Pick<Served, 'url'>, name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = [...text.matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, 'gm'))];
  return Object.fromEntries(
    lines.map(([, labels, value]) => [/(?:result|direction|reason)="(\w+)"/.exec(labels!)?.[1] ?? '', Number(value)]),
  );
}

const reads = (node: Served) => metrics(node, 'ruvllm_shared_page_reads_total');
const writes = (node: Served) => metrics(node, 'ruvllm_shared_page_writes_total');

async function untilStored(node: Served): Promise<void> {
  await expect.poll(() => metrics(node, 'ruvllm_shared_pages_waiting'), { timeout: 60_000 }).toEqual({ '': 0 });
}

/** As a rolling restart does. */
async function stop(node: ServedHere): Promise<void> {
  expect(await node.stop()).toBe(0);
}

const FIRST = 'the dog and the cat went to the sea '.repeat(12);
const PAGE_TOKENS = 16;

const alone = new Map<string, Answer>();

/** The answer of a node that has no pages. */
async function completeAlone(prompt: string): Promise<Answer> {
  if (!alone.has(prompt)) {
    const node = await startNode(null);
    alone.set(prompt, await complete(node, prompt));
    await node.stop();
  }
  return alone.get(prompt)!;
}

/** The first turn at one node, and the prompt of the second with the answer of a node that has no pages. */
async function talk(node: Served): Promise<{ next: string; expected: Answer }> {
  const { text } = await complete(node, FIRST);
  const next = `${FIRST}${text} and then what happened to the cat`;
  const expected = await completeAlone(next);
  expect(expected.numCached).toBe(0);
  expect(expected.numPromptTokens).toBeGreaterThan(8 * PAGE_TOKENS);
  return { next, expected };
}

function expectContinued(answer: Answer, expected: Answer): void {
  expect(answer.text).toBe(expected.text);
  expect(answer.logprobs).toEqual(expected.logprobs); // bit for bit
  expect(answer.numCached).toBeGreaterThan(4 * PAGE_TOKENS);
}

const pageFiles = (): string[] =>
  existsSync(shared)
    ? readdirSync(shared, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.page'))
        .map((name) => join(shared, name))
    : [];

test('a conversation goes on at another node with the pages of the first, and with the same tokens', async () => {
  const a = await startNode(shared);
  const { next, expected } = await talk(a);
  await untilStored(a);
  const b = await startNode(shared);
  expectContinued(await complete(b, next), expected);
  const { hit, corrupt, failed } = await reads(b);
  expect(hit! * PAGE_TOKENS).toBeGreaterThan(4 * PAGE_TOKENS);
  expect([corrupt, failed]).toEqual([0, 0]);
  // The answer of the second turn goes on at a third node. The first one may compute instead, where that is faster.
  await untilStored(b);
  expect((await writes(b))['written']).toBeGreaterThan(0);
  const { text } = await complete(b, next);
  const last = `${next}${text} and what did the dog say`;
  const c = await startNode(shared);
  const third = await complete(c, last);
  expect(third.numCached).toBeGreaterThan(expected.numPromptTokens - PAGE_TOKENS);
  expect((await complete(a, last)).text).toBe(third.text);
});

test('a node that is stopped leaves all its pages, those that never were in a finished turn as well', async () => {
  const a = await startNode(shared);
  const { next, expected } = await talk(a);
  await stop(a);
  const b = await startNode(shared);
  expectContinued(await complete(b, next), expected);
});

test('the same with an S3-compatible storage that verifies signatures', async () => {
  const place = 's3://pages/fleet-1';
  const a = await startNode(place);
  const { next, expected } = await talk(a);
  await untilStored(a);
  expect([...s3.objects.keys()].every((name) => name.startsWith('pages/fleet-1/v1/'))).toBe(true);
  const b = await startNode(place);
  expectContinued(await complete(b, next), expected);
  expect((await reads(b))['hit']).toBeGreaterThan(4);
  expect(s3.numRefused).toBe(0);
  expect(new Set(s3.requests.map((line) => line.split(' ')[0]))).toEqual(new Set(['GET', 'HEAD', 'PUT']));
  // Stored pages are not written again.
  const numPuts = (): number => s3.requests.filter((line) => line.startsWith('PUT')).length;
  await untilStored(b);
  const before = numPuts();
  const c = await startNode(place);
  await complete(c, next);
  await stop(c);
  expect(numPuts()).toBe(before);
});

test('a node with another secret or another tenant finds nothing, and names reveal nothing', async () => {
  const a = await startNode(shared);
  const { next, expected } = await talk(a);
  await stop(a);
  const names = readdirSync(shared, { recursive: true, encoding: 'utf8' }).join('\n');
  for (const name of names.split('\n')) expect(name).toMatch(/^v1(\/[0-9a-f]{32}){0,2}(\/[0-9a-f]{2}(\/[0-9a-f]{64}\.page)?)?$/); // prettier-ignore
  const other = createServeFolder({
    contextLength: 1024,
    environment: { RUVLLM_FLEET_SECRET: `another: ${SECRET}`, RUVLLM_KV_PACKING: 'off' },
  });
  try {
    expect(readFileSync(other.model).equals(readFileSync(fleet.model))).toBe(true);
    const node = await other.here.start(`tiny=${other.model}`, '--no-memory', '--kv-shared', shared, ...PATIENT);
    const answer = await complete(node, next);
    expect(answer).toEqual({ ...expected, numCached: 0 });
    expect(await reads(node)).toEqual({ hit: 0, miss: 1, corrupt: 0, failed: 0 });
  } finally {
    await other.here.stopAll();
    other.dispose();
  }
});

type Poison = (files: readonly string[]) => void;
const POISONS: readonly (readonly [string, Poison])[] = [
  ['a changed bit', (files) => files.forEach((file) => writeFileSync(file, flipBit(readFileSync(file))))],
  ['truncated pages', (files) => files.forEach((file) => writeFileSync(file, readFileSync(file).subarray(0, -7)))],
  ['empty pages', (files) => files.forEach((file) => writeFileSync(file, ''))],
  ['foreign bytes', (files) => files.forEach((file) => writeFileSync(file, 'not a page of this fleet'))],
  ['huge files', (files) => files.forEach((file) => writeFileSync(file, Buffer.alloc(2 ** 22)))],
  [
    'a page under the name of another one',
    (files) => {
      const contents = files.map((file) => readFileSync(file));
      files.forEach((file, i) => writeFileSync(file, contents[(i + 1) % files.length]!));
    },
  ],
];

function flipBit(bytes: Buffer): Buffer {
  bytes[bytes.length >> 1]! ^= 1;
  return bytes;
}

test('poisoned pages are counted, deleted and computed, and never used', async () => {
  const a = await startNode(shared);
  const { next, expected } = await talk(a);
  await stop(a);
  const files = pageFiles();
  const originals = files.map((file) => readFileSync(file));
  for (const [name, poison] of POISONS) {
    mkdirSync(shared, { recursive: true });
    files.forEach((file, i) => writeFileSync(file, originals[i]!));
    poison(files);
    const b = await startNode(shared);
    const answer = await complete(b, next);
    expect({ name, ...answer }).toEqual({ name, ...expected, numCached: 0 });
    expect({ name, ...(await reads(b)) }).toEqual({ name, hit: 0, miss: 0, corrupt: 1, failed: 0 });
    // The page is written anew by the node that computed it.
    await untilStored(b);
    await stop(b);
    if (name !== POISONS[0]![0]) continue;
    const c = await startNode(shared);
    const repaired = await complete(c, next);
    expect({ name, text: repaired.text }).toEqual({ name, text: expected.text });
    expect(repaired.numCached).toBeGreaterThanOrEqual(PAGE_TOKENS);
    await stop(c);
  }
});

test('storage that never answers delays a request by the limit, then it is asked no more', async () => {
  const place = 's3://pages';
  const a = await startNode(place);
  const { next, expected } = await talk(a);
  await stop(a);
  s3.mode = 'hangs';
  const b = await startNode(place, '--kv-shared-timeout', '0.2');
  const before = s3.requests.length;
  expect(await complete(b, next)).toEqual(expected);
  for (let i = 0; i < 6; i++) {
    // No whole page of it is in memory, so each could ask.
    const answer = await complete(b, `${'abcdef'[i]} ${next}`);
    expect(answer.numCached).toBeLessThan(PAGE_TOKENS);
  }
  const numReads = s3.requests.slice(before).filter((line) => line.startsWith('GET')).length;
  expect(numReads).toBeGreaterThan(0);
  expect(numReads).toBeLessThanOrEqual(3);
  const { late, skipped } = await metrics(b, 'ruvllm_shared_requests_not_waiting_total');
  const { failed, hit, miss } = await reads(b);
  expect([late! + failed! > 0, hit, miss]).toEqual([true, 0, 0]);
  expect(skipped! + late! + failed!).toBeGreaterThanOrEqual(3);
});

test('storage that refuses writes changes no answer, and its pages are still read', async () => {
  const place = 's3://pages';
  const a = await startNode(place);
  const { next, expected } = await talk(a);
  await stop(a);
  for (const mode of ['readOnly', 'full'] as const) {
    s3.mode = mode;
    const b = await startNode(place);
    expectContinued(await complete(b, next), expected);
    await expect.poll(async () => (await writes(b))['failed']).toBeGreaterThan(0);
    expect(await metrics(b, 'ruvllm_shared_suspended')).toMatchObject({ read: 0 });
    await stop(b); // does not wait for storage that refuses
  }
});

test('a folder that cannot be written changes no answer', async () => {
  writeFileSync(shared, 'a file in the place of the folder');
  const a = await startNode(shared);
  const { next, expected } = await talk(a);
  expect((await complete(a, next)).text).toBe(expected.text);
  await expect.poll(async () => (await writes(a))['failed']).toBeGreaterThan(0);
  await stop(a);
  rmSync(shared);
});

test('after kill -9 in the middle of writes, stored pages are whole and the rest is computed', async () => {
  let expected: Answer | null = null;
  let next = '';
  for (let round = 0; round < 3; round++) {
    const a = await launchNode(shared);
    if (expected === null) ({ next, expected } = await talk(a));
    else void complete(a, next + round).catch(() => {});
    // As soon as the first page of the round is there, while others are written.
    const before = pageFiles().length;
    await expect
      .poll(() => pageFiles().length, { interval: 1, timeout: 60_000 })
      .toBeGreaterThan(round === 0 ? 0 : before - 1);
    a.process.kill('SIGKILL');
    await a.exit;
  }
  const sizes = new Set(pageFiles().map((file) => statSync(file).size));
  expect(sizes.size).toBe(1); // no partial page under the name of a page
  const b = await startNode(shared);
  const answer = await complete(b, next);
  expect(answer).toMatchObject({ text: expected!.text, logprobs: expected!.logprobs });
  expect((await reads(b))['corrupt']).toBe(0);
});

test('the limit holds: the oldest pages are deleted', async () => {
  const a = await startNode(shared, '--kv-shared-limit', '200KiB');
  for (let i = 0; i < 6; i++) await complete(a, `${i} ${FIRST}`);
  await stop(a);
  const total = pageFiles().reduce((sum, file) => sum + statSync(file).size, 0);
  expect(total).toBeGreaterThan(0);
  // Each node exceeds it by at most an eighth, and by what is under way.
  expect(total).toBeLessThanOrEqual(200 * 1024 * 1.25);
});

test('options that cannot work are refused with the reason', async () => {
  const errorOf = async (...args: string[]): Promise<string> => {
    const { status, stdout } = await fleet.here.run('serve', `tiny=${fleet.model}`, '--no-memory', ...args);
    expect(status).toBe(2);
    return (JSON.parse(stdout) as { error: { message: string } }).error.message;
  };
  expect(await errorOf('--kv-shared-limit', '1GiB')).toBe('--kv-shared-limit requires --kv-shared');
  expect(await errorOf('--kv-shared', 'ftp://host/x')).toContain('must be a folder or s3://bucket/prefix');
  expect(await errorOf('--kv-shared', 's3://bucket/../x')).toContain('must be a folder or s3://bucket/prefix');
  const plain = createServeFolder({
    contextLength: 64,
    environment: { RUVLLM_FLEET_SECRET: '', AWS_ACCESS_KEY_ID: '' },
  });
  try {
    const { stdout } = await plain.here.run('serve', plain.model, '--kv-shared', 'folder');
    expect(stdout).toContain('--kv-shared requires --fleet-secret');
    const without = await plain.here.run('serve', plain.model, '--fleet-secret', SECRET, '--kv-shared', 's3://bucket');
    expect(without.stdout).toContain('requires AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  } finally {
    plain.dispose();
  }
});
