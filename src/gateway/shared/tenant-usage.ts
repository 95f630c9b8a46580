import type { Clock } from '../../core/clock.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import type { FleetBus } from './fleet-bus.ts';
import { createNoteReader, createNoteWriter, type NoteRefusal } from './signed-notes.ts';

const TOPIC = 'usage';
/** Delay of a change. Requests that arrive at two gateways within it may exceed a limit together. */
const PUBLISH_MS = 50;
/** Time between notes without a change, so that a gateway that was killed stops counting. */
const IDLE_MS = 1000;
const LIFE_MS = 5 * IDLE_MS;
/** Of about 60 bytes each: a message of NATS has at most 1 MiB. */
const TENANTS_PER_NOTE = 4000;
/** The address of a tenant in a note: names of tenants stay in the gateways. */
const ID_CHARS = 24;

/** A tenant in a note: requests in progress at the sender, and those that it admitted since the note before. */
type Row = readonly [id: string, numRequests: number, numAdmitted: number];

/** What the other gateways of the fleet have admitted, for limits that count over all of them. */
export interface TenantUsage {
  /** Other gateways that are alive. */
  readonly numOthers: number;
  /** Requests of a tenant that are in progress at others. */
  numRequests(tenant: string): number;
  /** Requests of a tenant that others admitted since the last call. */
  takeAdmitted(tenant: string): number;
  /** Counts a request of this gateway until the returned function is called. */
  enter(tenant: string): () => void;
  stop(): void;
}

interface Other {
  seenMs: number;
  readonly rows: Map<string, { numRequests: number; numUntaken: number }>;
}

export interface TenantUsageOptions {
  readonly bus: FleetBus;
  readonly keys: FleetKeys;
  readonly clock: Clock;
  onRefused(reason: NoteRefusal): void;
}

export function createTenantUsage({ bus, keys, clock, onRefused }: TenantUsageOptions): TenantUsage {
  const self = crypto.randomUUID();
  const write = createNoteWriter(keys, clock, TOPIC, self);
  const read = createNoteReader(keys, clock, TOPIC, onRefused);
  const others = new Map<string, Other>();
  const own = new Map<string, { numRequests: number; numAdmitted: number }>();
  const ids = new Map<string, string>();
  let cancel = (): void => {};
  let isSoon = false;

  function idOf(tenant: string): string {
    const id = ids.get(tenant) ?? keys.sign('note', `tenant ${tenant}`).slice(0, ID_CHARS);
    if (ids.size > 100_000) ids.clear();
    ids.set(tenant, id);
    return id;
  }

  function schedule(delayMs: number): void {
    cancel();
    cancel = clock.setTimer(delayMs, publish);
  }

  function publish(): void {
    isSoon = false;
    const rows = [...own].map(([tenant, { numRequests, numAdmitted }]): Row => [
      idOf(tenant),
      numRequests,
      numAdmitted,
    ]);
    for (let i = 0; i === 0 || i < rows.length; i += TENANTS_PER_NOTE) {
      bus.publish(TOPIC, write(rows.slice(i, i + TENANTS_PER_NOTE)));
    }
    for (const [tenant, counts] of own) {
      counts.numAdmitted = 0;
      if (counts.numRequests === 0) own.delete(tenant);
    }
    schedule(IDLE_MS);
  }

  function publishSoon(): void {
    if (isSoon) return;
    isSoon = true;
    schedule(PUBLISH_MS);
  }

  bus.subscribe(TOPIC, (text) => {
    const received = read(text);
    if (received === null || received.sender === self || !isRows(received.value)) return;
    const other: Other = others.get(received.sender) ?? { seenMs: 0, rows: new Map() };
    other.seenMs = clock.now();
    for (const [id, numRequests, numAdmitted] of received.value) {
      const numUntaken = (other.rows.get(id)?.numUntaken ?? 0) + numAdmitted;
      if (numRequests + numUntaken === 0) other.rows.delete(id);
      else other.rows.set(id, { numRequests, numUntaken });
    }
    others.set(received.sender, other);
  });
  const alive = (): Other[] => {
    const nowMs = clock.now();
    for (const [sender, { seenMs }] of others) if (nowMs - seenMs > LIFE_MS) others.delete(sender);
    return [...others.values()];
  };
  schedule(0);

  return {
    get numOthers() {
      return alive().length;
    },
    numRequests: (tenant) => alive().reduce((sum, { rows }) => sum + (rows.get(idOf(tenant))?.numRequests ?? 0), 0),
    takeAdmitted(tenant) {
      let count = 0;
      for (const { rows } of alive()) {
        const row = rows.get(idOf(tenant));
        if (row === undefined) continue;
        count += row.numUntaken;
        row.numUntaken = 0;
      }
      return count;
    },
    enter(tenant) {
      const counts = own.get(tenant) ?? { numRequests: 0, numAdmitted: 0 };
      counts.numRequests++;
      counts.numAdmitted++;
      own.set(tenant, counts);
      publishSoon();
      return () => {
        counts.numRequests--;
        publishSoon();
      };
    },
    stop: () => cancel(),
  };
}

function isRows(value: unknown): value is readonly Row[] {
  return (
    Array.isArray(value) &&
    value.every(
      (row) =>
        Array.isArray(row) &&
        typeof row[0] === 'string' &&
        [row[1], row[2]].every((count) => Number.isSafeInteger(count) && (count as number) >= 0),
    )
  );
}
