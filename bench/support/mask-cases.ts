import type { GrammarSource } from '../../src/sampling/grammar/index.ts';

/** A grammar and a text that satisfies it. */
export interface MaskCase {
  readonly name: string;
  readonly source: GrammarSource;
  readonly text: string;
}

const text = { type: 'string' };
const number = { type: 'number' };
const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const closed = (properties: object): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const open = (properties: object): object => ({ type: 'object', properties, required: Object.keys(properties) });

const person = {
  type: 'object',
  properties: {
    name: text,
    age: { type: 'integer', minimum: 0, maximum: 150 },
    tags: { type: 'array', items: { enum: ['red', 'green', 'blue'] }, uniqueItems: true },
    address: {
      type: 'object',
      properties: { street: { type: 'string', maxLength: 100 }, zip: { type: 'string', pattern: '^[0-9]{5}$' } },
      required: ['street', 'zip'],
      additionalProperties: false,
    },
    score: number,
  },
  required: ['name', 'age'],
  additionalProperties: false,
};
const ada = {
  name: 'Ada Lovelace of the Analytical Engine',
  age: 36,
  tags: ['red', 'blue'],
  address: { street: '12 St James Square, near the park', zip: '12345' },
  score: 4.25,
};
const node = {
  type: 'object',
  properties: { value: text, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
};
const names = range(100).map((i) => `prop_${i}_${['name', 'size', 'kind'][i % 3]}`);
const wide = { type: 'object', properties: Object.fromEntries(names.map((name, i) => [name, i % 3 ? text : number])) };
const wideValue = Object.fromEntries(names.slice(0, 12).map((name, i) => [name, i % 3 ? 'text' : 5]));

const SCHEMAS: readonly (readonly [name: string, schema: object, value: unknown])[] = [
  ['person', person, ada],
  ['people', { type: 'array', items: person }, [ada, ada, ada]],
  ['open person', open({ name: text, age: { type: 'integer' } }), { name: 'Ada', age: 36, more: { a: [1, 'x'] } }],
  [
    'any object',
    { type: 'object' },
    { title: 'A tale of two cities', year: 1859, parts: ['one', 'two'], meta: { lang: 'en' } },
  ],
  ['any value', {}, { a: [1, 2, { b: 'some text with words' }], c: null, d: true, e: 1e21 }],
  [
    'shapes',
    {
      anyOf: [
        closed({ kind: { const: 'circle' }, r: number }),
        closed({ kind: { const: 'box' }, w: number, h: number, label: text }),
      ],
    },
    { kind: 'box', w: 10.5, h: 20, label: 'the big one' },
  ],
  [
    'tree',
    { $ref: '#/$defs/node', $defs: { node } },
    { value: 'root', children: [{ value: 'left' }, { value: 'right', children: [{ value: 'deep', children: [] }] }] },
  ],
  [
    'patterns',
    open({
      id: { type: 'string', pattern: '^[A-Za-z0-9_.-]+$' },
      word: { type: 'string', pattern: '\\w+' },
      title: { type: 'string', pattern: '^[^<>]*$' },
      slug: { type: 'string', pattern: '^[a-z ]+$', minLength: 3, maxLength: 60 },
    }),
    { id: 'some_identifier-12.3', word: 'a few words', title: 'plain text here', slug: 'some words here' },
  ],
  [
    'texts or numbers',
    open({
      v: { anyOf: [text, number, { type: 'array', items: text }] },
      w: {
        oneOf: [
          { type: 'string', maxLength: 5 },
          { type: 'string', pattern: '^x' },
        ],
      },
    }),
    { v: 'hello world', w: 'xylophone' },
  ],
  [
    'pattern properties',
    { type: 'object', patternProperties: { '^x-': text, '^[a-z]+$': number }, additionalProperties: false },
    { 'x-name': 'value', abc: 12, def: 3 },
  ],
  [
    'property names',
    { type: 'object', propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }, additionalProperties: number },
    { first_name: 1, second: 2, third: 3 },
  ],
  ['unique texts', { type: 'array', items: text, uniqueItems: true, minItems: 2 }, ['one text', 'two texts', 'three']],
  [
    'exclusions',
    open({ a: { type: 'string', not: { enum: ['foo', 'bar'] } }, b: { not: { type: 'object' } } }),
    { a: 'food for', b: 'text' },
  ],
  ['a long list', open({ a: { enum: range(2_000).map((i) => `value number ${i * 37}`) } }), { a: 'value number 370' }],
  ['wide object', { ...wide, additionalProperties: false }, wideValue],
  ['wide open object', wide, wideValue],
  [
    'condition',
    {
      ...open({ country: { enum: ['US', 'CA'] }, code: text }),
      if: { properties: { country: { const: 'US' } } },
      else: { properties: { code: { pattern: '^[A-Z][0-9][A-Z] [0-9][A-Z][0-9]$' } } },
    },
    { country: 'CA', code: 'K1M 1M4' },
  ],
  [
    'formats',
    open({
      at: { type: 'string', format: 'date-time' },
      id: { type: 'string', format: 'uuid' },
      page: { type: 'string', format: 'uri' },
      to: { type: 'string', format: 'email' },
    }),
    {
      at: '2024-02-29T12:00:00Z',
      id: '123e4567-e89b-12d3-a456-426614174000',
      page: 'https://example.org/a/path?with=query',
      to: 'ada@example.org',
    },
  ],
];

/** JSON under schemas, compact and indented. */
export const JSON_CASES: readonly MaskCase[] = SCHEMAS.flatMap(([name, schema, value]) =>
  [0, 2].map((indent) => ({
    name,
    source: { type: 'json_schema', schema, assertFormats: name === 'formats' },
    text: JSON.stringify(value, null, indent),
  })),
);

const GBNF_JSON = String.raw`root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}`;

/** GBNF and regular expressions. */
export const TEXT_CASES: readonly MaskCase[] = [
  {
    name: 'list in GBNF',
    source: { type: 'gbnf', text: 'root ::= item+\nitem ::= "- " [^\\n]+ "\\n"' },
    text: '- a line of text\n- another one, with punctuation!\n',
  },
  {
    name: 'JSON in GBNF',
    source: { type: 'gbnf', text: GBNF_JSON },
    text: '{"name": "some text here", "n": [1, 2.5, null]}',
  },
  {
    name: 'sentence',
    source: { type: 'regex', pattern: '[A-Z][a-z]+( [a-z]+)*\\.' },
    text: 'Some plain words here.',
  },
  { name: 'any text', source: { type: 'regex', pattern: '(.|\\n)*END' }, text: 'Some plain words here.END' },
];

/** Free text before and between calls, and the call itself. */
export const CALLS: GrammarSource = {
  type: 'structure',
  root: {
    kind: 'free',
    branches: [
      {
        trigger: '<tool_call>',
        node: {
          kind: 'sequence',
          items: [
            { kind: 'text', text: '\n{"name": "add_person", "arguments": ' },
            { kind: 'json', schema: person },
            { kind: 'text', text: '}\n</tool_call>' },
          ],
        },
      },
    ],
    endsAfterBranch: false,
  },
};
export const PROSE =
  'I will look that up for you: 3 < 4, and the <b>rest</b> is easy. First, the person is added to the list.\n';
export const ANSWER = `${PROSE}<tool_call>\n{"name": "add_person", "arguments": ${JSON.stringify(ada)}}\n</tool_call>`;
