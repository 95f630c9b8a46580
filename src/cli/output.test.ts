import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { createOutput } from './output.ts';

function speak(isJson: boolean, io = createFakeIo()) {
  const output = createOutput(io, isJson);
  output.text('a\x1b[1m');
  output.lines('l\x07');
  output.note('n\x1b');
  output.aside('s');
  output.document({ d: 1 });
  return io.written;
}

test('piped: the text as it is, notes on stderr, no asides', () => {
  expect(speak(false)).toEqual({ stdout: 'a\x1b[1ml\\x07\n', stderr: 'n\\x1b\n' });
});

test('on a terminal: the text made harmless, asides dim', () => {
  expect(speak(false, createFakeIo({ isTerminal: true }))).toEqual({
    stdout: 'a\\x1b[1ml\\x07\n',
    stderr: 'n\\x1b\n\x1b[2ms\x1b[22m\n',
  });
});

test.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])('no colour with %j', (environment) => {
  expect(speak(false, createFakeIo({ isTerminal: true, environment })).stderr).toBe('n\\x1b\ns\n');
});

test('an empty NO_COLOR says nothing', () => {
  expect(speak(false, createFakeIo({ isTerminal: true, environment: { NO_COLOR: '' } })).stderr).toContain('\x1b[2m');
});

test('with --json the document and nothing else', () => {
  expect(speak(true, createFakeIo({ isTerminal: true }))).toEqual({ stdout: '{"d":1}\n', stderr: '' });
});
