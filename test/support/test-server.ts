import { listen, type Listening } from '../../src/node/server/serve.ts';
import type { Model } from '../../src/runtime/model.ts';
import { createServer, type Server, type ServerOptions } from '../../src/server/app.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Feedback } from '../../src/server/feedback.ts';
import { createKeyStore, type KeyRecord, type KeyRecords } from '../../src/server/keys/key-store.ts';
import { createModelHost, type ModelEntry } from '../../src/runtime/requests/model-host.ts';

export function createMemoryKeys(map = new Map<string, KeyRecord>()): KeyRecords {
  return {
    get: (id) => map.get(id) ?? null,
    put: (record) => void map.set(record.id, record),
    list: () => [...map.values()],
  };
}

/** A model that loads at once. */
export function entryOf(id: string, load: () => Promise<Model>, more: Partial<ModelEntry> = {}): ModelEntry {
  return { id, aliases: [], created: 1_700_000_000, sizeBytes: null, load, ...more };
}

export interface TestServer extends Server {
  readonly feedbacks: Feedback[];
}

/** A server without a socket, open to everyone by default. */
export function createTestServer(
  entries: readonly ModelEntry[],
  options: Partial<ServerOptions> & { budgetBytes?: number } = {},
): TestServer {
  const { budgetBytes = null, ...more } = options;
  const clock = options.clock ?? systemClock;
  const feedbacks: Feedback[] = [];
  const server = createServer({
    version: '0.0.0',
    models: createModelHost({ entries, budgetBytes, clock }),
    keys: createKeyStore(createMemoryKeys(), () => 1000),
    isOpen: true,
    feedback: {
      async put(feedback) {
        feedbacks.push(feedback);
      },
    },
    browsers: { hosts: null, corsOrigins: [] },
    ...more,
  });
  return { ...server, feedbacks };
}

/** The same with a real socket on loopback. */
export async function listenOnLoopback(server: Server): Promise<Listening> {
  return listen(server, { host: '127.0.0.1', port: 0 });
}
