import { Validator } from '@cfworker/json-schema';
import type { Schema } from '@cfworker/json-schema';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { createRandom } from '../../core/random.ts';
import { createConstrainedSampler } from '../../sampling/constrained-sampler.ts';
import { resolveGenerateParams } from '../../sampling/generate-params.ts';
import {
  compileGrammar,
  createTokenMatcher,
  createTokenTable,
  type TokenMatcher,
  type TokenTable,
} from '../../sampling/grammar/index.ts';
import { collect } from './collect.contract.ts';
import { TOOL_FORMATS } from './formats/index.ts';
import { argumentsSchema } from './grammar.ts';
import { createOutputParser } from './output-parser.ts';
import { toStructure } from './to-structure.ts';
import type { ToolChoice, ToolFormat, ToolSpec } from './types.ts';

// Markers that end values in some family, as data.
const NASTY = [
  '</parameter>',
  '</arg_value>',
  '</｜DSML｜parameter>',
  '}<tool_call|>',
  ']<]minimax[>[',
  '</tool_call>',
];

const object = (properties: object, required: readonly string[] = []): Readonly<Record<string, unknown>> => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const TOOLS: readonly ToolSpec[] = [
  { name: 'now' },
  {
    name: 'weather',
    parameters: object(
      { city: { type: 'string' }, days: { type: 'integer', minimum: 0, maximum: 99 }, unit: { enum: ['C', 'F'] } },
      ['city'],
    ),
  },
  { name: 'optional', parameters: object({ a: { type: 'boolean' }, b: { type: 'string' }, c: { type: 'null' } }) },
  {
    name: 'nested',
    parameters: {
      ...object({ where: { $ref: '#/$defs/place' }, tags: { type: 'array', items: { enum: NASTY } } }, ['where']),
      $defs: { place: object({ name: { type: 'string' }, at: { const: NASTY.join(' ') } }, ['at']) },
    },
  },
  { name: 'mark', parameters: object({ text: { enum: ['plain', ...NASTY] }, note: { type: 'string' } }, ['text']) },
];
const ALL_NAMES = TOOLS.map(({ name }) => name);

const encoder = new TextEncoder();
const CONTROL = /<[^<>\s=]+>|\[[A-Z_]+\]/g;

interface Vocabulary {
  readonly table: TokenTable;
  readonly texts: readonly Uint8Array[];
  readonly firstControl: number;
  readonly endId: number;
}

/** All bytes, some longer tokens, the format's markers as control tokens, an end token. */
function vocabularyOf(format: ToolFormat, tools = TOOLS): Vocabulary {
  const grammar = format.grammar({ tools, choice: 'auto', allowsParallel: true });
  const written = JSON.stringify([grammar.triggers, grammar.begin, grammar.separator, grammar.end, grammar.calls[0]]);
  const controls = new Set(written.match(CONTROL));
  const pieces = ['": ', '"}', '", "', ': "', '\n</', 'now', 'weather', '{"', 'é', '</parameter>', '}}', '"\n'];
  const texts = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...[...pieces, ...controls].map((piece) => encoder.encode(piece)),
    encoder.encode('<end>'),
  ];
  const firstControl = 256 + pieces.length;
  const endId = texts.length - 1;
  const table = createTokenTable({
    size: texts.length,
    bytes: (id) => texts[id]!,
    isControl: (id) => id >= firstControl,
    endIds: [endId],
  });
  return { table, texts, firstControl, endId };
}

/** Samples random tokens under the matcher and returns them. */
function babble({ texts, endId }: Vocabulary, matcher: TokenMatcher, maxTokens: number, seed: number): number[] {
  const random = createRandom(seed);
  const params = resolveGenerateParams({ temperature: 1.5, topK: 0, topP: 1, minP: 0 });
  const sampler = createConstrainedSampler(params, random, matcher, { maxTokens, endIds: [endId] });
  const ids: number[] = [];
  while (ids.length < maxTokens) {
    // Quotes, brackets and markers are rare among all bytes: without a bias strings would never end.
    const logits = Float32Array.from(texts, (text, id) => {
      const isRare = id >= 256 || '"}],:\n<'.includes(String.fromCharCode(text[0]!));
      return random.next() * 4 + (isRare ? 5 : 0);
    });
    const { tokenId } = sampler.sample(logits, ids);
    if (tokenId === endId) break;
    ids.push(tokenId);
  }
  return ids;
}

