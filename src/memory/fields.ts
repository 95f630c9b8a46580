import { RuvLLMError } from '../core/errors.ts';
import { AUDIT_KIND, RECORD_KINDS, type RecordKind } from './types.ts';

/** `word`: stored as a keyed hash, so it is found by equality only. */
export type FieldType = 'number' | 'boolean' | 'word';

export interface FieldDeclaration {
  readonly type: FieldType;
  /** Searched so often that every write pays for an index. */
  readonly isIndexed: boolean;
}

export type FieldRegistry = Readonly<Record<RecordKind, Readonly<Record<string, FieldDeclaration>>>>;

/** It stands in SQL as it is. */
const FIELD_NAME = /^[a-zA-Z][a-zA-Z0-9_]{0,39}$/;

const number: FieldDeclaration = { type: 'number', isIndexed: false };
const boolean: FieldDeclaration = { type: 'boolean', isIndexed: false };
const word: FieldDeclaration = { type: 'word', isIndexed: false };
const indexed: FieldDeclaration = { type: 'word', isIndexed: true };

/** Of what a caller adds: what it is about, and where it came from. */
const NODE = { source: indexed, topic: indexed, quality: number } as const;

/** What the records of each kind can be found by. Adding a field is one word here; nothing stored has to change. */
export const MEMORY_FIELDS: FieldRegistry = {
  document: NODE,
  query: NODE,
  'agent-step': NODE,
  fact: NODE,
  'qa-pair': { ...NODE, sessionId: indexed, turn: number },
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
    model: indexed,
    quality: number,
    totalMs: number,
    ttftMs: number,
    hasError: boolean,
    errorCode: word,
  },
  state: { name: indexed, isOpen: boolean, sequence: number },
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

/** A field has one type wherever it occurs: a search goes over several kinds at once. */
export function checkRegistry(registry: FieldRegistry): ReadonlyMap<string, FieldDeclaration> {
  const fields = new Map<string, FieldDeclaration>();
  for (const kind of RECORD_KINDS) {
    for (const [name, declaration] of Object.entries(registry[kind])) {
      if (!FIELD_NAME.test(name)) refuse(`the field name ${JSON.stringify(name)} of ${kind} is none`, name);
      const known = fields.get(name);
      if (known !== undefined && known.type !== declaration.type) {
        refuse(`the field "${name}" is a ${known.type}, and a ${declaration.type} in ${kind}`, name);
      }
      fields.set(name, { type: declaration.type, isIndexed: declaration.isIndexed || known?.isIndexed === true });
    }
  }
  return fields;
}

function refuse(message: string, option: string): never {
  throw new RuvLLMError('invalid_option', message, { data: { option } });
}
