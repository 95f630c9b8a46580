import { type Clock, within } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import { readMembers } from '../shared/membership.ts';
import { createReportReader, type NodeReport } from './node-report.ts';
import {
  EMPTY_RECORD,
  MAX_MEMBERS,
  MAX_PUBLISHED,
  type Proposal,
  type PublishedAdapter,
  type Release,
  type ReleaseRecord,
  readRecord,
  writeRecord,
} from './release-record.ts';
import type { ReleaseStore, StoredRecord } from './release-store.ts';

export interface PublishOptions {
  readonly store: ReleaseStore;
  readonly keys: FleetKeys;
  readonly clock: Clock;
  /** Time that nodes have to download, check and load. */
  readonly limitMs: number;
  /** Aborts the publication. */
  readonly signal: AbortSignal;
  /** The adapters of the new release; called with the record it will replace. */
  change(record: ReleaseRecord): readonly PublishedAdapter[];
  onReport?(url: string, report: NodeReport): void;
}

export interface PublishOutcome {
  readonly release: Release;
  readonly nodes: readonly { readonly url: string; readonly isActive: boolean }[];
  /** Time until all nodes had prepared it, and from the commit until all had it active; null: not all within the limit. */
  readonly preparedMs: number;
  readonly activeMs: number | null;
}

/** Nodes switch within milliseconds: one that is later has lost the store, and does not serve published adapters. */
const ACTIVE_MS = 2000;
/** A publisher that ended leaves its proposal; nodes remove it after its limit, and another publisher after this one. */
export const ABANDONED_MS = 60_000;

/** Reads the record of releases; a record that the fleet has not signed is an error. */
export async function readReleases(
  store: ReleaseStore,
  keys: FleetKeys,
): Promise<{ record: ReleaseRecord; stored: StoredRecord | null }> {
  const stored = await store.read();
  if (stored === null) return { record: EMPTY_RECORD, stored };
  const record = readRecord(keys, stored.text);
  if (record === null)
    throw new RuvLLMError('untrusted', 'the record of releases does not have the signature of this fleet');
  return { record, stored };
}

/** Makes a release active on all nodes of the fleet, or on none: then it throws with the nodes and their reasons. */
export async function publishRelease(options: PublishOptions): Promise<PublishOutcome> {
  const { store, keys, clock, limitMs, signal } = options;
  const { record, stored } = await readReleases(store, keys);
  refusePending(record, stored);
  const members = readMembers(keys, clock, await store.members());
  if (members.length === 0)
    throw new RuvLLMError('not_found', 'no node has announced itself to this fleet within 10 s');
  if (members.length > MAX_MEMBERS) throw tooMany('nodes', members.length, MAX_MEMBERS);
  const adapters = options.change(record);
  if (adapters.length > MAX_PUBLISHED) throw tooMany('published adapters', adapters.length, MAX_PUBLISHED);
  const number = Math.max(record.committed.number + 1, clock.wallClock());
  const proposal: Proposal = { id: crypto.randomUUID(), number, adapters, members, limitMs };
  const reports = createReports(options, proposal);
  const watch = await store.watchReports(reports.read);
  try {
    const startMs = clock.now();
    const revision = await store.write(writeRecord(keys, { ...record, proposal }), stored?.revision ?? 0);
    if (revision === null) throw lostRace();
    const problem = await reports.untilPrepared(signal).catch((error: unknown) => (error as Error).message);
    const preparedMs = clock.now() - startMs;
    const release: Release = { number, adapters: reports.pin(adapters) };
    const refusal = problem ?? reports.findMismatch();
    if (refusal !== null) {
      // Null: a node has aborted it before us.
      await store.write(writeRecord(keys, { ...record, proposal: null }), revision);
      throw new RuvLLMError('conflict', `active on no node: ${refusal}`, { data: { nodes: members, reason: refusal } });
    }
    const commitMs = clock.now();
    const next: ReleaseRecord = { committed: release, previous: record.committed, proposal: null };
    if ((await commit(store, writeRecord(keys, next), revision)) === null) {
      throw new RuvLLMError('conflict', 'active on no node: the publication was aborted, because it took too long', { isRetryable: true }); // prettier-ignore
    }
    const isActive = (await within(clock, ACTIVE_MS, reports.untilActive())) !== null;
    return {
      release,
      nodes: members.map((url) => ({ url, isActive: reports.isActive(url) })),
      preparedMs,
      activeMs: isActive ? reports.lastActiveMs() - commitMs : null,
    };
  } finally {
    watch.stop();
  }
}

