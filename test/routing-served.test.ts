// `ruvllm serve --route-config` and `ruvllm route`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { runCommand } from './support/run-command.ts';
import { createServeFolder, type Served, type ServeFolder } from './support/serve-process.ts';

const FAR_KEY = 'sk-never-to-be-shown';
const CANDIDATES = [
  { kind: 'local', id: 'near', model: 'small' },
  { kind: 'local', id: 'wide', model: 'large', latency: 'high' },
  { kind: 'remote', id: 'far', url: 'http://127.0.0.1:9/v1', apiKeyEnv: 'FAR_KEY', model: 'far-1', pricePerMTokens: { input: 100, output: 300 } }, // prettier-ignore
];
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-routing-served-'));
let serving: ServeFolder;
let server: Served;

function file(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}
const run = (...args: string[]) => runCommand(args, { environment: serving.environment });

beforeAll(async () => {
  serving = createServeFolder({ contextLength: 128, environment: { FAR_KEY } });
  if (!isServerBuilt) return;
  const config = file('routes.json', { candidates: CANDIDATES, default: 'near' });
  server = await serving.here.start(`small=${serving.model}`, `large=${serving.model}`, '--context', '128', '--route-config', config); // prettier-ignore
});
afterAll(async () => {
  await serving.here.stopAll();
  serving.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isServerBuilt)('serve --route-config', () => {
  const post = (path: string, body: object) =>
    fetch(server.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }); // prettier-ignore

  test('[RO1] serves the routing name, with the safe default until data exist', async () => {
    const list = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(['small', 'large', 'auto']);
    const response = await post('/v1/completions', { model: 'auto', prompt: 'once', max_tokens: 2, ignore_eos: true });
    expect([response.status, response.headers.get('x-route')]).toEqual([200, 'near']);
    expect(await response.json()).toMatchObject({ choices: [{ finish_reason: 'length' }] });
  });

  test('[RO10] /v1/route and `route` report the candidate, its cost and the reason', async () => {
    const prompt = 'x'.repeat(100);
    const route = (await (await post('/v1/route', { prompt })).json()) as object;
    const expected = {
      candidate: 'near',
      reason: 'safe-default',
      detail: 'no router is trained for this tenant',
      version: 0,
      safeDefault: 'near',
      minConfidence: 0.7,
      candidates: [
        {
          id: 'near',
          kind: 'local',
          quality: null,
          score: null,
          trust: null,
          cost: 0,
          latencyMs: expect.any(Number) as number,
          isAble: true,
        },
        { id: 'wide', kind: 'local', quality: null, score: null, trust: null, cost: 0, latencyMs: 4000, isAble: true },
        {
          id: 'far',
          kind: 'remote',
          quality: null,
          score: null,
          trust: null,
          cost: 0.01,
          latencyMs: 1000,
          isAble: true,
        },
      ],
    };
    expect(route).toMatchObject({ object: 'route', ...expected });
    expect(JSON.parse((await run('route', prompt, '--url', server.url, '--json')).stdout)).toMatchObject(expected);
    const { stdout, status } = await run('route', prompt, '--url', server.url);
    expect(status).toBe(0);
    expect(stdout).toContain('near  (safe-default, confidence 0.00)\nno router is trained for this tenant\n');
    expect(stdout).toContain('temperature 0.7, top-p 1 (default); context of 512 tokens\n');
    expect(stdout).toContain('safe default below a confidence of 0.70: near');
    expect(stdout).toMatch(/far +– +0\.010 +1\.0 +0 +– +0\.333/);
  });

  test('[RO5] a prompt that the context of the safe default cannot hold goes elsewhere', async () => {
    const told = (await (await post('/v1/route', { prompt: 'x'.repeat(400) })).json()) as { candidates: object[] };
    expect(told).toMatchObject({ candidate: 'wide', detail: expect.stringContaining('"near" cannot answer this') });
    expect(told.candidates[0]).toMatchObject({ id: 'near', isAble: false });
  });

  test.each([
    ['a model that is not served', { candidates: [{ kind: 'local', id: 'a', model: 'other' }], default: 'a' }, 'requires model "other"'], // prettier-ignore
    ['a routing name that is a model', { candidates: CANDIDATES.slice(0, 1), default: 'near', alias: 'small' }, '"small" is already the name of a model'], // prettier-ignore
    ['invalid JSON', `{ "key": "${FAR_KEY}"`, 'not valid JSON'],
    ['an unknown field', { candidates: CANDIDATES.slice(0, 1), default: 'near', colour: 1 }, 'colour'],
  ])('[RO8] rejects %s before it listens', async (_name, content, says) => {
    const path = file('bad.json', content);
    const { status, stdout, stderr } = await run(
      'serve',
      `small=${serving.model}`,
      '--port',
      '0',
      '--route-config',
      path,
    );
    expect(status).toBe(2);
    expect(stderr).toContain(says);
    expect(stdout + stderr).not.toContain(FAR_KEY);
  });

  test('without the option there is no routing, and /v1/route says so', async () => {
    const plain = await serving.here.start(
      `small=${serving.model}`,
      '--context',
      '128',
      '--memory',
      join(folder, 'other'),
    );
    const body = JSON.stringify({ prompt: 'hello' });
    const response = await fetch(`${plain.url}/v1/route`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }); // prettier-ignore
    expect(response.status).toBe(501);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain('--route-config');
  });
});
