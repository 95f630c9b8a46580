import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import { ENTRY_LIFE_MS, type FleetBus, HEARTBEAT_MS, type KeptEntry } from '../../../gateway/shared/fleet-bus.ts';

export interface NatsBusOptions {
  /** `nats://host:4222`, `tls://…`, with a user and password or a token before the host if the server wants them. */
  readonly url: string;
  /** Part of all names: several fleets can share a server. */
  readonly fleet: string;
  /** Called once for each state of the connection, with a message without secrets. */
  onState(state: 'connected' | 'disconnected', message: string): void;
  /** Uses the same connection. */
  readonly attachment?: BusAttachment;
  /** Default: the installed packages. */
  readonly load?: (name: string) => Promise<unknown>;
}

/** Another user of the connection. */
export interface BusAttachment {
  /** Called with each new connection, before others can see that it is there; a rejection is tried again. */
  open(connection: Connection): Promise<void>;
  /** Called after each heartbeat, with a time before it began. */
  beat(startMs: number): Promise<void>;
  close(): void;
}

/** The part of `@nats-io/transport-node` that this file uses: its types are not required to compile. */
export interface Connection {
  publish(subject: string, payload: string): void;
  subscribe(subject: string, options: { callback: (error: Error | null, message: { string(): string }) => void }): void;
  status(): AsyncIterable<{ readonly type: string }>;
  getServer(): string;
  close(): Promise<void>;
}
interface TransportModule {
  connect(options: object): Promise<Connection>;
}
interface Bucket {
  put(key: string, value: string): Promise<number>;
  watch(): Promise<AsyncIterable<{ readonly operation: string; string(): string }> & { stop(): void }>;
}
interface KvModule {
  Kvm: new (connection: Connection) => { create(name: string, options: object): Promise<Bucket> };
}

const RECONNECT_MS = 500;
const PACKAGES = ['@nats-io/transport-node', '@nats-io/kv'];

