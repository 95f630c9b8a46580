import { describe, expect, test } from 'vitest';
import { compileGrammar } from '../compile.ts';
import { createMaskCache } from '../mask-cache.ts';
import { createTextSearch, createTriggerSearch } from '../structure/text-search.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';
import { breakLine, endGap, GAP, isSpace, missingSpace, ON_ONE_LINE, stepGap, TAB, UNDECIDED } from './layout.ts';
import { BETWEEN, type CharacterState, finishCharacter, isMultiByte, nextState, possibleCodes, readByte, readUtf8Byte, RESULT } from './string-lexer.ts'; // prettier-ignore

const encoder = new TextEncoder();

/** Reads bytes as characters of a JSON string; null: invalid. The state is that of an unfinished character. */
function read(
  bytes: Uint8Array | readonly number[],
  isAnyEscape = false,
  step = (state: CharacterState, byte: number) => readByte(state, byte, isAnyEscape),
): { codes: number[]; state: CharacterState } | null {
  let state = BETWEEN;
  const codes: number[] = [];
  for (const byte of bytes) {
    const result = step(state, byte);
    if (result === RESULT.invalid) return null;
    state = result === RESULT.partial ? nextState : BETWEEN;
    if (result !== RESULT.partial) codes.push(result);
  }
  return { codes, state };
}
const codesOf = (text: string, isAnyEscape = false): number[] | null => {
  const found = read(encoder.encode(text), isAnyEscape);
  return found === null || found.state !== BETWEEN ? null : found.codes;
};

/** Borders of UTF-8 lengths, surrogates and control characters. */
const CODES = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7e, 0x7f, 0x80, 0xbf, 0xc0, 0x7ff, 0x800, 0xfff, 0x1000, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000, 0x1f600, 0x3ffff, 0x40000, 0xfffff, 0x100000, 0x10ffff]; // prettier-ignore

describe('characters of a JSON string', () => {
  test('plain characters and the quote', () => {
    for (const code of CODES) expect(codesOf(String.fromCodePoint(code))).toEqual([code]);
    expect(codesOf('a"')).toEqual([97, RESULT.quote]);
    for (let control = 0; control < 0x20; control++) expect(codesOf(String.fromCharCode(control))).toBeNull();
  });

  test('escapes: all of JSON, or only those of characters that need one', () => {
    const named: [string, number][] = [['"', 34], ['\\', 92], ['b', 8], ['f', 12], ['n', 10], ['r', 13], ['t', 9]]; // prettier-ignore
    for (const [letter, code] of named) {
      expect([letter, codesOf(`\\${letter}`), codesOf(`\\${letter}`, true)]).toEqual([letter, [code], [code]]);
    }
    expect([codesOf('\\/'), codesOf('\\/', true)]).toEqual([null, [47]]);
    for (const letter of 'aUxv0 ') expect([codesOf(`\\${letter}`), codesOf(`\\${letter}`, true)]).toEqual([null, null]);
    const hex = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;
    const isNeeded = (code: number): boolean => code < 32 && ![8, 9, 10, 12, 13].includes(code);
    for (const code of [...Array(0x24).keys(), 0x5c, 0xe9, 0xd7ff, 0xe000, 0xffff]) {
      expect([code, codesOf(hex(code)), codesOf(hex(code), true)]).toEqual([code, isNeeded(code) ? [code] : null, [code]]); // prettier-ignore
      expect(codesOf(hex(code).toUpperCase().replace('U', 'u'), true)).toEqual([code]);
    }
    for (const bad of ['\\u00g0', '\\u00/0', '\\u00:0', '\\u00@0', '\\u00`0']) expect([codesOf(bad), codesOf(bad, true)]).toEqual([null, null]); // prettier-ignore
  });

  test('surrogates come in pairs', () => {
    const pairs: [string, number | null][] = [
      ['\\ud83d\\ude00', 0x1f600],
      ['\\ud800\\udc00', 0x10000],
      ['\\udbff\\udfff', 0x10ffff],
      ['\\ud800\\udbff', null],
      ['\\ud800\\ue000', null],
      ['\\udc00', null],
      ['\\udfff', null],
      ['\\ud800a', null],
      ['\\ud800\\n', null],
    ];
    for (const [text, code] of pairs)
      expect([text, codesOf(text, true)]).toEqual([text, code === null ? null : [code]]);
  });

  test('overlong forms, surrogates and codes beyond the last are no UTF-8', () => {
    const bad = [[0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80], [0xff], [0xc3, 0x41], [0xc3, 0xc3], [0xe2, 0x82, 0x41]]; // prettier-ignore
    for (const bytes of bad)
      expect([bytes, read(bytes), read(bytes, false, readUtf8Byte)]).toEqual([bytes, null, null]);
    for (const code of CODES) {
      expect(read(encoder.encode(String.fromCodePoint(code)), false, readUtf8Byte)?.codes).toEqual([code]);
    }
    expect(read([0x00, 0x22, 0x5c], false, readUtf8Byte)?.codes).toEqual([0, 34, 92]);
  });

  test('an unfinished character knows what it can become, and how to get there', () => {
    const texts = [
      ...CODES.map((code) => String.fromCodePoint(code)),
      '\\n', '\\"', '\\\\', '\\u0000', '\\u0007', '\\u000b', '\\u000e', '\\u001f',
    ]; // prettier-ignore
    const anyTexts = [...texts, '\\u00e9', '\\ud7ff', '\\ue000', '\\uffff', '\\ud83d\\ude00', '\\ud800\\udc00', '\\udbff\\udfff']; // prettier-ignore
    for (const [list, isAnyEscape] of [
      [texts, false],
      [anyTexts, true],
    ] as const) {
      // prettier-ignore
      for (const text of list) {
        const bytes = encoder.encode(text);
        const [code] = read(bytes, isAnyEscape)!.codes;
        for (let size = 1; size < bytes.length; size++) {
          const { state } = read(bytes.subarray(0, size), isAnyEscape)!;
          const ranges = possibleCodes(state);
          expect(isMultiByte(state)).toBe(code! > 0x7f && text[0] !== '\\');
          const isPossible = ranges.some((lo, i) => i % 2 === 0 && lo <= code! && code! <= ranges[i + 1]!);
          expect([text, size, isPossible]).toEqual([text, size, true]);
          // The ends of each range can be reached, and what finishes a character is read back.
          for (const end of ranges.filter((lo, i) => (i % 2 === 0 ? lo <= ranges[i + 1]! : ranges[i - 1]! <= lo))) {
            if (end >= 0xd800 && end <= 0xdfff) continue;
            const whole = [...bytes.subarray(0, size), ...finishCharacter(state, end)];
            expect([text, size, end, read(whole, isAnyEscape)?.codes]).toEqual([text, size, end, [end]]);
          }
        }
      }
    }
  });
});

