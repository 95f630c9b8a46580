// The command on a real terminal, created by `script` of util-linux.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { displayWidth } from '../src/cli/terminal/text-width.ts';
import { findHostile } from './support/hostile-text.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'bin/ruvllm.mjs');
const hasScript = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') === true;
const canRun = hasScript && existsSync(join(root, 'dist/lib/cli.js'));
if (!canRun) console.log('terminal tests skipped: they need dist/ ("npm run build") and script of util-linux');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-terminal-'));
const model = join(folder, 'chatty.gguf');
/** Large enough for an answer that no test waits for. */
const endless = join(folder, 'endless.gguf');
/** From here on the chat reads the terminal; earlier input would be echoed twice. */
const READY = '\x1b[?2004h';
const TEMPLATE = '{% for m in messages %}{{ m.content }}{% endfor %}';
const environment = {
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  HF_HUB_CACHE: join(folder, 'hub'),
  RUVLLM_STATE_DIR: join(folder, 'state'),
  TERM: 'xterm-256color',
};
beforeAll(() => {
  const metadata = [
    { key: 'tokenizer.chat_template', type: 'string', value: TEMPLATE },
    { key: 'general.name', type: 'string', value: `name ${'世界'.repeat(60)}` },
  ] as const;
  for (const [path, contextLength] of [
    [model, 256],
    [endless, 16_384],
  ] as const) {
    writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3, shape: { contextLength }, metadata })); // prettier-ignore
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(args: readonly string[], { columns = 80, env = {} as Record<string, string> } = {}) {
  const command = [process.execPath, bin, ...args].map((word) => `'${word}'`).join(' ');
  const line = `stty cols ${columns} rows 24; exec ${command}`;
  const child = spawn('script', ['-qec', line, '/dev/null'], { env: { ...environment, ...env }, cwd: folder });
  const output = { text: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.text += text));
  const done = new Promise<number | null>((resolve) => child.on('close', resolve));
  const until = (text: string): Promise<void> =>
    vi.waitFor(() => expect(output.text).toContain(text), { timeout: 300_000, interval: 50 });
  return { child, heard: output, done, until };
}

/** Removes colours and restores line breaks. */
// eslint-disable-next-line no-control-regex
const plain = (text: string): string => text.replaceAll('\r\n', '\n').replaceAll(/\x1b\[\d+m/g, '');
const QUICK = ['--max-tokens', '8', '--threads', '1', '--kernels', 'reference', '--seed', '1'];

describe.skipIf(!canRun)('on a terminal', () => {
  test.each([80, 200])("fits a file's metadata into %i columns", async (columns) => {
    const { heard: output, done } = start(['show', model], { columns });
    expect(await done).toBe(0);
    const lines = plain(output.text).split('\n');
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(columns);
    expect(Math.max(...lines.map(displayWidth))).toBeGreaterThan(columns / 2);
  });

  test('uses colour unless NO_COLOR is set', async () => {
    const coloured = start(['list', '--nope']);
    const without = start(['list', '--nope'], { env: { NO_COLOR: '1' } });
    expect([await coloured.done, await without.done]).toEqual([2, 2]);
    expect(coloured.heard.text).toContain('\x1b[31merror:\x1b[39m');
    expect(without.heard.text).not.toContain('\x1b');
  });

  test('a chat takes several lines and a paste, shows speed and cached tokens, and keeps its history', async () => {
    const chat = start(['chat', model, '--history', ...QUICK]);
    await chat.until(READY);
    chat.child.stdin.write('hello there\r');
    await chat.until('tokens/s');
    chat.child.stdin.write('\x1b[200~one\ntwo\x1b[201~');
    await chat.until('two');
    chat.child.stdin.write('\r');
    await chat.until('cached)');
    chat.child.stdin.write('\x04');
    expect(await chat.done).toBe(0);
    expect(chat.heard.text.match(/tokens\/s · prompt/g)).toHaveLength(2);
    const next = start(['chat', model, '--history', ...QUICK]);
    await next.until(READY);
    next.child.stdin.write('\x1b[A\x1b[A\x1b[A');
    await next.until('hello there');
    next.child.stdin.write('\x03\x03\x03'); // Clears the line, asks, leaves.
    expect(await next.done).toBe(0);
  });

  test('the first Ctrl-C stops the answer, the second leaves', async () => {
    const long = ['--context', '16384', '--max-tokens', '16000', '--ignore-eos', '--threads', '1', '--kernels', 'reference']; // prettier-ignore
    const chat = start(['chat', endless, ...long]);
    await chat.until(READY);
    chat.child.stdin.write('go\r');
    await vi.waitFor(() => expect(chat.heard.text.split(/go\r+\n/)[1] ?? '').not.toBe(''), { timeout: 300_000 });
    chat.child.stdin.write('\x03');
    await chat.until('stopped');
    chat.child.stdin.write('\x03');
    expect(await chat.done).toBe(0);
  });

  test('an answer of random bytes does not affect the terminal', async () => {
    const { heard: output, done } = start(['run', model, 'x', '--temperature', '2', '--max-tokens', '100', '--ignore-eos', '--threads', '1', '--kernels', 'reference']); // prettier-ignore
    expect(await done).toBe(0);
    expect(findHostile(plain(output.text).replaceAll('\r', ''))).toEqual([]);
  });
});
