import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import { openMemory, type Memory } from '../memory.ts';
import type { NewMasterKey } from '../remote/protocol.ts';
import { createTestServices, createTestStore, type TestServices, type TestStore } from '../test-store.contract.ts';
import { createManualSchedule, createTestArchive, auditInput } from '../audit/harness.contract.ts';
import { operationOf } from './table.ts';

const DIM = 32;

/** Texts with words in common are near each other. */
export function createWordEmbedder(fingerprint = 'words-32'): Embedder {
  return {
    fingerprint,
    dim: DIM,
    embed(text) {
      const vector = new Float32Array(DIM);
      for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) {
        let hash = 7;
        for (let i = 0; i < word.length; i++) hash = (hash * 31 + word.charCodeAt(i)) % 997;
        vector[hash % DIM]! += 1;
      }
      const length = Math.hypot(...vector);
      if (length === 0) throw new RuvLLMError('invalid_text', 'no words');
      return vector.map((value) => value / length);
    },
  };
}

export interface TestMemory {
  readonly memory: Memory;
  readonly services: TestServices;
  readonly store: TestStore;
  readonly archive: ReturnType<typeof createTestArchive>;
  /** Master keys it was told to use from then on. */
  readonly rotated: readonly NewMasterKey[];
  /** Runs an operation, and checks that JSON does not change what comes back. */
  run(name: string, input?: unknown, tenant?: string): Promise<unknown>;
  /** Writes requests into the audit log of a tenant. */
  audit(entries: readonly Parameters<typeof auditInput>[0][], tenant?: string): Promise<void>;
}

export async function createTestMemory(embedder: Embedder | null = createWordEmbedder()): Promise<TestMemory> {
  const services = createTestServices();
  const store = createTestStore(services);
  const { schedule } = createManualSchedule();
  const archive = createTestArchive();
  const rotated: NewMasterKey[] = [];
  const rotateKey = async (to: NewMasterKey): Promise<void> => void rotated.push(to);
  const memory = await openMemory({ store, services, schedule, embedder, archive, rotateKey, report() {} });
  return {
    memory,
    services,
    store,
    archive,
    rotated,
    async run(name, input = {}, tenant = 'acme') {
      const value = await operationOf(name).run(memory, tenant, input);
      const copy: unknown = JSON.parse(JSON.stringify(value));
      if (JSON.stringify(copy) !== JSON.stringify(value)) throw new Error(`${name} is not plain JSON`);
      return copy;
    },
    async audit(entries, tenant = 'acme') {
      for (const entry of entries) {
        const query = entry?.query ?? 'Where is my card?';
        const embedded = (await memory.embed(query))!;
        memory.audit.enqueue(tenant, {
          ...auditInput({ ...entry, query }),
          queryEmbedding: embedded.vector,
          responseEmbedding: null,
          space: embedded.space,
        });
      }
      await memory.audit.flush();
    },
  };
}
