import { RuvLLMError } from '../../core/errors.ts';
import { showValue } from '../../core/show-value.ts';

type Schema = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isAtMost = (value: unknown, limit: unknown): boolean =>
  typeof value === 'number' && typeof limit === 'number' && value <= limit;
const isNothing = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** An error for a schema the family's format cannot enforce; the pointer is the place in the arguments' schema. */
export function unsupportedSchema(tool: string, keyword: string, pointer: string, reason: string): RuvLLMError {
  const at = pointer === '' ? 'the root' : pointer;
  return new RuvLLMError('unsupported', `tool "${tool}": ${keyword} at ${at}: ${reason}`, {
    data: { tool, keyword, pointer, reason },
  });
}

export const pointerTo = (name: string): string =>
  `/properties/${name.replaceAll('~', '~0').replaceAll('/', '~1').slice(0, 200)}`;

const MAX_REFERENCES = 16;
// These do not restrict the value beside a reference.
const NOTES = ['$schema', '$defs', 'definitions', '$comment', 'title', 'description', 'default', 'examples', 'type'];

/** Resolves a local reference at the root, with the definitions of the whole schema; null: unresolvable. */
export function resolveRoot(whole: Schema): Schema | null {
  let schema = whole;
  for (let i = 0; schema['$ref'] !== undefined; i++) {
    const { $ref: reference, ...beside } = schema;
    if (i === MAX_REFERENCES || !Object.keys(beside).every((key) => NOTES.includes(key))) return null;
    const target = typeof reference === 'string' ? lookUp(whole, reference) : undefined;
    if (!isObject(target) || target['$id'] !== undefined) return null;
    schema = target;
  }
  if (schema === whole) return whole;
  const shared = Object.entries(whole).filter(([key]) => ['$schema', '$defs', 'definitions'].includes(key));
  return { ...schema, ...Object.fromEntries(shared) };
}

function lookUp(whole: Schema, reference: string): unknown {
  if (!reference.startsWith('#/') || reference.includes('%')) return undefined;
  let at: unknown = whole;
  for (const step of reference.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** Keywords of an object beyond the list of its members. */
const BEYOND_A_LIST = [
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'enum',
  'const',
  'patternProperties',
  'propertyNames',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  '$dynamicRef',
  '$recursiveRef',
];

/** Rejects an arguments schema that a list of its properties, with all required ones, may not satisfy. */
export function checkParameterList(tool: string, schema: Schema | null): asserts schema is Schema {
  const refuse = (keyword: string, reason: string): never => {
    throw unsupportedSchema(tool, keyword, '', reason);
  };
  if (schema === null) return refuse('$ref', 'only local references without sibling keywords are supported');
  for (const keyword of BEYOND_A_LIST) {
    const value = schema[keyword];
    if (value === undefined || (isNothing(value) && keyword !== 'not' && keyword !== 'if')) continue;
    refuse(keyword, "the model's tool-call format writes arguments one by one");
  }
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = new Set<unknown>(Array.isArray(schema['required']) ? schema['required'] : []);
  for (const name of required) {
    if (typeof name === 'string' && Object.hasOwn(properties, name) && properties[name] !== false) continue;
    refuse('required', `${JSON.stringify(name)?.slice(0, 100)} is not among the properties`);
  }
  const { minProperties = 0, maxProperties = Infinity } = schema;
  const numNames = Object.keys(properties).length;
  if (!isAtMost(minProperties, required.size)) {
    refuse('minProperties', `${showValue(minProperties)} is more than the ${required.size} required properties`);
  }
  if (!isAtMost(numNames, maxProperties)) {
    refuse('maxProperties', `${showValue(maxProperties)} is less than the ${numNames} properties`);
  }
}

/** Keywords of a string that its unquoted text cannot enforce. */
const BEYOND_A_TEXT = ['pattern', 'allOf', 'anyOf', 'oneOf', 'not', 'if', '$ref', '$dynamicRef', '$recursiveRef'];

export interface TextRule {
  /** Null: any value within the lengths. */
  readonly values: readonly string[] | null;
  readonly minLength: number;
  readonly maxLength: number;
}

/** Reads the schema of an unquoted string; rejects keywords other than a list of values or length limits. */
export function readTextRule(tool: string, pointer: string, schema: Schema): TextRule {
  const refuse = (keyword: string, reason: string): never => {
    throw unsupportedSchema(tool, keyword, pointer, reason);
  };
  for (const keyword of BEYOND_A_TEXT) {
    if (schema[keyword] !== undefined) refuse(keyword, "the model's tool-call format writes strings without quotes");
  }
  const readLength = (keyword: string, absent: number): number => {
    const value = schema[keyword];
    if (value === undefined) return absent;
    if (!Number.isSafeInteger(value) || (value as number) < 0) return refuse(keyword, 'must be a non-negative integer');
    return value as number;
  };
  const minLength = readLength('minLength', 0);
  const maxLength = readLength('maxLength', Infinity);
  if (minLength > maxLength) refuse('maxLength', `${maxLength} is less than minLength ${minLength}`);
  const listed = [schema['enum'], 'const' in schema ? [schema['const']] : undefined].filter(Array.isArray);
  if (listed.length === 0) return { values: null, minLength, maxLength };
  const values = listed[0]!.filter((value): value is string => {
    if (typeof value !== 'string' || !listed.every((list) => list.includes(value))) return false;
    const length = [...value].length;
    return length >= minLength && length <= maxLength;
  });
  return { values, minLength, maxLength };
}

/** Rejects references out of the part that a parameter's schema keeps. */
export function checkReferences(tool: string, pointer: string, schema: unknown): void {
  const pending: unknown[] = [schema];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, item] of Object.entries(value)) {
      if (key === '$ref' && typeof item === 'string' && !/^#\/(\$defs|definitions)\//.test(item)) {
        throw unsupportedSchema(tool, '$ref', pointer, `${item.slice(0, 100)} is not among the definitions`);
      }
      pending.push(item);
    }
  }
}
