import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { RuvLLMError } from '../core/errors.ts';
import { exitCodeOf, reportError } from './report-error.ts';

function report(error: unknown, { isJson = false, environment = {}, commandName = 'run' } = {}) {
  const io = createFakeIo({ environment });
  reportError(error, { io, isJson, commandName });
  return io.written;
}

test('one line, and the next thing to try', () => {
  const missing = new RuvLLMError('not_found', 'model a/b:Q4 is not in the cache /c; pull it first');
  expect(report(missing).stderr).toBe(`error: ${missing.message}\nnext: ruvllm pull a/b:Q4\n`);
  expect(report(new RuvLLMError('bad_logits', 'NaN')).stderr).toBe('error: NaN\n');
});

test('where a key that is not there can be looked up', () => {
  const missing = new RuvLLMError('not_found', 'there is no key "x"');
  expect(report(missing, { commandName: 'keys' }).stderr).toContain('next: ruvllm keys list');
});

test('a message from a hostile file stays on its line and does nothing to the terminal', () => {
  expect(report(new RuvLLMError('bad_logits', 'tensor a\n\x1b[2Jb')).stderr).toBe('error: tensor a\\n\\x1b[2Jb\n');
});

test('with --json the code, message and data, on stdout', () => {
  const error = new RuvLLMError('context_overflow', 'too long', { data: { promptTokens: 9, maxContext: 8 } });
  expect(report(error, { isJson: true })).toEqual({
    stdout: '{"error":{"code":"context_overflow","message":"too long","data":{"promptTokens":9,"maxContext":8}}}\n',
    stderr: '',
  });
});

test('a bug is internal, with its stack only when asked for', () => {
  const bug = new TypeError('x is not a function');
  expect(report(bug).stderr.split('\n')[0]).toBe('error: x is not a function');
  expect(report(bug).stderr).not.toContain('at ');
  expect(report(bug, { environment: { RUVLLM_DEBUG: '1' } }).stderr).toContain('report-error.test.ts');
});

test('exit codes', () => {
  expect(exitCodeOf(new RuvLLMError('invalid_option', ''))).toBe(2);
  expect(exitCodeOf(new RuvLLMError('not_found', ''))).toBe(1);
  expect(exitCodeOf(new Error('bug'))).toBe(1);
});
