// Corrections as users see them: over HTTP to a server process, on the command line, and after a restart.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { runCommand } from './support/run-command.ts';
import { createServeFolder, type ServeFolder, type ServedHere } from './support/serve-process.ts';

let serving: ServeFolder;
let server: ServedHere;

const QUESTION = 'What is my dog called?';
const OTHER = 'What is the capital of France?';

async function call(method: string, path: string, body?: object) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { headers: response.headers, body: (await response.json()) as Record<string, unknown> };
}

async function ask(question: string, more: object = {}) {
  const messages = [{ role: 'user', content: question }];
  const request = { model: 'tiny', messages, max_tokens: 8, temperature: 0, ...more };
  const { headers, body } = await call('POST', '/v1/chat/completions', request);
  const text = (body['choices'] as { message: { content: string } }[])[0]!.message.content;
  return { id: body['id'] as string, text, sources: headers.get('x-memory-sources') };
}

const run = (...args: string[]) =>
  runCommand([...args, '--url', server.url], { environment: { ...serving.environment, HF_HUB_OFFLINE: '1' } });

async function restart(...more: string[]): Promise<void> {
  expect(await server.stop()).toBe(0);
  server = await serving.here.start(serving.model, ...more);
}

beforeAll(async () => {
  serving = createServeFolder({ contextLength: 512 });
  serving.environment['HF_HUB_OFFLINE'] = '1';
  if (isServerBuilt) server = await serving.here.start(serving.model);
});
afterAll(async () => {
  await serving.here.stopAll();
  serving.dispose();
});

describe.skipIf(!isServerBuilt)('a correction', () => {
  let before: Awaited<ReturnType<typeof ask>>;
  let other: Awaited<ReturnType<typeof ask>>;

  test('is a source of the next answer to the question, and of no other', async () => {
    [before, other] = [await ask(QUESTION), await ask(OTHER)];
    expect([before.sources, other.sources]).toEqual([null, null]);
    const { body } = await call('POST', '/v1/feedback', { request_id: before.id, correction: 'It is called Biscuit.' });
    expect(body).toMatchObject({ verdict: 'failure', outcome: { state: 'remembered', supersedes: [] } });
    expect((await ask(QUESTION)).sources).toMatch(/^1=qa-pair:[0-9a-f-]{36}$/);
    expect(await ask(OTHER)).toMatchObject({ text: other.text, sources: null });
    for (const unaffected of [{ user: 'bob' }, { corrections: false }]) {
      expect(await ask(QUESTION, unaffected)).toMatchObject({ text: before.text, sources: null });
    }
  });

  test('and its outcome survive a restart; the command line shows them', async () => {
    await restart();
    expect((await ask(QUESTION)).sources).toMatch(/^1=qa-pair:/);
    const { body } = await call('GET', `/v1/feedback/${before.id}`);
    expect(body).toMatchObject({ object: 'feedback', verdict: 'failure', outcome: { state: 'remembered' } });
    expect((await run('feedback', before.id)).stdout).toMatch(/^remembered: near questions of this user /);
    const status = await run('learn', 'status');
    expect(status.stdout).toMatch(/corrections\s+1 recalled/);
    expect(status.stdout).toContain('remembered');
  });

  test('is replaced by a newer one, which says so', async () => {
    const newer = await run('feedback', (await ask(QUESTION)).id, '--correction', 'It is called Waffle.');
    expect(newer.stdout).toContain(`replaces the feedback on request ${before.id.replace('chatcmpl-', '')}`);
    expect((await run('feedback', before.id)).stdout).toMatch(/^superseded: newer feedback counts/);
  });

  test('is not recalled with --no-corrections', async () => {
    await restart('--no-corrections');
    expect(await ask(QUESTION)).toMatchObject({ text: before.text, sources: null });
    await restart();
  });

  test('is gone after a rollback, and the first answer is back', async () => {
    expect((await run('learn', 'rollback', '0')).stdout).toContain('1 correction is no longer recalled');
    expect(await ask(QUESTION)).toMatchObject({ text: before.text, sources: null });
  });
});