const textOf = ({ texts }: Vocabulary, ids: readonly number[]): string =>
  new TextDecoder().decode(Uint8Array.from(ids.flatMap((id) => [...texts[id]!])));

function parse(format: ToolFormat, text: string, tools = TOOLS) {
  const parser = createOutputParser({ format, tools, reasoning: null });
  const events = [...parser.push(text), ...parser.finish()];
  const first = events.findIndex(({ type }) => type === 'toolCallStart');
  return { ...collect(events), before: collect(events.slice(0, Math.max(first, 0))).content };
}

function expectValid(
  calls: ReturnType<typeof collect>['calls'],
  names: readonly string[],
  where: string,
  tools = TOOLS,
): void {
  for (const call of calls) {
    const tool = tools.find(({ name }) => name === call.name)!;
    expect(names, where).toContain(call.name);
    expect(call.outcome, where).toBe('complete');
    const value: unknown = JSON.parse(call.arguments);
    const { valid } = new Validator(argumentsSchema(tool) as Schema, '2020-12').validate(value);
    expect([where, call.arguments, valid]).toEqual([where, call.arguments, true]);
  }
}

const CHOICES: readonly Exclude<ToolChoice, 'none'>[] = ['required', ...ALL_NAMES.map((name) => ({ name }))];

test.each(TOOL_FORMATS.map((format) => [format.name, format] as const))(
  '%s: writes only complete calls with valid arguments, even when tokens run out',
  (name, format) => {
    const vocabulary = vocabularyOf(format);
    for (const [i, choice] of CHOICES.entries()) {
      const grammar = format.grammar({ tools: TOOLS, choice, allowsParallel: true });
      const compiled = compileGrammar({ type: 'structure', root: toStructure(grammar) });
      const least = createTokenMatcher(compiled, vocabulary.table).closingTokens()!.length;
      const lengths = [...[least, least + 7, 60].entries(), ...campaign({ short: [], long: [[3, 140] as const] })];
      // The short form gives each choice of one tool one of the lengths.
      const isTested = (seed: number): boolean =>
        choice === 'required' || campaign({ short: i % 3 === seed, long: true });
      for (const [seed, maxTokens] of lengths) {
        if (!isTested(seed)) continue;
        const matcher = createTokenMatcher(compiled, vocabulary.table);
        const text = textOf(vocabulary, babble(vocabulary, matcher, Math.max(least, maxTokens), seed));
        const { calls, content } = parse(format, text);
        const where = `${name} ${JSON.stringify(choice)} ${text}`;
        expect(calls.length, where).toBeGreaterThan(0);
        expectValid(calls, typeof choice === 'object' ? [choice.name] : ALL_NAMES, where);
        expect([where, content.trim()]).toEqual([where, '']);
        if (typeof choice === 'object') expect([where, calls.length]).toEqual([where, 1]);
      }
    }
  },
);

