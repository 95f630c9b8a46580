// Time per token mask over realistic documents, and the schemas of the suite that compile.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { acceptedShareOf } from '../../test/support/schema-suite.ts';
import { importBuilt } from './dist.ts';

const { createMemorySource } = await importBuilt<typeof import('../../src/core/byte-source.ts')>('core/byte-source');
const { openGguf } = await importBuilt<typeof import('../../src/gguf/index.ts')>('gguf/index');
const { createTokenizer } = await importBuilt<typeof import('../../src/tokenizers/index.ts')>('tokenizers/index');
const { compileGrammar, createTokenMatcher, createTokenTable, createTokenVocabulary } =
  await importBuilt<typeof import('../../src/sampling/grammar/index.ts')>('sampling/grammar/index');

const ROUNDS = 5;

const text = { type: 'string' };
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
    score: { type: 'number' },
  },
  required: ['name', 'age'],
  additionalProperties: false,
};
const shape = (kind: string, properties: object): object => ({
  type: 'object',
  properties: { kind: { const: kind }, ...properties },
  required: ['kind', ...Object.keys(properties)],
  additionalProperties: false,
});
const number = { type: 'number' };
const node = {
  type: 'object',
  properties: { value: text, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
};
const ada = {
  name: 'Ada Lovelace of the Analytical Engine',
  age: 36,
  tags: ['red', 'blue'],
  address: { street: '12 St James Square, near the park', zip: '12345' },
  score: 4.25,
};
const CASES: readonly (readonly [string, object, unknown])[] = [
  ['person', { ...person }, ada],
  ['people', { type: 'array', items: person }, [ada, ada, ada]],
  [
    'any object',
    { type: 'object' },
    { title: 'A tale of two cities', year: 1859, parts: ['one', 'two'], meta: { lang: 'en' } },
  ],
  [
    'shapes',
    { anyOf: [shape('circle', { r: number }), shape('box', { w: number, h: number, label: text })] },
    { kind: 'box', w: 10.5, h: 20, label: 'the big one' },
  ],
  [
    'tree',
    { $ref: '#/$defs/node', $defs: { node } },
    { value: 'root', children: [{ value: 'left' }, { value: 'right', children: [] }] },
  ],
];

/** Free text before and between calls, and the call itself. */
const CALLS = {
  type: 'structure' as const,
  root: {
    kind: 'free' as const,
    branches: [
      {
        trigger: '<tool_call>',
        node: {
          kind: 'sequence' as const,
          items: [
            { kind: 'text' as const, text: '\n{"name": "add_person", "arguments": ' },
            { kind: 'json' as const, schema: person },
            { kind: 'text' as const, text: '}\n</tool_call>' },
          ],
        },
      },
    ],
    endsAfterBranch: false,
  },
};
const PROSE =
  'I will look that up for you: 3 < 4, and the <b>rest</b> is easy. First, the person is added to the list.\n';
const ANSWER = `${PROSE}<tool_call>\n{"name": "add_person", "arguments": ${JSON.stringify(ada)}}\n</tool_call>`;

/** Results of one vocabulary; times ascending. */
export interface MaskTimes {
  readonly name: string;
  readonly size: number;
  readonly maskMs: readonly number[];
  readonly compileMs: readonly number[];
  readonly freeMs: readonly number[];
  readonly callMs: readonly number[];
}

/** Times masks and compilations with the vocabulary of a GGUF file. */
export function measureMasks(file: string): MaskTimes {
  const tokenizer = createTokenizer(openGguf(createMemorySource(readFileSync(file), file)).metadata);
  const table = createTokenTable(createTokenVocabulary(tokenizer));
  const maskMs: number[] = [];
  const compileMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, schema, value] of CASES) {
      for (const indent of [0, 2]) {
        const began = performance.now();
        const grammar = compileGrammar({ type: 'json_schema', schema });
        // The first round warms up the JavaScript compiler.
        if (round > 0) compileMs.push(performance.now() - began);
        const matcher = createTokenMatcher(grammar, table);
        for (const id of tokenizer.encode(JSON.stringify(value, null, indent), { isContinuation: true })) {
          const start = performance.now();
          matcher.mask();
          if (round > 0) maskMs.push(performance.now() - start);
          if (!matcher.accept(id)) throw new Error(`${name}: ${tokenizer.piece(id)} rejected`);
        }
      }
    }
  }
  // Free text and a call: a new grammar each time, so that the first mask of free text counts too.
  const freeMs: number[] = [];
  const callMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const matcher = createTokenMatcher(compileGrammar(CALLS), table);
    let written = 0;
    for (const id of tokenizer.encode(ANSWER, { isContinuation: true })) {
      const start = performance.now();
      matcher.mask();
      if (round > 0) (written < PROSE.length ? freeMs : callMs).push(performance.now() - start);
      if (!matcher.accept(id)) throw new Error(`calls: ${tokenizer.piece(id)} rejected`);
      written += tokenizer.tokenBytes(id).length;
    }
  }
  for (const list of [freeMs, callMs]) list.sort((a, b) => a - b);
  maskMs.sort((a, b) => a - b);
  compileMs.sort((a, b) => a - b);
  return { name: basename(file, '.gguf'), size: tokenizer.vocabSize, maskMs, compileMs, freeMs, callMs };
}

/** The share of the JSON Schema suite at `suite` that compiles; null if it is missing. */
export function acceptedShare(suite: string): number | null {
  return acceptedShareOf(suite, (schema) => void compileGrammar({ type: 'json_schema', schema }));
}
