import { gunzipSync, gzipSync } from 'node:zlib';
import { RuvLLMError } from '../../core/errors.ts';
import type { Schedule } from '../common/services.ts';
import { withBuilders } from '../record-builders.ts';
import { auditFixture } from '../schemas/fixtures.contract.ts';
import type { AuditInput } from '../schemas/audit.ts';
import { createTestServices, createTestStore, type TestServices, type TestStore } from '../test-store.contract.ts';
import type { MemoryStore } from '../types.ts';
import type { AuditArchive } from './archive.ts';
import { openAuditLog, type AuditLog, type AuditLogContext } from './index.ts';

export const TENANT = 'acme';

export interface ManualSchedule {
  readonly schedule: Schedule;
  /** Delays that are waited for. */
  delays(): number[];
  /** Runs what is waiting now. */
  /** The one at this place of `delays`. */
  run(place: number): void;
  runAll(): void;
}

export function createManualSchedule(): ManualSchedule {
  const tasks = new Map<number, { task: () => void; delayMs: number }>();
  let numTasks = 0;
  return {
    schedule(task, delayMs) {
      const id = numTasks++;
      tasks.set(id, { task, delayMs });
      return () => void tasks.delete(id);
    },
    delays: () => [...tasks.values()].map(({ delayMs }) => delayMs),
    run(place) {
      const [id, { task }] = [...tasks.entries()][place]!;
      tasks.delete(id);
      task();
    },
    runAll() {
      const due = [...tasks.entries()];
      for (const [id, { task }] of due) if (tasks.delete(id)) task();
    },
  };
}

/** Files in a map; the "seal" is a visible one, so that tests see that it is asked for. */
export function createTestArchive(): AuditArchive & { readonly files: Map<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>();
  const flip = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => byte ^ 0x5a);
  const frame = (tenant: string, context: string): Uint8Array => new TextEncoder().encode(`${tenant}|${context}|`);
  return {
    files,
    write: async (name, bytes) => void files.set(name, bytes.slice()),
    read: async (name) => files.get(name) ?? null,
    delete: async (name) => void files.delete(name),
    gzip: async (bytes) => new Uint8Array(gzipSync(bytes)),
    gunzip: async (bytes, maxBytes) => new Uint8Array(gunzipSync(bytes, { maxOutputLength: Math.max(1, maxBytes) })),
    seal: async (tenant, bytes, context) => flip(Uint8Array.of(...frame(tenant, context), ...bytes)),
    async unseal(tenant, bytes, context) {
      const open = flip(bytes);
      const head = frame(tenant, context);
      if (!head.every((byte, index) => open[index] === byte)) throw new RuvLLMError('io', 'another seal');
      return open.subarray(head.length);
    },
  };
}

export function auditInput(changes: Partial<AuditInput> = {}): AuditInput {
  const { numCut: _cut, repairs: _repairs, ...input } = auditFixture();
  return { ...input, ...changes };
}

export interface Harness extends ManualSchedule {
  readonly services: TestServices;
  readonly store: TestStore;
  open(changes?: Partial<AuditLogContext>): Promise<AuditLog>;
}

/** The store builds entries from copies, as one in another thread does. */
function withRemoteBuilders(store: TestStore, { sha256 }: TestServices): MemoryStore {
  const { putBuilt, ...rest } = withBuilders(store, sha256);
  const copy = (input: unknown): unknown => {
    try {
      return structuredClone(input);
    } catch (cause) {
      throw new RuvLLMError('invalid_option', 'the arguments cannot be sent to another thread', { cause });
    }
  };
  return { ...rest, putBuilt: async (name, input) => structuredClone(await putBuilt!(name, copy(input))) };
}

export function createHarness({ isRemote = false }: { readonly isRemote?: boolean } = {}): Harness {
  const services = createTestServices();
  const store = createTestStore(services);
  const manual = createManualSchedule();
  const used = isRemote ? withRemoteBuilders(store, services) : store;
  const open = (changes: Partial<AuditLogContext> = {}) =>
    openAuditLog({ store: used, services, schedule: manual.schedule, ...changes });
  return { services, store, open, ...manual };
}

/** Enqueues entries with the queries given, and writes them. */
export async function writeAll(log: AuditLog, entries: readonly Partial<AuditInput>[], tenant = TENANT): Promise<void> {
  for (const entry of entries) log.enqueue(tenant, auditInput(entry));
  await log.flush();
}

export const numbered = (count: number, start = 1): Partial<AuditInput>[] =>
  Array.from({ length: count }, (_, index) => ({ query: `query ${start + index}` }));
