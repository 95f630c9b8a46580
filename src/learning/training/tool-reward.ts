import type { TaskLine } from './data/records.ts';

/** Why a value violates the schema of its task; empty: it does not. */
export type SchemaProblems = (value: unknown) => readonly string[];

export interface Reward {
  /** 0 to 1. */
  readonly value: number;
  /** Why it is not 1, in words. */
  readonly reason: string | null;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether two JSON values are equal; the order of keys does not count. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((value, i) => isEqual(value, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

/** JSON.parse takes the last of equal keys: an answer could state every choice and be right with one. */
function hasRepeatedKeys(text: string, value: Readonly<Record<string, unknown>>): boolean {
  const countKeys = (one: unknown): number => {
    if (Array.isArray(one)) return one.reduce<number>((sum, inner) => sum + countKeys(inner), 0);
    if (!isObject(one)) return 0;
    return Object.values(one).reduce<number>((sum, inner) => sum + countKeys(inner), Object.keys(one).length);
  };
  // Colons outside of strings, each of which follows a key.
  const numWritten = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
  return numWritten !== countKeys(value);
}

/**
 * The reward of an answer that should be the arguments of a tool call. Only the whole answer as one JSON object counts. It must satisfy the
 * schema, and then earns the share of arguments that equal the expected ones, of all arguments in either: an empty valid object, valid
 * objects with wrong values and objects with additional arguments do not get the reward of a right one.
 */
export function rewardOf(answer: string, { expected }: Pick<TaskLine, 'expected'>, problemsOf: SchemaProblems): Reward {
  const none = (reason: string): Reward => ({ value: 0, reason });
  const text = answer.trim();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return none('not JSON');
  }
  if (!isObject(value)) return none('not an object');
  if (hasRepeatedKeys(text, value)) return none('repeated keys');
  const problems = problemsOf(value);
  if (problems.length > 0) return none(problems[0]!);
  const names = new Set([...Object.keys(expected), ...Object.keys(value)]);
  const given = value;
  const numRight = [...names].filter(
    (name) => Object.hasOwn(expected, name) && Object.hasOwn(given, name) && isEqual(given[name], expected[name]),
  ).length;
  if (numRight === names.size) return { value: 1, reason: null };
  return { value: numRight / names.size, reason: `${numRight} of ${names.size} arguments are right` };
}
