import { RuvLLMError } from '../../core/errors.ts';
import { showValue } from '../../core/show-value.ts';
import { compileGrammar, type CompiledGrammar } from '../../sampling/grammar/index.ts';

type Schema = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Steps of compiling and of checking: about 50 ms. A schema that needs more is checked at its first level alone. */
const MAX_STEPS = 500_000;
const MAX_NAMED = 4;

/** Checks values against a schema, with the grammar that would have enforced it. */
export interface SchemaCheck {
  /** Why a value does not satisfy the schema, for a model to read; empty: it does. */
  problemsOf(value: unknown): readonly string[];
}

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;

function isOfType(value: unknown, wanted: unknown): boolean {
  const types = Array.isArray(wanted) ? (wanted as unknown[]) : [wanted];
  const type = typeOf(value);
  return types.some((one) => one === type || (one === 'number' && type === 'integer'));
}

/** Types of a schema in words. */
const nameTypes = (types: unknown): string =>
  typeof types === 'string'
    ? types
    : Array.isArray(types)
      ? types.filter((one) => typeof one === 'string').join(' or ')
      : showValue(types);

const list = (names: readonly string[]): string =>
  names
    .slice(0, MAX_NAMED)
    .map((name) => JSON.stringify(name))
    .join(', ');

/** The mistakes that small models make most, in words: names, types and choices of the first level. */
function explain(schema: Schema, value: unknown): string[] {
  if (!isObject(value))
    return schema['type'] === undefined || isOfType(value, schema['type'])
      ? []
      : [`it must be of type ${nameTypes(schema['type'])}`];
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required'])
    ? schema['required'].filter((name) => typeof name === 'string')
    : [];
  const problems: string[] = [];
  const missing = required.filter((name) => !Object.hasOwn(value, name));
  if (missing.length > 0) problems.push(`${list(missing)} is missing`);
  const unknown = Object.keys(value).filter((name) => !Object.hasOwn(properties, name));
  if (unknown.length > 0 && schema['additionalProperties'] === false) {
    problems.push(`${list(unknown)} is not allowed; use only ${list(Object.keys(properties))}`);
  }
  for (const [name, inner] of Object.entries(properties)) {
    if (!Object.hasOwn(value, name) || !isObject(inner)) continue;
    if (inner['type'] !== undefined && !isOfType(value[name], inner['type'])) {
      problems.push(`"${name}" must be of type ${nameTypes(inner['type'])}, not ${typeOf(value[name])}`);
    } else if (
      Array.isArray(inner['enum']) &&
      !inner['enum'].some((one) => JSON.stringify(one) === JSON.stringify(value[name]))
    ) {
      problems.push(`"${name}" must be one of ${JSON.stringify(inner['enum']).slice(0, 200)}`);
    }
  }
  return problems;
}

/** The text up to the first byte that the grammar does not allow; null: all of it is allowed. */
function rejectedAfter(grammar: CompiledGrammar, text: string): string | null {
  const bytes = new TextEncoder().encode(text);
  let state: CompiledGrammar['start'] | null = grammar.start;
  grammar.beginToken();
  for (const [at, byte] of bytes.entries()) {
    state = grammar.step(state, byte);
    if (state === null) return new TextDecoder().decode(bytes.slice(Math.max(0, at - 40), at));
  }
  return grammar.isComplete(state) ? null : text.slice(-40);
}

export function createSchemaCheck(schema: object): SchemaCheck {
  let grammar: CompiledGrammar | null = null;
  try {
    const source = { type: 'json_schema', schema, assertFormats: 'where-possible' } as const;
    grammar = compileGrammar(source, { maxSteps: MAX_STEPS, maxStepsPerToken: MAX_STEPS });
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error; // a schema that no grammar can enforce is why answers are checked
  }
  return {
    problemsOf(value) {
      const problems = explain(schema as Schema, value);
      if (problems.length > 0 || grammar === null) return problems;
      try {
        const before = rejectedAfter(grammar, JSON.stringify(value));
        return before === null ? [] : [`the value after ${JSON.stringify(before)} does not fit the schema`];
      } catch (error) {
        if (error instanceof RuvLLMError) return []; // too long to check; nothing is known against it
        throw error;
      }
    },
  };
}
