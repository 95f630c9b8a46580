import type { ReleaseStore, StoredRecord } from '../../../gateway/releases/release-store.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { type BusAttachment, type Connection, loadPackages } from './nats-bus.ts';

/** The part of `@nats-io/kv` that this file uses. */
interface Entry {
  readonly operation: string;
  readonly revision: number;
  readonly created: Date;
  string(): string;
}
type Reading = AsyncIterable<Entry> & { stop(): void };
interface Bucket {
  get(key: string): Promise<Entry | null>;
  put(key: string, value: string): Promise<number>;
  create(key: string, value: string): Promise<number>;
  update(key: string, value: string, revision: number): Promise<number>;
  watch(options: object): Promise<Reading>;
  keys(): Promise<AsyncIterable<string>>;
}
interface KvModule {
  Kvm: new (connection: Connection) => {
    create(name: string, options: object): Promise<Bucket>;
    open(name: string): Promise<Bucket>;
  };
}
/** The part of `@nats-io/obj` that this file uses. */
interface ObjectBucket {
  info(name: string): Promise<{ readonly size: number; readonly deleted: boolean } | null>;
  get(name: string): Promise<{ readonly data: AsyncIterable<Uint8Array> & { cancel(): Promise<void> }; readonly error: Promise<Error | null | undefined> } | null>; // prettier-ignore
  putBlob(meta: object, bytes: Uint8Array): Promise<object>;
  delete(name: string): Promise<object>;
}
interface ObjectModule {
  Objm: new (connection: Connection) => { create(name: string, options: object): Promise<ObjectBucket> };
}

export interface NatsReleaseStoreOptions {
  readonly fleet: string;
  /** Called after each heartbeat that reached the server, with a time before it began. */
  readonly onBeat?: (startMs: number) => Promise<void>;
  /** Default: the installed packages. */
  readonly load?: (name: string) => Promise<unknown>;
}

const KEY = 'record';
/** JetStream's code for a write whose expected revision is not the latest. */
const WRONG_REVISION = 10071;

/** Keeps releases in a bucket of JetStream's key-value store, and files in its object store, both on disk. */
export function createNatsReleaseStore(
  options: NatsReleaseStoreOptions,
): ReleaseStore & { readonly attachment: BusAttachment } {
  const { fleet, onBeat, load = (name: string) => import(name) } = options;
  const watchers: ((record: StoredRecord) => void)[] = [];
  let connection: Connection | null = null;
  let bucket: Bucket | null = null;
  let members: Bucket | null = null;
  let reading: Reading | null = null;
  let latest: StoredRecord | null = null;
  let files: Promise<ObjectBucket> | null = null;

  function connected<T>(part: T | null): T {
    if (part !== null) return part;
    throw new RuvLLMError('remote_failed', 'there is no connection to NATS', { isRetryable: true });
  }

  const recordOf = (entry: Entry): StoredRecord => ({
    text: entry.string(),
    revision: entry.revision,
    ageMs: Date.now() - entry.created.getTime(),
  });

  async function follow(own: Reading, onEntry: (entry: Entry) => void): Promise<void> {
    try {
      // Removals are not signed, and therefore say nothing.
      for await (const entry of own) if (entry.operation === 'PUT') onEntry(entry);
    } catch {
      // The connection has ended; the next one opens another.
    }
  }

  /** Loaded with the first use: a fleet without published adapters does not require the package. */
  function openFiles(): Promise<ObjectBucket> {
    const to = connected(connection);
    files ??= loadPackages(load, ['@nats-io/obj']).then(([module]) =>
      new (module as ObjectModule).Objm(to).create(`ruvllm_adapters_${fleet}`, { storage: 'file' }),
    );
    const opening = files;
    opening.catch(() => {
      if (files === opening) files = null;
    });
    return opening;
  }

  return {
    attachment: {
      async open(to) {
        const [module] = (await loadPackages(load, ['@nats-io/kv'])) as [KvModule];
        const kvm = new module.Kvm(to);
        // Not by direct reads, which another server of a cluster may answer with an older record.
        bucket = await kvm.create(`ruvllm_releases_${fleet}`, { storage: 'file', history: 1, allow_direct: false });
        members = await kvm.open(`ruvllm_${fleet}`);
        files = null; // the server may have lost its disk
        connection = to;
        reading?.stop();
        reading = await bucket.watch({ key: KEY });
        void follow(reading, (entry) => {
          latest = recordOf(entry);
          for (const onRecord of watchers) onRecord(latest);
        });
      },
      beat: async (startMs) => onBeat?.(startMs),
      close: () => reading?.stop(),
    },
    async read() {
      const entry = await connected(bucket).get(KEY);
      return entry === null || entry.operation !== 'PUT' ? null : recordOf(entry);
    },
    async write(text, revision) {
      const to = connected(bucket);
      try {
        return await (revision === 0 ? to.create(KEY, text) : to.update(KEY, text, revision));
      } catch (error) {
        if ((error as { code?: unknown }).code === WRONG_REVISION) return null;
        throw error;
      }
    },
    watch(onRecord) {
      watchers.push(onRecord);
      if (latest !== null) onRecord(latest);
    },
    async members() {
      const texts: string[] = [];
      const to = connected(members);
      for await (const key of await to.keys()) {
        const entry = await to.get(key);
        if (entry?.operation === 'PUT') texts.push(entry.string());
      }
      return texts;
    },
    async report(name, text) {
      await connected(bucket).put(`report.${name}`, text);
    },
    async watchReports(onReport) {
      const own = await connected(bucket).watch({ key: 'report.*' });
      void follow(own, (entry) => onReport(entry.string()));
      return { stop: () => own.stop() };
    },
    async hasFile(name, sizeBytes) {
      const info = await (await openFiles()).info(name);
      return info !== null && !info.deleted && info.size === sizeBytes;
    },
    async putFile(name, bytes) {
      await (await openFiles()).putBlob({ name }, bytes);
    },
    async getFile(name) {
      const result = await (await openFiles()).get(name);
      return result === null ? null : withError(result);
    },
    async deleteFile(name) {
      await (await openFiles()).delete(name);
    },
  };
}

/** The stream ends without an error of its own if the object is damaged. */
async function* withError({
  data,
  error,
}: NonNullable<Awaited<ReturnType<ObjectBucket['get']>>>): AsyncIterable<Uint8Array> {
  yield* data;
  const failure = await error;
  if (failure != null) throw new RuvLLMError('io', `the object store: ${failure.message}`, { cause: failure });
}
