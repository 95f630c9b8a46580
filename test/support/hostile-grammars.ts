import type { GrammarSource } from '../../src/sampling/grammar/index.ts';

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);
const gbnf = (...lines: string[]): GrammarSource => ({ type: 'gbnf', text: lines.join('\n') });
const schema = (value: unknown): GrammarSource => ({ type: 'json_schema', schema: value });
const regex = (pattern: string): GrammarSource => ({ type: 'regex', pattern });
const nest = (depth: number, leaf: unknown, wrap: (inner: unknown) => unknown): unknown =>
  range(depth).reduce((inner) => wrap(inner), leaf);
/** Rules that refer to the next one, with this as the last. */
const rules = (count: number, rule: (next: string) => string, last: string): string[] => [
  ...range(count).map((i) => `r${i} ::= ${rule(`r${i + 1}`)}`),
  `r${count} ::= ${last}`,
];
const defs = (count: number, define: (next: string) => unknown, last: unknown): object => ({
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries([
    ...range(count).map((i) => [`d${i}`, define(`#/$defs/d${i + 1}`)]),
    [`d${count}`, last],
  ]) as object,
});
const objectOf = (count: number, value: unknown = { type: 'string' }): object => ({
  type: 'object',
  properties: Object.fromEntries(range(count).map((i) => [`property ${i}`, value])),
});

