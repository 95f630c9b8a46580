import { RuvLLMError } from '../../core/errors.ts';
import { nameDfa } from './automata/dfa.ts';
import { createPlayer, createRecorder, NO_TAPE } from './automata/dfa-tape.ts';
import { createJsonGrammar } from './json/json-grammar.ts';
import type { GrammarLimits } from './limits.ts';
import { DEFAULT_LIMITS, createFuel, malformed } from './limits.ts';
import type { Fuel } from './limits.ts';
import { createFormulas } from './schema/formula.ts';
import { openSchema } from './schema/schema-document.ts';
import type { SchemaReader } from './schema/reader-types.ts';
import { createSchemaReader } from './schema/schema-reader.ts';
import type { Solver } from './schema/unique-items.ts';
import { createSolver } from './schema/solver.ts';
import { createStructureGrammar } from './structure/structure-grammar.ts';
import { createGbnfGrammar } from './text/gbnf-grammar.ts';
import { createRegexGrammar } from './text/regex-grammar.ts';
import type { CompiledGrammar, GrammarSource } from './types.ts';

type Compile<T extends GrammarSource['type']> = (
  source: Extract<GrammarSource, { type: T }>,
  fuel: Fuel,
) => CompiledGrammar;

function compileSchema(schema: unknown, isStrict: boolean, assertFormats: boolean, fuel: Fuel): CompiledGrammar {
  const formulas = createFormulas(fuel);
  const document = openSchema(schema, fuel.limits);
  let solver: Solver | null = null;
  const reader: SchemaReader = createSchemaReader({
    formulas,
    document,
    isStrict,
    assertFormats,
    textsOf: (formula) => solver!.textsOf(formula),
  });
  solver = createSolver(reader);
  const goal = reader.schemaAt(document.root);
  if (solver.cost(goal) === Infinity) throw malformed('schema', '', 'no value satisfies it');
  return createJsonGrammar(formulas, solver, goal, fuel.limits);
}

const COMPILERS: { [T in GrammarSource['type']]: Compile<T> } = {
  json_object: (_, fuel) => compileSchema({ type: 'object' }, false, false, fuel),
  json_schema: ({ schema, strict, assertFormats }, fuel) =>
    compileSchema(schema, strict ?? false, assertFormats ?? false, fuel),
  gbnf: ({ text }, fuel) => createGbnfGrammar(text, fuel),
  regex: ({ pattern }, fuel) => createRegexGrammar(pattern, fuel),
  structure: ({ root }, fuel) =>
    createStructureGrammar(root, (schema) => compileSchema(schema, false, false, fuel), fuel),
};

/**
 * Compiles a grammar. Throws `unsupported` with the keyword and its JSON pointer if it cannot be enforced, and `invalid_option` if it
 * is malformed or unsatisfiable; never takes more than `limits.maxSteps` steps. `automata` of `recordGrammar` are not rebuilt.
 */
export function compileGrammar(
  source: GrammarSource,
  limits: Partial<GrammarLimits> = {},
  automata: Int32Array | null = null,
): CompiledGrammar {
  const tape = automata === null ? NO_TAPE : createPlayer(automata, nameDfa);
  const fuel = createFuel({ ...DEFAULT_LIMITS, ...limits }, tape);
  if (automata !== null) fuel.hold(2 * automata.byteLength);
  return compileWith(source, fuel);
}

/** The recording of a compiled grammar, for compiling it again. */
export interface RecordedGrammar {
  readonly grammar: CompiledGrammar;
  /** Automata for `compileGrammar`, in shared memory. */
  readonly automata: Int32Array;
  /** Compilation steps, without and with building the automata. */
  readonly numSteps: number;
  readonly numAllSteps: number;
}

/** Compiles like `compileGrammar` and records the automata. */
export function recordGrammar(source: GrammarSource, limits: Partial<GrammarLimits> = {}): RecordedGrammar {
  let numBuilding = 0;
  const tape = createRecorder((build) => {
    const before = fuel.spent;
    const dfa = build();
    numBuilding += fuel.spent - before;
    return dfa;
  });
  const fuel: Fuel = createFuel({ ...DEFAULT_LIMITS, ...limits }, tape);
  const grammar = compileWith(source, fuel);
  const numAllSteps = fuel.spent;
  return { grammar, automata: tape.stop(), numSteps: numAllSteps - numBuilding, numAllSteps };
}

function compileWith(source: GrammarSource, fuel: Fuel): CompiledGrammar {
  const compile = Object.hasOwn(COMPILERS, source.type) ? COMPILERS[source.type] : null;
  if (compile === null) throw malformed('type', '/type', `must be one of ${Object.keys(COMPILERS).join(', ')}`);
  try {
    return (compile as Compile<GrammarSource['type']>)(source, fuel);
  } catch (error) {
    // Some recursions are as deep as the input; a stack overflow is rejected like any other excess.
    if (error instanceof RangeError) {
      throw new RuvLLMError('unsupported', 'grammar: nested too deeply to compile', { cause: error });
    }
    throw error;
  }
}
