import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { HOSTILE_GRAMMARS } from '../../../test/support/hostile-grammars.ts';
import { compileGrammar, recordGrammar } from './compile.ts';
import type { GrammarLimits } from './limits.ts';
import type { GrammarSource, GrammarState } from './types.ts';

function refusal(source: GrammarSource, limits: Partial<GrammarLimits> = {}): { code: string; message: string } {
  try {
    compileGrammar(source, limits);
  } catch (error) {
    if (error instanceof RuvLLMError) return { code: error.code, message: error.message };
    throw error;
  }
  return { code: 'accepted', message: '' };
}

const schema = (value: unknown): GrammarSource => ({ type: 'json_schema', schema: value });
const nest = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = { type: 'string' };
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
};
const chain = (length: number): unknown => {
  const $defs: Record<string, unknown> = {};
  for (let i = 0; i < length; i++) $defs[`a${i}`] = { $ref: `#/$defs/a${i + 1}` };
  return { $ref: '#/$defs/a0', $defs: { ...$defs, [`a${length}`]: true } };
};
const range = (n: number): number[] => [...Array(n).keys()];

describe('[G8] rejects hostile input with one typed error and its reason', () => {
  test.each<[string, GrammarSource, string, RegExp]>([
    ['60 000 nested arrays', schema(nest(60_000, (inner) => [inner])), 'invalid_option', /nested deeper than 512/],
    ['60 000 nested schemas', schema(nest(60_000, (items) => ({ items }))), 'invalid_option', /nested deeper than 512/],
    ['a schema that refers to itself', schema({ $ref: '#' }), 'unsupported', /refers to itself in place/],
    [
      'two schemas that refer to each other',
      schema({ allOf: [{ $ref: '#/$defs/a' }], $defs: { a: { anyOf: [{ $ref: '#' }] } } }),
      'unsupported',
      /itself in place/,
    ],
    ['5 000 references in a row', schema(chain(5_000)), 'unsupported', /more than 500 references/],
    [
      'a list that must contain itself',
      schema({ type: 'array', items: { $ref: '#' }, minItems: 1 }),
      'invalid_option',
      /no value satisfies/,
    ],
    [
      'an exponential automaton',
      schema({ pattern: '(a|b)*a(a|b){40}' }),
      'unsupported',
      /more than 4000 states.*\/pattern/,
    ],
    ['nested repetitions', schema({ pattern: '^((a{1000}){1000}){1000}$' }), 'unsupported', /more than 16000 parts/],
    ['60 000 groups', { type: 'regex', pattern: '('.repeat(60_000) }, 'invalid_option', /deeper than 128/],
    [
      '60 000 groups in GBNF',
      { type: 'gbnf', text: `root ::= ${'('.repeat(60_000)}` },
      'invalid_option',
      /deeper than 128/,
    ],
    [
      'repetitions of repetitions in GBNF',
      { type: 'gbnf', text: 'root ::= "a"{4000}{4000}{4000}' },
      'unsupported',
      /more than 3000000 steps/,
    ],
    ['left recursion', { type: 'gbnf', text: 'root ::= root "a" | "b"' }, 'unsupported', /left recursion/],
    [
      'left recursion behind nothing',
      { type: 'gbnf', text: 'root ::= ws root "a" | "b"\nws ::= " "*' },
      'unsupported',
      /left recursion/,
    ],
    [
      '2^25 alternatives',
      schema({
        type: 'object',
        allOf: range(25).map((i) => ({ anyOf: [{ required: [`x${i}`] }, { required: [`y${i}`] }] })),
      }),
      'unsupported',
      /more than 2000 alternatives|more than 3000000 steps/,
    ],
    [
      'a contradiction',
      schema({ allOf: [{ type: 'string' }, { type: 'number' }] }),
      'invalid_option',
      /no value satisfies/,
    ],
    [
      'a range without integers',
      schema({ type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 2 }),
      'invalid_option',
      /no value satisfies/,
    ],
    [
      'more unique items than values',
      schema({ type: 'array', items: { type: 'boolean' }, uniqueItems: true, minItems: 3 }),
      'invalid_option',
      /no value satisfies/,
    ],
    [
      'look-ahead',
      schema({ properties: { a: { pattern: 'a(?=b)' } } }),
      'unsupported',
      /look-ahead.*\/properties\/a\/pattern/,
    ],
    ['NaN', schema({ minimum: Number.NaN }), 'invalid_option', /not a JSON number/],
    ['a bad type', schema({ properties: { a: { type: 'strin' } } }), 'invalid_option', /\/properties\/a\/type/],
    ['a missing definition', schema({ $ref: '#/$defs/none' }), 'invalid_option', /\/\$defs\/none not found/],
    ['another document', schema({ $ref: 'https://example.com/a.json' }), 'unsupported', /\$ref.*outside this schema/],
  ])('%s', (_, source, code, message) => {
    const refused = refusal(source, { maxStates: 4_000, maxSteps: 3_000_000 });
    expect(refused).toEqual({ code, message: expect.stringMatching(message) as string });
  });

  test('rejects an unknown keyword only in a strict schema', () => {
    expect(refusal({ type: 'json_schema', schema: { minLenght: 3 } }).code).toBe('accepted');
    expect(refusal({ type: 'json_schema', schema: { minLenght: 3 }, strict: true }).message).toMatch(
      /minLenght at \/minLenght/,
    );
  });
});

