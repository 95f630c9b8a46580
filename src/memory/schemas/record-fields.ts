import type { RecordKind } from '../types.ts';

/** `word` is found by equality only, `number` by order, `flag` is true or false; any may be null. */
export type FieldType = 'word' | 'number' | 'flag';
export type FieldTypes = Readonly<Record<string, FieldType>>;

/** Fields of what a caller adds: what it is about, and where it came from. */
const NODE_FIELDS: FieldTypes = { source: 'word', topic: 'word', quality: 'number' };

/** What a record of each kind can be found by: the declarations against which a store checks puts and filters. */
export const RECORD_FIELDS: Readonly<Record<RecordKind, FieldTypes>> = {
  document: NODE_FIELDS,
  query: NODE_FIELDS,
  'agent-step': NODE_FIELDS,
  fact: NODE_FIELDS,
  'qa-pair': { ...NODE_FIELDS, sessionId: 'word', turn: 'number' },
  concept: NODE_FIELDS,
  pattern: NODE_FIELDS,
  session: {
    sessionId: 'word',
    userId: 'word',
    adapter: 'word',
    turnCount: 'number',
    lastActiveMs: 'number',
    idleEndMs: 'number',
  },
  policy: {
    policyKey: 'word',
    policyType: 'word',
    policyVersion: 'number',
    isCurrent: 'flag',
    confidence: 'number',
    source: 'word',
  },
  witness: {
    sequence: 'number',
    requestId: 'word',
    sessionId: 'word',
    model: 'word',
    quality: 'number',
    totalMs: 'number',
    ttftMs: 'number',
    hasError: 'flag',
    errorCode: 'word',
  },
  state: { name: 'word', isOpen: 'flag', sequence: 'number' },
};