async function commit(store: ReleaseStore, text: string, revision: number): Promise<number | null> {
  try {
    return await store.write(text, revision);
  } catch (cause) {
    const message =
      'the connection was lost during the commit, so the release is active on all nodes or on none; ruvllm fleet status shows which';
    throw new RuvLLMError('remote_failed', message, { cause });
  }
}

function refusePending({ proposal }: ReleaseRecord, stored: StoredRecord | null): void {
  if (proposal === null || stored!.ageMs > proposal.limitMs + ABANDONED_MS) return;
  const changed = proposal.adapters.map(({ model, name }) => `${model}:${name}`).join(', ');
  const message = `another publication is in progress (${changed || 'no adapters'}); it ends within ${Math.ceil(proposal.limitMs / 1000)} s`;
  throw new RuvLLMError('conflict', message, { data: { proposal: proposal.id }, isRetryable: true });
}

const lostRace = (): RuvLLMError =>
  new RuvLLMError('conflict', 'another publication was faster; check ruvllm fleet status, then publish again', {
    isRetryable: true,
  });

const tooMany = (things: string, count: number, limit: number): RuvLLMError =>
  new RuvLLMError('limit_exceeded', `${count} ${things}; the limit is ${limit}`, { data: { count, limit } });

function createReports({ keys, clock, limitMs, onReport }: PublishOptions, { id, members, adapters }: Proposal) {
  const latest = new Map<string, NodeReport>();
  const activeMs = new Map<string, number>();
  const parse = createReportReader(keys, clock, () => {});
  let wake = (): void => {};
  const missing = (): string[] => members.filter((url) => !latest.has(url));

  async function until(isDone: () => boolean): Promise<void> {
    while (!isDone()) await new Promise<void>((resolve) => (wake = resolve));
  }

  const refusals = (): string[] =>
    members.flatMap((url) => {
      const report = latest.get(url);
      return report?.state === 'refused' ? [`${url}: ${report.reason}`] : [];
    });

  return {
    read(text: string): void {
      const parsed = parse(text);
      if (parsed === null || parsed.report.proposal !== id) return;
      latest.set(parsed.url, parsed.report);
      if (parsed.report.state === 'active') activeMs.set(parsed.url, clock.now());
      onReport?.(parsed.url, parsed.report);
      wake();
    },
    /** Why it must not be committed; null: all nodes have prepared it. */
    async untilPrepared(signal: AbortSignal): Promise<string | null> {
      const aborted = new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('the publication was interrupted')), { once: true }),
      );
      signal.throwIfAborted();
      const isDecided = (): boolean => refusals().length > 0 || missing().length === 0;
      await within(clock, limitMs, Promise.race([until(isDecided), aborted]));
      if (refusals().length > 0) return refusals().join('; ');
      const silent = missing();
      return silent.length === 0 ? null : `no report within ${limitMs / 1000} s of ${silent.join(', ')}`;
    },
    /** Nodes with another file of the model would give other answers with the adapter. */
    findMismatch(): string | null {
      for (const model of new Set(adapters.map((adapter) => adapter.model))) {
        const byHash = new Map<string, string[]>();
        for (const url of members) {
          const hash = latest.get(url)?.modelHashes[model];
          if (hash !== undefined) byHash.set(hash, [...(byHash.get(hash) ?? []), url]);
        }
        if (byHash.size === 0) return `no node serves the model ${model}`;
        if (byHash.size === 1) continue;
        const [[hash], ...others] = [...byHash].sort((a, b) => b[1].length - a[1].length) as [[string, string[]], ...[string, string[]][]]; // prettier-ignore
        return others
          .flatMap(([other, urls]) =>
            urls.map(
              (url) =>
                `${url}: its model ${model} is another file, ${other.slice(0, 12)} instead of ${hash.slice(0, 12)}`,
            ),
          ) // prettier-ignore
          .join('; ');
      }
      return null;
    },
    /** The adapters with the model files of the nodes: a node with another file must not load them later. */
    pin: (all: readonly PublishedAdapter[]): PublishedAdapter[] =>
      all.map((adapter) => {
        const hashes = members.flatMap((url) => latest.get(url)?.modelHashes[adapter.model] ?? []);
        return { ...adapter, modelHash: hashes[0] ?? adapter.modelHash };
      }),
    untilActive: () => until(() => members.every((url) => activeMs.has(url))),
    isActive: (url: string): boolean => activeMs.has(url),
    lastActiveMs: (): number => Math.max(...activeMs.values()),
  };
}
