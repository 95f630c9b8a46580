import { RuvLLMError } from '../core/errors.ts';
import { RECORD_KINDS, type RecordKind } from './types.ts';

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

const NODE = { source: indexed, quality: number, uses: number, session: indexed } as const;

/** What the records of each kind can be found by. Adding a field is one word here; nothing stored has to change. */
export const MEMORY_FIELDS: FieldRegistry = {
  document: { ...NODE, parent: indexed, position: number },
  query: NODE,
  'agent-step': { ...NODE, step: number, failed: boolean },
  fact: NODE,
  'qa-pair': NODE,
  concept: { ...NODE, name: indexed },
  pattern: { ...NODE, type: indexed, confidence: number },
  session: { session: indexed, user: indexed, adapter: indexed, model: word, turns: number, lastActiveMs: number },
  policy: {
    name: indexed,
    type: indexed,
    source: word,
    confidence: number,
    policyVersion: number,
    active: boolean,
    lastUsedMs: number,
  },
  witness: {
    request: indexed,
    session: indexed,
    model: indexed,
    error: indexed,
    failed: boolean,
    quality: number,
    latencyMs: number,
    promptTokens: number,
    completionTokens: number,
    segment: number,
    position: number,
  },
  state: { name: indexed, type: word },
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