test.each(TOOL_FORMATS.map((format) => [format.name, format] as const))(
  '%s: leaves text free until a trigger, then writes complete calls',
  (name, format) => {
    const vocabulary = vocabularyOf(format);
    const { table, texts, firstControl, endId } = vocabulary;
    for (const allowsParallel of [true, false]) {
      const grammar = format.grammar({ tools: TOOLS, choice: 'auto', allowsParallel });
      const compiled = compileGrammar({ type: 'structure', root: toStructure(grammar) });
      for (const [round, trigger] of [...grammar.triggers, ...grammar.triggers].entries()) {
        const matcher = createTokenMatcher(compiled, table);
        const ids: number[] = [];
        const write = (id: number): void => {
          expect([name, id, matcher.accept(id)]).toEqual([name, id, true]);
          ids.push(id);
        };
        // Some families accept calls only at the start of the answer.
        const isBare = !format.triggers.some((one) => trigger.startsWith(one) || one.startsWith(trigger));
        const prose = isBare ? '' : 'Hello <no, > it is "';
        for (const byte of encoder.encode(prose)) {
          expect(matcher.isComplete).toBe(true);
          const mask = matcher.mask();
          const isAllowed = (id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;
          expect(texts.map((_, id) => isAllowed(id)).every(Boolean)).toBe(true);
          write(byte);
        }
        const control = texts.findIndex(
          (text, id) => id >= firstControl && textOf(vocabulary, [id]) === trigger && text,
        );
        if (round % 2 === 0 && control >= 0) write(control);
        else for (const byte of encoder.encode(trigger)) write(byte);
        expect([name, matcher.isComplete, matcher.clone().accept(endId)]).toEqual([name, false, false]);
        ids.push(...babble(vocabulary, matcher, campaign({ short: 80, long: 150 }), round));
        const text = textOf(vocabulary, ids);
        const { calls, before } = parse(format, text);
        const where = `${name} auto ${text}`;
        expect([where, before]).toEqual([where, prose]);
        expect(calls.length, where).toBeGreaterThan(0);
        expectValid(calls, ALL_NAMES, where);
        if (!allowsParallel) expect([where, calls.length]).toEqual([where, 1]);
      }
    }
  },
);

const LIST_FORMATS = TOOL_FORMATS.filter((format) => {
  const [call] = format.grammar({ tools: TOOLS, choice: 'required', allowsParallel: false }).calls;
  return call!.arguments.kind === 'parameters';
}).map((format) => [format.name, format] as const);
const one = (schema: object) => object({ p: schema }, ['p']);
const recursive = { ...object({ k: { $ref: '#/$defs/k' } }, ['k']), $defs: { k: { type: 'string', maxLength: 1 } } };

const ENFORCED: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['maxLength', one({ type: 'string', maxLength: 2 })],
  ['maxLength 0', one({ type: 'string', maxLength: 0 })],
  ['minLength', one({ type: 'string', minLength: 3 })],
  ['both', object({ p: { type: 'string', minLength: 2, maxLength: 4 }, q: { type: 'string', maxLength: 40 } }, ['p'])],
  ['one length', one({ type: 'string', minLength: 3, maxLength: 3 })],
  ['enum and lengths', one({ type: 'string', enum: ['a', 'bbb', 'cc', 7, 'dddd'], minLength: 2, maxLength: 3 })],
  ['enum and const', one({ type: 'string', enum: ['a', 'b'], const: 'b' })],
  ['an empty string', one({ enum: [''] })],
  ['a member that is never present', object({ p: false, q: { type: 'null' } }, ['q'])],
  ['a definition with a length', recursive],
  [
    'a reference at the root',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: one({ type: 'string', maxLength: 1 }) } },
  ],
  ['members outside the list', { type: 'object', properties: {}, additionalProperties: { type: 'integer' } }],
  ['only the required members', { ...one({ type: 'string' }), minProperties: 1, maxProperties: 1 }],
  ['names', object({ 'a b-é.$': { type: 'string', maxLength: 2 } }, ['a b-é.$'])],
];

