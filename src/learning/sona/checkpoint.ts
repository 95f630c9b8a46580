import { nameId } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { JsonValue, MemoryStore } from '../../memory/types.ts';
import type { TrainingState } from '../lora-training/training-state.ts';
import { createFloatBlobs, type FloatBlobs } from '../versions/blobs.ts';

/** Training states of stopped and crashed runs, from which they continue. */
export interface Checkpoints {
  /** Null if there is none for this run. */
  get(tenant: string, line: string, runKey: string): Promise<TrainingState | null>;
  put(tenant: string, line: string, runKey: string, state: TrainingState): Promise<void>;
  delete(tenant: string, line: string): Promise<void>;
}

const VECTORS = ['parameters', 'first', 'second'] as const;
type Vectors = Record<(typeof VECTORS)[number], string>;
interface Body {
  readonly runKey: string;
  readonly blobs: Vectors;
  readonly numbers: Omit<TrainingState, (typeof VECTORS)[number]>;
}

export function createCheckpoints(store: MemoryStore, services: MemoryServices): Checkpoints {
  // Separate blobs: before its first step a run has the active weights, which must survive the deletion of its checkpoint.
  const blobsOf = (line: string): FloatBlobs => createFloatBlobs(store, services, `checkpoint/${line}`);
  const idOf = (tenant: string, line: string): string => nameId(services.sha256, tenant, 'checkpoint', line);

  async function read(tenant: string, line: string): Promise<Body | null> {
    const [record] = await store.get(tenant, [idOf(tenant, line)]);
    return record == null ? null : (record.body as unknown as Body);
  }

  async function drop(tenant: string, line: string, body: Body | null, except: readonly string[] = []): Promise<void> {
    for (const blob of Object.values(body?.blobs ?? {})) {
      if (!except.includes(blob)) await blobsOf(line).delete(tenant, blob);
    }
  }

  return {
    async get(tenant, line, runKey) {
      const body = await read(tenant, line);
      if (body === null || body.runKey !== runKey) return null;
      const blobs = blobsOf(line);
      const [parameters, first, second] = await Promise.all(VECTORS.map((name) => blobs.get(tenant, body.blobs[name])));
      return { ...body.numbers, parameters: parameters!, first: first!, second: second! };
    },
    async put(tenant, line, runKey, { parameters, first, second, ...numbers }) {
      const before = await read(tenant, line);
      const blobs = blobsOf(line);
      const names: Vectors = {
        parameters: await blobs.put(tenant, parameters),
        first: await blobs.put(tenant, first),
        second: await blobs.put(tenant, second),
      };
      const body: Body = { runKey, blobs: names, numbers };
      await store.put([
        {
          id: idOf(tenant, line),
          tenant,
          kind: 'state',
          expiresMs: null,
          fields: { name: 'checkpoint' },
          body: body as unknown as JsonValue,
          vector: null,
          space: null,
        },
      ]);
      await drop(tenant, line, before, Object.values(names));
    },
    async delete(tenant, line) {
      const before = await read(tenant, line);
      if (before === null) return;
      await store.delete(tenant, [idOf(tenant, line)]);
      await drop(tenant, line, before);
    },
  };
}
