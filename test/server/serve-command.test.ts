// `ruvllm serve` and `ruvllm keys` as processes.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { buildRandomModel } from '../support/random-model.ts';

const command = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-serve-'));
const model = join(folder, 'tiny.gguf');
const environment = {
  ...process.env,
  RUVLLM_DATA_DIR: join(folder, 'data'),
  RUVLLM_STATE_DIR: join(folder, 'state'),
  RUVLLM_CACHE_DIR: join(folder, 'cache'),
  RUVLLM_KERNELS: 'wasm',
  RUVLLM_HOST: '',
  RUVLLM_PORT: '',
};

interface Started {
  readonly url: string;
  readonly isOpen: boolean;
  readonly models: string[];
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
}
const running = new Set<ChildProcess>();

async function start(...args: string[]): Promise<Started> {
  const child = spawn(process.execPath, [command, 'serve', ...args, '--port', '0', '--json'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let text = '';
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.includes('\n')) resolve(text);
    });
    void exit.then((code) => reject(new Error(`it ended with ${code}: ${text}`)));
  });
  return { ...(JSON.parse(line) as Pick<Started, 'url' | 'isOpen' | 'models'>), process: child, exit };
}

const keys = (...args: string[]) => {
  const { stdout, status } = spawnSync(process.execPath, [command, 'keys', ...args, '--json'], {
    env: environment,
    encoding: 'utf8',
  });
  return { status, ...(JSON.parse(stdout) as { id: string; token: string; error?: { message: string } }) };
};

beforeAll(() => {
  writeFileSync(
    model,
    buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: { contextLength: 128 } }),
  );
});
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ask = (url: string, more: object, token?: string): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 3, ...more }),
  });

describe.skipIf(!isServerBuilt)('ruvllm serve', () => {
  test('[E1] open on loopback, several models by name, and a stream in progress finishes after the signal', async () => {
    const server = await start(model, `other=${model}`, '--alias', 'gpt-4o=other');
    expect(server).toMatchObject({ isOpen: true, models: ['tiny', 'other'] });
    for (const name of ['tiny', 'default', 'other', 'gpt-4o']) {
      expect((await ask(server.url, { model: name })).status, name).toBe(200);
    }
    const stream = await ask(server.url, { model: 'tiny', stream: true, max_tokens: 100, ignore_eos: true });
    server.process.kill('SIGTERM');
    expect((await stream.text()).endsWith('data: [DONE]\n\n')).toBe(true);
    expect(await server.exit).toBe(0);
  });

  test('[K5] another address needs keys before it starts', () => {
    const { status, stdout } = spawnSync(process.execPath, [command, 'serve', model, '--host', '0.0.0.0', '--json'], {
      env: environment,
      encoding: 'utf8',
    });
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { message: expect.stringContaining('ruvllm keys create NAME') },
    });
  });

  test('[K3] keys made and revoked by the command count in a running server', async () => {
    const first = keys('create', 'first', '--tenant', 'alice');
    const server = await start(model);
    expect(server.isOpen).toBe(false);
    expect((await ask(server.url, { model: 'tiny' })).status).toBe(401);
    expect((await ask(server.url, { model: 'tiny' }, first.token)).status).toBe(200);
    const second = keys('create', 'second', '--scope', 'read-only');
    expect((await ask(server.url, { model: 'tiny' }, second.token)).status).toBe(403);
    expect(keys('revoke', first.id).status).toBe(0);
    expect((await ask(server.url, { model: 'tiny' }, first.token)).status).toBe(401);
    expect(keys('revoke', '000000000000000000')).toMatchObject({ status: 1 });
    expect(keys('create', 'x', '--scope', 'root')).toMatchObject({ status: 2 });
    server.process.kill('SIGINT');
    expect(await server.exit).toBe(0);
  });
});