test.each(LIST_FORMATS)('%s: enforces all that a list of parameters can express', (name, format) => {
  const shift = LIST_FORMATS.findIndex(([one]) => one === name);
  for (const [i, [what, parameters]] of ENFORCED.entries()) {
    if (name === 'gemma-4' && what === 'names') continue; // Rejected: its keys are unquoted.
    const tools = [{ name: 'f', parameters }];
    const vocabulary = vocabularyOf(format, tools);
    const grammar = format.grammar({ tools, choice: 'required', allowsParallel: true });
    const compiled = compileGrammar({ type: 'structure', root: toStructure(grammar) });
    const least = createTokenMatcher(compiled, vocabulary.table).closingTokens()!.length;
    // The short form tests every schema at every length, but not in every format.
    for (const seed of campaign({ short: [[0, 1, 4][(i + shift) % 3]!], long: [0, 1, 2, 3, 4, 5] })) {
      const matcher = createTokenMatcher(compiled, vocabulary.table);
      const text = textOf(vocabulary, babble(vocabulary, matcher, least + 17 * seed, seed));
      const { calls, content } = parse(format, text, tools);
      const where = `${name} ${what} ${text}`;
      expect(calls.length, where).toBeGreaterThan(0);
      expectValid(calls, ['f'], where, tools);
      expect([where, content.trim()]).toEqual([where, '']);
    }
  }
});

const REFUSED: readonly (readonly [string, string, Readonly<Record<string, unknown>>])[] = [
  ...[{ pattern: '^a$' }, { not: { const: 'a' } }, { anyOf: [{ maxLength: 1 }] }, { allOf: [{ maxLength: 1 }] }].map(
    (more) => [Object.keys(more)[0]!, '/properties/p', one({ type: 'string', ...more })] as const,
  ),
  ['maxLength', '/properties/p', one({ type: 'string', minLength: 2, maxLength: 1 })],
  ['minLength', '/properties/p', one({ type: 'string', minLength: 0.5 })],
  ['enum', '/properties/p', one({ type: 'string', enum: ['abc'], maxLength: 1 })],
  ['const', '/properties/p', one({ type: 'string', const: 7 })],
  ['$ref', '/properties/p', one({ $ref: '#/properties/q' })],
  ['$ref', '', { $ref: 'https://example.com/a' }],
  ['$ref', '', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }],
  ['$ref', '', { $ref: '#/$defs/a', required: ['b'], $defs: { a: one({}) } }],
  ['required', '', { type: 'object', properties: {}, required: ['zz'] }],
  ['required', '', object({ p: false }, ['p'])],
  ['minProperties', '', { ...object({ a: {} }), minProperties: 1 }],
  ['maxProperties', '', { ...object({ a: {}, b: {} }), maxProperties: 1 }],
  ...[
    { allOf: [{ required: ['p'] }] },
    { anyOf: [{ required: ['p'] }] },
    { oneOf: [{ required: ['p'] }] },
    { not: {} },
    { if: { required: ['q'] }, else: { required: ['p'] } },
    { patternProperties: { p: { type: 'null' } } },
    { propertyNames: { maxLength: 0 } },
    { dependentRequired: { p: ['q'] } },
    { dependentSchemas: { p: { required: ['q'] } } },
    { const: { p: 1 } },
  ].map((more) => [Object.keys(more)[0]!, '', { ...object({ p: {} }), ...more }] as const),
  ...['<', 'a>', 'a/b', 'a\nb', '"', '', 'x'.repeat(300), '\ud800'].map(
    (name) =>
      [
        'properties',
        `/properties/${name.replace('/', '~1').slice(0, 200)}`,
        object({ [name]: { type: 'string' } }),
      ] as const,
  ),
];

test.each(LIST_FORMATS)('%s: rejects other schemas with the keyword and the place', (name, format) => {
  for (const [keyword, pointer, parameters] of REFUSED) {
    if (name === 'gemma-4' && keyword === 'properties' && /[>~]/.test(pointer)) continue; // No markup there.
    const make = () =>
      toStructure(format.grammar({ tools: [{ name: 'f', parameters }], choice: 'required', allowsParallel: true }));
    let caught: unknown = null;
    try {
      make();
    } catch (error) {
      caught = error;
    }
    expect([JSON.stringify(parameters), caught]).toMatchObject([
      JSON.stringify(parameters),
      {
        code: 'unsupported',
        message: expect.stringContaining(keyword) as string,
        data: { tool: 'f', keyword, pointer },
      },
    ]);
  }
});
