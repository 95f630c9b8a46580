import { packFloats } from '../common/float-packing.ts';
import type { PolicyEntry } from '../schemas/policy.ts';
import type { SessionState, SessionTurn } from '../schemas/session.ts';
import type { JsonValue, MemoryRecord } from '../types.ts';
import type { ExportedEntry, FoundEntry } from '../audit/index.ts';

/** A value as plain JSON: floats packed as `{ $f32 }`, or only counted. */
function plain(value: unknown, hasFloats: boolean): JsonValue {
  if (value instanceof Float32Array) return hasFloats ? { $f32: packFloats(value) } : { numFloats: value.length };
  if (Array.isArray(value)) return value.map((item) => plain(item, hasFloats));
  if (value === null || typeof value !== 'object') return value as JsonValue;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item, hasFloats)]));
}

type Plain = { readonly [key: string]: JsonValue };

/** A record for an export; its stored body can be imported again. */
export function plainRecord(record: MemoryRecord, hasVector: boolean): Plain {
  const { id, kind, createdMs, updatedMs, expiresMs, version, fields, body, vector, space } = record;
  return {
    id,
    kind,
    createdMs,
    updatedMs,
    expiresMs,
    version,
    fields: { ...fields },
    body,
    space,
    ...(hasVector ? { vector: vector === null ? null : packFloats(vector) } : {}),
  };
}

export function plainSession({ contextEmbedding, ...session }: SessionState, hasVector: boolean): Plain {
  return plain(hasVector ? { ...session, contextEmbedding } : session, hasVector) as Plain;
}

export function plainTurn({ embedding, ...turn }: SessionTurn, hasVector: boolean): Plain {
  return plain(hasVector ? { ...turn, embedding } : turn, hasVector) as Plain;
}

export function plainPolicy({ embedding, ...policy }: PolicyEntry, hasFloats: boolean): Plain {
  return plain(hasFloats ? { ...policy, embedding } : policy, hasFloats) as Plain;
}

export function plainEntry({ entry, ...rest }: FoundEntry | ExportedEntry, hasVectors: boolean): Plain {
  const { queryEmbedding, responseEmbedding, ...words } = entry;
  return plain(
    { ...rest, entry: hasVectors ? { ...words, queryEmbedding, responseEmbedding } : words },
    hasVectors,
  ) as Plain;
}

/** A report without floats. */
export function plainReport(report: object): Plain {
  return plain(report, false) as Plain;
}