test('white space: one space, or lines with the same indent at every level', () => {
  expect([32, 10, 9, 13, 33].map(isSpace)).toEqual([true, true, true, false, false]);
  const place = (gap: number, unit = UNDECIDED) => ({ gap, unit });
  expect([breakLine(ON_ONE_LINE, 1, 9), breakLine(UNDECIDED, 1, 1), breakLine(UNDECIDED, 1, 2)]).toEqual([null, null, place(GAP.firstIndent)]); // prettier-ignore
  expect([breakLine(2, 3, 7), breakLine(2, 3, 6), breakLine(TAB, 3, 4), breakLine(TAB, 3, 3)]).toEqual([place(6, 2), null, place(3, TAB), null]); // prettier-ignore
  const step = (gap: number, unit: number, text: string, maxWhitespace = 20) => {
    let at: ReturnType<typeof stepGap> = { gap, unit };
    for (const character of text) at = at && stepGap(at, character.charCodeAt(0), 2, maxWhitespace);
    return at;
  };
  expect([step(GAP.none, 2, ' '), step(GAP.space, 2, ' '), step(GAP.space, 2, '\n'), step(GAP.spaceOrLine, 2, '\n'), step(GAP.spaceOrLine, 2, ' ')]).toEqual([null, place(GAP.none, 2), null, place(4, 2), place(GAP.none, 2)]); // prettier-ignore
  expect([step(4, 2, '    '), step(4, 2, '     '), step(4, 2, '\t'), step(2, TAB, '\t\t'), step(2, TAB, ' ')]).toEqual([place(0, 2), null, null, place(0, TAB), null]); // prettier-ignore
  const first = (text: string, maxWhitespace?: number) => {
    const found = step(GAP.firstIndent, UNDECIDED, text, maxWhitespace);
    return found === null ? null : endGap(found);
  };
  expect([first(''), first(' '), first('    '), first('     '), first('\t'), first('\t\t'), first(' \t'), first('\n')]).toEqual([null, 1, 4, null, TAB, null, null, null]); // prettier-ignore
  expect([first('  ', 3), first('   ', 3)]).toEqual([2, null]);
  expect([endGap(place(2, 2)), endGap(place(GAP.none, 2)), endGap(place(GAP.space, 3))]).toEqual([null, 2, 3]);
  expect([missingSpace(place(3, 2)), missingSpace(place(2, TAB)), missingSpace(place(GAP.firstIndent)), missingSpace(place(GAP.space))]).toEqual(['   ', '\t\t', ' ', '']); // prettier-ignore
});

