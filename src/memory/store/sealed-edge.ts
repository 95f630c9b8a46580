import { RuvLLMError } from '../../core/errors.ts';
import type { MemoryEdge } from '../types.ts';
import { bytesOf, damaged, numberOf, textOf } from './row-values.ts';
import type { Tenant } from './sealer.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type NewEdge = Omit<MemoryEdge, 'updatedMs'>;
type EdgeRow = Readonly<Record<string, unknown>>;

export const relationHash = ({ sealer }: Tenant, relation: string): string => sealer.nameOf('relation', relation);

/** Everything a row shows: no row can stand in for another. */
function associatedData(tenantId: string, from: string, to: string, hash: string, weight: number, ms: number) {
  return encoder.encode(JSON.stringify(['edge', tenantId, from, to, hash, weight, ms]));
}

export function sealEdge(tenant: Tenant, { from, to, relation, weight, confidence }: NewEdge, nowMs: number) {
  const hash = relationHash(tenant, relation);
  const plain = encoder.encode(JSON.stringify([relation, confidence]));
  return { hash, sealed: tenant.sealer.seal(associatedData(tenant.id, from, to, hash, weight, nowMs), plain) };
}

/** Opens a row with the columns source_id, target_id, relation, weight, updated_ms and sealed. */
export function openEdge(row: EdgeRow, tenant: Tenant, idOf: (value: unknown) => string): MemoryEdge {
  const [from, to] = [idOf(row['source_id']), idOf(row['target_id'])];
  const [weight, updatedMs] = [numberOf(row['weight']), numberOf(row['updated_ms'])];
  const associated = associatedData(tenant.id, from, to, textOf(row['relation']), weight, updatedMs);
  const plain = tenant.sealer.unseal(associated, bytesOf(row['sealed']));
  if (plain === null) throw damaged(`the edge from ${from} to ${to} does not open`);
  const [relation, confidence] = JSON.parse(decoder.decode(plain)) as [string, number];
  return { from, to, relation, weight, confidence, updatedMs };
}

export function checkEdgeRow(row: EdgeRow, tenant: Tenant, idOf: (value: unknown) => string): void {
  const { relation } = openEdge(row, tenant, idOf);
  if (relationHash(tenant, relation) !== row['relation']) throw damaged('an edge is filed under another relation');
}

export function missingEnd(id: string): RuvLLMError {
  return new RuvLLMError('not_found', `an edge requires the record ${id}, which was not found`, { data: { id } });
}
