import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { passageFromRecord, passageToRecord } from '../agents/episode-record.ts';
import { factIdOf } from '../agents/fact-key.ts';
import { factFromRecord, factToRecord } from '../agents/fact-record.ts';
import { AGENT_SOURCE } from '../agents/types.ts';
import { unpackFloats } from '../common/float-packing.ts';
import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { chunkOf, documentOf } from '../documents/document-records.ts';
import { DOCUMENT_POSITION, MEMORY_FIELDS } from '../fields.ts';
import { nodeFromRecord, nodeToRecord } from '../schemas/node.ts';
import { policyFromRecord, policyToRecord } from '../schemas/policy.ts';
import { count, parseWith, space, text, timeMs, uuid } from '../schemas/primitives.ts';
import { sessionFromRecord, sessionToRecord, turnFromRecord, turnToRecord } from '../schemas/session.ts';
import { trajectoryFromRecord, trajectoryToRecord } from '../schemas/trajectory.ts';
import { recordText } from '../search/record-text.ts';
import { sessionRecordId } from '../sessions/sessions.ts';
import { checkKeys } from '../../core/options.ts';
import { checkVector } from '../store/checks.ts';
import {
  AUDIT_KIND,
  RECORD_KINDS,
  type JsonValue,
  type MemoryRecord,
  type PutRecord,
  type RecordKind,
} from '../types.ts';

/** An edge of an export, listed with the records at both ends. */
const exportedEdge = z.strictObject({
  from: uuid,
  to: uuid,
  relation: text(128, 1),
  weight: z.number(),
  confidence: z.number(),
});

const exportedRecord = z.strictObject({
  id: uuid,
  kind: z.enum(RECORD_KINDS),
  createdMs: timeMs,
  updatedMs: timeMs.optional(),
  expiresMs: timeMs.nullable().default(null),
  version: count.optional(),
  fields: z.record(z.string().max(40), z.union([z.number(), z.boolean(), text(1024), z.null()])).default({}),
  /** Checked by the schema of its kind. */
  body: z.custom<JsonValue>((value) => typeof value === 'object' && value !== null, 'must be an object'),
  space: space.nullable().default(null),
  /** 8192 floats in base64. */
  vector: z.string().max(43_692).nullable().default(null),
  edges: z.array(exportedEdge).max(1000).default([]),
});
type ExportedRecord = z.infer<typeof exportedRecord>;

/** A valid record, which may still need a vector. */
export interface ImportedRecord {
  readonly put: PutRecord;
  /** The text to embed; null: it has a vector, or needs none. */
  readonly text: string | null;
  readonly edges: ExportedRecord['edges'];
}

interface Importer {
  /** Parses and formats it with the schema of its kind, which refuses invalid records. */
  put(record: MemoryRecord, tenant: string, sha256: Sha256): PutRecord;
  text(record: MemoryRecord): string | null;
}

const node: Importer = {
  put: (record, tenant) => ({ ...nodeToRecord(nodeFromRecord(record), tenant), createdMs: record.createdMs }),
  text: recordText,
};

/** Facts and messages of agents keep their user, their session and their place in the history of a fact. */
const agent: Importer = {
  put(record, tenant, sha256) {
    if (record.fields['source'] !== AGENT_SOURCE) return node.put(record, tenant, sha256);
    const embedded = record.vector === null ? null : { vector: record.vector, space: record.space! };
    if (record.kind === 'agent-step') return passageToRecord(passageFromRecord(record), tenant, embedded);
    const fact = factFromRecord(record);
    const factKey = factIdOf(sha256, { tenant, userId: fact.userId }, fact, fact);
    return factToRecord({ ...fact, factKey, ...(fact.isCurrent ? { id: factKey } : {}) }, tenant, embedded);
  },
  text: (record) => (record.fields['isCurrent'] === false ? null : recordText(record)),
};

/** Chunks keep their place in their document; the record of a document has no vector. */
const document: Importer = {
  put(record, tenant, sha256) {
    const put = node.put(record, tenant, sha256);
    const chunk = chunkOf(record);
    if (chunk !== null) {
      return { ...put, fields: { ...put.fields, documentId: chunk.documentId, position: chunk.index } };
    }
    return documentOf(record) === null ? put : { ...put, fields: { ...put.fields, position: DOCUMENT_POSITION } };
  },
  text: (record) => (documentOf(record) === null ? recordText(record) : null),
};

const turn: Importer = {
  put: (record, tenant) => turnToRecord(turnFromRecord(record), tenant),
  text: recordText,
};

/** Records with a name have an id derived from it and the tenant. */
const session: Importer = {
  put(record, tenant, sha256) {
    const state = sessionFromRecord(record);
    return sessionToRecord(state, { id: sessionRecordId(sha256, tenant, state.sessionId), tenant });
  },
  text: () => null,
};

const policy: Importer = {
  put(record, tenant, sha256) {
    const entry = policyFromRecord(record);
    const isCurrent = record.fields['isCurrent'] === true;
    const version = isCurrent ? [] : [String(entry.policyVersion)];
    const id = nameId(sha256, tenant, 'policy', entry.policyType, entry.name, ...version);
    return { ...policyToRecord(entry, { id, tenant, isCurrent }), createdMs: record.createdMs };
  },
  text: () => null,
};

const trajectory: Importer = {
  put(record, tenant, sha256) {
    const one = trajectoryFromRecord(record);
    return trajectoryToRecord(one, { id: nameId(sha256, tenant, 'trajectory', one.requestId), tenant });
  },
  text: recordText,
};

/** Null: cannot be imported. */
const IMPORTERS: Readonly<Record<RecordKind, Importer | null>> = {
  document,
  query: node,
  'agent-step': agent,
  fact: agent,
  'qa-pair': node,
  concept: node,
  pattern: node,
  session,
  policy,
  [AUDIT_KIND]: null,
  state: null,
  trajectory,
};

/** Kinds that can be exported and imported. */
export const TRANSFERRED_KINDS = RECORD_KINDS.filter((kind) => IMPORTERS[kind] !== null) as [RecordKind, ...RecordKind[]]; // prettier-ignore

/** Reads a line of an export; throws when it is invalid. */
export function readExported(
  line: unknown,
  { tenant, sha256, ownSpace }: { tenant: string; sha256: Sha256; ownSpace: string | null },
): ImportedRecord {
  const given = parseWith<ExportedRecord>(exportedRecord as never, line, 'record');
  const { kind, id } = given;
  const importer = kind === 'qa-pair' && given.fields['sessionId'] != null ? turn : IMPORTERS[kind];
  if (importer === null) throw new RuvLLMError('invalid_option', `records of the kind ${kind} cannot be imported: only the audit log writes its chain`); // prettier-ignore
  const known = Object.keys(MEMORY_FIELDS[kind]);
  checkKeys(given.fields, `the fields of ${kind}`, known);
  const hasVector = given.vector !== null && given.space !== null && (ownSpace ?? given.space) === given.space;
  const record: MemoryRecord = {
    id,
    tenant,
    kind,
    createdMs: given.createdMs,
    updatedMs: given.createdMs,
    expiresMs: given.expiresMs,
    version: 1,
    // Missing fields are null, as stored.
    fields: { ...Object.fromEntries(known.map((field) => [field, null])), ...given.fields },
    body: given.body,
    vector: hasVector ? checkVector(unpackFloats(given.vector!), 'vector') : null,
    space: hasVector ? given.space : null,
  };
  return {
    put: importer.put(record, tenant, sha256),
    text: hasVector ? null : importer.text(record),
    edges: given.edges,
  };
}
