import { expect, test } from 'vitest';
import { buildTableData, recordGrammar } from '../sampling/grammar/index.ts';
import { createConstraints, type VocabularyData } from './constraints.ts';

/** Every byte is a token; 256 is the end token. */
const VOCABULARY: VocabularyData = {
  bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  offsets: Int32Array.from({ length: 258 }, (_, id) => Math.min(id, 256)),
  isControl: Uint8Array.from({ length: 257 }, (_, id) => Number(id === 256)),
  endIds: [256],
};
const constant = (value: unknown) => ({ type: 'json_schema', schema: { const: value } }) as const;

function open(options = {}) {
  const constraints = createConstraints(options);
  constraints.setVocabulary(VOCABULARY);
  return constraints;
}

test('[E27] caches grammars within both limits and evicts the least recently used', () => {
  const few = open({ maxGrammars: 2 });
  for (const value of [1, 2, 1, 3]) few.open(constant(value), null);
  expect([1, 2, 3].map((value) => few.has(constant(value)))).toEqual([true, false, true]);
  // Each counts 2 MB of masks; the large one adds its own size.
  const small = open({ maxBytes: 6_400_000 });
  const properties = Object.fromEntries(
    Array.from({ length: 500 }, (_, i) => [`property ${i}`, { type: i % 2 === 0 ? 'string' : 'null' }]),
  );
  for (const value of [1, 2, 3]) small.open(constant(value), null);
  expect([1, 2, 3].map((value) => small.has(constant(value)))).toEqual([true, true, true]);
  small.open({ type: 'json_schema', schema: { type: 'object', properties } }, null);
  expect([1, 2, 3].map((value) => small.has(constant(value)))).toEqual([false, false, true]);
  expect(small.sizeBytes).toBeLessThan(6_400_000);
});

test('[E28] compiles a grammar with prepared automata that exceeds the step limit without them', () => {
  const source = {
    type: 'json_schema',
    schema: { type: 'string', pattern: String.raw`^[\w.+-]{1,64}@[\w-]{1,63}(\.[\w-]{2,63}){1,10}$` },
  } as const;
  expect(() => open().open(source, null)).toThrow('needs more than 2000000 steps');
  const { automata, numSteps, numAllSteps } = recordGrammar(source);
  expect(numSteps).toBeLessThan(300_000);
  expect(numAllSteps).toBeGreaterThan(2_000_000);
  const matcher = open().open(source, automata);
  for (const byte of new TextEncoder().encode('"ada@engine.org"')) expect(matcher.accept(byte)).toBe(true);
  expect(matcher.isComplete).toBe(true);
});

test('[E29] limits generated whitespace to 20 characters in a row', () => {
  const deep = {
    type: 'json_schema',
    schema: { $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/a' } } } },
  } as const;
  const matcher = open().open(deep, null);
  const indented = [0, 4, 8, 12, 16].map((numSpaces, depth) => (depth === 0 ? '[' : `\n${' '.repeat(numSpaces)}[`));
  for (const byte of new TextEncoder().encode(indented.join(''))) expect(matcher.accept(byte)).toBe(true);
  expect(matcher.accept(0x0a)).toBe(false);
  expect(matcher.accept(0x5d)).toBe(true);
});

test('[E37] compiles a large grammar in parts, and fails one with its error when it is opened', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 100 }, (_, i) => [
      `list ${i}`,
      { type: 'array', items: { type: 'object', properties: { [`a${i}`]: { type: 'string' }, b: { type: 'null' } } } },
    ]),
  );
  const large = { type: 'json_schema', schema: { type: 'object', properties } } as const;
  const { automata, numSteps, numStretchSteps } = recordGrammar(large);
  expect(numStretchSteps).toBeLessThan(numSteps / 2);
  const constraints = open();
  let numParts = 0;
  while (!constraints.prepare(large, automata)) numParts++;
  expect(numParts).toBeGreaterThan(0);
  expect(constraints.has(large)).toBe(true);
  expect(constraints.open(large, automata).accept(0x7b)).toBe(true);

  const empty = { type: 'json_schema', schema: false } as const;
  expect(constraints.prepare(empty, null)).toBe(true);
  expect(() => constraints.open(empty, null)).toThrow('no value satisfies it');
});

test('[E37] a part ends after its time, also in code that is slower than its steps, and reads the source once', () => {
  const properties = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, { type: ['string', 'null'] }]));
  const schema = { type: 'object', properties };
  const { automata, numSteps } = recordGrammar({ type: 'json_schema', schema });
  const countParts = (msPerLook: number): { numParts: number; numReads: number } => {
    let [numParts, numReads, nowMs] = [1, 0, 0];
    const source = {
      type: 'json_schema',
      get schema() {
        numReads++;
        return schema;
      },
    } as const;
    const constraints = open({ now: () => (nowMs += msPerLook) });
    while (!constraints.has(source) && !constraints.prepare(source, automata)) numParts++;
    expect(constraints.open(source, automata).accept(0x7b)).toBe(true);
    return { numParts, numReads };
  };
  const [slow, fast] = [countParts(4), countParts(0)];
  expect(fast.numParts).toBeLessThanOrEqual(Math.ceil(numSteps / 25_000));
  expect(slow.numParts).toBeGreaterThan(5 * fast.numParts);
  expect(slow.numReads).toBe(fast.numReads);
});

test('[TT2] fails the grammar, not the message, if the table cannot be built; a prepared table allows the same tokens', () => {
  const inPlace = open();
  const ready = createConstraints();
  ready.setTable(structuredClone(buildTableData(VOCABULARY)));
  const [expected, matcher] = [inPlace, ready].map((one) => one.open(constant('ab'), null));
  for (const byte of new TextEncoder().encode('"ab"')) {
    expect(matcher!.mask()).toEqual(expected!.mask());
    expect([matcher!.accept(byte), expected!.accept(byte)]).toEqual([true, true]);
  }
  expect(matcher!.accept(256)).toBe(true);

  const broken = createConstraints();
  broken.setVocabulary({
    bytes: new Uint8Array(5000),
    offsets: Int32Array.of(0, 5000),
    isControl: Uint8Array.of(0),
    endIds: [],
  });
  expect(() => broken.open(constant(1), null)).toThrow('token 0 has 5000 bytes, the limit is 4096');
});
