import type { Clock } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueue } from '../../core/serial-queues.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import type { NodeReleases } from '../../server/fleet/fleet-node.ts';
import type { Logger } from '../../server/logger.ts';
import { entryName } from '../shared/membership.ts';
import { createReportWriter, type NodeReport } from './node-report.ts';
import {
  compareReleases,
  EMPTY_RECORD,
  NO_RELEASE,
  type PublishedAdapter,
  type Release,
  readRecord,
  type ReleaseRecord,
  writeRecord,
} from './release-record.ts';
import type { ReleaseStore, StoredRecord } from './release-store.ts';

/** The published adapters of this node's models. */
export interface NodeAdapters {
  /** Downloads, checks and loads adapters without activating them; rejects with the reason why it cannot. */
  prepare(adapters: readonly PublishedAdapter[]): Promise<Readonly<Record<string, string>>>;
  /** Makes exactly these active: at once if they are prepared. */
  activate(adapters: readonly PublishedAdapter[]): Promise<void>;
  /** Frees prepared adapters that are not active. */
  discard(): void;
  /** Stores the files of these that the store does not have. */
  upload(adapters: readonly PublishedAdapter[]): Promise<void>;
}

/** The last committed record on this machine. A store that loses its data, or is given old data, must not change adapters back. */
export interface KeptRecord {
  /** Null: none. */
  read(): string | null;
  write(text: string): void;
}

export interface FollowReleasesOptions {
  readonly store: ReleaseStore;
  readonly keys: FleetKeys;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adapters: NodeAdapters;
  readonly kept: KeptRecord;
}

export interface FollowedReleases extends NodeReleases {
  /** Throws where this node cannot tell that its release is the latest. */
  check(): void;
  /** Begins to take part, under this address. */
  join(url: string): void;
  /** Reads the record now; `startMs`: a time before the heartbeat of this node was written. */
  beat(startMs: number): Promise<void>;
  /** Resolves when the committed release is active and this node may serve it, or the store cannot be reached. */
  readonly started: Promise<void>;
  /** The store cannot be reached. */
  giveUpStart(): void;
  stop(): void;
}

/**
 * How long a node may serve without having read the record. Its announcement lasts 10 s from the same heartbeat: publishers wait for it
 * longer than it serves an old release.
 */
const LEASE_MS = 6000;
/** The same during a publication: a node that misses the commit must stop before the fleet's 2 s are over. */
const PENDING_LEASE_MS = 1500;
const PENDING_BEAT_MS = 400;
/** Nodes remove a proposal after its limit and this time: the publisher, which decides first, is gone. */
const ABORT_AFTER_MS = 5000;
const UNSIGNED = 'the record of releases does not have the signature of this fleet';

