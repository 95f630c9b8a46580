import { refuse } from '../core/options.ts';
import { AUDIT_KIND, RECORD_KINDS, type RecordKind } from './types.ts';

/** `word`: stored as a keyed hash, which supports equality only. */
type FieldType = 'number' | 'boolean' | 'word';

export interface FieldDeclaration {
  readonly type: FieldType;
  /** Worth an index, which every write pays for. */
  readonly isIndexed: boolean;
}

export type FieldRegistry = Readonly<Record<RecordKind, Readonly<Record<string, FieldDeclaration>>>>;

/** Inserted into SQL as it is. */
const FIELD_NAME = /^[a-zA-Z][a-zA-Z0-9_]{0,39}$/;

const number: FieldDeclaration = { type: 'number', isIndexed: false };
const boolean: FieldDeclaration = { type: 'boolean', isIndexed: false };
const word: FieldDeclaration = { type: 'word', isIndexed: false };
const indexed: FieldDeclaration = { type: 'word', isIndexed: true };

const NODE = { source: indexed, topic: indexed, quality: number } as const;

/** The `position` of the record of a document; its chunks have 0, 1, 2 …, other texts none. */
export const DOCUMENT_POSITION = -1;

/** The fields that filters can use, by kind. A new field requires no migration. */
export const MEMORY_FIELDS: FieldRegistry = {
  document: { ...NODE, documentId: indexed, position: { type: 'number', isIndexed: true } },
  query: NODE,
  /** Episodes of agents: the words of one message, or a part of them. */
  'agent-step': {
    ...NODE,
    sessionId: indexed,
    userId: indexed,
    requestId: indexed,
    turn: number,
    speaker: word,
    /** Whether facts were extracted; null: a further part of a message, or words that are never distilled. */
    isDistilled: boolean,
  },
  /** Of facts of agents; `factKey` is shared by a fact and the ones that it replaced. */
  fact: {
    ...NODE,
    sessionId: indexed,
    userId: indexed,
    requestId: indexed,
    factKey: indexed,
    speaker: word,
    isCurrent: boolean,
  },
  'qa-pair': {
    ...NODE,
    sessionId: indexed,
    turn: number,
    /** Of corrections; `question` is a hash, `conversation` the session that they were made in. */
    userId: indexed,
    requestId: indexed,
    conversation: indexed,
    question: indexed,
    model: indexed,
    isCurrent: boolean,
  },
  concept: NODE,
  pattern: { ...NODE, lastUsedMs: number },
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
  [AUDIT_KIND]: {
    sequence: number,
    requestId: indexed,
    sessionId: indexed,
    userId: indexed,
    model: indexed,
    quality: number,
    estimate: number,
    totalMs: number,
    ttftMs: number,
    hasError: boolean,
    errorCode: word,
  },
  state: {
    name: indexed,
    isOpen: boolean,
    sequence: number,
    /** Of working notes and cached tool results. */
    sessionId: indexed,
    userId: indexed,
    requestId: indexed,
    tool: indexed,
  },
  trajectory: {
    requestId: indexed,
    sessionId: indexed,
    userId: indexed,
    model: indexed,
    verdict: indexed,
    quality: number,
    isDistilled: boolean,
  },
};

/** A field has the same type in all kinds, because a search covers several kinds. */
export function checkRegistry(registry: FieldRegistry): ReadonlyMap<string, FieldDeclaration> {
  const fields = new Map<string, FieldDeclaration>();
  for (const kind of RECORD_KINDS) {
    for (const [name, declaration] of Object.entries(registry[kind])) {
      if (!FIELD_NAME.test(name)) refuse(`${JSON.stringify(name)} of ${kind} is not a valid field name`, name);
      const known = fields.get(name);
      if (known !== undefined && known.type !== declaration.type) {
        refuse(`the field "${name}" is a ${known.type} elsewhere and a ${declaration.type} in ${kind}`, name);
      }
      fields.set(name, { type: declaration.type, isIndexed: declaration.isIndexed || known?.isIndexed === true });
    }
  }
  return fields;
}
