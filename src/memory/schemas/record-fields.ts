import type { RecordKind } from '../types.ts';

/** `word` is found by equality only, `number` by order; any may be null. */
export type FieldType = 'number' | 'boolean' | 'word';

export interface FieldDeclaration {
  readonly type: FieldType;
  /** Searched so often that every write pays for an index. */
  readonly isIndexed: boolean;
}

const number: FieldDeclaration = { type: 'number', isIndexed: false };
const boolean: FieldDeclaration = { type: 'boolean', isIndexed: false };
const word: FieldDeclaration = { type: 'word', isIndexed: false };
const indexed: FieldDeclaration = { type: 'word', isIndexed: true };

/** Fields of what a caller adds: what it is about, and where it came from. */
const NODE = { source: indexed, topic: indexed, quality: number } as const;

/** What a record of each kind can be found by: the declarations against which a store checks puts and filters. */
export const RECORD_FIELDS: Readonly<Record<RecordKind, Readonly<Record<string, FieldDeclaration>>>> = {
  document: NODE,
  query: NODE,
  'agent-step': NODE,
  fact: NODE,
  'qa-pair': { ...NODE, sessionId: indexed, turn: number },
  concept: NODE,
  pattern: NODE,
  session: {
    sessionId: indexed,
    userId: indexed,
    adapter: indexed,
    turnCount: number,
    lastActiveMs: number,
    idleEndMs: number,
  },
  policy: {
    policyKey: indexed,
    policyType: indexed,
    policyVersion: number,
    isCurrent: boolean,
    confidence: number,
    source: indexed,
  },
  witness: {
    sequence: number,
    requestId: indexed,
    sessionId: indexed,
    model: indexed,
    quality: number,
    totalMs: number,
    ttftMs: number,
    hasError: boolean,
    errorCode: word,
  },
  state: { name: indexed, isOpen: boolean, sequence: number },
};
