// `ruvllm pull` from a local hub: stopped half-way, then completed.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { COMMIT, sha256, startFakeHub } from '../src/hub/fake-hub.contract.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/cli.js'));
if (!isBuilt) console.log('cli pull test skipped: dist/ is not built, run "npm run build"');

test.skipIf(!isBuilt)('an interrupted pull keeps its bytes, and the next one resumes', async () => {
  const bytes = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 4 });
  const half = bytes.length >> 1;
  const hub = await startFakeHub([{ path: 'tiny-Q8_0.gguf', bytes }], (_, response, __, count) => {
    if (count > 0) return false;
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, half)); // Then nothing more.
    return true;
  });
  const cacheRoot = mkdtempSync(join(tmpdir(), 'ruvllm-pull-'));
  onTestFinished(async () => {
    await hub.close();
    rmSync(cacheRoot, { recursive: true, force: true });
  });
  const start = () => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: cacheRoot,
      HF_HUB_CACHE: cacheRoot,
      HF_ENDPOINT: hub.endpoint,
    };
    const child = spawn(process.execPath, [join(root, 'bin/ruvllm.mjs'), 'pull', 'owner/repo:Q8_0', '--json'], { env });
    const written = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (written.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text));
    const done = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
      child.on('close', (code) => resolve({ code, ...written })),
    );
    return { child, done };
  };

  const filesEnding = (ending: string): string[] =>
    readdirSync(cacheRoot, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending));
  const partialBytes = (): number => statSync(join(cacheRoot, filesEnding('.incomplete')[0]!)).size;

  const first = start();
  await vi.waitFor(() => expect(partialBytes()).toBe(half), { timeout: 300_000 });
  first.child.kill('SIGINT');
  const interrupted = await first.done;
  expect(interrupted).toMatchObject({ code: 130, stderr: '' });
  expect(JSON.parse(interrupted.stdout)).toEqual({
    error: { code: 'aborted', message: 'stopped by SIGINT', data: { signal: 'SIGINT' } },
  });
  expect(filesEnding('.lock')).toEqual([]);
  expect(partialBytes()).toBe(half);

  const finished = await start().done;
  expect(finished).toMatchObject({ code: 0, stderr: '' });
  expect(hub.requests.at(-1)!.headers.range).toBe(`bytes=${half}-`);
  const document = JSON.parse(finished.stdout);
  expect(document).toEqual({
    reference: 'owner/repo:Q8_0',
    path: expect.stringContaining(cacheRoot),
    file: 'tiny-Q8_0.gguf',
    commit: COMMIT,
    sizeBytes: bytes.length,
    sha256: sha256(bytes),
    isDownloaded: true,
  });
  expect(readFileSync(document.path).equals(bytes)).toBe(true);
});