/** Connects the processes of a fleet over NATS: core messages, and a bucket of JetStream's key-value store in memory. */
export async function openNatsBus(options: NatsBusOptions): Promise<FleetBus> {
  const { fleet, onState, attachment, load = (name: string) => import(name) } = options;
  const server = readUrl(options.url);
  const [{ connect }, { Kvm }] = (await loadPackages(load)) as [TransportModule, KvModule];
  const entries = new Map<string, () => string>();
  const watchers: ((text: string) => void)[] = [];
  const subscriptions: { readonly topic: string; readonly onText: (text: string) => void }[] = [];
  const subjectOf = (topic: string): string => `ruvllm.${fleet}.${topic}`;
  let connection: Connection | null = null;
  let bucket: Bucket | null = null;
  let watch: Awaited<ReturnType<Bucket['watch']>> | null = null;
  let isConnected = false;
  let isClosed = false;
  /** Null: connected. */
  let reported: string | null | undefined;
  let retry: NodeJS.Timeout | undefined;

  function setConnected(value: boolean, message: string): void {
    isConnected = value;
    report(value ? null : message);
  }

  /** Once for each message: a server that is away fails twice a second. */
  function report(message: string | null): void {
    if (message === reported || isClosed) return;
    reported = message;
    if (message === null) onState('connected', server.name);
    else onState('disconnected', `${server.name}: ${message}`);
  }

  const write = async (name: string): Promise<void> => {
    const entry = entries.get(name);
    if (bucket !== null && entry !== undefined) await bucket.put(name, entry());
  };

  /** After each connection: a server that was restarted without its disk has no bucket, and an old watch would wait for ever. */
  async function openBucket(to: Connection): Promise<void> {
    clearTimeout(retry);
    try {
      const opened = await new Kvm(to).create(`ruvllm_${fleet}`, { ttl: ENTRY_LIFE_MS, storage: 'memory', history: 1 });
      watch?.stop();
      const reading = await opened.watch();
      watch = reading;
      bucket = opened;
      void read(reading);
      await attachment?.open(to);
      await writeAll();
      setConnected(true, '');
    } catch (error) {
      fail(error);
    }
  }

  async function writeAll(): Promise<void> {
    const startMs = performance.now();
    await Promise.all([...entries.keys()].map(write));
    await attachment?.beat(startMs);
  }

  function fail(error: unknown): void {
    if (isClosed) return;
    bucket = null;
    const reason = messageOf(error);
    const hint = /jetstream/i.test(reason) ? '; start nats-server with --jetstream' : '';
    setConnected(false, `${reason}${hint}`);
    clearTimeout(retry);
    retry = setTimeout(() => connection !== null && void openBucket(connection), RECONNECT_MS);
    retry.unref();
  }

  async function read(reading: NonNullable<typeof watch>): Promise<void> {
    try {
      for await (const entry of reading) {
        // Removals are not signed, and therefore say nothing.
        if (entry.operation === 'PUT') for (const onEntry of watchers) onEntry(entry.string());
      }
    } catch (error) {
      if (watch === reading) fail(error);
    }
  }

  async function followStatus(to: Connection): Promise<void> {
    for await (const { type } of to.status()) {
      if (type === 'disconnect') {
        bucket = null;
        setConnected(false, 'no connection');
      } else if (type === 'reconnect') await openBucket(to);
    }
  }

  async function start(): Promise<void> {
    try {
      connection = await connect({
        ...server.options,
        name: 'ruvllm',
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
      });
    } catch (error) {
      // Processes of a fleet start in any order. Not by `waitOnFirstConnect`, which would keep a process that stops alive.
      report(messageOf(error));
      if (isClosed) return;
      retry = setTimeout(() => void start(), RECONNECT_MS);
      retry.unref();
      return;
    }
    if (isClosed) return void connection.close();
    const to = connection;
    for (const { topic, onText } of subscriptions) listen(to, topic, onText);
    void followStatus(to);
    await openBucket(to);
  }

  function listen(to: Connection, topic: string, onText: (text: string) => void): void {
    to.subscribe(subjectOf(topic), {
      callback: (error, message) => {
        if (error === null) onText(message.string());
      },
    });
  }

  const heartbeat = setInterval(() => {
    if (bucket !== null) writeAll().catch(fail);
  }, HEARTBEAT_MS);
  heartbeat.unref();
  void start();

  return {
    get isConnected() {
      return isConnected;
    },
    keep(name, value): KeptEntry {
      entries.set(name, value);
      const refresh = (): Promise<void> => write(name).catch(fail);
      void refresh();
      return { refresh, stop: () => void entries.delete(name) };
    },
    watch(onEntry) {
      watchers.push(onEntry);
    },
    publish(topic, text) {
      if (isConnected) connection!.publish(subjectOf(topic), text);
    },
    subscribe(topic, onText) {
      subscriptions.push({ topic, onText });
      if (connection !== null) listen(connection, topic, onText);
    },
    async close() {
      isClosed = true;
      clearInterval(heartbeat);
      clearTimeout(retry);
      watch?.stop();
      attachment?.close();
      await connection?.close();
    },
  };
}

/** The options of a connection; the name has no secrets. */
function readUrl(text: string): { readonly name: string; readonly options: object } {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(nats|tls):$/.test(url.protocol) || url.hostname === '' || !/^\/?$/.test(url.pathname)) {
    // Not the text itself: it may have a password.
    throw new RuvLLMError('invalid_option', 'the address of NATS must look like nats://10.0.0.5:4222');
  }
  const name = `${url.hostname}:${url.port === '' ? 4222 : url.port}`;
  const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  const login = user === '' ? {} : pass === '' ? { token: user } : { user, pass };
  return {
    name: `NATS at ${name}`,
    options: { servers: name, ...login, ...(url.protocol === 'tls:' ? { tls: {} } : {}) },
  };
}

/** Rejects with the command that installs them if one is missing. */
export async function loadPackages(
  load: (name: string) => Promise<unknown>,
  names: readonly string[] = PACKAGES,
): Promise<unknown[]> {
  try {
    return await Promise.all(names.map(load));
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new RuvLLMError('unsupported', `a fleet over NATS requires packages: npm install ${names.join('@3 ')}@3`, {
      data: { packages: names },
    });
  }
}
