import { RuvLLMError } from '../../core/errors.ts';
import { nameId, toHex } from '../../memory/common/ids.ts';
import { packFloats, unpackFloats } from '../../memory/common/float-packing.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../../memory/types.ts';

/** Floats of one record: in base64 they take 2 MiB, half of what a body may have. */
const CHUNK_FLOATS = 393_216;
/** A blob of 4 GiB; more is a mistake. */
const MAX_CHUNKS = 2731;

/** Long lists of floats in the store: sealed with the tenant's key, erased with the tenant. */
export interface FloatBlobs {
  /** The name it can be read by: the hash of its contents. Written twice, it is there once. */
  put(tenant: string, values: Float32Array): Promise<string>;
  /** `not_found` where it is gone, `io` where it is not what was written. */
  get(tenant: string, hash: string): Promise<Float32Array>;
  delete(tenant: string, hash: string): Promise<void>;
}

interface Head {
  readonly numFloats: number;
  readonly numChunks: number;
}

/** @param owner - Whose they are: what one owner deletes, another with the same numbers still has. */
export function createFloatBlobs(store: MemoryStore, services: MemoryServices, owner = ''): FloatBlobs {
  const idOf = (tenant: string, hash: string, part: number | 'head'): string =>
    nameId(services.sha256, tenant, 'float-blob', ...(owner === '' ? [] : [owner]), hash, String(part));

  const hashOf = (values: Float32Array): string =>
    toHex(services.sha256(new Uint8Array(values.buffer, values.byteOffset, values.byteLength)));

  const record = (tenant: string, hash: string, part: number | 'head', body: JsonValue): PutRecord => ({
    id: idOf(tenant, hash, part),
    tenant,
    kind: 'state',
    expiresMs: null,
    fields: { name: `float-blob/${hash}` },
    body,
    vector: null,
    space: null,
  });

  async function headOf(tenant: string, hash: string): Promise<Head | null> {
    const [found] = await store.get(tenant, [idOf(tenant, hash, 'head')]);
    return found == null ? null : (found.body as unknown as Head);
  }

  return {
    async put(tenant, values) {
      const hash = hashOf(values);
      if ((await headOf(tenant, hash)) !== null) return hash;
      const numChunks = Math.ceil(values.length / CHUNK_FLOATS);
      if (numChunks > MAX_CHUNKS) {
        throw new RuvLLMError('invalid_option', `${values.length} floats are more than ${MAX_CHUNKS * CHUNK_FLOATS}`);
      }
      for (let i = 0; i < numChunks; i++) {
        const chunk = values.subarray(i * CHUNK_FLOATS, (i + 1) * CHUNK_FLOATS);
        await store.put([record(tenant, hash, i, { $f32: packFloats(chunk) })]);
      }
      // The head last: what has one is whole.
      await store.put([record(tenant, hash, 'head', { numFloats: values.length, numChunks })]);
      return hash;
    },
    async get(tenant, hash) {
      const head = await headOf(tenant, hash);
      if (head === null) throw new RuvLLMError('not_found', `there are no learned weights ${hash}`);
      const values = new Float32Array(head.numFloats);
      for (let i = 0; i < head.numChunks; i++) {
        const [found] = await store.get(tenant, [idOf(tenant, hash, i)]);
        if (found == null)
          throw new RuvLLMError('io', `part ${i} of ${head.numChunks} of learned weights ${hash} is gone`);
        values.set(unpackFloats((found.body as { $f32: string }).$f32), i * CHUNK_FLOATS);
      }
      if (hashOf(values) !== hash) throw new RuvLLMError('io', `learned weights ${hash} are not what was written`);
      return values;
    },
    async delete(tenant, hash) {
      const head = await headOf(tenant, hash);
      if (head === null) return;
      // The head first: what has none is not there.
      await store.delete(tenant, [idOf(tenant, hash, 'head')]);
      for (let i = 0; i < head.numChunks; i++) await store.delete(tenant, [idOf(tenant, hash, i)]);
    },
  };
}
