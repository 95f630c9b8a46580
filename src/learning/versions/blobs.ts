import { RuvLLMError } from '../../core/errors.ts';
import { nameId, toHex } from '../../memory/common/ids.ts';
import { packFloats, unpackFloats } from '../../memory/common/float-packing.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../../memory/types.ts';

/** Floats of one record: 2 MiB in base64, half the limit of a body. */
const CHUNK_FLOATS = 393_216;
/** 4 GiB. */
const MAX_CHUNKS = 2731;

/** Float vectors in the store, sealed with the tenant's key and erased with the tenant. */
export interface FloatBlobs {
  /** Returns the hash of the contents, under which it is read; equal contents are stored once. */
  put(tenant: string, values: Float32Array): Promise<string>;
  /** Throws `not_found` if it is gone, `io` if it differs from its hash. */
  get(tenant: string, hash: string): Promise<Float32Array>;
  delete(tenant: string, hash: string): Promise<void>;
}

interface Head {
  readonly numFloats: number;
  readonly numChunks: number;
}

/** @param owner - Deleting a blob of one owner leaves an equal one of another. */
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
      // The head last: a blob with a head is complete.
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
      // The head first: a blob without a head does not exist.
      await store.delete(tenant, [idOf(tenant, hash, 'head')]);
      for (let i = 0; i < head.numChunks; i++) await store.delete(tenant, [idOf(tenant, hash, i)]);
    },
  };
}
