import { describe, expect, test } from 'vitest';
import { foldSystem } from '../fold-system.ts';
import { createChatTemplate } from '../chat-template.ts';
import type { ChatMessage } from '../types.ts';
import { addInstruction } from './instruction.ts';
import { createJsonScanner } from './json-scan.ts';
import { createMarkerSearch } from './marker-search.ts';
import { fillToolGaps, toToolSpecs } from './tool-specs.ts';

describe('definitions of tools', () => {
  test('are wrapped or not, with a name and perhaps a schema', () => {
    const bare = { name: 'a', description: 'd', parameters: { type: 'object' } };
    expect(toToolSpecs([bare, { type: 'function', function: bare }])).toEqual([bare, bare]);
    expect(toToolSpecs([{ name: 'a', description: 5, parameters: null }, { name: 'b' }])).toEqual([{ name: 'a' }, { name: 'b' }]); // prettier-ignore
    for (const tool of [{}, { name: '' }, { name: 5 }, { function: {} }]) expect(() => toToolSpecs([bare, tool])).toThrow('tools[1] has no name'); // prettier-ignore
    for (const parameters of [[], 5, 'x', false]) {
      expect(() => toToolSpecs([{ name: 'a', parameters }])).toThrow('tools[0] ("a"): parameters must be a JSON schema object'); // prettier-ignore
    }
  });

  test('get the members that templates read without checking', () => {
    const properties = { a: { type: 'object', additionalProperties: true }, b: { type: 'array' }, c: 5, d: { type: 'string', description: 'D' } }; // prettier-ignore
    const filled = (tool: object): unknown => (fillToolGaps([tool])[0] as { function: unknown }).function;
    const none = { type: 'object', required: [], properties: {} };
    expect(filled({ name: 't' })).toEqual({ name: 't', description: '', parameters: none });
    expect(filled({ name: 't', parameters: { properties: [], required: ['a'] } })).toEqual({ name: 't', description: '', parameters: { ...none, required: ['a'] } }); // prettier-ignore
    expect(filled({ name: 't', parameters: { properties } })).toMatchObject({
      parameters: {
        properties: {
          a: { type: 'object', description: '', additionalProperties: {} },
          b: { type: 'array', description: '', items: {} },
          c: { description: '' },
          d: { type: 'string', description: 'D' },
        },
      },
    });
  });
});

test('an instruction goes behind the text of the system turn, or into one of its own', () => {
  const turn = (role: ChatMessage['role'], content: string): ChatMessage => ({ role, content });
  const user = turn('user', 'u');
  expect(addInstruction([], 'I')).toEqual([turn('system', 'I')]);
  expect(addInstruction([user], 'I')).toEqual([turn('system', 'I'), user]);
  for (const role of ['system', 'developer'] as const) {
    expect(addInstruction([turn(role, 's'), user], 'I')).toEqual([turn(role, 's\n\nI'), user]);
    expect(addInstruction([turn(role, '')], 'I')).toEqual([turn(role, 'I')]);
  }
  expect(foldSystem([user])).toEqual([user]);
  expect(foldSystem([turn('system', 's'), turn('assistant', 'a'), user, turn('developer', 'd'), user])).toEqual([turn('assistant', 'a'), turn('user', 's\n\nd\n\nu'), user]); // prettier-ignore
  expect(foldSystem([turn('system', 's'), turn('assistant', 'a')])).toEqual([turn('user', 's'), turn('assistant', 'a')]); // prettier-ignore
});

test('a marker is found where it begins, the longest of several, and text that may begin one is held back', () => {
  const search = createMarkerSearch(['<a>', '<a>b', '[x]']);
  const cases: [text: string, isEnded: boolean, at: number, marker: string | null][] = [
    ['plain', false, 5, null],
    ['to <a> end', false, 3, '<a>'],
    ['to <a>', false, 3, null], // a longer one may follow
    ['to <a>', true, 3, '<a>'],
    ['to <a>b', false, 3, '<a>b'],
    ['to [x] <', false, 3, '[x]'],
    ['to <', false, 3, null],
    ['to <', true, 4, null],
    ['to [', false, 3, null],
    ['to <a', false, 3, null],
    ['to <ax', false, 6, null],
    ['<[', false, 1, null],
    ['', false, 0, null],
  ];
  for (const [text, isEnded, at, marker] of cases) expect([text, isEnded, search(text, isEnded)]).toEqual([text, isEnded, { at, marker }]); // prettier-ignore
  expect(createMarkerSearch([])('<a>', false)).toEqual({ at: 3, marker: null });
});

test('accepts exactly the JSON texts among short ones', () => {
  const characters = ['{', '}', '[', ']', ',', ':', '"', '0', '9', '-', '.', 'e', ' '];
  const isAccepted = (text: string): boolean => {
    const scan = createJsonScanner();
    let last = 'more';
    for (const [i, unit] of [...text, '\n'].entries()) {
      last = scan(unit);
      if (last === 'bad') return false;
      if (last === 'after') return text.slice(i).trim() === '';
      if (last === 'done') return text.slice(i + 1).trim() === '';
    }
    return false;
  };
  const isJson = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  let texts = [''];
  for (let length = 1; length <= 4; length++) {
    texts = texts.flatMap((text) => characters.map((character) => text + character));
    expect(texts.filter((text) => isAccepted(text) !== isJson(text))).toEqual([]);
  }
  const more = ['-0.9e-9', '9E+0', '90', '09', '1.', '.5', '1e', '1e+', '-', 'true', 'tru', 'null', 'nul1', 'false', '"\\u00aF"', '"\\u00g0"', '"\\x"', '"\\b\\/"', '"\t"', '"\u007f"', '[1,2 ,{"a":null} ]', '{"a":1,}', '{"a" 1}', '[1 2]', '/', ':', '1/', '1:']; // prettier-ignore
  for (const text of more) expect([text, isAccepted(text)]).toEqual([text, isJson(text)]);
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
  expect([isAccepted(nested(256)), isAccepted(nested(257))]).toEqual([true, false]);
});

test('brackets, tags, elif and not are as deep as the limit allows, and a source as long', () => {
  const parse = (source: string, limits: object) =>
    createChatTemplate({ source, architecture: null, bosToken: '', eosToken: '', specialSpellings: [], limits });
  const DEPTHS: [source: string, depth: number][] = [
    ['{{ ((1)) }}', 2],
    ['{{ [{}] }}{{ [1] }}', 2],
    ['{{ (1) }}{{ (1) }}', 1],
    ['{% if a %}{% for x in [1] %}{% endfor %}{% endif %}', 3],
    ['{% if a %}{% elif b %}{% elif c %}{% endif %}', 3],
    ['{% if a %}{% elif b %}{% endif %}{% if a %}{% elif b %}{% endif %}', 2],
    ['{% if a %}{% endif %}{% if a %}{% endif %}', 1],
    ['{{ not not a }}', 2],
  ];
  for (const [source, depth] of DEPTHS) {
    if (depth > 1) expect(() => parse(source, { maxNesting: depth - 1 }), source).toThrow(`nested ${depth} deep, limit ${depth - 1}`); // prettier-ignore
    expect(() => parse(source, { maxNesting: depth }), source).not.toThrow();
  }
  expect(() => parse('abc', { maxSourceChars: 3 })).not.toThrow();
  expect(() => parse('abcd', { maxSourceChars: 3 })).toThrow('4 characters, limit 3');
});
