import { internDfa } from '../automata/intern-dfa.ts';
import { unsupported } from '../limits.ts';
import type { Fuel, GrammarLimits } from '../limits.ts';
import { isNumberText } from '../numbers/number-text.ts';
import type { TextAlternative } from '../schema/alternatives.ts';
import type { Formula, Formulas } from '../schema/formula-types.ts';
import type { Solver } from '../schema/unique-items.ts';
import type { StringContent } from '../string-content.ts';
import type { NumberContent } from '../number-content.ts';
import type { CompiledGrammar, GrammarState, StateContents } from '../types.ts';
import { createLocalClosing } from './closing.ts';
import { GAP, missingSpace, TAB } from './layout.ts';
import { createJsonProgress, type JsonProgress } from './json-progress.ts';
import { createJsonStep } from './json-steps.ts';
import type { Frame, TextThread, Thread } from './threads.ts';
import { characterKey, keyOf } from './threads.ts';

// Parallel alternatives; a schema that needs more fails at that point.
const MAX_THREADS = 4_000;
// The longest completion that is written to measure it.
const MAX_WATCHED_BYTES = 65_536;

interface JsonState extends GrammarState {
  readonly threads: readonly Thread[];
}

function freeRoomOf(thread: Thread, progress: JsonProgress): number {
  if (thread.kind === 'text') {
    const { text, state, length, character } = thread;
    if (character.mode !== 0 || text.dfa.free[state] !== 1) return 0;
    // Hexadecimal digits have two spellings, and fillers only one.
    return fillersOf(thread).some((filler) => filler.includes('\\u')) ? 0 : text.max - length;
  }
  if (thread.kind !== 'key' || thread.character.mode !== 0) return 0;
  return thread.object.object.names.free[thread.state] === 1 || progress.isAnyName(thread.object) ? Infinity : 0;
}

const encoder = new TextEncoder();
const NONE: readonly Uint8Array[] = [];
const NO_FILLERS: readonly string[] = [];

/** The remaining text of each earlier item that a string of limited length may still repeat. */
function fillersOf({ text, watch, read }: TextThread): readonly string[] {
  if (text.max === Infinity || watch === null || watch.excluded.length === 0) return NO_FILLERS;
  const begin = JSON.stringify(read).slice(0, -1);
  return watch.excluded
    .filter((canonical) => canonical.startsWith(begin))
    .map((canonical) => canonical.slice(begin.length, -1));
}

/** The string endings that are forbidden; null if the content matters in other ways too. */
function takenTails(thread: Thread): readonly Uint8Array[] | null {
  if (thread.kind === 'text') {
    const { text, length, watch } = thread;
    return length >= text.min && watch === null ? NONE : null;
  }
  if (thread.kind !== 'key' || thread.object.read !== null || thread.object.object.names.free[thread.state] !== 1) {
    return null;
  }
  const { object, read } = thread;
  if (object.others.length === 0) return NONE;
  const names = object.others.map((other) => other.name).filter((name) => name.startsWith(read));
  return names.map((name) => encoder.encode(JSON.stringify(name.slice(read.length)).slice(1, -1)));
}

/** Whether texts never run out: from every state there is none or an unlimited number. */
const isEndless = ({ counts }: TextAlternative): boolean => counts.every((count) => count === 0 || count === Infinity);

/** The content of a string value; null if its length or the text so far matters. */
function textContent({ text, state, character, watch }: TextThread): StringContent | null {
  if (text.min > 0 || text.max < Infinity) return null;
  if (watch !== null && watch.excluded.length > 0 && !isEndless(text)) return null;
  const dfa = internDfa(text.dfa);
  return { dfa, state, character, isAlive: null, owner: dfa, key: `${dfa.id},${state},${characterKey(character)}` };
}

/** Whether the thread is, or is inside, an array of unique items. */
function isWatched(thread: Thread): boolean {
  if (thread.kind === 'key') return thread.object.read !== null;
  if (thread.kind === 'colon') return thread.next[0]!.watch !== null;
  if (thread.kind === 'array' || thread.kind === 'object') return thread.read !== null;
  return thread.kind !== 'done' && thread.watch !== null;
}

