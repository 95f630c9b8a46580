// OpenAI's API description, used to check our responses.
import { type Schema, Validator } from '@cfworker/json-schema';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const path = fileURLToPath(new URL('../../../shared/suites/openai/openapi.yaml', import.meta.url));
export const hasOpenapi = existsSync(path);
if (!hasOpenapi) console.log('validation skipped: there is no description of the API beside the repository');

const PREFIX = '#/components/schemas/';
let schemas: Readonly<Record<string, Schema>> | null = null;
const validators = new Map<string, Validator>();

/** The description is of version 3.1 but still uses `nullable`, which that version does not have. */
function withNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withNull);
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNull(one)]));
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest;
}

/** Only the schemas reachable from one: otherwise every validator would walk the whole description. */
function reachableFrom(name: string, all: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const reachable: Record<string, Schema> = {};
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (typeof value !== 'object' || value === null) return;
    const ref = (value as Schema).$ref;
    if (typeof ref === 'string' && ref.startsWith(PREFIX)) add(ref.slice(PREFIX.length));
    Object.values(value).forEach(visit);
  };
  const add = (one: string): void => {
    if (Object.hasOwn(reachable, one)) return;
    reachable[one] = withNull(all[one]) as Schema;
    visit(all[one]);
  };
  add(name);
  return reachable;
}

/** The violations of a value as the named component; empty if valid. */
export function violationsOf(name: string, value: unknown): string[] {
  schemas ??= (parse(readFileSync(path, 'utf8')) as { components: { schemas: Record<string, Schema> } }).components
    .schemas;
  if (!Object.hasOwn(schemas, name)) throw new Error(`the description has no ${name}`);
  let validator = validators.get(name);
  if (validator === undefined) {
    const components = { schemas: reachableFrom(name, schemas) };
    validator = new Validator({ $ref: `${PREFIX}${name}`, components } as Schema, '2020-12', false);
    validators.set(name, validator);
  }
  return validator.validate(value).errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
}
