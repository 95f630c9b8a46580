import { canonicalJson } from '../common/canonical-json.ts';
import { floatBytes } from '../common/float-packing.ts';
import { hashText, toHex } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import type { AuditLink } from '../schemas/audit.ts';
import type { JsonValue } from '../types.ts';

/** What the first entry of a chain follows. */
export const GENESIS_HASH = '0'.repeat(64);

/** An entry as the chain sees it. */
export interface ChainedBody {
  readonly id: string;
  readonly createdMs: number;
  readonly body: JsonValue;
}

export function hashVector(sha256: Sha256, vector: Float32Array | null): string | null {
  return vector === null ? null : toHex(sha256(floatBytes(vector)));
}

/** The hash of an entry: over everything it says, its place, and the hash before it. */
export function hashLink(sha256: Sha256, { id, createdMs, body }: ChainedBody, link: Omit<AuditLink, 'hash'>): string {
  const { sequence, runId, numDroppedBefore, previousHash, vectorHash } = link;
  const framed = canonicalJson([previousHash, sequence, id, createdMs, runId, numDroppedBefore, vectorHash, body]);
  return hashText(sha256, framed);
}

/** What an entry counts for in retention by size: about what its text and vector take. */
export function entryBytes(body: JsonValue, vectorLength: number): number {
  return JSON.stringify(body).length + vectorLength * 4;
}
