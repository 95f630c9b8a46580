import { expect, test } from 'vitest';
import { compileGrammar, recordGrammar } from '../compile.ts';
import type { GrammarSource } from '../types.ts';

const text = { type: 'string', pattern: '^[a-f]{2,40}x?$', maxLength: 30 };
const SOURCES: readonly GrammarSource[] = [
  { type: 'regex', pattern: '(ab|c){2,9}' },
  { type: 'json_schema', schema: { type: 'object', properties: { a: text, b: text, c: { enum: ['x', 'yy', 3] } } } },
  {
    type: 'json_schema',
    assertFormats: true,
    schema: { type: 'array', items: { anyOf: [{ format: 'date' }, { format: 'ipv4' }, { format: 'date' }] } },
  },
];

test.each(SOURCES.map((source, i) => [i, source] as const))(
  '[G25] source %i: reads the automata as built',
  (_, source) => {
    const { grammar, automata, numSteps, numAllSteps } = recordGrammar(source);
    expect(numSteps).toBeLessThan(numAllSteps / 2);
    // No automaton is rebuilt, or the step limit would be exceeded.
    const read = compileGrammar(source, { maxSteps: numSteps + 1 }, automata);
    expect(() => compileGrammar(source, { maxSteps: numSteps + 1 })).toThrow('steps');
    read.beginToken();
    expect(read.closing(read.start, 100)).toEqual(grammar.closing(grammar.start, 100));
  },
);

test('[G25] ignores automata of another source', () => {
  const { automata } = recordGrammar(SOURCES[0]!);
  const grammar = compileGrammar({ type: 'regex', pattern: 'no' }, {}, automata);
  expect(new TextDecoder().decode(grammar.closing(grammar.start, 100)!)).toBe('no');
});
