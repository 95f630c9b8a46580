import { refusal } from '../errors.ts';

/** A value and the name under which the client sent it. */
export interface Spelling<T> {
  readonly name: string;
  readonly value: T;
}

/** The value of a setting with several names, null if it is absent; two different values are a 400 that names both. */
export function oneSpelling<F extends object, K extends keyof F & string>(
  fields: F,
  ...names: readonly K[]
): Spelling<NonNullable<F[K]>> | null {
  let chosen: Spelling<NonNullable<F[K]>> | null = null;
  for (const name of names) {
    const value = fields[name];
    if (value == null) continue;
    if (chosen !== null && !isSame(chosen.value, value)) throw conflict(chosen.name, name);
    chosen ??= { name, value };
  }
  return chosen;
}

/** A 400: two fields contradict each other. */
export function conflict(first: string, second: string): Error {
  const message = `'${first}' and '${second}' are two names of one setting, but their values differ; send one of them`;
  return refusal(400, 'invalid_value', message, { param: second });
}

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);
