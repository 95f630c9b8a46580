import type { ArenaRange } from '../contract.ts';
import type { DeviceMemory } from './device-memory.ts';
import type { Program, Sequence } from './program.ts';

/** Operations of steps that come again with other contents of the same places. */
export interface Replays {
  /** The sequence of the next submission, before the operations recorded since. */
  readonly pending: Sequence | null;
  /** Operations belong to a sequence until `replay` returns. */
  readonly isRecording: boolean;
  replay(key: string, record: () => void): void;
  takePending(): Sequence | null;
  /** Forgets all sequences: their places are no longer right. */
  clear(): void;
}

/** A server has a few numbers of sequences at a time; each sequence of dispatches takes some 30 KB. */
const MOST_KEPT = 64;

export function createReplays(program: Program, memory: DeviceMemory): Replays {
  /** The most recently used last. */
  const kept = new Map<string, { readonly sequence: Sequence; readonly writes: readonly ArenaRange[] }>();
  let pending: Sequence | null = null;
  let isRecording = false;
  return {
    get pending() {
      return pending;
    },
    get isRecording() {
      return isRecording;
    },
    replay(key, record) {
      // Operations that wait already would come after the sequence, or be part of it.
      if (program.numDispatches > 0 || pending !== null) {
        record();
        return;
      }
      let entry = kept.get(key);
      if (entry === undefined) {
        isRecording = true;
        try {
          entry = { writes: memory.marksOf(record), sequence: program.take() };
        } finally {
          isRecording = false;
        }
      } else {
        kept.delete(key);
        entry.writes.forEach(memory.markWritten);
      }
      kept.set(key, entry);
      pending = entry.sequence;
      for (const [oldest, { sequence }] of kept) {
        if (kept.size <= MOST_KEPT) break;
        kept.delete(oldest);
        sequence.dispose();
      }
    },
    takePending() {
      const taken = pending;
      pending = null;
      return taken;
    },
    clear() {
      for (const { sequence } of kept.values()) sequence.dispose();
      kept.clear();
    },
  };
}