/** Inputs that cost much more than their size: each must be answered, or refused with numbers, within the limits. */
export const HOSTILE_GRAMMARS: Readonly<Record<string, () => GrammarSource>> = {
  // GBNF
  'doubling rules': () => gbnf('root ::= r0', ...rules(30, (next) => `${next} ${next}`, '"a"')),
  'doubling rules, 2,000 levels': () => gbnf('root ::= r0', ...rules(2_000, (next) => `${next} ${next}`, '"a"')),
  'doubling nothing': () => gbnf('root ::= "a" r0', ...rules(30, (next) => `${next} ${next}`, '""')),
  'doubling nothing or a letter': () => gbnf('root ::= r0', ...rules(25, (next) => `${next} ${next}`, '"a"?')),
  'rules that lead back to themselves': () => gbnf('root ::= "ab" a', 'a ::= b | "x"', 'b ::= a | "x"'),
  'stars of stars': () => gbnf('root ::= (("a"*)*)*'),
  'stars of stars of alternatives': () => gbnf('root ::= (("a"* | "b"* | "ab"*)* "c"*)*'),
  'optional letters, 4,000 in a row': () => gbnf(`root ::= ${'"a"? '.repeat(4_000)}`),
  'optional groups of optional letters': () => gbnf('root ::= ("a"? "b"? "c"?){0,1000}'),
  'ambiguous sums': () => gbnf('root ::= e', 'e ::= t | t "+" e | t e', 't ::= "1" | "1" t | "(" e ")"'),
  'repetitions of repetitions': () => gbnf('root ::= "a"{4000}{4000}{4000}'),
  'a repetition of 4,096 classes': () => gbnf('root ::= [a-z]{4096}{1,64}'),
  'a long chain in many places': () => gbnf(`root ::= ${'r0 '.repeat(60_000)}`, ...rules(2_000, (next) => next, '"a"')),
  '100,000 rules': () => gbnf('root ::= r0', ...rules(60_000, (next) => `"a" ${next}`, '"b"')),
  '20,000 alternatives': () =>
    gbnf(
      `root ::= (${range(20_000)
        .map((i) => `"value ${i}"`)
        .join(' | ')})*`,
    ),
  'alternatives with a common beginning': () =>
    gbnf(
      `root ::= ${range(3_000)
        .map((i) => `"${'a'.repeat(100)}${i}"`)
        .join(' | ')}`,
    ),
  'many readings of one text': () => gbnf('root ::= r0*', ...rules(100, (next) => `"a" | "a" ${next}`, '"a"')),
  'nested groups': () => gbnf(`root ::= ${'('.repeat(120)}"a"${')*'.repeat(120)}`),
  'one long literal': () => gbnf(`root ::= "${'a'.repeat(60_000)}"`),
  'a literal of a megabyte': () => gbnf(`root ::= "${'a'.repeat(999_000)}"`),
  // Regular expressions
  'a pattern of bounded repetitions': () => regex('(a{1,1000}){1,1000}'),
  'an exponential automaton': () => regex('(a|b)*a(a|b){40}'),
  'an automaton at the limit': () => regex('(a|b)*a(a|b){13}'),
  'alternatives of unlimited length': () =>
    regex(
      `(${range(500)
        .map((i) => `.*${i}.*`)
        .join('|')})`,
    ),
  'optional letters in a pattern': () => regex(`${'a?'.repeat(5_000)}${'a'.repeat(5_000)}`),
  'classes of all of Unicode': () => regex('[\\u{0}-\\u{10ffff}]{1,5000}'),
  'nested stars in a pattern': () => regex(`${'('.repeat(120)}a${'*)*'.repeat(120)}`),
  'a long pattern': () => regex('[a-z0-9]{1,3}x'.repeat(5_000)),
  // Schemas
  'a bounded pattern in a schema': () => schema({ type: 'string', pattern: '^(a{1,1000}){1,1000}$' }),
  'several patterns at once': () =>
    schema({ type: 'string', allOf: range(12).map((i) => ({ pattern: `(a|b)*a(a|b){${i}}c` })) }),
  'doubling references': () =>
    schema(defs(40, ($ref) => ({ type: 'array', prefixItems: [{ $ref }, { $ref }], minItems: 2 }), { type: 'null' })),
  'doubling properties': () =>
    schema(
      defs(25, ($ref) => ({ type: 'object', properties: { a: { $ref }, b: { $ref } }, required: ['a', 'b'] }), {}),
    ),
  'doubling allOf': () => schema(defs(25, ($ref) => ({ allOf: [{ $ref }, { $ref }] }), { type: 'string' })),
  'doubling anyOf': () => schema(defs(25, ($ref) => ({ anyOf: [{ $ref }, { $ref }] }), { type: 'string' })),
  'nested allOf': () => schema(nest(400, { type: 'string' }, (one) => ({ allOf: [one, { minLength: 1 }] }))),
  'nested anyOf with not': () =>
    schema(nest(60, { type: 'string' }, (one) => ({ anyOf: [{ not: one }, { const: 1 }] }))),
  'choices of required properties': () =>
    schema({
      type: 'object',
      allOf: range(25).map((i) => ({ anyOf: [{ required: [`x${i}`] }, { required: [`y${i}`] }] })),
    }),
  'an enum of 20,000 texts': () => schema({ enum: range(20_000).map((i) => `value ${i}`) }),
  'an enum of 20,000 numbers': () => schema({ enum: range(20_000).map((i) => i * 7919) }),
  'an enum of 2,000 objects': () => schema({ enum: range(2_000).map((i) => ({ a: i, b: [i, { c: i }] })) }),
  'an enum of long texts': () => schema({ enum: range(200).map((i) => `${'x'.repeat(2_000)}${i}`) }),
  'minItems of a billion': () => schema({ type: 'array', items: { type: 'integer' }, minItems: 1e9 }),
  'unique items, a million of them': () =>
    schema({ type: 'array', items: { type: 'integer' }, uniqueItems: true, minItems: 1e6 }),
  'unique items, 2,000 of them': () =>
    schema({ type: 'array', items: { enum: range(2_000) }, uniqueItems: true, minItems: 1_900 }),
  'minLength of a billion': () => schema({ type: 'string', minLength: 1e9 }),
  'minLength near the longest completion': () => schema({ type: 'string', minLength: 60_000 }),
  'minProperties of a million': () => schema({ type: 'object', minProperties: 1e6 }),
  'minProperties of 5,000': () => schema({ type: 'object', minProperties: 5_000 }),
  'contains, several thousand times': () =>
    schema({ type: 'array', contains: { const: 1 }, minContains: 5_000, maxContains: 6_000 }),
  '2,000 properties': () => schema({ ...objectOf(2_000), additionalProperties: false }),
  '2,000 required properties': () => {
    const object = objectOf(2_000) as { properties: object };
    return schema({ ...object, required: Object.keys(object.properties), additionalProperties: false });
  },
  '200 pattern properties': () =>
    schema({
      type: 'object',
      patternProperties: Object.fromEntries(range(200).map((i) => [`^a.*${i}$`, { type: 'integer', minimum: i }])),
    }),
  'dependencies between 100 properties': () =>
    schema({
      ...objectOf(100),
      dependentRequired: Object.fromEntries(range(99).map((i) => [`property ${i}`, [`property ${i + 1}`]])),
    }),
  'deep nesting': () => schema(nest(120, { type: 'string' }, (one) => ({ type: 'array', items: one, minItems: 1 }))),
  'numbers with many exceptions': () =>
    schema({ type: 'integer', not: { enum: range(5_000) }, minimum: 0, maximum: 1e15, multipleOf: 7 }),
  'multiples of a tiny number': () => schema({ type: 'number', multipleOf: 1e-300, minimum: 0, maximum: 1e300 }),
  'a union of 200 objects': () =>
    schema({
      oneOf: range(200).map((i) => ({
        type: 'object',
        properties: { kind: { const: `k${i}` }, ...(objectOf(10) as { properties: object }).properties },
        required: ['kind'],
      })),
    }),
  'if, then and else, nested': () =>
    schema(
      nest(40, { type: 'string' }, (one) => ({
        if: { properties: { a: { const: 1 } } },
        ...(JSON.parse(`{"then":${JSON.stringify(one)}}`) as object),
        else: { required: ['b'] },
      })),
    ),
};
