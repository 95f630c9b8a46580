import { nameId } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { JsonValue, MemoryStore } from '../../memory/types.ts';
import type { MicroLoraState } from '../micro-lora/types.ts';
import { createFloatBlobs, type FloatBlobs } from '../versions/blobs.ts';

/** The micro adapter of a tenant and a model. */
export interface KeptMicro {
  readonly state: MicroLoraState;
  readonly learnedFrom: readonly string[];
  /** Active version when it was taught, 0: none; later versions contain its steps. */
  readonly baseVersion: number;
}

export interface MicroStore {
  get(tenant: string, modelId: string): Promise<KeptMicro | null>;
  put(tenant: string, modelId: string, kept: KeptMicro): Promise<void>;
  delete(tenant: string, modelId: string): Promise<void>;
  /** Models that have one. */
  models(tenant: string): Promise<readonly string[]>;
}

interface Body {
  readonly modelId: string;
  readonly blob: string;
  readonly version: number;
  readonly learnedFrom: readonly string[];
  readonly baseVersion: number;
}

const RECORD_NAME = 'micro-lora';
const MAX_LEARNED_FROM = 10_000;

/** One for each tenant and model. */
export function createMicroStore(store: MemoryStore, services: MemoryServices): MicroStore {
  const blobsOf = (modelId: string): FloatBlobs => createFloatBlobs(store, services, `micro-lora/${modelId}`);
  const idOf = (tenant: string, modelId: string): string => nameId(services.sha256, tenant, 'micro-lora', modelId);

  async function read(tenant: string, modelId: string): Promise<Body | null> {
    const [record] = await store.get(tenant, [idOf(tenant, modelId)]);
    return record == null ? null : (record.body as unknown as Body);
  }

  return {
    async get(tenant, modelId) {
      const body = await read(tenant, modelId);
      if (body === null) return null;
      const { version, learnedFrom, blob, baseVersion } = body;
      const parameters = await blobsOf(modelId).get(tenant, blob);
      return { state: { parameters, version }, learnedFrom, baseVersion };
    },
    async put(tenant, modelId, { state, learnedFrom, baseVersion }) {
      const before = await read(tenant, modelId);
      const blobs = blobsOf(modelId);
      const blob = await blobs.put(tenant, state.parameters);
      const body: Body = {
        modelId,
        blob,
        version: state.version,
        learnedFrom: learnedFrom.slice(-MAX_LEARNED_FROM),
        baseVersion,
      };
      await store.put([
        {
          id: idOf(tenant, modelId),
          tenant,
          kind: 'state',
          expiresMs: null,
          fields: { name: RECORD_NAME },
          body: body as unknown as JsonValue,
          vector: null,
          space: null,
        },
      ]);
      // After the record that refers to the new blob: a crash leaves an unused blob, never a missing one.
      if (before !== null && before.blob !== blob) await blobs.delete(tenant, before.blob);
    },
    async models(tenant) {
      const filter = { fields: [{ field: 'name', is: '=', value: RECORD_NAME }] } as const;
      const { records } = await store.find(tenant, { kinds: ['state'], filter, order: 'oldest', limit: 1000 });
      return records.map(({ body }) => (body as unknown as Body).modelId);
    },
    async delete(tenant, modelId) {
      const before = await read(tenant, modelId);
      if (before === null) return;
      await store.delete(tenant, [idOf(tenant, modelId)]);
      await blobsOf(modelId).delete(tenant, before.blob);
    },
  };
}
