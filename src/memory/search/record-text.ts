import { DOCUMENT_POSITION } from '../fields.ts';
import { AUDIT_KIND, SEARCHED_KINDS, type JsonValue, type MemoryRecord, type RecordKind } from '../types.ts';

type TextRecord = Pick<MemoryRecord, 'kind' | 'fields' | 'body'>;
type Body = Readonly<Record<string, JsonValue>>;

const word = (body: Body, key: string): string => (typeof body[key] === 'string' ? body[key] : '');
const inside = (body: Body, key: string): Body => (typeof body[key] === 'object' ? ((body[key] ?? {}) as Body) : {});
const node = (body: Body): string => word(body, 'text');
/** A chunk with its headings: many passages do not repeat what they are about. */
const chunk = (body: Body): string => {
  const { headings } = inside(inside(body, 'metadata'), 'chunk');
  const path = Array.isArray(headings) ? headings.filter((one) => typeof one === 'string').join(' › ') : '';
  return path === '' ? node(body) : `${path}\n${node(body)}`;
};
const exchange = (body: Body): string =>
  [word(body, 'query'), word(body, 'answer') || word(body, 'response')].filter(Boolean).join('\n');

/** The text of a record by kind. */
const TEXTS: Readonly<Record<RecordKind, (body: Body, record: TextRecord) => string>> = {
  document: (body, { fields }) => (fields['documentId'] == null ? node(body) : chunk(body)),
  query: node,
  'agent-step': node,
  fact: node,
  'qa-pair': (body) => node(body) || exchange(body),
  concept: node,
  pattern: node,
  session: (body, { fields }) => word(inside(body, 'metadata'), 'title') || `session ${String(fields['sessionId'])}`,
  policy: (body, { fields }) => `${String(fields['policyType'])} policy ${word(body, 'name')}: ${word(body, 'reason')}`,
  [AUDIT_KIND]: (body) => {
    const entry = inside(body, 'entry');
    const failure = word(inside(entry, 'error'), 'message');
    return failure === '' ? exchange(entry) : `${exchange(entry)}\nfailed: ${failure}`;
  },
  state: () => '',
  trajectory: exchange,
};

/** The text of a record, for a model or a person. */
export function recordText(record: TextRecord): string {
  const { body } = record;
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return TEXTS[record.kind](isObject ? (body as Body) : {}, record);
}

/** The record of a document with chunks only has its name, and they are found in its place. */
const hasChunks = ({ kind, fields }: TextRecord): boolean =>
  kind === 'document' && fields['position'] === DOCUMENT_POSITION;

/** The text that a search by words finds; empty for kinds that are never searched. */
export function searchableText(record: TextRecord): string {
  return SEARCHED_KINDS.includes(record.kind) && !hasChunks(record) ? recordText(record) : '';
}
