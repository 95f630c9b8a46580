import { describe, expect, test } from 'vitest';
import { createHeldBytes } from './held-bytes.ts';
import { readUpTo } from './read-body.ts';
import { hashText, TEXT_BLOCK_BYTES } from './text-chain.ts';
import { wholeRecords } from './whole-records.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
async function* pieces(...parts: readonly (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield encode(part);
  }
}

describe('the bodies of requests', () => {
  test('have at most half of the bytes for one tenant, and all for all', () => {
    const { open } = createHeldBytes(101);
    const [a, also, b, c] = ['a', 'a', 'b', 'c'].map((tenant) => open(tenant)) as [...ReturnType<typeof open>[]];
    a!.add(30);
    also!.add(21);
    expect(() => also!.add(1)).toThrow('your requests in progress have 52 bytes, at most 51');
    also!.release();
    also!.release();
    a!.add(21);
    b!.add(50);
    expect(() => c!.add(1)).toThrow('all requests in progress have 102 bytes, at most 101');
    c!.release();
    b!.release();
    c!.add(50);
  });

  test('beyond it are refused as an overload that may be tried again', () => {
    const held = createHeldBytes(2).open('a');
    expect(() => held.add(2)).toThrow(expect.objectContaining({ code: 'overloaded', isRetryable: true, data: { retryAfterSeconds: 2 } })); // prettier-ignore
  });
});

test('a body is read to its end, or to the part that exceeds the limit', async () => {
  const read = async (maxBytes: number, ...parts: readonly string[]) => {
    const { bytes, rest } = await readUpTo(pieces(...parts), maxBytes);
    return [decode(bytes), rest === null ? null : await rest.next()];
  };
  expect(await read(5)).toEqual(['', null]);
  expect(await read(5, 'abc', 'de')).toEqual(['abcde', null]);
  expect(await read(4, 'abc', 'de', 'fg')).toEqual(['abcde', { value: encode('fg'), done: false }]);
  expect(await read(0, 'abc', 'de')).toEqual(['abc', { value: encode('de'), done: false }]);
});

describe('the records of a stream', () => {
  const passed = async (numFeeds: 1 | 2, parts: readonly (string | Error)[], lastWords: string | null = 'end') => {
    const words = (): Uint8Array | null => (lastWords === null ? null : encode(lastWords));
    const out: string[] = [];
    for await (const bytes of wholeRecords(pieces(...parts), numFeeds, words)) out.push(decode(bytes));
    return out;
  };

  test('are passed on whole, and what is left at the end', async () => {
    expect(await passed(1, ['a\nb', 'c\n', 'd'])).toEqual(['a\n', 'bc\n', 'd']);
    expect(await passed(1, ['\na', '\n'])).toEqual(['\n', 'a\n']);
    expect(await passed(2, ['a\n', '\nb\nc', '\n\nd\n\ne'])).toEqual(['a\n\n', 'b\nc\n\nd\n\n', 'e']);
    expect(await passed(2, ['\n', '\n', 'a'])).toEqual(['\n\n', 'a']);
    expect(await passed(2, ['\na', '\n\n'])).toEqual(['\na\n\n']);
    expect(await passed(2, ['a\n\n'])).toEqual(['a\n\n']);
  });

  test('that break off lose their last part, and end with the last words', async () => {
    expect(await passed(2, ['a\n\nb', new Error('gone')])).toEqual(['a\n\n', 'end']);
    expect(await passed(1, ['a', new Error('gone')], null)).toEqual([]);
  });

  test('are held up to 1 MiB', async () => {
    const most = 'a'.repeat(2 ** 20);
    expect(await passed(1, [most, '\nb'])).toEqual([`${most}\n`.concat('b')]);
    expect(await passed(1, [most])).toEqual([most]);
    expect(await passed(1, [most, new Error('gone')])).toEqual(['end']);
    expect(await passed(1, [`${most}a`, new Error('gone')])).toEqual([`${most}a`, 'end']);
  });
});

test('[FA9] each whole block of 128 bytes has a hash, up to 256 KiB, which covers all before it', () => {
  const owner = { tenant: 'a', model: null };
  const hashes = (bytes: Uint8Array) => hashText('s', owner, bytes);
  const numHashes = (numBytes: number): number => hashes(new Uint8Array(numBytes)).length;
  expect([0, 127, 128, 255, 256, 2049 * 128].map(numHashes)).toEqual([0, 0, 1, 1, 2, 2048]);
  const changed = new Uint8Array(3 * TEXT_BLOCK_BYTES);
  changed[TEXT_BLOCK_BYTES] = 1;
  const [before, after] = [hashes(new Uint8Array(3 * TEXT_BLOCK_BYTES)), hashes(changed)];
  expect(before.map((hash, i) => hash === after[i])).toEqual([true, false, false]);
  for (const hash of before) expect(hash).toMatch(/^[0-9a-f]{16}$/);
});
