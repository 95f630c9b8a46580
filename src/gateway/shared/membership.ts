import type { Clock } from '../../core/clock.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import { ENTRY_LIFE_MS, type FleetBus, HEARTBEAT_MS } from './fleet-bus.ts';
import { createNoteReader, createNoteWriter, type NoteRefusal } from './signed-notes.ts';

const TOPIC = 'node';

export interface NodeAnnouncement {
  /** Tells gateways to send nothing more; resolves when they can know it. */
  leave(): Promise<void>;
}

/** An address is no name of an entry. */
export const entryName = (keys: FleetKeys, url: string): string => keys.sign('note', `name of ${url}`).slice(0, 32);

/** The addresses of the nodes whose announcements these are. */
export function readMembers(keys: FleetKeys, clock: Clock, texts: readonly string[]): string[] {
  const read = createNoteReader(keys, clock, TOPIC, () => {});
  return texts.flatMap((text) => {
    const note = read(text);
    return note === null || isGoodbye(note.value) ? [] : [note.sender];
  });
}

const isGoodbye = (value: unknown): boolean => (value as { isLeaving?: unknown }).isLeaving === true;

/** Tells the gateways of a fleet the address of this node. */
export function announceNode(bus: FleetBus, keys: FleetKeys, clock: Clock, url: string): NodeAnnouncement {
  const write = createNoteWriter(keys, clock, TOPIC, url);
  let isLeaving = false;
  const entry = bus.keep(entryName(keys, url), () => write({ isLeaving }));
  return {
    async leave() {
      isLeaving = true;
      await entry.refresh();
      entry.stop();
    },
  };
}

export interface FollowNodesOptions {
  readonly bus: FleetBus;
  readonly keys: FleetKeys;
  readonly clock: Clock;
  onJoin(url: string): void;
  onLeave(url: string): void;
  /** Whether the node answers: one that has lost the bus only stays. */
  isUp(url: string): boolean;
  onRefused(reason: NoteRefusal): void;
}

/** Keeps the list of nodes: those that announce themselves, until they say that they leave or are silent and do not answer. */
export function followNodes(options: FollowNodesOptions): { stop(): void } {
  const { bus, keys, clock, onJoin, onLeave, isUp, onRefused } = options;
  const read = createNoteReader(keys, clock, TOPIC, onRefused);
  const seenMs = new Map<string, number>();
  let connectedMs = 0;
  let cancel = (): void => {};
  let isStopped = false;

  bus.watch((text) => {
    const note = isStopped ? null : read(text);
    if (note === null) return;
    const url = note.sender;
    if (isGoodbye(note.value)) {
      if (seenMs.delete(url)) onLeave(url);
      return;
    }
    const isNew = !seenMs.has(url);
    seenMs.set(url, clock.now());
    if (isNew) onJoin(url);
  });

  function check(): void {
    const nowMs = clock.now();
    // Without the bus no node can be heard, so silence means nothing until a while after it has returned.
    if (!bus.isConnected) connectedMs = nowMs;
    for (const [url, lastMs] of seenMs) {
      if (nowMs - Math.max(lastMs, connectedMs) < ENTRY_LIFE_MS || isUp(url)) continue;
      seenMs.delete(url);
      onLeave(url);
    }
    if (!isStopped) cancel = clock.setTimer(HEARTBEAT_MS, check);
  }
  check();
  return {
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