describe('[G9] counts large numbers without expanding them', () => {
  test('minItems of a billion', () => {
    const grammar = compileGrammar(schema({ type: 'array', minItems: 1e9 }));
    expect(grammar.closingBytes(grammar.start)).toBe(2e9 + 1);
    expect(grammar.closing(grammar.start, 1_000)).toBeNull();
  });
  test('minLength and maxLength of a billion', () => {
    const grammar = compileGrammar(schema({ type: 'string', minLength: 1e9, maxLength: 2e9 }));
    expect(grammar.closingBytes(grammar.start)).toBe(1e9 + 2);
    expect(grammar.closing(grammar.start, 1_000)).toBeNull();
  });
  const doublings = (count: number, last: string): GrammarSource => ({
    type: 'gbnf',
    text: ['root ::= r0', ...range(count).map((i) => `r${i} ::= r${i + 1} r${i + 1}`), `r${count} ::= ${last}`].join(
      '\n',
    ),
  });
  test('GBNF rules that double 30 times', () => {
    const grammar = compileGrammar(doublings(30, '"a"'));
    expect(grammar.closingBytes(grammar.start)).toBe(2 ** 30);
    expect(grammar.closing(grammar.start, 65_536)).toBeNull();
    expect(grammar.closingBytes(grammar.step(grammar.start, 97)!)).toBe(2 ** 30 - 1);
  });
  test('GBNF rules that double 2 000 times have texts', () => {
    const grammar = compileGrammar(doublings(2_000, '"a"'));
    expect(grammar.closingBytes(grammar.start)).toBe(Number.MAX_SAFE_INTEGER);
    expect(grammar.closing(grammar.start, 65_536)).toBeNull();
  });
  test('GBNF rules that double nothing 30 times', () => {
    const grammar = compileGrammar({
      type: 'gbnf',
      text: ['root ::= "a" "b" r0', ...range(30).map((i) => `r${i} ::= r${i + 1} r${i + 1}`), 'r30 ::= ""'].join('\n'),
    });
    expect(new TextDecoder().decode(grammar.closing(grammar.start, 100)!)).toBe('ab');
  });
  test('GBNF rules that lead back to themselves in last position', () => {
    for (const last of ['""', '"x"']) {
      const grammar = compileGrammar({ type: 'gbnf', text: `root ::= "ab" a\na ::= b | ${last}\nb ::= a | ${last}` });
      const bytes = grammar.closing(grammar.start, 100)!;
      expect(new TextDecoder().decode(bytes)).toBe(`ab${JSON.parse(last) as string}`);
      expect(grammar.closingBytes(grammar.start)).toBe(bytes.length);
    }
  });
  test('a long chain of GBNF rules in each of many places', () => {
    const text = [
      `root ::= ${'r0 '.repeat(60_000)}`,
      ...range(2_000).map((i) => `r${i} ::= r${i + 1}`),
      'r2000 ::= "a"',
    ];
    const grammar = compileGrammar({ type: 'gbnf', text: text.join('\n') }, { maxStepsPerToken: 1_000_000 });
    grammar.beginToken();
    expect(grammar.closingBytes(grammar.start)).toBe(60_000);
    expect(() => grammar.closing(grammar.start, 65_536)).toThrow(/closing needs more than 1000000 steps/);
  });
  test('minItems of a billion in a structure whose JSON may need escapes', () => {
    const json = { type: 'array', items: { const: '</x>' }, minItems: 1e9 };
    const grammar = compileGrammar({
      type: 'structure',
      root: {
        kind: 'sequence',
        items: [
          { kind: 'json', schema: json, without: '</x>' },
          { kind: 'text', text: '</x>' },
        ],
      },
    });
    expect(grammar.closingBytes(grammar.start)).toBe(7e9 + 1 + 4);
    expect(grammar.closing(grammar.start, 65_536)).toBeNull();
  });
  test('50 000 texts and 2 000 properties', () => {
    expect(refusal(schema({ enum: range(50_000).map((i) => `value ${i}`) })).code).toBe('accepted');
    const properties = Object.fromEntries(range(2_000).map((i) => [`property ${i}`, { type: 'string' }]));
    expect(refusal(schema({ type: 'object', properties, additionalProperties: false })).code).toBe('accepted');
  });
});

test('[G10] treats names on Object.prototype like any other', () => {
  const source =
    '{"type":"object","properties":{"__proto__":{"type":"integer"},"constructor":{"const":1}},"required":["__proto__","toString"],"additionalProperties":{"type":"null"}}';
  const grammar = compileGrammar(schema(JSON.parse(source)));
  const takes = (text: string): boolean => {
    let state: GrammarState | null = grammar.start;
    for (const byte of new TextEncoder().encode(text)) if (state !== null) state = grammar.step(state, byte);
    return state !== null && grammar.isComplete(state);
  };
  expect(takes('{"__proto__":1,"toString":null}')).toBe(true);
  expect(takes('{"__proto__":"x","toString":null}')).toBe(false);
  expect(takes('{"toString":null}')).toBe(false);
  expect(takes('{"__proto__":1,"toString":null,"constructor":2}')).toBe(false);
  expect(takes('{"__proto__":1,"__proto__":2,"toString":null}')).toBe(false);
  expect(takes('{"__proto__":1,"__pr\\u006fto__":2,"toString":null}')).toBe(false);
});

// The engine compiles between two steps, and all streams wait for a part that cannot be interrupted.
test.each(['if, then and else, nested', 'nested anyOf with not'])(
  '[G30] combining the schema can be interrupted between two alternatives: %s',
  (name) => {
    const { numSteps, numStretchSteps } = recordGrammar(HOSTILE_GRAMMARS[name]!());
    expect(numSteps).toBeGreaterThan(20_000);
    expect(numStretchSteps).toBeLessThan(10_000);
  },
);
