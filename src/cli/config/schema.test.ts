import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Schema, Validator } from '@cfworker/json-schema';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { GENERATE_FLAGS } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { readConfig } from './read-config.ts';
import { configSchema } from './schema.ts';
import { SECTIONS, SETTINGS } from './settings.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const shipped = join(root, 'schemas/ruvllm.config.schema.json');
const schema = configSchema() as Schema;

/** The published meta-schema of draft 7, extracted from a bundle among the development dependencies. */
function readMetaSchema(): Schema | null {
  const bundle = join(root, 'node_modules/playwright-core/lib/utilsBundle.js');
  const text = existsSync(bundle) ? readFileSync(bundle, 'utf8') : '';
  const literal = /module2\.exports = (\{\n\s+\$schema: "http:\/\/json-schema\.org\/draft-07\/schema#",\n\s+\$id: "http:\/\/json-schema\.org\/draft-07\/schema#",[\s\S]*?\n    \});\n/.exec(text)?.[1]; // prettier-ignore
  return literal === undefined ? null : (new Function(`return (${literal})`)() as Schema);
}
const metaSchema = readMetaSchema();
if (metaSchema === null) console.log('meta-schema test skipped: no copy of the meta-schema of draft 7 is installed');

// ruvllm config schema > schemas/ruvllm.config.schema.json
test('the shipped schema equals the generated one', () => {
  expect(readFileSync(shipped, 'utf8')).toBe(`${JSON.stringify(schema, null, 2)}\n`);
});

test.skipIf(metaSchema === null)(
  'the schema is valid against the published meta-schema, which rejects invalid ones',
  () => {
    const validator = new Validator(metaSchema!, '7');
    expect(validator.validate(schema)).toMatchObject({ valid: true });
    expect(validator.validate({ ...schema, type: 'objekt' }).valid).toBe(false);
    expect(validator.validate({ properties: { a: { minLength: -1 } } }).valid).toBe(false);
  },
);

test('paths and variables are unique, and every load and generate flag has a setting', () => {
  for (const key of ['path', 'variable'] as const) {
    const values = SETTINGS.map((setting) => setting[key]);
    expect(new Set(values).size).toBe(values.length);
  }
  for (const { variable } of SETTINGS) expect(variable).toMatch(/^RUVLLM_[A-Z_]+$/);
  for (const flag of [...LOAD_FLAGS, ...GENERATE_FLAGS])
    expect(SETTINGS.some((setting) => setting.flag === flag)).toBe(true);
  expect(SECTIONS.map(({ name }) => name)).toEqual([null, 'load', 'generate', 'chat', 'serve']);
});

test('the schema accepts exactly the values that the command accepts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-schema-'));
  const file = join(folder, 'c.json');
  const validator = new Validator(schema, '7');
  const item = fc.oneof(
    fc.constantFrom('auto', 'q8', '', '2GiB', '1.5 g', '12=3', '-5', 'static', 'postgres://x', '1e400=1', 'x'),
    fc.string(),
  );
  const value = fc.oneof(
    item,
    fc.boolean(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(0, -1, 1e-9, 2_147_484, 2 ** 53),
    fc.constant(null),
    fc.array(item, { maxLength: 3 }),
    fc.constant({}),
  );
  const isAccepted = (content: object): boolean => {
    writeFileSync(file, JSON.stringify(content));
    try {
      readConfig(file);
      return true;
    } catch {
      return false;
    }
  };
  try {
    fc.assert(
      fc.property(fc.constantFrom(...SETTINGS), value, ({ section, key }, setting) => {
        const content = section === null ? { [key]: setting } : { [section]: { [key]: setting } };
        const isValid = validator.validate(content).valid;
        expect({ content, isAccepted: isAccepted(content) }).toEqual({ content, isAccepted: isValid });
      }),
      { numRuns: 2000 },
    );
    const field = fc.constantFrom('model', 'aliases', 'context', 'adapters', 'sampling', 'idleUnload', 'pinned', 'x');
    const presetValue = fc.oneof(
      value,
      fc.constantFrom({ a: 'b' }, { 'a:b': 'c' }, { temperature: 1 }, { temperature: -1 }, { topK: 1.5 }, ['a', 'b c']),
    );
    const fields = fc.array(fc.tuple(field, presetValue), { maxLength: 2 });
    const name = fc.constantFrom('a', 'a:b', 'a b', '', 'qwen2.5');
    fc.assert(
      fc.property(name, fields, fc.boolean(), (model, more, hasModel) => {
        const preset = { ...(hasModel ? { model: 'm' } : {}), ...Object.fromEntries(more) };
        const content = { models: { [model]: preset } };
        const isValid = validator.validate(content).valid;
        expect({ content, isAccepted: isAccepted(content) }).toEqual({ content, isAccepted: isValid });
      }),
      { numRuns: 2000 },
    );
    const group = { modelGroups: { g: { maxLoaded: 1 } } };
    for (const content of [
      group,
      { modelGroups: { g: {} } },
      { modelGroups: { g: { maxLoaded: 0.5 } } },
      { models: 5 },
    ]) {
      expect(isAccepted(content)).toBe(validator.validate(content).valid);
    }
    for (const content of [{ $schema: './x' }, { load: {} }, { lod: {} }, { load: { x: 1 } }, { load: [] }, {}]) {
      expect(isAccepted(content)).toBe(validator.validate(content).valid);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the documented example is accepted', () => {
  const page = readFileSync(join(root, 'docs/model-settings.md'), 'utf8');
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-schema-'));
  try {
    const file = join(folder, 'c.json');
    writeFileSync(file, /```json\n([\s\S]*?)```/.exec(page)![1]!);
    expect(readConfig(file).presets.models.map(({ name }) => name)).toEqual(['coder', 'writer', 'reader']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
