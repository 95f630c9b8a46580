import { array, assert, constantFrom, integer, nat, property } from 'fast-check';
import { expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { createTokenTable } from './token-table.ts';
import type { TokenVocabulary } from './types.ts';

/** Characters of numbers and all tokens of up to three digits, as in real vocabularies; the last is the end token. */
const PIECES = [
  ...'-.eE+[],',
  ...[1, 2, 3].flatMap((size) => Array.from({ length: 10 ** size }, (_, i) => pad(i, size))),
];
const vocabulary: TokenVocabulary = {
  size: PIECES.length + 1,
  bytes: (id) => new TextEncoder().encode(PIECES[id] ?? ''),
  isControl: () => false,
  endIds: [PIECES.length],
};
const table = createTokenTable(vocabulary);

const SCHEMAS = [
  { type: 'integer' },
  { type: 'integer', maximum: 1e30 },
  { type: 'integer', minimum: -1e300, maximum: 1e30 },
  { type: 'number', multipleOf: 0.01 },
  { type: 'number', minimum: 0 },
  { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
  { type: 'number', multipleOf: 7 },
  { type: 'integer', multipleOf: 997 },
  { type: 'integer', not: { multipleOf: 3 } },
];
/** At most 50 ms, including all tokens that a mask visits. */
const MAX_STEPS = 500_000;

function pad(value: number, size: number): string {
  return String(value).padStart(size, '0');
}
const has = (mask: Uint32Array, id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;

test('[G26] a number of any length takes few steps per token and is a member of the set', () => {
  assert(
    property(
      constantFrom(...SCHEMAS),
      array(nat(), { minLength: 4, maxLength: 24 }),
      integer({ min: 0, max: 4 }),
      (schema, choices, pointAt) => {
        const grammar = compileGrammar({ type: 'json_schema', schema }, { maxStepsPerToken: MAX_STEPS });
        const matcher = createTokenMatcher(grammar, table);
        let written = '';
        for (const [i, choice] of choices.entries()) {
          const mask = matcher.mask();
          matcher.closingBytes();
          const allowed = PIECES.map((_, id) => id).filter((id) => has(mask, id));
          // Long fractions: a point where allowed, otherwise digits.
          const digits = allowed.filter((id) => /\d/.test(PIECES[id]!));
          const isPoint = i === pointAt && has(mask, PIECES.indexOf('.'));
          const from = digits.length > 0 ? digits : allowed;
          if (from.length === 0) break;
          const id = isPoint ? PIECES.indexOf('.') : from[choice % from.length]!;
          expect(matcher.accept(id)).toBe(true);
          written += PIECES[id]!;
        }
        written += new TextDecoder().decode(matcher.closing()!);
        const value = Number(written);
        expect(Number.isFinite(value)).toBe(true);
        if (schema.type === 'integer') expect(Number.isInteger(value)).toBe(true);
      },
    ),
    { numRuns: 60, seed: 5 },
  );
});

test('[G4] accepts integers printed with an exponent, between bounds of either sign', () => {
  const grammar = compileGrammar({ type: 'json_schema', schema: { type: 'integer', minimum: -1e300, maximum: 1e30 } });
  for (const value of [
    1.5e25,
    -1.5e25,
    Number('1.2345678901234567e25'),
    Number('-1.2345678901234567e200'),
    2 ** 53,
    0,
  ]) {
    const matcher = createTokenMatcher(grammar, table);
    for (const one of JSON.stringify(value))
      expect([value, matcher.accept(PIECES.indexOf(one))]).toEqual([value, true]);
    expect(matcher.isComplete).toBe(true);
  }
});
