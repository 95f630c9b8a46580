import { createInMemoryStore } from '../../src/memory/store/in-memory/in-memory-store.ts';
import type { MemoryStore } from '../../src/memory/types.ts';
import { createKeyStore, type KeyRecord, type KeyStore } from '../../src/server/keys/key-store.ts';
import type { ServerLimits } from '../../src/server/limits.ts';
import type { Logger } from '../../src/server/logger.ts';
import type { Clock } from '../../src/core/clock.ts';
import { systemClock } from '../../src/core/clock.ts';
import { createHostedEcho } from './scripted-model.ts';
import { openTestMemory } from './test-memory.ts';
import { createMemoryKeys, createTestServer, entryOf } from './test-server.ts';

/** A line of a batch file: a question to the model `echo`. */
export const lineOf = (id: string, content = `about ${id}`, more: object = {}): object => ({
  custom_id: id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'echo', messages: [{ role: 'user', content }], ...more },
});

export const linesOf = (count: number): object[] => Array.from({ length: count }, (_, i) => lineOf(`line-${i}`));
export const toJsonl = (lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

export interface BatchServerOptions {
  readonly store?: MemoryStore;
  readonly clock?: Clock;
  readonly limits?: Partial<ServerLimits>;
  readonly isShared?: boolean;
  readonly model?: ReturnType<typeof createHostedEcho>;
  readonly logger?: Logger;
  /** Keys of these tenants. Default: none, the server is open. */
  readonly tenants?: readonly string[];
  readonly keyRecords?: Map<string, KeyRecord>;
}

/** A server with the model `echo` and a memory; `as` sends requests of a tenant. */
export async function openBatchServer(options: BatchServerOptions = {}) {
  const { clock = systemClock, limits = {}, isShared = false, model = createHostedEcho(1000), tenants = [] } = options;
  const { store = createInMemoryStore({ now: clock.wallClock }), keyRecords = new Map<string, KeyRecord>() } = options;
  Object.assign(model, { erasure: { name: 'model', erase: async () => {}, count: async () => 0 } });
  const memory = await openTestMemory({ store, now: clock.wallClock, isShared });
  const keys: KeyStore = createKeyStore(createMemoryKeys(keyRecords), () => 1000);
  const tokens = new Map<string, { token: string; id: string }>();
  for (const tenant of tenants) {
    const scopes = [tenant === 'root' ? ('admin' as const) : ('inference' as const)];
    const { token, key } = await keys.create({ name: tenant, tenant, scopes });
    tokens.set(tenant, { token, id: key.id });
  }
  const logs: object[] = [];
  const server = createTestServer([entryOf('echo', async () => model)], {
    memory,
    clock,
    limits,
    keys,
    isOpen: tenants.length === 0,
    logger: options.logger ?? { log: (level, event, fields) => void logs.push({ level, event, ...fields }) },
  });
  const as = (tenant: string | null) => {
    // Read for each request: a test may replace the key.
    const headers = (): Record<string, string> =>
      tenant === null ? {} : { authorization: `Bearer ${tokens.get(tenant)!.token}` };
    const send = (method: string, path: string, body?: BodyInit, type?: string): Promise<Response> =>
      server.fetch(
        new Request(`http://localhost${path}`, {
          method,
          headers: { ...headers(), ...(type === undefined ? {} : { 'content-type': type }) },
          ...(body === undefined ? {} : { body }),
        }),
      );
    const call = async (method: string, path: string, body?: object): Promise<{ status: number; body: any }> => {
      const response = await send(method, path, body && JSON.stringify(body), body && 'application/json');
      return { status: response.status, body: await response.json() };
    };
    const upload = async (text: string | Uint8Array, fields: Record<string, string> = { purpose: 'batch' }) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.set(name, value);
      form.set('file', new Blob([text as BlobPart]), 'requests.jsonl');
      const response = await send('POST', '/v1/files', form);
      return { status: response.status, body: (await response.json()) as any };
    };
    const create = async (lines: readonly object[] | string, more: object = {}) => {
      const { body: file } = await upload(typeof lines === 'string' ? lines : toJsonl(lines));
      const endpoint = '/v1/chat/completions';
      return call('POST', '/v1/batches', { input_file_id: file.id, endpoint, completion_window: '24h', ...more });
    };
    /** With its byte order mark, which `text()` removes. */
    const content = async (fileId: string): Promise<string> =>
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(
        await (await send('GET', `/v1/files/${fileId}/content`)).arrayBuffer(),
      );
    /** The results of a file, by their order. */
    const results = async (fileId: string | undefined): Promise<any[]> =>
      fileId === undefined
        ? []
        : (await content(fileId))
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line) as unknown);
    const show = async (id: string): Promise<any> => (await call('GET', `/v1/batches/${id}`)).body;
    /** Waits for a status, or for the end. */
    const until = async (id: string, isReached = (batch: any): boolean => hasEnded(batch)): Promise<any> => {
      for (;;) {
        const batch = await show(id);
        if (isReached(batch)) return batch;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    return { send, call, upload, create, content, results, show, until };
  };
  return { server, memory, store, keys, tokens, model, logs, as, ...as(tenants[0] ?? null) };
}

export const hasEnded = ({ status }: { status: string }): boolean =>
  ['completed', 'failed', 'expired', 'cancelled'].includes(status);
