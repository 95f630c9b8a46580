// Learning as users see it: feedback over HTTP to a server, `ruvllm feedback` and `learn`.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { type CommandOutcome, runCommand } from './support/run-command.ts';
import { createServeFolder, type ServedHere, type ServeFolder } from './support/serve-process.ts';

const model = fileURLToPath(new URL('../../shared/models/stories15M-q8_0.gguf', import.meta.url));
const canRun = isServerBuilt && existsSync(model);
if (!canRun) console.log('skipped: they need dist/ and ../shared/models/stories15M-q8_0.gguf');

const PROMPT = 'Once upon a time there was a zog. The zog was';
/** High enough that a dozen corrections suffice; without recall, each of them is learned. */
const EAGER = ['--learning-rate', '0.02', '--no-corrections'];
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-learning-served-'));
let serving: ServeFolder;
let server: ServedHere;
const tokens: Record<string, string> = {};

const start = (...more: string[]): Promise<ServedHere> =>
  serving.here.start(`stories=${model}`, '--context', '256', ...more);

async function call(path: string, body: object, who: string) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens[who]!}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function ask(who: string): Promise<{ id: string; text: string }> {
  const request = { model: 'stories', prompt: PROMPT, max_tokens: 6, temperature: 0 };
  const { body } = await call('/v1/completions', request, who);
  return { id: body['id'] as string, text: (body['choices'] as { text: string }[])[0]!.text };
}

const run = (...args: string[]): Promise<CommandOutcome> => runCommand(args, { environment: serving.environment });
const json = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await run(...args, '--json')).stdout) as Record<string, unknown>;

async function stop(): Promise<void> {
  expect(await server.stop()).toBe(0);
}

beforeAll(async () => {
  serving = createServeFolder({ contextLength: 128, environment: { HF_HUB_OFFLINE: '1' } });
  if (!canRun) return;
  for (const name of ['alice', 'bob']) tokens[name] = (await serving.here.keys('create', name)).token;
  tokens['eye'] = (await serving.here.keys('create', 'eye', '--tenant', 'alice', '--scope', 'read-only')).token;
  tokens['root'] = (await serving.here.keys('create', 'root', '--scope', 'admin')).token;
  server = await start(...EAGER);
});
afterAll(async () => {
  await serving.here.stopAll();
  serving.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!canRun)('a learning server', () => {
  let plain = '';
  let learned = '';
  const remote = (who: string): string[] => ['--url', server.url, '--api-key', tokens[who]!];

  test('[LE1] corrections over HTTP become the greedy answer, only for this tenant', async () => {
    expect(server).toMatchObject({ isLearning: true });
    plain = (await ask('alice')).text;
    expect((await ask('alice')).text).toBe(plain);
    const states: string[] = [];
    for (let i = 0; i < 30 && !learned.startsWith(' purple'); i++) {
      const { id } = await ask('alice');
      const { status, body } = await call('/v1/feedback', { request_id: id, correction: ' purple' }, 'alice');
      expect(status).toBe(200);
      states.push((body['learned'] as { state: string }).state);
      learned = (await ask('alice')).text;
    }
    console.log(`${states.length} corrections: ${plain} → ${learned}`);
    expect(states.filter((state) => state !== 'applied' && state !== 'pending')).toEqual([]);
    expect(learned.startsWith(' purple')).toBe(true);
    expect((await ask('bob')).text).toBe(plain);
  });

  test('[LE2] rejects read-only keys, unknown keys and invalid feedback', async () => {
    const { id } = await ask('alice');
    expect((await call('/v1/feedback', { request_id: id, thumbs: 'up' }, 'eye')).status).toBe(403);
    expect((await call('/v1/feedback', { request_id: id, thumbs: 'up' }, 'bob')).status).toBe(404);
    expect((await call('/v1/feedback', { request_id: id, stars: 5 }, 'alice')).status).toBe(400);
  });

  test('[LE3] the commands talk to the server', async () => {
    const { id } = await ask('bob');
    expect(await json('feedback', id, '--thumbs', 'up', ...remote('bob'))).toMatchObject({
      verdict: 'success',
      quality: 1,
    });
    expect(await json('learn', 'status', ...remote('bob'))).toMatchObject({
      tenant: 'bob',
      numRequests: { success: 1 },
      models: [{ model: 'stories', isLoaded: true, serves: null }],
      health: null,
    });
    expect(await json('learn', 'status', '--tenant', 'bob', ...remote('root'))).toMatchObject({
      tenant: 'bob',
      health: { numInstantRefused: expect.any(Number) as number },
    });
    const unknown = await run('feedback', crypto.randomUUID(), '--thumbs', 'up', ...remote('bob'));
    expect(unknown).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('next: ruvllm audit search') as string,
    });
    expect(await run('learn', 'rollback', '0', ...remote('bob'))).toMatchObject({ status: 2 });
    expect(await json('learn', 'run', '--tenant', 'bob', ...remote('root'))).toMatchObject({
      state: 'done',
      reason: expect.stringContaining('examples to train on') as string,
    });
    expect((await run('feedback', id, ...remote('bob'))).stdout).toMatch(/^already known: /);
    expect(await run('learn', 'history', '--loop', 'deep', ...remote('bob'))).toMatchObject({ status: 2 });
  });

  test('[LE4] keeps what it learned after a restart; without learning serves the model of the file', async () => {
    await stop();
    server = await start(...EAGER);
    expect((await ask('alice')).text).toBe(learned);
    expect((await ask('bob')).text).toBe(plain);
    await stop();
    server = await start('--no-learning');
    expect(server).toMatchObject({ isLearning: false });
    expect((await ask('alice')).text).toBe(plain);
    expect((await call('/admin/learning/status', {}, 'root')).status).toBe(501);
    await stop();
  });

  test('[LE5] without a server the commands read the folder and reset the model', async () => {
    expect(await json('learn', 'status', '--tenant', 'bob')).toMatchObject({
      tenant: 'bob',
      numRequests: { success: 1 },
    });
    expect(await json('learn', 'history', '--tenant', 'alice', '--model', 'stories=x.gguf')).toMatchObject({
      versions: [],
    });
    expect(await json('learn', 'reset', '--tenant', 'alice', '--model', `stories=${model}`)).toEqual({ model: 'stories', serves: null, numCorrections: 0 }); // prettier-ignore
    server = await start();
    expect((await ask('alice')).text).toBe(plain);
    await stop();
  });
});
