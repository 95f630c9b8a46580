import { assert } from '../core/errors.ts';
import type { KvPage } from './types.ts';

/** The memory of recurrent layers' states, such as `LoadedModel.states`. */
export interface StateMemory {
  readonly numStates: number;
  readonly stateBytes: number;
  /** A view, valid only while no step runs. */
  bytesOf(index: number): Uint8Array;
}

/** A state saved with a page: the state after its first `numTokens` tokens. */
export interface Checkpoint {
  readonly index: number;
  readonly numTokens: number;
}

/**
 * The states of running sequences, and checkpoints: copies that let a later prompt continue after a cached page, because keys and
 * values alone do not determine what recurrent layers remember. A checkpoint lives as long as its page, or until a running sequence
 * or a newer checkpoint needs its memory; the least recently used goes first.
 */
export interface StateShelf {
  readonly numStates: number;
  readonly stateBytes: number;
  readonly numCheckpoints: number;
  /** A state for a running sequence; drops a checkpoint if none is free. There is one for every running sequence. */
  take(): number;
  /** A state for a copy, from the free ones or the oldest checkpoint; null: running sequences use all. */
  tryTake(): number | null;
  free(index: number): void;
  bytesOf(index: number): Uint8Array;
  copy(from: number, to: number): void;
  /** Saves a state with a page, which owns it from now on; frees it if the page has a checkpoint with as many tokens. */
  attach(page: KvPage, checkpoint: Checkpoint): void;
  find(page: KvPage): Checkpoint | null;
  /** Marks a checkpoint as used. */
  touch(page: KvPage): void;
  /** The page is gone. */
  drop(page: KvPage): void;
  /** Throws `internal` unless each state is free, used by one of `running` or a checkpoint of a page in use. */
  checkIntegrity(running: readonly number[]): void;
}

export function createStateShelf(memory: StateMemory): StateShelf {
  const { numStates, stateBytes } = memory;
  const free: number[] = Array.from({ length: numStates }, (_, i) => numStates - 1 - i);
  // A Map iterates in insertion order: least recently used first.
  const checkpoints = new Map<KvPage, Checkpoint>();

  function drop(page: KvPage): void {
    const checkpoint = checkpoints.get(page);
    if (checkpoint === undefined) return;
    checkpoints.delete(page);
    free.push(checkpoint.index);
  }

  function tryTake(): number | null {
    if (free.length === 0) for (const oldest of checkpoints.keys()) if (free.length === 0) drop(oldest);
    return free.pop() ?? null;
  }

  return {
    numStates,
    stateBytes,
    get numCheckpoints() {
      return checkpoints.size;
    },
    take() {
      const index = tryTake();
      assert(index !== null, `all ${numStates} states are in use`);
      return index;
    },
    tryTake,
    free: (index) => void free.push(index),
    bytesOf: (index) => memory.bytesOf(index),
    copy: (from, to) => memory.bytesOf(to).set(memory.bytesOf(from)),
    attach(page, checkpoint) {
      if (checkpoints.get(page)?.numTokens === checkpoint.numTokens) {
        free.push(checkpoint.index);
        return;
      }
      drop(page);
      checkpoints.set(page, checkpoint);
    },
    find: (page) => checkpoints.get(page) ?? null,
    touch(page) {
      const checkpoint = checkpoints.get(page);
      if (checkpoint === undefined) return;
      checkpoints.delete(page);
      checkpoints.set(page, checkpoint);
    },
    drop,
    checkIntegrity(running) {
      const saved = [...checkpoints.values()].map(({ index }) => index);
      const all = [...free, ...running, ...saved];
      assert(new Set(all).size === all.length && all.length === numStates, `${all.length} of ${numStates} states`);
      for (const page of checkpoints.keys()) assert(page.numRefs > 0, 'a checkpoint of a page that is free');
    },
  };
}
