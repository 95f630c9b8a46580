import { expect, test } from 'vitest';
import { DOCUMENT_POSITION } from '../fields.ts';
import { AUDIT_KIND, type JsonValue, type RecordKind } from '../types.ts';
import { recordText, searchableText } from './record-text.ts';

const chunkOf = (headings: JsonValue): JsonValue => ({ text: 'words', metadata: { chunk: { headings } } });
const inDocument = { documentId: 'd', position: 0 };

test.each<[RecordKind, JsonValue, object, string]>([
  ['fact', { text: 'a fact' }, {}, 'a fact'],
  ['fact', { text: 1 }, {}, ''],
  ['fact', null, {}, ''],
  ['fact', ['a'], {}, ''],
  ['fact', 'a', {}, ''],
  ['document', chunkOf(['One', 'Two']), inDocument, 'One › Two\nwords'],
  ['document', chunkOf([]), inDocument, 'words'],
  ['document', chunkOf('One'), inDocument, 'words'],
  ['document', { text: 'words', metadata: null }, inDocument, 'words'],
  ['document', chunkOf(['One']), {}, 'words'],
  ['qa-pair', { text: 'both', query: 'q', answer: 'a' }, {}, 'both'],
  ['qa-pair', { query: 'q', answer: 'a', response: 'r' }, {}, 'q\na'],
  ['trajectory', { query: 'q', response: 'r' }, {}, 'q\nr'],
  ['session', { metadata: { title: 'about it' } }, { sessionId: 's' }, 'about it'],
  ['session', {}, { sessionId: 's' }, 'session s'],
  ['policy', { name: 'n', reason: 'r' }, { policyType: 'ewc' }, 'ewc policy n: r'],
  [AUDIT_KIND, { entry: { query: 'q', response: 'r' } }, {}, 'q\nr'],
  [AUDIT_KIND, { entry: { query: 'q', error: { message: 'full' } } }, {}, 'q\nfailed: full'],
  ['state', { text: 'hidden' }, {}, ''],
])('the text of a %s with %j', (kind, body, fields, text) => {
  expect(recordText({ kind, body, fields: fields as {} })).toBe(text);
});

test.each<[RecordKind, object, string]>([
  ['document', {}, 'words'],
  ['document', { position: 0 }, 'words'],
  ['document', { position: DOCUMENT_POSITION }, ''],
  ['fact', { position: DOCUMENT_POSITION }, 'words'],
  ['trajectory', {}, ''],
])('words find a %s with %j: "%s"', (kind, fields, text) => {
  expect(searchableText({ kind, body: { text: 'words', query: 'words' }, fields: fields as {} })).toBe(text);
});
