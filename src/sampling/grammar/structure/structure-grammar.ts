import type { Fuel } from '../limits.ts';
import { unsupported } from '../limits.ts';
import { CONTROL_BEGIN, CONTROL_END } from '../types.ts';
import type { CompiledGrammar } from '../types.ts';
import { closeThread, closingBytes } from './closing.ts';
import { createMoves } from './moves.ts';
import { closeBounded, countByte, mayEnd } from './raw-bounds.ts';
import { type CompileSchema, readStructure } from './read-structure.ts';
import type { FreePlace, JsonThread, RawThread, StructureState, Thread } from './threads.ts';
import { DONE, keyOf } from './threads.ts';
import { utf8Step } from './utf8-steps.ts';

// Parallel readings; a structure that needs more fails at that point.
const MAX_THREADS = 4_000;

const isWhole = (thread: Thread): boolean =>
  thread.kind === 'done' || (thread.kind === 'free' && thread.place.after.some(isWhole));

/** A grammar of a skeleton of literals, JSON and free text. */
export function createStructureGrammar(source: unknown, compileSchema: CompileSchema, fuel: Fuel): CompiledGrammar {
  const root = readStructure(source, compileSchema, fuel);
  const { enter, leave, branchFrame } = createMoves(fuel);

  function stateOf(threads: readonly Thread[], isControl: boolean): StructureState | null {
    if (threads.length === 0) return null;
    if (threads.length > 1) return manyThreads(threads, isControl);
    const thread = threads[0]!;
    if (thread.kind === 'free') return freeState(thread.place, thread.at, isControl);
    if (thread.kind === 'raw' && !isControl) return rawState(thread);
    if (thread.kind !== 'json' || isControl) return { freeRoom: 0, threads, isControl };
    const { part, state, without } = thread;
    const avoid = part.without === null ? null : { search: part.without, at: without };
    const taken = avoid === null ? state.taken : null;
    const { freeRoom, endsAtRoom = false, fillers = null } = state;
    return { freeRoom, endsAtRoom, fillers, taken: taken ?? null, avoid, threads, isControl };
  }
  function manyThreads(threads: readonly Thread[], isControl: boolean): StructureState | null {
    const distinct = [...new Map(threads.map((thread) => [keyOf(thread, Infinity), thread])).values()];
    if (distinct.length > MAX_THREADS)
      throw unsupported('structure', null, `more than ${MAX_THREADS} readings of the text at once`);
    if (distinct.length === 1) return stateOf(distinct, isControl);
    let freeRoom = 0;
    for (const thread of distinct) {
      if (thread.kind !== 'json' || thread.part.without !== null || (thread.state.fillers ?? null) !== null) continue;
      freeRoom = Math.max(freeRoom, thread.state.freeRoom);
    }
    return { freeRoom: isControl ? 0 : freeRoom, threads: distinct, isControl };
  }
  function freeState(place: FreePlace, at: number, isControl: boolean): StructureState {
    return (place.states[2 * at + (isControl ? 1 : 0)] ??= {
      freeRoom: 0,
      threads: [{ kind: 'free', place, at }],
      isControl,
      isRecurring: true,
    });
  }
  function rawState({ place, utf8, until, without, count }: Omit<RawThread, 'kind'>): StructureState {
    // Each count would be a cached state.
    if (place.part.bounds !== null) {
      return { freeRoom: 0, threads: [{ kind: 'raw', place, utf8, until, without, count }], isControl: false };
    }
    const numPlaces = place.part.until.bytes.length;
    const index = ((place.part.without?.bytes.length ?? 1) * utf8 + without) * numPlaces + until;
    let state = place.states.get(index);
    if (state === undefined) {
      const threads: Thread[] = [{ kind: 'raw', place, utf8, until, without, count: 0 }];
      state = { freeRoom: 0, threads, isControl: false, isRecurring: true };
      place.states.set(index, state);
    }
    return state;
  }

  function stepJson(thread: JsonThread, byte: number, out: Thread[]): void {
    const { part, up } = thread;
    const without = part.without === null ? 0 : part.without.next(thread.without, byte);
    if (without === part.without?.bytes.length) return;
    const state = part.grammar.step(thread.state, byte);
    if (state === null) return;
    const isSame = state === thread.state && without === thread.without;
    out.push(isSame ? thread : { kind: 'json', part, state, without, up });
    if (part.grammar.isComplete(state)) leave(up, out);
  }
  function stepFree(place: FreePlace, at: number, byte: number, isControl: boolean, out: Thread[]): void {
    const { search, parts } = place.part;
    const next = search.next(at, byte);
    const found = search.found(next);
    if (found.length === 0) out.push(freeState(place, next, isControl).threads[0]!);
    for (const branch of found) enter(parts[branch]!, branchFrame(place), out);
    for (const thread of place.after) stepThread(thread, byte, isControl, out);
  }
  function stepThread(thread: Thread, byte: number, isControl: boolean, out: Thread[]): void {
    if (thread.kind === 'text') {
      const { part, at, up } = thread;
      if (part.bytes[at] !== byte) return;
      if (at + 1 === part.bytes.length) leave(up, out);
      else out.push({ kind: 'text', part, at: at + 1, up });
    } else if (thread.kind === 'free') {
      stepFree(thread.place, thread.at, byte, isControl, out);
    } else if (!isControl && thread.kind === 'json') {
      stepJson(thread, byte, out);
    } else if (!isControl && thread.kind === 'raw') {
      const { place } = thread;
      const next = stepRaw(thread, byte);
      if (next === 'end') leave(place.up, out);
      else if (next !== null) out.push(next.threads[0]!);
    }
  }
  function stepRaw(from: RawThread, byte: number) {
    const { place } = from;
    const { part } = place;
    const { bounds } = part;
    const utf8 = utf8Step(from.utf8, byte);
    if (utf8 < 0) return null;
    const until = part.until.next(from.until, byte);
    const count = bounds === null ? 0 : countByte(bounds, from.count, byte);
    // First: if `without` ends with `until`, the text before it does not contain it.
    if (until === part.until.bytes.length) return bounds === null || mayEnd(bounds, count, until) ? 'end' : null;
    const without = part.without === null ? 0 : part.without.next(from.without, byte);
    if (without === part.without?.bytes.length) return null;
    const next = { place, utf8, until, without, count };
    return bounds === null || closeBounded(part, bounds, next) !== null ? rawState(next) : null;
  }

  /** The readings in which a control token may start here. */
  function beginControl(threads: readonly Thread[], out: Thread[]): void {
    for (const thread of threads) {
      if (thread.kind === 'text' || thread.kind === 'free') out.push(thread);
      if (thread.kind === 'free') beginControl(thread.place.after, out);
      if (thread.kind !== 'raw' || thread.utf8 !== 0) continue;
      const { part, up } = thread.place;
      // The control token may spell the rest of `until` after any part of it.
      for (let at = thread.until; ; at = part.until.shorter[at]!) {
        if (part.bounds === null || mayEnd(part.bounds, thread.count, at)) {
          out.push({ kind: 'text', part: part.untilText, at, up });
        }
        if (at === 0) break;
      }
    }
  }
  function stepMark(state: StructureState, mark: number): StructureState | null {
    if (state.isControl !== (mark === CONTROL_END)) return null;
    if (mark === CONTROL_END) return stateOf(state.threads, false);
    const out: Thread[] = [];
    beginControl(state.threads, out);
    return stateOf(out, true);
  }

  const first: Thread[] = [];
  enter(root, null, first);
  const start = stateOf(first, false)!;
  return {
    start,
    takesControls: true,
    beginToken: () => fuel.refill(fuel.limits.maxStepsPerToken),
    step(given, byte) {
      const state = given as StructureState;
      if (byte === CONTROL_BEGIN || byte === CONTROL_END) return stepMark(state, byte);
      const { threads, isControl } = state;
      const thread = threads[0]!;
      if (threads.length === 1) {
        // Free and raw text: existing states, so that masks of whole vocabularies allocate nothing.
        if (thread.kind === 'free' && thread.place.after.length === 1 && thread.place.after[0] === DONE) {
          const { search } = thread.place.part;
          const at = search.next(thread.at, byte);
          if (search.found(at).length === 0) return freeState(thread.place, at, isControl);
        } else if (thread.kind === 'raw' && !isControl) {
          const next = stepRaw(thread, byte);
          if (next !== 'end') return next;
        }
      }
      const out: Thread[] = [];
      for (const one of threads) stepThread(one, byte, isControl, out);
      return out.length === 1 && out[0] === thread && threads.length === 1 ? state : stateOf(out, isControl);
    },
    contentsOf(state) {
      const { threads, isControl } = state as StructureState;
      const thread = threads[0]!;
      if (threads.length > 1 || isControl || thread.kind !== 'json' || thread.part.without !== null) return null;
      return thread.part.grammar.contentsOf?.(thread.state) ?? null;
    },
    isComplete: (state) => !(state as StructureState).isControl && (state as StructureState).threads.some(isWhole),
    keyOf(state, maxBytes = Infinity) {
      const { threads, isControl } = state as StructureState;
      return `${isControl ? '#' : ''}${threads.map((thread) => keyOf(thread, maxBytes)).join('\n')}`;
    },
    closingBytes: (state) => Math.min(...(state as StructureState).threads.map(closingBytes)),
    closing(state, maxBytes) {
      const { threads } = state as StructureState;
      const sizes = threads.map(closingBytes);
      const order = threads.map((_, i) => i).sort((a, b) => sizes[a]! - sizes[b]!);
      for (const i of order) {
        const bytes = sizes[i]! > maxBytes ? null : closeThread(threads[i]!, maxBytes);
        if (bytes !== null) return bytes;
      }
      return null;
    },
  };
}
