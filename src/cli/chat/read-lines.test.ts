import { expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { readLines } from './read-lines.ts';

async function read(...chunks: (string | number[])[]): Promise<string[]> {
  const io = createFakeIo();
  for (const chunk of chunks) io.stdin.write(typeof chunk === 'string' ? chunk : Uint8Array.from(chunk));
  io.stdin.end();
  const lines: string[] = [];
  for await (const line of readLines(io.stdin, io.signal)) lines.push(line);
  return lines;
}

test('splits lines regardless of chunk boundaries', async () => {
  expect(await read('a\nb', 'c\r\n\n', [0xc3], [0xa9, 0x0a], 'end')).toEqual(['a', 'bc', '', 'é', 'end']);
  expect(await read()).toEqual([]);
  expect(await read('a\n')).toEqual(['a']);
});

test('rejects invalid UTF-8 with its offset', async () => {
  await expect(read('ab\nc', [0xff])).rejects.toMatchObject({ code: 'invalid_text', data: { offset: 4 } });
  await expect(read('ab', [0xc3])).rejects.toMatchObject({ code: 'invalid_text', data: { offset: 2 } });
});

test('yields a line before the next one arrives', async () => {
  const io = createFakeIo();
  const lines = readLines(io.stdin, io.signal);
  io.stdin.write('first\n');
  expect(await lines.next()).toEqual({ done: false, value: 'first' });
  io.controller.abort();
  await expect(lines.next()).rejects.toMatchObject({ code: 'aborted' });
});
