// Output at 80 and 200 columns and without a terminal, as snapshots.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';
import { runCli } from '../src/cli/run-cli.ts';
import { displayWidth } from '../src/cli/terminal/text-width.ts';
import { createFakeIo } from './support/cli-io.ts';
import { buildRandomModel } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-screens-'));
const model = join(folder, 'tiny.gguf');
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

beforeAll(() => {
  const metadata = [{ key: 'general.name', type: 'string', value: '世界のモデル 👩‍👩‍👧 '.repeat(6) }] as const;
  const bytes = buildRandomModel({
    architecture: 'llama',
    type: 'Q8_0',
    seed: 3,
    shape: { contextLength: 128 },
    metadata,
  });
  writeFileSync(model, bytes);
  const commit = 'b'.repeat(40);
  for (const [owner, name, quant] of [
    ['owner', 'a-model-whose-name-is-longer-than-most-names-are', 'Q4_K_M'],
    ['owner', 'wide', 'Q8_0'],
  ] as const) {
    const repo = join(folder, `hub/models--${owner}--${name}`);
    for (const inner of ['blobs', 'refs', `snapshots/${commit}`]) mkdirSync(join(repo, inner), { recursive: true });
    const blob = join(repo, 'blobs', 'a'.repeat(64));
    writeFileSync(blob, bytes);
    utimesSync(blob, 1_700_000_000, 1_700_000_000);
    writeFileSync(join(repo, 'refs/main'), commit);
    symlinkSync(
      `../../blobs/${'a'.repeat(64)}`,
      join(repo, 'snapshots', commit, `${name === 'wide' ? '世界のモデル👩‍👩‍👧' : name}-${quant}.gguf`),
    );
  }
  vi.stubEnv('HF_HUB_CACHE', join(folder, 'hub'));
  vi.stubEnv('RUVLLM_STATE_DIR', join(folder, 'state'));
  vi.stubEnv('RUVLLM_DATA_DIR', join(folder, 'data'));
});

const SCREENS = [
  { name: '80 columns', isTerminal: true, columns: 80 },
  { name: '200 columns', isTerminal: true, columns: 200 },
  { name: 'no terminal', isTerminal: false, columns: 80 },
] as const;

async function show(args: readonly string[], screen: (typeof SCREENS)[number]) {
  // An unused port: a server of the developer must not be found.
  const io = createFakeIo({ ...screen, folder, environment: { RUVLLM_PORT: '1' } });
  const code = await runCli(args, '9.9.9', io);
  // The length of the temporary folder decides where a path is broken.
  const tidy = (text: string): string => text.replace(/\npath .*/s, '').replaceAll(folder, '/folder');
  return { code, stdout: tidy(io.written.stdout), stderr: tidy(io.written.stderr), raw: io.written.stdout };
}

describe.each(SCREENS)('$name', (screen) => {
  test.each(['', ...COMMANDS.map(({ name }) => name)])('%s --help', async (name) => {
    const { code, stdout, stderr } = await show([...(name === '' ? [] : [name]), '--help'], screen);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(screen.columns);
    // Without a terminal the width is that of the narrower one.
    if (screen.isTerminal) expect(stdout).toMatchSnapshot();
    else expect(stdout).toBe((await show([...(name === '' ? [] : [name]), '--help'], SCREENS[0])).stdout);
  });

  test.each([
    ['list', ['list']],
    ['show', ['show', model]],
    ['tokenize', ['tokenize', model, 'Hello 世界']],
    ['keys list', ['keys', 'list']],
    ['ps', ['ps']],
    ['completion models', ['completion', 'models']],
    ['rm what is not there', ['rm', 'owner/none:Q4']],
    ['a command that is not', ['lst']],
    ['an option that is not', ['run', model, '--temprature', '1']],
    ['a model that is almost there', ['show', join(folder, 'tinny.gguf')]],
    ['a server that is not there', ['memory', 'stats', '--url', 'http://127.0.0.1:1']],
    ['an error as a document', ['doctor', '--json', 'x']],
  ])('%s', async (_, args) => {
    const { code, stdout, stderr, raw } = await show(args, screen);
    expect({ code, stdout, stderr }).toMatchSnapshot();
    // eslint-disable-next-line no-control-regex
    const plain = raw.replaceAll(/\x1b\[\d+m/g, '');
    if (args.includes('--json')) JSON.parse(raw);
    else if (screen.isTerminal)
      for (const line of plain.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(screen.columns);
    else expect(raw + stderr).not.toContain('\x1b');
  });

  test.each([[['doctor']], [['config', 'show']], [['config', 'path']]])(
    '%j fits, whatever this machine is',
    async (args) => {
      const { code, raw } = await show(args, screen);
      expect(code).toBe(0);
      // eslint-disable-next-line no-control-regex
      const lines = raw.replaceAll(/\x1b\[\d+m/g, '').split('\n');
      expect(lines.length).toBeGreaterThan(2);
      if (screen.isTerminal) for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(screen.columns);
    },
  );

  test.each(COMMANDS.map(({ name }) => name))('%s --help --json is one document', async (name) => {
    const { stdout, stderr } = await show([name, '--help', '--json'], screen);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({ name });
  });
});
