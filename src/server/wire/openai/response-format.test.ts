import { expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { readFields } from '../fields.ts';
import { CONSTRAINT_FIELDS, constraintOf } from './response-format.ts';
import { textField } from './responses/text-format.ts';

const read = (fields: object) => constraintOf(readFields(fields, CONSTRAINT_FIELDS));
const schema = { type: 'object', properties: { a: {} } };
const jsonSchema = (more: object = {}) => ({ kind: 'json_schema', name: 'output', schema, isStrict: false, ...more });
const regex = (pattern: string) => ({ kind: 'regex', pattern });
const format = (more: object) => ({ response_format: more });

test.each([
  [{}, null, undefined],
  [format({ type: 'text' }), null, undefined],
  [format({ type: 'json_object' }), { kind: 'json_object' }, 'response_format'],
  [format({ type: 'json_object', schema }), jsonSchema(), 'response_format'],
  [format({ type: 'json_schema', json_schema: { name: 'n', schema } }), jsonSchema({ name: 'n' }), 'response_format'],
  [
    format({ type: 'json_schema', json_schema: { name: 'n', schema, strict: true } }),
    jsonSchema({ name: 'n', isStrict: true }),
    'response_format',
  ],
  [format({ type: 'json_schema', json_schema: {} }), jsonSchema({ schema: {} }), 'response_format'],
  [format({ type: 'json', value: schema }), jsonSchema(), 'response_format'],
  [format({ type: 'json', value: { name: 'n', schema } }), jsonSchema({ name: 'n' }), 'response_format'],
  [format({ type: 'regex', value: 'a+' }), regex('a+'), 'response_format'],
  [{ json_schema: schema }, jsonSchema(), 'json_schema'],
  [{ guided_json: JSON.stringify(schema) }, jsonSchema(), 'guided_json'],
  [{ regex: 'a' }, regex('a'), 'regex'],
  [{ guided_regex: 'a' }, regex('a'), 'guided_regex'],
  [{ guided_choice: ['a.b', '[c]'] }, regex(String.raw`(?:a\.b|\[c\])`), 'guided_choice'],
  [{ grammar: 'root ::= "a"' }, { kind: 'grammar', grammar: 'root ::= "a"' }, 'grammar'],
  [{ structured_outputs: {} }, null, undefined],
  [{ structured_outputs: { json_object: false } }, null, undefined],
  [{ structured_outputs: { json_object: true } }, { kind: 'json_object' }, 'structured_outputs'],
  [{ structured_outputs: { regex: 'a', json_object: false } }, regex('a'), 'structured_outputs'],
  [{ response_format: { type: 'text' }, regex: 'a' }, regex('a'), 'regex'],
  [{ regex: 'a', guided_regex: 'a' }, regex('a'), 'regex'],
])('%j', (fields, constraint, grammar) => {
  expect(read(fields)).toEqual({ constraint, fieldNames: grammar === undefined ? {} : { grammar } });
});

test.each([
  [format({}), 'response_format.type'],
  [format({ type: 'json_schema' }), 'response_format.json_schema'],
  [format({ type: 'json' }), 'response_format.value'],
  [format({ type: 'regex' }), 'response_format.value'],
  [format({ type: 'json', value: 'a' }), 'response_format.value'],
  [format({ type: 'json_schema', json_schema: { schema, more: 1 } }), 'response_format.json_schema.more'],
  [format({ type: 'json_object', schema, value: {} }), 'value'],
  [{ json_schema: 'no JSON' }, 'json_schema'],
  [{ json_schema: '[]' }, 'json_schema'],
  [{ guided_choice: [] }, 'guided_choice'],
  [{ structured_outputs: { regex: 'a', json_object: true } }, 'structured_outputs'],
  [{ structured_outputs: { regex: 'a', choice: ['a'] } }, 'structured_outputs'],
  [{ regex: 'a', guided_regex: 'b' }, 'guided_regex'],
])('%j is refused', (fields, param) => {
  expect(refusalOf(() => read(fields))).toMatchObject({ status: 400, param });
});

test.each([
  [{}, null],
  [{ verbosity: 'low' }, null],
  [{ format: { type: 'text' } }, null],
  [{ format: { type: 'json_object' } }, { kind: 'json_object' }],
  [{ format: { type: 'json_schema', name: 'n', schema } }, jsonSchema({ name: 'n' })],
  [{ format: { type: 'json_schema', name: 'n', schema, strict: true } }, jsonSchema({ name: 'n', isStrict: true })],
])('the text %j of a response', (value, constraint) => {
  expect(textField.read(value, 'text')).toEqual({ constraint });
});

test.each([
  [{ format: {} }, 'text.format.type'],
  [{ format: { type: 'json_schema', schema } }, 'text.format.name'],
  [{ format: { type: 'json_schema', name: 'n' } }, 'text.format.schema'],
])('the text %j of a response is refused', (value, param) => {
  expect(refusalOf(() => textField.read(value, 'text'))).toMatchObject({ status: 400, param });
});
