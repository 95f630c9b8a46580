// OpenAI's own description of its API, as the judge of what we send.
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

/** The description is of version 3.1 and still says `nullable` in places, which that version does not know. */
function withNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withNull);
  const { nullable, ...rest } = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNull(one)]));
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest;
}

/** Only what a schema leads to: the whole description would be walked for every validator. */
function reachableFrom(name: string, all: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const found: Record<string, Schema> = {};
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (typeof value !== 'object' || value === null) return;
    const ref = (value as Schema).$ref;
    if (typeof ref === 'string' && ref.startsWith(PREFIX)) add(ref.slice(PREFIX.length));
    Object.values(value).forEach(visit);
  };
  const add = (one: string): void => {
    if (Object.hasOwn(found, one)) return;
    found[one] = withNull(all[one]) as Schema;
    visit(all[one]);
  };
  add(name);
  return found;
}

/** What is wrong with a value as the named component; an empty list when nothing is. */
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
