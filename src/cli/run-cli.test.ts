import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
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
  [['lst'], "unknown command 'lst'\\n(Did you mean list?)", 'ruvllm --help'],
  [['run', 'm', 'p', '--top-k'], "option '--top-k <n>' argument missing", 'ruvllm run --help'],
  [['run', 'm', 'p', '--top-k', 'x'], '--top-k must be a whole number, got "x"', 'ruvllm run --help'],
  [
    ['run', 'm', 'p', '--raw', '--chat'],
    '--raw gives the prompt as it is; it cannot go with --chat or --system',
    'ruvllm run --help',
  ],
  [['run', 'm', 'p', '--special'], '--special needs --raw: a chat template does that by itself', 'ruvllm run --help'],
  [
    ['run', 'm', 'p', '--logprobs', '2'],
    '--logprobs needs --json: there is no place for them in the text',
    'ruvllm run --help',
  ],
  [['bench', 'x'], 'unknown topic "x" (known: speed); a model is named with --model', 'ruvllm bench --help'],
  [['bench', '--runs', '0'], '--runs must be from 1 to 1000, got 0', 'ruvllm bench --help'],
])('%j is a usage error', async (args, message, next) => {
  expect(await run(...args)).toEqual({ code: 2, stdout: '', stderr: `error: ${message}\nnext: ${next}\n` });
});

test('with --json a usage error is a document on stdout', async () => {
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

test('after -- nothing is an option', async () => {
  const { stdout, stderr } = await run('list', '--', '--json');
  expect(stdout).toBe('');
  expect(stderr).toContain('too many arguments');
});

test('no command shows the help on stderr and fails; --help shows it on stdout and does not', async () => {
  const without = await run();
  expect(without).toMatchObject({ code: 2, stdout: '' });
  expect(without.stderr).toContain('Usage: ruvllm');
  expect(without.stderr.endsWith('error: no command was given\nnext: ruvllm --help\n')).toBe(true);
  const help = await run('run', '--help');
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const flag of ['--max-tokens', '--kernels', '--chat', '--json']) expect(help.stdout).toContain(flag);
});

test('a model that does not exist is not_found with exit code 1', async () => {
  expect(await run('show', './nothing.gguf')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: model file ./nothing.gguf does not exist\nnext: ruvllm list\n',
  });
});
