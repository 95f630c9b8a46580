// Pipes, devices and sockets in the place of a file: a command that opens one may wait for ever.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { runCli } from './run-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-special-'));
const at = (name: string): string => join(folder, name);
const pipe = at('pipe.md');
const model = at('m.gguf');
let socket: Server;

beforeAll(async () => {
  for (const name of ['RUVLLM_STATE_DIR', 'RUVLLM_DATA_DIR', 'HF_HUB_CACHE']) vi.stubEnv(name, at(name));
  execFileSync('mkfifo', [pipe, at('pipe.gguf'), at('pipe.jsonl')]);
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3 }));
  socket = createServer();
  await new Promise<void>((resolve) => socket.listen(at('socket.md'), resolve));
});
afterAll(async () => {
  await new Promise((resolve) => socket.close(resolve));
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function run(args: readonly string[]): Promise<{ code: number; shown: string }> {
  const io = createFakeIo({ folder, environment: { RUVLLM_CONFIG: '' } });
  const code = await runCli(args, '9.9.9', io);
  return { code, shown: io.written.stderr };
}

describe.skipIf(process.platform === 'win32')('a command refuses, instead of waiting for ever,', () => {
  test.each<[string, readonly string[]]>([
    ['a document', ['memory', 'add', pipe, '--memory', at('memory')]],
    ['an export', ['memory', 'import', at('pipe.jsonl'), '--url', 'http://127.0.0.1:9']],
    ['a file of requests', ['batch', 'create', at('pipe.jsonl'), '--url', 'http://127.0.0.1:9']],
    ['a Modelfile', ['create', 'mine', '-f', pipe]],
    ['an image', ['run', model, 'hi', '--image', pipe]],
    ['a chat template', ['run', model, 'hi', '--chat-template-file', pipe]],
    ['a table of routes', ['serve', model, '--port', '0', '--route-config', pipe]],
    ['settings', ['list', '--config', pipe]],
    ['a model', ['show', at('pipe.gguf')]],
    ['a text to measure', ['imatrix', model, pipe, '--output', at('out.gguf')]],
    ['training data', ['train', 'sft', at('pipe.jsonl'), '--model', model, '--output', at('out.gguf')]],
    ['data of a bench', ['bench', 'routing', '--data', at('pipe.jsonl')]],
  ])('%s that is a pipe', async (_what, args) => {
    const { code, shown } = await run(args);
    expect(shown).toMatch(/not a regular file but a pipe|not a model file but a device, pipe or socket/);
    expect(code).not.toBe(0);
  });

  test.each([
    [at('socket.md'), 'socket'],
    ['/dev/zero', 'device'],
  ])('%s', async (path, kind) => {
    const { code, shown } = await run(['memory', 'add', path, '--memory', at('memory')]);
    const message = `cannot add ${path}: not a regular file but a ${kind}; write its data to a file first`;
    expect([code, shown]).toEqual([1, expect.stringContaining(message)]);
  });
});
