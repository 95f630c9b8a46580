import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { decodeInput, readInput } from './read-input.ts';

const read = async (...chunks: (string | Uint8Array)[]): Promise<string> => {
  const io = createFakeIo();
  for (const chunk of chunks) io.stdin.write(chunk);
  io.stdin.end();
  return await readInput(io.stdin, io.signal);
};

test('joins characters split between chunks and removes one trailing line break', async () => {
  expect(await read('a\n', new Uint8Array([0xc3]), new Uint8Array([0xa9]), '\n\n')).toBe('a\né\n');
  expect(await read('a\r\n')).toBe('a');
  expect(await read()).toBe('');
  expect(await read('\ufeffa')).toBe('\ufeffa');
});

test('rejects invalid UTF-8 with the offset of the first bad byte', () => {
  const bad =
    (...bytes: number[]) =>
    () =>
      decodeInput(Uint8Array.from(bytes));
  const at = (offset: number) =>
    expect.objectContaining({
      code: 'invalid_text',
      message: `stdin is not valid UTF-8 at byte ${offset}`,
      data: { offset },
    });
  expect(bad(0xff)).toThrow(at(0));
  expect(bad(0x61, 0x62, 0xff, 0x63)).toThrow(at(2));
  expect(bad(0x61, 0xe2, 0x82)).toThrow(at(1)); // truncated character
  expect(bad(0xed, 0xa0, 0x80)).toThrow(at(1)); // half a surrogate pair
});

test('decodes valid bytes exactly and rejects all others', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 6 }), (bytes) => {
      const lenient = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
      const isValid = Buffer.from(lenient).equals(bytes);
      if (isValid) expect(decodeInput(bytes)).toBe(lenient);
      else expect(() => decodeInput(bytes)).toThrow(expect.objectContaining({ code: 'invalid_text' }));
    }),
  );
});

test('stops waiting for input when aborted', async () => {
  const io = createFakeIo();
  const reading = readInput(io.stdin, io.signal);
  io.controller.abort();
  await expect(reading).rejects.toMatchObject({ code: 'aborted' });
});
