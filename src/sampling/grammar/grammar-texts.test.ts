import { describe, expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** 'whole', the shortest completion of an incomplete text, or the position where it is rejected. */
function read(grammar: CompiledGrammar, text: string): string {
  let state: GrammarState | null = grammar.start;
  for (const [i, byte] of encoder.encode(text).entries()) {
    state = grammar.step(state, byte);
    if (state === null) return `stopped at ${i}`;
  }
  return grammar.isComplete(state) ? 'whole' : `+${decoder.decode(grammar.closing(state, 1_000)!)}`;
}
const schema = (value: unknown): CompiledGrammar => compileGrammar({ type: 'json_schema', schema: value });

describe('[G11] [G29] JSON texts', () => {
  test.each<[unknown, string, string]>([
    [{ const: 'é"' }, '"é\\""', 'whole'],
    [{ const: 'é"' }, '"\\u00e9', 'stopped at 1'],
    [{ const: 'ok' }, '"\\u006f', 'stopped at 1'],
    [{ const: '</' }, '"<\\/', 'stopped at 2'],
    [{ const: '\u0001\n' }, '"\\u0001\\n"', 'whole'],
    [{ const: '\u0001' }, '"\\u0', '+001"'],
    [{ const: '\n' }, '"\\u000a', 'stopped at 2'],
    [{ type: 'string' }, '"\\u000A', 'stopped at 6'],
    [{ type: 'string' }, '"\\u001f"', 'whole'],
    [{ type: 'string' }, '"\\u0020', 'stopped at 5'],
    [{ type: 'string' }, '"\\ud83d', 'stopped at 3'],
    [{ type: 'string', maxLength: 2 }, '"😀é"', 'whole'],
    [{ type: 'string', maxLength: 2 }, '"😀éa', 'stopped at 7'],
    [{ type: 'string', minLength: 2 }, '"a', '+a"'],
    [{ type: 'object' }, '{"\\u006f\\u006b":true}', 'stopped at 6'],
    [{ type: 'object' }, '{"\\n":1,"\\n"', 'stopped at 11'],
    [{ type: 'object', required: ['a', 'b'] }, '{"b":', '+0,"a":0}'],
    [{ type: 'object', required: ['a'], maxProperties: 1 }, '{"b', 'stopped at 2'],
    [{ type: 'integer' }, '1.0', 'whole'],
    [{ type: 'integer' }, '12.5', 'stopped at 3'],
    [{ type: 'integer' }, '1.5', '+e21'],
    [{ type: 'integer', maximum: 5 }, '10', 'stopped at 1'],
    [{ type: 'integer', minimum: 10 }, '-', 'stopped at 0'],
    [{ type: 'integer', minimum: 10 }, '7', '+0'],
    [{ multipleOf: 0.01, type: 'number' }, '4.35', 'whole'],
    [{ multipleOf: 0.01, type: 'number' }, '14.351', 'stopped at 5'],
    [{ type: 'number' }, '1E400', 'stopped at 4'],
    [{ type: 'number' }, '1.7976931348623157e+308', 'whole'],
    [{ type: 'number', minimum: 0 }, '1e+21', 'whole'],
    [{ type: 'number', minimum: 0 }, '5e-324', 'whole'],
    [{ type: 'number' }, '01', 'stopped at 1'],
    [{ type: 'array', items: { enum: [1, 2] }, uniqueItems: true }, '[1,1.0', 'stopped at 3'],
    [{ type: 'array', uniqueItems: true }, '[{"a":1,"b":2},{"b":2,"a":1', '+,"":0}]'],
    [{ type: 'array', uniqueItems: true }, '[{"a":1,"b":2},{"b":2,"a":1}', 'stopped at 27'],
    [
      { type: 'array', prefixItems: [{ enum: [1, 2] }, { const: 1 }], minItems: 2, uniqueItems: true },
      '[1',
      'stopped at 1',
    ],
    [{}, '{"a": 1, "b": [1, 2]}', 'whole'],
    [{}, '[\n  1,\n  {\n    "a": 2\n  }\n]', 'whole'],
    [{}, '[\n\t{\n\t\t"a": 2,\n\t\t"b": []\n\t}\n]', 'whole'],
    [{}, '[\n    [1, 2],\n    3\n]', 'whole'],
    [{}, ' 1', 'stopped at 0'],
    [{}, '[ 1', 'stopped at 1'],
    [{}, '[1 ', 'stopped at 2'],
    [{}, '{"a" ', 'stopped at 4'],
    [{}, '{"a":  ', 'stopped at 6'],
    [{}, '{"a":\n', 'stopped at 5'],
    [{}, '[1,\n', 'stopped at 3'],
    [{}, '[\n\n', 'stopped at 2'],
    [{}, '[\n     ', 'stopped at 6'],
    [{}, '[\n  [\n   ', '+ 0]]'],
    [{}, '[\n  [\n     ', 'stopped at 10'],
    [{}, '[\n  1\n ', 'stopped at 6'],
    [{}, '{\n\t"a": {\n\t', '+\t"":0}}'],
    [{}, '{\n', '+ "":0}'],
    [{ type: 'object', additionalProperties: false }, '{\n', 'stopped at 1'],
    [{ type: 'object', required: ['a'] }, '{\n  "b": 1\n', 'stopped at 10'],
    [
      { type: 'array', items: { type: 'object' }, uniqueItems: true },
      '[\n {\n  "a": 1\n },\n {\n  "a": 1\n',
      'stopped at 29',
    ],
    [{ type: 'array', contains: { const: 1 }, maxContains: 2 }, '[1,1,1]', 'stopped at 6'],
    [{ type: 'object', maxProperties: 1, not: { additionalProperties: { type: 'null' } } }, '{"a":n', 'stopped at 5'],
    [{ type: 'object', maxProperties: 2, not: { additionalProperties: { type: 'null' } } }, '{"a":n', '+ull,"":0}'],
    [{}, '1 ', 'stopped at 1'],
    [{}, '{"a":1}x', 'stopped at 7'],
  ])('%j reads %s', (value, text, expected) => {
    expect(read(schema(value), text)).toBe(expected);
  });
  test('[G6] formats are ignored, enforced where possible, or refused if they cannot be enforced', () => {
    const formatted = (format: string, assertFormats?: boolean | 'where-possible'): CompiledGrammar =>
      compileGrammar({
        type: 'json_schema',
        schema: { format },
        ...(assertFormats === undefined ? {} : { assertFormats }),
      });
    expect(read(formatted('date'), '"2023-02-29"')).toBe('whole');
    expect(read(formatted('date', 'where-possible'), '"2023-02-29"')).toBe('stopped at 10');
    expect(read(formatted('hostname', 'where-possible'), '"a b"')).toBe('whole');
    expect(() => formatted('hostname', true)).toThrow('grammar: format at /format: "hostname" cannot be enforced');
    expect(read(formatted('uri', true), '"no scheme')).toBe('stopped at 3');
    expect(read(formatted('email', true), '"ada@example.org"')).toBe('whole');
  });
  test('json_object accepts only objects', () => {
    const grammar = compileGrammar({ type: 'json_object' });
    expect(read(grammar, '{"a":[null]}')).toBe('whole');
    expect(read(grammar, '[')).toBe('stopped at 0');
  });
});

describe('[G12] GBNF', () => {
  const json = String.raw`
# JSON, as people write it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws (
    value ("," ws value)*   # items
  )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
`;
  test.each<[string, string, string]>([
    [json, '{"a": [1, 2.5, "x\\u00e9é"], "b": {}}', 'whole'],
    [json, '{"a":tru', '+e}'],
    [json, '[', 'stopped at 0'],
    ['root ::= "ab"{2,3} "c"?', 'abab', 'whole'],
    ['root ::= "ab"{2,3} "c"?', 'abababab', 'stopped at 6'],
    ['root ::= "ab"{2,3} "c"?', 'aba', '+b'],
    ['root ::= ([a-z]?)* "!"', 'abc', '+!'],
    ['root ::= [^a-c] . "\\u00e9"', 'dx', '+é'],
    ['root ::= "x" dead | "y"\ndead ::= "z" dead', 'x', 'stopped at 0'],
    ['root ::= [α-ω]+', 'αβ', 'whole'],
    ['root ::= "a" | b\nb ::= "b"\n  | "c"', 'c', 'whole'],
    ['root ::= a-rule_2\na-rule_2 ::= "x"*', '', 'whole'],
  ])('%j reads %s', (text, input, expected) => {
    expect(read(compileGrammar({ type: 'gbnf', text }), input)).toBe(expected);
  });
  test.each([
    ['root ::= x', /rule x.*not defined/],
    ['a ::= "a"', /rule root is missing/],
    ['root ::= "a', /not closed/],
    ['root ::= ("a"', /character 13.*opened at character 9/],
    ['root ::= "a"{3,1}', /from 3 down to 1/],
    ['root ::= "a"\nroot ::= "b"', /defined twice/],
    ['root = "a"', /::= expected/],
    ['root ::= "\\q"', /unknown escape/],
    ['root ::= "a" root', /no text satisfies/],
  ])('%j is refused', (text, message) => {
    expect(() => compileGrammar({ type: 'gbnf', text })).toThrow(message);
  });
});