test('a search finds every place where a text ends, also where it overlaps itself', () => {
  const stream = 'abababcabcaabaabaabab';
  for (const text of ['a', 'ab', 'aba', 'abc', 'aab', 'aabaab', 'abab']) {
    const search = createTextSearch(encoder.encode(text));
    let place = 0;
    for (const [i, byte] of encoder.encode(stream).entries()) {
      place = search.next(place, byte);
      const seen = stream.slice(0, i + 1);
      let longest = Math.min(text.length, seen.length);
      while (!seen.endsWith(text.slice(0, longest))) longest--;
      expect([text, i, place]).toEqual([text, i, longest]);
    }
  }
  const texts = ['ab', 'b', 'aba', 'bc', 'aabaab', 'ab'];
  const triggers = createTriggerSearch(texts.map((text) => encoder.encode(text)));
  let place = 0;
  for (const [i, byte] of encoder.encode(stream).entries()) {
    place = triggers.next(place, byte);
    const seen = stream.slice(0, i + 1);
    const expected = texts.flatMap((text, number) => (seen.endsWith(text) ? [number] : []));
    expect([i, [...triggers.found(place)].sort()]).toEqual([i, expected]);
  }
  // Root; a, ab, aba; b, bc; aa, aab, aaba, aabaa, aabaab.
  expect(triggers.numPlaces).toBe(11);
});

test('the cache of masks forgets the least recently used, and keeps the newest of any size', () => {
  const cache = createMaskCache();
  const mask = (): Uint32Array => new Uint32Array(2); // 8 bytes, and 2 for each character of the key
  const keys = (): string => [...'abcd'].filter((key) => cache.get(key) !== undefined).join('');
  for (const key of 'abc') cache.add(key, mask(), 30);
  expect(keys()).toBe('abc');
  cache.get('a');
  cache.add('d', mask(), 30);
  expect(keys()).toBe('acd');
  cache.add('b', mask(), 29); // two of ten bytes
  expect(keys()).toBe('bd');
  cache.add('a', mask(), 5);
  expect(keys()).toBe('a');
});

describe('a schema as large as the limits', () => {
  const accepts = (grammar: CompiledGrammar, text: string): boolean => {
    let state: GrammarState | null = grammar.start;
    for (const byte of encoder.encode(text)) state = state && grammar.step(state, byte);
    return state !== null && grammar.isComplete(state);
  };
  const compile = (schema: unknown, limits: object = {}) => compileGrammar({ type: 'json_schema', schema }, limits);

  test('by characters and by depth', () => {
    const schema = { const: 'abcd' }; // an object, a key of 5 characters and a text of 1 + 4
    expect(accepts(compile(schema, { maxSourceLength: 11 }), '"abcd"')).toBe(true);
    expect(() => compile(schema, { maxSourceLength: 10 })).toThrow('larger than 10 characters');
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
    expect(accepts(compile({ enum: nested(3) }, { maxDepth: 1 }), '[[1]]')).toBe(true);
    expect(() => compile({ enum: nested(4) }, { maxDepth: 1 })).toThrow('nested deeper than 4 levels');
    for (const value of [Infinity, undefined, () => 1]) expect(() => compile({ const: value })).toThrow(expect.objectContaining({ code: 'invalid_option' })); // prettier-ignore
  });

  test('references reach definitions, anchors and identifiers of this schema only', () => {
    const refers = ($ref: string) => ({ $ref, $defs: { 'a/b~%': { const: 1 }, x: { $anchor: 'here', const: 2 }, y: { $id: 'http://h/y', const: 3 } } }); // prettier-ignore
    expect(accepts(compile(refers('#/$defs/a~1b~0%25')), '1')).toBe(true);
    expect(accepts(compile(refers('#here')), '2')).toBe(true);
    expect(accepts(compile(refers('http://h/y')), '3')).toBe(true);
    for (const [reference, message] of [
      ['#/$defs/z', '/$defs/z not found'],
      ['#there', 'anchor "there" not found'],
      ['http://h/z', '"http://h/z" is outside this schema'],
      ['#/%', 'is not a URI reference'],
    ] as const) {
      expect(() => compile(refers(reference))).toThrow(message);
    }
    expect(() => compile({ $schema: 'http://example.org' })).toThrow('is not a known dialect');
    expect(() => compile({ $schema: 5 })).toThrow('is not a known dialect');
  });
});
