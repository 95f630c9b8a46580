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
import { type Escapes, listSchemas } from './structure/read-structure.ts';
import { createStructureGrammar } from './structure/structure-grammar.ts';
import { createGbnfGrammar } from './text/gbnf-grammar.ts';
import { createRegexGrammar } from './text/regex-grammar.ts';
import type { CompiledGrammar, FormatAssertion, GrammarSource } from './types.ts';

/** Yields where a compilation may be interrupted. */
type Steps = Generator<undefined, CompiledGrammar>;

type Compile<T extends GrammarSource['type']> = (source: Extract<GrammarSource, { type: T }>, fuel: Fuel) => Steps;

interface SchemaOptions {
  readonly isStrict?: boolean;
  readonly assertFormats?: FormatAssertion;
  readonly escapes?: Escapes;
}

function* compileSchema(
  schema: unknown,
  fuel: Fuel,
  { isStrict = false, assertFormats = false, escapes = 'needed' }: SchemaOptions = {},
): Steps {
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
  yield* solver.solve(goal);
  if (solver.cost(goal) === Infinity) throw malformed('schema', '', 'no value satisfies it');
  return createJsonGrammar(formulas, solver, goal, fuel.limits, escapes);
}

/** The schemas of a structure are compiled first, because each may take long. */
function* compileStructure(root: unknown, fuel: Fuel): Steps {
  const grammars = new Map<string, CompiledGrammar>();
  const keyOf = (schema: unknown, escapes: Escapes): string => escapes + JSON.stringify(schema);
  for (const { schema, escapes } of listSchemas(root, fuel.limits)) {
    const key = keyOf(schema, escapes);
    if (!grammars.has(key))
      grammars.set(key, yield* compileSchema(schema, fuel, { escapes, assertFormats: 'where-possible' }));
  }
  return createStructureGrammar(root, (schema, escapes) => grammars.get(keyOf(schema, escapes))!, fuel);
}

const COMPILERS: { [T in GrammarSource['type']]: Compile<T> } = {
  json_object: (_, fuel) => compileSchema({ type: 'object' }, fuel),
  json_schema: ({ schema, strict, assertFormats }, fuel) =>
    compileSchema(schema, fuel, { isStrict: strict ?? false, assertFormats: assertFormats ?? false }),
  *gbnf({ text }, fuel) {
    yield;
    return createGbnfGrammar(text, fuel);
  },
  *regex({ pattern }, fuel) {
    yield;
    return createRegexGrammar(pattern, fuel);
  },
  structure: ({ root }, fuel) => compileStructure(root, fuel),
};

/** A compilation in parts, for threads that must not stall. */
export interface GrammarCompilation {
  /**
   * Compiles on for about `numSteps` steps, or until `isOver` where it can be interrupted; null if there is more to do. Throws like
   * `compileGrammar`.
   */
  advance(numSteps: number, isOver?: () => boolean): CompiledGrammar | null;
}

/** Starts to compile a grammar; see `compileGrammar`. */
export function startGrammar(
  source: GrammarSource,
  limits: Partial<GrammarLimits> = {},
  automata: Int32Array | null = null,
): GrammarCompilation {
  const tape = automata === null ? NO_TAPE : createPlayer(automata, nameDfa);
  const fuel = createFuel({ ...DEFAULT_LIMITS, ...limits }, tape);
  if (automata !== null) fuel.hold(2 * automata.byteLength);
  const steps = beginSteps(source, fuel);
  return {
    advance(numSteps, isOver = () => false) {
      const before = fuel.spent;
      do {
        const { done, value } = nextStep(steps);
        if (done) return value;
      } while (fuel.spent - before < numSteps && !isOver());
      return null;
    },
  };
}

/**
 * Compiles a grammar. Throws `unsupported` with the keyword and its JSON pointer if it cannot be enforced, and `invalid_option` if it
 * is malformed or unsatisfiable; never takes more than `limits.maxSteps` steps. `automata` of `recordGrammar` are not rebuilt.
 */
export function compileGrammar(
  source: GrammarSource,
  limits: Partial<GrammarLimits> = {},
  automata: Int32Array | null = null,
): CompiledGrammar {
  return startGrammar(source, limits, automata).advance(Infinity)!;
}

/** The recording of a compiled grammar, for compiling it again. */
export interface RecordedGrammar {
  readonly grammar: CompiledGrammar;
  /** Automata for `compileGrammar`, in shared memory. */
  readonly automata: Int32Array;
  /** Compilation steps, without and with building the automata. */
  readonly numSteps: number;
  readonly numAllSteps: number;
  /** The most steps, without building automata, that cannot be interrupted. */
  readonly numStretchSteps: number;
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
  const steps = beginSteps(source, fuel);
  let numStretchSteps = 0;
  for (;;) {
    const before = fuel.spent - numBuilding;
    const { done, value: grammar } = nextStep(steps);
    numStretchSteps = Math.max(numStretchSteps, fuel.spent - numBuilding - before);
    if (!done) continue;
    const numAllSteps = fuel.spent;
    return { grammar, automata: tape.stop(), numSteps: numAllSteps - numBuilding, numAllSteps, numStretchSteps };
  }
}

function beginSteps(source: GrammarSource, fuel: Fuel): Steps {
  const compile = Object.hasOwn(COMPILERS, source.type) ? COMPILERS[source.type] : null;
  if (compile === null) throw malformed('type', '/type', `must be one of ${Object.keys(COMPILERS).join(', ')}`);
  return (compile as Compile<GrammarSource['type']>)(source, fuel);
}

function nextStep(steps: Steps): IteratorResult<undefined, CompiledGrammar> {
  try {
    return steps.next();
  } catch (error) {
    // Some recursions are as deep as the input; a stack overflow is rejected like any other excess.
    if (error instanceof RangeError) {
      throw new RuvLLMError('unsupported', 'grammar: nested too deeply to compile', { cause: error });
    }
    throw error;
  }
}
