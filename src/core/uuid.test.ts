import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createUuidV7, formatUuid, isUuid, parseUuid } from './uuid.ts';

const zeros = (count: number): Uint8Array => new Uint8Array(count);
const ones = (count: number): Uint8Array => new Uint8Array(count).fill(0xff);

describe('UUIDv7', () => {
  test('time, version, counter, variant and random bits are where RFC 9562 puts them', () => {
    expect(createUuidV7({ now: () => 0x017f22e279b0, randomBytes: zeros })()).toBe(
      '017f22e2-79b0-7000-8000-000000000000',
    );
    expect(createUuidV7({ now: () => 2 ** 48 - 1, randomBytes: ones })()).toBe('ffffffff-ffff-77ff-bfff-ffffffffffff');
  });

  test('ids of one millisecond increase', () => {
    const next = createUuidV7({ now: () => 5, randomBytes: zeros });
    expect([next(), next()]).toEqual(['00000000-0005-7000-8000-000000000000', '00000000-0005-7000-8000-100000000000']);
    const random = createUuidV7({ now: () => 5, randomBytes: (n) => crypto.getRandomValues(new Uint8Array(n)) });
    const ids = Array.from({ length: 5000 }, random);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('ids increase even if the clock goes backwards', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 2 }), (times) => {
        let i = 0;
        const next = createUuidV7({ now: () => times[i++]!, randomBytes: i % 2 === 0 ? ones : zeros });
        const ids = times.map(next);
        for (let j = 1; j < ids.length; j++) expect(ids[j]! > ids[j - 1]!).toBe(true);
        expect(Number.parseInt(ids.at(-1)!.replace('-', '').slice(0, 12), 16)).toBe(Math.max(...times));
      }),
    );
  });

  test('rejects a clock outside 48 bits', () => {
    for (const ms of [-1, 2 ** 48, Number.NaN]) {
      expect(() => createUuidV7({ now: () => ms, randomBytes: zeros })()).toThrow('a UUIDv7 requires');
    }
  });

  test('parsing and formatting are inverse', () => {
    fc.assert(
      fc.property(fc.uuid({ version: [1, 4, 7] }), (text) => {
        expect(isUuid(text)).toBe(true);
        expect(formatUuid(parseUuid(text))).toBe(text);
      }),
    );
    expect(parseUuid('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')[0]).toBe(1);
  });

  test.each([
    '',
    'x',
    '017F22E2-79B0-7CC3-98C4-DC0C0C07398F',
    '017f22e279b07cc398c4dc0c0c07398f',
    '017f22e2-79b0-7cc3-c8c4-dc0c0c07398f',
    '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n',
    7,
  ])('rejects %j', (text) => {
    expect(isUuid(text)).toBe(false);
    expect(() => parseUuid(text as string)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  });
});
