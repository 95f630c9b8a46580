import { canonicalJson } from '../common/canonical-json.ts';
import { floatBytes } from '../common/float-packing.ts';
import { hashText, toHex } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import type { AuditLink } from '../schemas/audit.ts';
import type { JsonValue } from '../types.ts';

/** The hash before the first entry. */
export const GENESIS_HASH = '0'.repeat(64);

/** The parts of an entry that its hash covers, besides its place. */
interface ChainedBody {
  readonly id: string;
  readonly createdMs: number;
  readonly body: JsonValue;
}

export function hashVector(sha256: Sha256, vector: Float32Array | null): string | null {
  return vector === null ? null : toHex(sha256(floatBytes(vector)));
}

/** The hash of an entry: its content, its place and the previous hash. `text`: the body's canonical JSON. */
export function hashLink(
  sha256: Sha256,
  { id, createdMs, body }: ChainedBody,
  link: Omit<AuditLink, 'hash'>,
  text = canonicalJson(body),
): string {
  const { sequence, runId, numDroppedBefore, previousHash, vectorHash } = link;
  const place = canonicalJson([previousHash, sequence, id, createdMs, runId, numDroppedBefore, vectorHash]);
  return hashText(sha256, `${place.slice(0, -1)},${text}]`);
}

/** The approximate size of an entry, for retention by size. `text`: the body as JSON, its keys in any order. */
export function entryBytes(body: JsonValue, vectorLength: number, text = JSON.stringify(body)): number {
  return text.length + vectorLength * 4;
}
