// Token masks under grammars: time per token over realistic documents, time to compile, and the share of the JSON Schema
// suite that compiles. Vocabularies and suite of ../shared, or the GGUF files named on the command line.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';

const { createMemorySource } = await importBuilt<typeof import('../src/core/byte-source.ts')>('core/byte-source');
const { openGguf } = await importBuilt<typeof import('../src/gguf/index.ts')>('gguf/index');
const { createTokenizer } = await importBuilt<typeof import('../src/tokenizers/index.ts')>('tokenizers/index');
const { compileGrammar, createTokenMatcher, createTokenTable, createTokenVocabulary } =
  await importBuilt<typeof import('../src/sampling/grammar/index.ts')>('sampling/grammar/index');

const suites = '../shared/suites/tokenizers';
const schemaSuite = '../shared/suites/json-schema-test-suite/tests';
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

/** What a model may write before and between calls, and the call itself. */
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

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]!;

function measure(file: string) {
  const tokenizer = createTokenizer(openGguf(createMemorySource(readFileSync(file), file)).metadata);
  const table = createTokenTable(createTokenVocabulary(tokenizer));
  const maskMs: number[] = [];
  const compileMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, schema, value] of CASES) {
      for (const indent of [0, 2]) {
        const began = performance.now();
        const grammar = compileGrammar({ type: 'json_schema', schema });
        // The first round warms the compiler of the language up.
        if (round > 0) compileMs.push(performance.now() - began);
        const matcher = createTokenMatcher(grammar, table);
        for (const id of tokenizer.encode(JSON.stringify(value, null, indent), { isContinuation: true })) {
          const start = performance.now();
          matcher.mask();
          if (round > 0) maskMs.push(performance.now() - start);
          if (!matcher.accept(id)) throw new Error(`${name}: ${tokenizer.piece(id)} refused`);
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
      if (!matcher.accept(id)) throw new Error(`calls: ${tokenizer.piece(id)} refused`);
      written += tokenizer.tokenBytes(id).length;
    }
  }
  for (const list of [freeMs, callMs]) list.sort((a, b) => a - b);
  maskMs.sort((a, b) => a - b);
  compileMs.sort((a, b) => a - b);
  return { name: basename(file, '.gguf'), size: tokenizer.vocabSize, maskMs, compileMs, freeMs, callMs };
}

/** Schemas of draft 7 do not always say so; the folder does. */
function withDialect(schema: unknown, draft: string): unknown {
  const isOpen = draft === 'draft7' && typeof schema === 'object' && schema !== null;
  return isOpen ? { $schema: 'http://json-schema.org/draft-07/schema#', ...schema } : schema;
}

function acceptedShare(): number | null {
  if (!existsSync(schemaSuite)) return null;
  let [accepted, total] = [0, 0];
  for (const draft of ['draft7', 'draft2020-12']) {
    const folder = join(schemaSuite, draft);
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
      for (const { schema } of JSON.parse(readFileSync(join(folder, file), 'utf8')) as { schema: unknown }[]) {
        total++;
        try {
          compileGrammar({ type: 'json_schema', schema: withDialect(schema, draft) });
          accepted++;
        } catch {
          // Refused: counted by what is missing.
        }
      }
    }
  }
  return accepted / total;
}

const named = process.argv.slice(2);
const files =
  named.length > 0
    ? named
    : existsSync(suites)
      ? readdirSync(suites)
          .filter((name) => /(gpt-2|phi-3)\.gguf$/.test(name))
          .map((name) => join(suites, name))
      : [];
if (files.length === 0) {
  console.error(`no vocabularies in ${suites}\nnext: npm run bench -- masks FILE.gguf …`);
  process.exit(2);
}
const results = files.map(measure).sort((a, b) => a.size - b.size);
printTable([
  ['', 'tokens', 'masks', 'mask p50 ms', 'p90', 'p99', 'compile p50 ms'],
  ...results.map(({ name, size, maskMs, compileMs }) => [
    name,
    String(size),
    String(maskMs.length),
    ...[0.5, 0.9, 0.99].map((q) => quantile(maskMs, q).toFixed(3)),
    quantile(compileMs, 0.5).toFixed(2),
  ]),
]);
printTable([
  ['calls in free text', 'free p50 ms', 'p90', 'most', 'call p50 ms', 'p90', 'most'],
  ...results.map(({ name, freeMs, callMs }) => [
    name,
    ...[freeMs, callMs].flatMap((list) => [0.5, 0.9, 1].map((q) => quantile(list, q).toFixed(3))),
  ]),
]);
const largest = results.at(-1)!;
console.log(
  JSON.stringify({
    bench: 'masks',
    vocabulary: largest.name,
    tokens: largest.size,
    mask_p50_ms: quantile(largest.maskMs, 0.5),
    mask_p99_ms: quantile(largest.maskMs, 0.99),
    free_text_mask_p50_ms: quantile(largest.freeMs, 0.5),
    free_text_mask_max_ms: quantile(largest.freeMs, 1),
    call_mask_p50_ms: quantile(largest.callMs, 0.5),
    compile_p50_ms: quantile(largest.compileMs, 0.5),
    schemas_accepted_share: acceptedShare(),
  }),
);