/** Keeps a node at the release that the fleet has committed. */
export function followReleases({
  store,
  keys,
  clock,
  logger,
  adapters,
  kept,
}: FollowReleasesOptions): FollowedReleases {
  const queue = createSerialQueue();
  let record: ReleaseRecord | null = null;
  let active: Release = NO_RELEASE;
  let confirmedMs = -Infinity;
  let problem: string | null = null;
  let pending: { readonly id: string; readonly cancel: () => void } | null = null;
  let prepared: string | null = null;
  let report = async (_: NodeReport): Promise<void> => {};
  let isStarting = true;
  let isStopped = false;
  let resolveStarted = (): void => {};
  const started = new Promise<void>((resolve) => (resolveStarted = resolve));
  let floor = readRecord(keys, kept.read() ?? '');

  /** Null: no release was ever seen here. */
  const latestKnown = (): ReleaseRecord | null =>
    record !== null && (floor === null || compareReleases(record.committed, floor.committed) > 0) ? record : floor;
  const isLatest = (): boolean => record !== null && record.committed === active;
  const isConfirmed = (): boolean =>
    clock.now() - confirmedMs <= (pending === null ? LEASE_MS : PENDING_LEASE_MS) && isLatest();

  function endStart(): void {
    isStarting = false;
    resolveStarted();
  }

  function note(reason: string | null): void {
    if (reason !== null && reason !== problem) logger.log('error', 'release', { reason });
    problem = reason;
  }

  /** False: the record is not that of the fleet, or an old one. */
  function accept(stored: StoredRecord | null): boolean {
    const next = stored === null ? null : readRecord(keys, stored.text);
    if (stored !== null && next === null) {
      note(UNSIGNED);
      return false;
    }
    if (problem === UNSIGNED) note(null);
    const committed = next?.committed ?? NO_RELEASE;
    const latest = latestKnown();
    if (latest !== null && compareReleases(committed, latest.committed) < 0) {
      const reason = `the store has release ${committed.number} instead of ${latest.committed.number}; restored`;
      logger.log('warn', 'release', { reason });
      restore(latest, stored?.revision ?? 0);
      return false;
    }
    // The same release stays the same object: `isLatest` is asked with each request.
    const known = [record?.committed, active].find((one) => one !== undefined && compareReleases(one, committed) === 0);
    record = { ...(next ?? EMPTY_RECORD), committed: known ?? committed };
    const { proposal } = record;
    if (pending !== null && pending.id !== proposal?.id) endPending();
    if (proposal !== null && pending === null) startPending(proposal.id, proposal.limitMs, stored!.revision);
    void queue(advance);
    return true;
  }

  /** A store that was restarted without its disk gets the record back from the first node that notices. */
  function restore({ committed, previous }: ReleaseRecord, revision: number): void {
    adapters
      .upload([...committed.adapters, ...(previous?.adapters ?? [])])
      .then(() => store.write(writeRecord(keys, { committed, previous, proposal: null }), revision))
      .catch((error: unknown) => {
        logger.log('warn', 'release', { reason: `the record cannot be restored: ${(error as Error).message}` });
      });
  }

  function startPending(id: string, limitMs: number, revision: number): void {
    const cancelBeat = repeat(PENDING_BEAT_MS, () => void beat(clock.now()).catch(() => {}));
    const cancelAbort = clock.setTimer(limitMs + ABORT_AFTER_MS, () => {
      if (record !== null) store.write(writeRecord(keys, { ...record, proposal: null }), revision).catch(() => {});
    });
    pending = { id, cancel: () => (cancelBeat(), cancelAbort()) };
  }

  function endPending(): void {
    pending?.cancel();
    pending = null;
  }

  function repeat(everyMs: number, work: () => void): () => void {
    let cancel = clock.setTimer(everyMs, function ring() {
      work();
      cancel = clock.setTimer(everyMs, ring);
    });
    return () => cancel();
  }

  /** Brings this node to the latest record; one at a time. */
  async function advance(): Promise<void> {
    if (isStopped || record === null) return;
    const { committed, proposal } = record;
    if (committed !== active) await commit(committed, record);
    else if (proposal === null && prepared !== null) {
      prepared = null;
      adapters.discard();
    }
    if (isConfirmed()) endStart();
    if (proposal !== null && proposal.id !== prepared && record.proposal?.id === proposal.id) {
      prepared = proposal.id;
      await prepare(proposal.id, proposal.adapters);
    }
  }

  async function commit(release: Release, from: ReleaseRecord): Promise<void> {
    try {
      await adapters.activate(release.adapters);
    } catch (error) {
      note(`release ${release.number} cannot be activated: ${(error as Error).message}`);
      endStart(); // its models without adapters are of use
      return;
    }
    active = release;
    floor = from;
    note(null);
    try {
      kept.write(writeRecord(keys, { ...from, proposal: null }));
    } catch (error) {
      note(`the record of releases cannot be written here: ${(error as Error).message}`);
    }
    logger.log('info', 'release', { number: release.number, adapters: release.adapters.length });
    if (prepared === null) return;
    const id = prepared;
    prepared = null;
    await send({ proposal: id, state: 'active', reason: '', modelHashes: {} });
  }

  async function prepare(id: string, wanted: readonly PublishedAdapter[]): Promise<void> {
    try {
      const modelHashes = await adapters.prepare(wanted);
      await send({ proposal: id, state: 'prepared', reason: '', modelHashes });
    } catch (error) {
      await send({ proposal: id, state: 'refused', reason: (error as Error).message.slice(0, 500), modelHashes: {} });
    }
  }

  /** A report that is lost counts as missing: the publisher aborts. */
  const send = (value: NodeReport): Promise<void> => report(value).catch(() => {});

  async function beat(startMs: number): Promise<void> {
    if (isStopped) return;
    if (accept(await store.read())) confirmedMs = Math.max(confirmedMs, startMs);
  }

  return {
    get number() {
      return isConfirmed() ? active.number : 0;
    },
    get isStarting() {
      return isStarting;
    },
    get problem() {
      return problem;
    },
    isPublished: (model, name) => active.adapters.some((one) => one.model === model && one.name === name),
    check() {
      if (isConfirmed()) return;
      const reason = isLatest()
        ? 'this node cannot tell whether its adapters are the latest, because NATS is away'
        : 'this node has not loaded the latest adapters yet';
      throw new RuvLLMError('overloaded', `${reason}; try again`, { isRetryable: true });
    },
    join(url) {
      const write = createReportWriter(keys, clock, url);
      report = (value) => store.report(entryName(keys, url), write(value));
      store.watch(accept);
    },
    beat,
    started,
    giveUpStart: endStart,
    stop() {
      isStopped = true;
      endPending();
    },
  };
}
