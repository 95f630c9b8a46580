import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { RuvLLMError } from '../core/errors.ts';
import { exitCodeOf, reportError } from './report-error.ts';

function report(error: unknown, { isJson = false, environment = {}, commandName = 'run' } = {}) {
  const io = createFakeIo({ environment });
  reportError(error, { io, isJson, commandName });
  return io.written;
}

test('prints one line and the next step', () => {
  const missing = new RuvLLMError('not_found', 'model a/b:Q4 is not in the cache /c; pull it first');
  expect(report(missing).stderr).toBe(`error: ${missing.message}\nnext: ruvllm pull a/b:Q4\n`);
  expect(report(new RuvLLMError('bad_logits', 'NaN')).stderr).toBe('error: NaN\n');
});

test('suggests keys list for an unknown key', () => {
  const missing = new RuvLLMError('not_found', 'key "x" not found');
  expect(report(missing, { commandName: 'keys' }).stderr).toContain('next: ruvllm keys list');
});

test('suggests adapters list for an unknown adapter', () => {
  const missing = new RuvLLMError('not_found', 'there is no adapter "x"');
  expect(report(missing, { commandName: 'adapters' }).stderr).toContain('next: ruvllm adapters list');
});

test('suggests another port if the port is in use', () => {
  const inUse = new RuvLLMError('conflict', 'cannot listen on localhost port 1', { data: { port: 1 } });
  expect(report(inUse, { commandName: 'serve' }).stderr).toContain('next: choose another port with --port');
});

test('escapes control characters in a message', () => {
  expect(report(new RuvLLMError('bad_logits', 'tensor a\n\x1b[2Jb')).stderr).toBe('error: tensor a\\n\\x1b[2Jb\n');
});

test('prints code, message and data to stdout with --json', () => {
  const error = new RuvLLMError('context_overflow', 'too long', { data: { promptTokens: 9, maxContext: 8 } });
  expect(report(error, { isJson: true })).toEqual({
    stdout: '{"error":{"code":"context_overflow","message":"too long","data":{"promptTokens":9,"maxContext":8}}}\n',
    stderr: '',
  });
});

test('prints the stack of a bug only with RUVLLM_DEBUG', () => {
  const bug = new TypeError('x is not a function');
  expect(report(bug).stderr.split('\n')[0]).toBe('error: x is not a function');
  expect(report(bug).stderr).not.toContain('at ');
  expect(report(bug, { environment: { RUVLLM_DEBUG: '1' } }).stderr).toContain('report-error.test.ts');
});

test('exits with 2 for invalid options, 1 for other errors', () => {
  expect(exitCodeOf(new RuvLLMError('invalid_option', ''))).toBe(2);
  expect(exitCodeOf(new RuvLLMError('not_found', ''))).toBe(1);
  expect(exitCodeOf(new Error('bug'))).toBe(1);
});
