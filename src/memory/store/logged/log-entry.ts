import { RuvLLMError } from '../../../core/errors.ts';
import type { MemoryEdge, MemoryRecord, PutRecord } from '../../types.ts';
import type { StoreDump } from '../in-memory/in-memory-store.ts';

type NewEdge = Omit<MemoryEdge, 'updatedMs'>;
type EdgeName = Pick<MemoryEdge, 'from' | 'to' | 'relation'>;

/** One change of a store. Repeated in order at the same times, changes lead to the same store. */
export type StoreChange =
  | { readonly op: 'put'; readonly nowMs: number; readonly records: readonly PutRecord[] }
  | { readonly op: 'delete'; readonly tenant: string; readonly ids: readonly string[] }
  | { readonly op: 'putEdges'; readonly nowMs: number; readonly tenant: string; readonly edges: readonly NewEdge[] }
  | { readonly op: 'deleteEdges'; readonly tenant: string; readonly edges: readonly EdgeName[] }
  | { readonly op: 'sweep'; readonly nowMs: number; readonly limit: number }
  | { readonly op: 'eraseTenant'; readonly tenant: string }
  | { readonly op: 'restore'; readonly dump: StoreDump };

/**
 * Format: u32 length of the JSON, little-endian; the JSON, in which a vector is its length; then all vectors as float32,
 * little-endian, which as text would take four times the space.
 */
export function encodeChange(change: StoreChange): Uint8Array {
  const vectors: Float32Array[] = [];
  const flatten = <T extends PutRecord | MemoryRecord>(records: readonly T[]): object[] =>
    records.map(({ vector, ...record }) => {
      if (vector !== null) vectors.push(vector);
      return { ...record, vector: vector === null ? null : vector.length };
    });
  const plain =
    change.op === 'put'
      ? { ...change, records: flatten(change.records) }
      : change.op === 'restore'
        ? { ...change, dump: { ...change.dump, records: flatten(change.dump.records) } }
        : change;
  const json = new TextEncoder().encode(JSON.stringify(plain));
  const numValues = vectors.reduce((sum, vector) => sum + vector.length, 0);
  const bytes = new Uint8Array(4 + json.length + 4 * numValues);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, json.length, true);
  bytes.set(json, 4);
  let at = 4 + json.length;
  for (const vector of vectors)
    for (const value of vector) {
      view.setFloat32(at, value, true);
      at += 4;
    }
  return bytes;
}

export function decodeChange(bytes: Uint8Array): StoreChange {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const jsonBytes = view.getUint32(0, true);
    const change = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + jsonBytes))) as StoreChange;
    let at = 4 + jsonBytes;
    const inflate = <T extends { readonly vector: unknown }>(records: readonly T[]): T[] =>
      records.map((record) => {
        if (record.vector === null) return record;
        const vector = new Float32Array(record.vector as number);
        for (let i = 0; i < vector.length; i++, at += 4) vector[i] = view.getFloat32(at, true);
        return { ...record, vector };
      });
    if (change.op === 'put') return { ...change, records: inflate(change.records) };
    if (change.op === 'restore') return { ...change, dump: { ...change.dump, records: inflate(change.dump.records) } };
    return change;
  } catch (cause) {
    throw new RuvLLMError('io', `a change of the memory has ${bytes.length} bytes that cannot be read`, { cause });
  }
}
