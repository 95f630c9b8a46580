import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { createOutput } from './output.ts';

function writeAll(isJson: boolean, io = createFakeIo()) {
  const output = createOutput(io, isJson);
  output.text('a\x1b[1m');
  output.lines('l\x07');
  output.note('n\x1b');
  output.aside('s');
  output.document({ d: 1 });
  return io.written;
}

test('writes unchanged text, notes and no asides to a pipe', () => {
  expect(writeAll(false)).toEqual({ stdout: 'a\x1b[1ml\\x07\n', stderr: 'n\\x1b\n' });
});

test('escapes text and dims asides on a terminal', () => {
  expect(writeAll(false, createFakeIo({ isTerminal: true }))).toEqual({
    stdout: 'a\\x1b[1ml\\x07\n',
    stderr: 'n\\x1b\n\x1b[2ms\x1b[22m\n',
  });
});

test.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])('uses no colour with %j', (environment) => {
  expect(writeAll(false, createFakeIo({ isTerminal: true, environment })).stderr).toBe('n\\x1b\ns\n');
});

test('ignores an empty NO_COLOR', () => {
  expect(writeAll(false, createFakeIo({ isTerminal: true, environment: { NO_COLOR: '' } })).stderr).toContain(
    '\x1b[2m',
  );
});

test('writes only the document with --json', () => {
  expect(writeAll(true, createFakeIo({ isTerminal: true }))).toEqual({ stdout: '{"d":1}\n', stderr: '' });
});
