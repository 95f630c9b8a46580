import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { COMMANDS } from './commands.ts';
import { runCli } from './run-cli.ts';

async function run(...args: string[]) {
  const io = createFakeIo();
  const code = await runCli(args, '9.9.9', io);
  return { code, ...io.written };
}

test.each([
  [['--bad'], "unknown option '--bad'", 'ruvllm --help'],
  [['list', '--bad'], "unknown option '--bad'", 'ruvllm list --help'],
  [['list', 'extra'], "too many arguments for 'list'. Expected 0 arguments but got 1.", 'ruvllm list --help'],
  [['run'], "missing required argument 'model'", 'ruvllm run --help'],
  [['lst'], "unknown command 'lst' (did you mean list?)", 'ruvllm list --help'],
  [['help', 'lst'], "unknown command 'lst' (did you mean list?)", 'ruvllm list --help'],
  [['help', 'nope'], "unknown command 'nope'", 'ruvllm --help'],
  [['run', '--temprature', '1'], "unknown option '--temprature' (did you mean --temperature?)", 'ruvllm run --help'],
  [
    ['keys', 'crate', 'x'],
    'unknown action "crate" (did you mean create?); keys has create, list, revoke',
    'ruvllm keys --help',
  ],
  [
    ['memory', 'serch'],
    'unknown action "serch" (did you mean search?); memory has add, documents, document, search, stats, export, import, rm, policies, policy-history, policy-rollback, neighbours, recall, facts, why, pin, unpin, notes, note, tool-cache, tool-cache-stats, tool-cache-clear, rotate-key, erase-tenant, check, repair, backup, restore',
    'ruvllm memory --help',
  ],
  [['run', 'm', 'p', '--top-k'], "option '--top-k <n>' argument missing", 'ruvllm run --help'],
  [['run', 'm', 'p', '--top-k', 'x'], '--top-k must be an integer, got "x"', 'ruvllm run --help'],
  [['run', 'm', 'p', '--raw', '--chat'], '--raw cannot be combined with --chat or --system', 'ruvllm run --help'],
  [['run', 'm', 'p', '--special'], '--special requires --raw or --session', 'ruvllm run --help'],
  [['run', 'm', 'p', '--logprobs', '2'], '--logprobs requires --json', 'ruvllm run --help'],
  [
    ['bench', 'x'],
    'unknown topic "x"; bench has speed, routing, embeddings, learning, memory (--model names a model)',
    'ruvllm bench --help',
  ],
  [['bench', 'routing', '--runs', '2'], '--runs is not an option of bench routing', 'ruvllm bench --help'],
  [['bench', '--data', 'x'], '--data is not an option of bench speed', 'ruvllm bench --help'],
  [['bench', 'routing', '--tenant', 'a'], '--tenant requires --from-memory', 'ruvllm bench --help'],
  [
    ['bench', 'routing', '--cost', 'small'],
    '--cost must be NAME=COST, such as small=1, got "small"',
    'ruvllm bench --help',
  ],
  [['train', 'embeddings', 'x.jsonl'], 'train embeddings requires --output FILE.gguf', 'ruvllm train --help'],
  [['bench', '--runs', '0'], '--runs must be from 1 to 1000, got 0', 'ruvllm bench --help'],
])('%j is a usage error', async (args, message, next) => {
  expect(await run(...args)).toEqual({ code: 2, stdout: '', stderr: `error: ${message}\nnext: ${next}\n` });
});

test('reports a usage error as JSON on stdout with --json', async () => {
  const { code, stdout, stderr } = await run('run', 'm', 'p', '--json', '--top-k', '-5');
  expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    error: {
      code: 'invalid_option',
      message: '--top-k must be an integer from 0 to 2147483647, got -5',
      data: { option: '--top-k' },
    },
  });
});

test('treats everything after -- as an argument', async () => {
  const { stdout, stderr } = await run('list', '--', '--json');
  expect(stdout).toBe('');
  expect(stderr).toContain('too many arguments');
});

test('prints help to stderr and fails without a command; prints it to stdout with --help', async () => {
  const noCommand = await run();
  expect(noCommand).toMatchObject({ code: 2, stdout: '' });
  expect(noCommand.stderr).toContain('Usage: ruvllm');
  expect(noCommand.stderr.endsWith('error: no command given\nnext: ruvllm --help\n')).toBe(true);
  const help = await run('run', '--help');
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const flag of ['--max-tokens', '--kernels', '--chat', '--json']) expect(help.stdout).toContain(flag);
});

test('prints help as JSON with --json', async () => {
  const { code, stdout, stderr } = await run('keys', '--help', '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const help = JSON.parse(stdout);
  expect(Object.keys(help)).toEqual(['name', 'args', 'description', 'options', 'actions', 'examples', 'notes']);
  expect(help.options.map(({ name }: { name: string }) => name)).toEqual(['--scope', '--tenant', '--config', '--json']);
  const overview = JSON.parse((await run('help', '--json')).stdout);
  expect(overview.commands).toHaveLength(COMMANDS.length);
  expect(JSON.parse((await run('help', 'keys', '--json')).stdout)).toEqual(help);
});

test.each(COMMANDS.map(({ name }) => name))('%s --help has examples and fits 80 columns', async (name) => {
  const { stdout } = await run(name, '--help');
  const [, examples] = stdout.split('\nExamples:\n');
  expect(examples).toMatch(new RegExp(`^ {2}.*ruvllm ${name}\\b`));
  const tooLong = stdout.split('\n').filter((line) => line.length > 80);
  expect(tooLong).toEqual([]);
});

test('suggests a model with a similar name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-near-'));
  writeFileSync(join(folder, 'stories.gguf'), '');
  const { stderr } = await run('show', join(folder, 'storeis.gguf'));
  rmSync(folder, { recursive: true });
  expect(stderr.split('\n')[1]).toBe(
    `next: did you mean ${join(folder, 'stories.gguf')}? ruvllm list shows the cached models`,
  );
});

test('exits with 1 if the model does not exist', async () => {
  expect(await run('show', './nothing.gguf')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: model file ./nothing.gguf does not exist\nnext: ruvllm list\n',
  });
});

test('knows the names that other tools have', async () => {
  expect((await run('help', 'ls')).stdout).toBe((await run('list', '--help')).stdout);
  expect((await run('ls', 'extra')).stderr).toContain("too many arguments for 'list'");
});