/** The level around a closed thread if it does not depend on the value; otherwise undefined. */
function frameAfter(thread: Thread): Frame | null | undefined {
  if (!('up' in thread) || thread.watch !== null) return undefined;
  return thread.kind === 'object' && thread.phase === 'after-comma' ? undefined : thread.up;
}

const isInString = ({ kind }: Thread): boolean => kind === 'text' || kind === 'key';

const takesSpace = (thread: Thread): boolean =>
  thread.kind === 'start' && (thread.gap === GAP.space || thread.gap === GAP.spaceOrLine);

function isWholeThread(thread: Thread, fuel: Fuel): boolean {
  return (
    thread.kind === 'done' ||
    (thread.kind === 'number' && thread.up === null && isNumberText(thread.set, thread.written, fuel))
  );
}

/** A grammar of the JSON values that satisfy the goal. */
export function createJsonGrammar(
  formulas: Formulas,
  solver: Solver,
  goal: Formula,
  limits: GrammarLimits,
  escapes: 'needed' | 'any' = 'needed',
): CompiledGrammar {
  const progress = createJsonProgress(formulas, solver);
  const { step: stepThread, endNumber } = createJsonStep(progress, escapes === 'any');
  const local = createLocalClosing(progress, solver);
  const isWhole = (thread: Thread): boolean => isWholeThread(thread, formulas.fuel);
  const frameBytes = new WeakMap<Frame, number>();

  const stateOf = (threads: readonly Thread[]): JsonState => {
    let freeRoom = 0;
    let endsAtRoom = true;
    let fillers: Uint8Array[] | null = null;
    for (const thread of threads) {
      const room = freeRoomOf(thread, progress);
      freeRoom = Math.max(freeRoom, room);
      endsAtRoom &&= room > 0;
      if (room === 0 || thread.kind !== 'text') continue;
      for (const filler of fillersOf(thread)) (fillers ??= []).push(encoder.encode(filler));
    }
    const taken = freeRoom > 0 && threads.length === 1 ? takenTails(threads[0]!) : null;
    return { freeRoom, endsAtRoom, fillers, taken, threads };
  };

  const numbersOf = (thread: Thread): readonly NumberContent[] => {
    if (thread.kind === 'number') return [thread];
    if (thread.kind === 'array' && thread.numItems === 0 && !thread.isClosing)
      return progress.valuesOfItem(thread).flatMap(numbersOf);
    if (thread.kind !== 'start' || missingSpace({ gap: thread.gap, unit: TAB }) !== '') return [];
    return solver
      .alternatives(thread.goal)
      .numbers.map(({ set }) => ({ set: progress.watchedNumbers(set, thread.watch), written: '' }));
  };
  const contentsOf = (threads: readonly Thread[]): StateContents | null => {
    const { kind } = threads[0]!;
    const { fuel } = formulas;
    if (kind === 'start' || kind === 'number' || kind === 'array') {
      const numbers = threads.flatMap(numbersOf);
      return { strings: null, numbers, spacedNumbers: threads.every(takesSpace) ? numbers : [], fuel };
    }
    if ((kind !== 'text' && kind !== 'key') || escapes === 'any') return null;
    const strings: StringContent[] = [];
    for (const thread of threads) {
      if (freeRoomOf(thread, progress) > 0) continue;
      const content =
        thread.kind === 'text' ? textContent(thread) : thread.kind === 'key' ? progress.keyContent(thread) : null;
      if (content === null) return null;
      strings.push(content);
    }
    return { strings, numbers: [], spacedNumbers: [], fuel };
  };

  /** Bytes to complete a level and all around it. */
  const bytesAround = (frame: Frame | null): number => {
    if (frame === null) return 0;
    let bytes = frameBytes.get(frame);
    if (bytes === undefined) {
      const own = frame.kind === 'object' ? progress.planObject(frame)?.bytes : progress.planArray(frame)?.bytes;
      frameBytes.set(frame, (bytes = (own ?? Infinity) + bytesAround(frame.up)));
    }
    return bytes;
  };
  const readBack = (from: readonly Thread[], bytes: Uint8Array): Thread[] => {
    let threads = [...from];
    for (const byte of bytes) {
      const next: Thread[] = [];
      for (const one of threads) stepThread(one, byte, next);
      threads = next;
    }
    return threads;
  };
  const closingOf = (thread: Thread, maxBytes: number): Uint8Array | null => {
    const bytes: number[] = [];
    let threads: Thread[] = [thread];
    while (threads.length > 0 && !threads.some(isWhole)) {
      const first = threads[0]!;
      let part = local.close(first, maxBytes);
      if (part === null) return null;
      const around = frameAfter(first);
      if (around !== undefined) {
        bytes.push(...part);
        if (bytes.length > maxBytes) return null;
        if (around === null) return Uint8Array.from(bytes);
        threads = [around];
        continue;
      }
      // Parsed back, so that the outer levels see exactly the written value.
      let after = readBack(threads, part);
      if (after.length === 0 && (first.kind === 'object' || first.kind === 'array')) {
        // Closing here would repeat an earlier item of an array of unique items.
        part = local.grow(first, maxBytes);
        if (part === null) return null;
        after = readBack(threads, part);
      }
      bytes.push(...part);
      if (bytes.length > maxBytes) return null;
      threads = after;
      // A number ends with the character after it.
      const ended = threads[0]?.kind === 'number' ? endNumber(threads[0]) : null;
      if (ended !== null) threads = [ended];
    }
    return threads.length === 0 ? null : Uint8Array.from(bytes);
  };

  const bytesOf = (thread: Thread): number => {
    if (isWhole(thread)) return 0;
    // Values must differ from earlier ones: their length is known only when written.
    if (isWatched(thread)) return closingOf(thread, MAX_WATCHED_BYTES)?.length ?? Infinity;
    const { bytes, around } = local.measure(thread);
    return bytes + bytesAround(around);
  };

  return {
    start: stateOf([{ kind: 'start', goal, gap: GAP.none, depth: 0, up: null, watch: null }]),
    beginToken: () => formulas.fuel.refill(limits.maxStepsPerToken),
    get sizeBytes() {
      return formulas.fuel.heldBytes;
    },
    step(state, byte) {
      const { threads } = state as JsonState;
      const next: Thread[] = [];
      for (const thread of threads) stepThread(thread, byte, next);
      if (next.length === 0) return null;
      if (next.length === 1) return next[0] === threads[0] && threads.length === 1 ? state : stateOf(next);
      if (next.length === threads.length) {
        if (next.every((thread, i) => thread === threads[i])) return state;
        // Inside a string, different threads stay different for most characters: equal ones are merged after it.
        if (next.every(isInString)) return stateOf(next);
      }
      const distinct = [...new Map(next.map((thread) => [keyOf(thread), thread])).values()];
      if (distinct.length > MAX_THREADS)
        throw unsupported('anyOf/oneOf/not', null, `more than ${MAX_THREADS} alternatives at once`);
      return stateOf(distinct);
    },
    isComplete: (state) => (state as JsonState).threads.some(isWhole),
    contentsOf: (state) => contentsOf((state as JsonState).threads),
    keyOf: (state) => (state as JsonState).threads.map(keyOf).join('\n'),
    closingBytes(state) {
      let least = Infinity;
      for (const thread of (state as JsonState).threads) least = Math.min(least, bytesOf(thread));
      return least;
    },
    closing(state, maxBytes) {
      let best: Uint8Array | null = null;
      for (const thread of (state as JsonState).threads) {
        const bytes = closingOf(thread, maxBytes);
        if (bytes !== null && (best === null || bytes.length < best.length)) best = bytes;
      }
      return best;
    },
  };
}
