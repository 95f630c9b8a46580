import { dfaStep } from '../automata/dfa.ts';
import type { Dfa } from '../automata/automaton.ts';
import type { Distances } from '../automata/dfa-measures.ts';
import { cheapestCode, jsonCost, listTexts, measureDistances } from '../automata/dfa-measures.ts';
import { completeNumber } from '../numbers/number-text.ts';
import type { ObjectAlternative } from '../schema/alternatives.ts';
import { jsonTextBytes } from '../schema/json-text.ts';
import type { Solver } from '../schema/unique-items.ts';
import { writeText } from '../schema/solver.ts';
import type { JsonProgress } from './json-progress.ts';
import { missingSpace, UNDECIDED } from './layout.ts';
import type { CharacterState } from './string-lexer.ts';
import { BETWEEN, finishCharacter, possibleCodes } from './string-lexer.ts';
import type { ArrayThread, Frame, KeyThread, ObjectThread, StartThread, TextThread, Thread } from './threads.ts';

/** Completes the innermost open part of a thread, without the levels around it. */
export interface LocalClosing {
  /** The shortest completion; null if longer than `maxBytes`. */
  close(thread: Thread, maxBytes: number): Uint8Array | null;
  /** One more property or item, for a container that must not end here. */
  grow(thread: ObjectThread | ArrayThread, maxBytes: number): Uint8Array | null;
  /** Bytes of the shortest completion and the level afterwards. Nothing is written: a minimum may be a billion. */
  measure(thread: Thread): { readonly bytes: number; readonly around: Frame | null };
}

const encoder = new TextEncoder();
// Longer completions are counted, not written.
const MAX_WRITTEN = 1_000;
const inner = (text: string): string => JSON.stringify(text).slice(1, -1);

/** White space that must come first. */
const spaceBefore = (thread: StartThread | ObjectThread | ArrayThread): string =>
  missingSpace({ gap: thread.gap, unit: thread.kind === 'start' ? (thread.up?.unit ?? UNDECIDED) : thread.unit });

function join(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const chunks = parts.map((part) => (typeof part === 'string' ? encoder.encode(part) : part));
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** Completes an unfinished character so that the least remains to write; `after` is the cost from a state on. */
function finishBest(dfa: Dfa, state: number, character: CharacterState, after: (state: number) => number) {
  let best: { bytes: Uint8Array; state: number; code: number } | null = null;
  let least = Infinity;
  const codes = possibleCodes(character);
  const consider = (code: number, to: number): void => {
    if (after(to) === Infinity) return;
    const bytes = finishCharacter(character, code);
    if (bytes.length + after(to) >= least) return;
    least = bytes.length + after(to);
    best = { bytes, state: to, code };
  };
  for (const letter of [34, 92, 47, 8, 12, 10, 13, 9]) {
    const to = dfaStep(dfa, state, letter);
    const isPossible = codes.some((lo, i) => i % 2 === 0 && lo <= letter && letter <= codes[i + 1]!);
    if (to >= 0 && isPossible) consider(letter, to);
  }
  for (let e = dfa.offsets[state]!; e < dfa.offsets[state + 1]!; e++) {
    for (let i = 0; i < codes.length; i += 2) {
      const lo = Math.max(dfa.lo[e]!, codes[i]!);
      const hi = Math.min(dfa.hi[e]!, codes[i + 1]!);
      if (lo <= hi) consider(cheapestCode(lo, hi, jsonCost), dfa.to[e]!);
    }
  }
  return best as { bytes: Uint8Array; state: number; code: number } | null;
}

export function createLocalClosing(progress: JsonProgress, solver: Solver): LocalClosing {
  const { fuel } = progress;
  const distances = new WeakMap<ObjectAlternative, Map<number, Distances>>();
  const distanceTo = (object: ObjectAlternative, label: number): Distances => {
    let known = distances.get(object);
    if (known === undefined) distances.set(object, (known = new Map()));
    let found = known.get(label);
    if (found === undefined) {
      known.set(label, (found = measureDistances(object.names, jsonCost, fuel, (one) => one === label)));
    }
    return found;
  };

  const closeText = (thread: TextThread, maxBytes: number): Uint8Array | null => {
    const { text, watch } = thread;
    if (text.min - thread.length > maxBytes) return null;
    let { state, length, read } = thread;
    let head: Uint8Array = new Uint8Array(0);
    if (thread.character !== BETWEEN) {
      const found = finishBest(text.dfa, state, thread.character, (q) => text.distances.bytes[q]!);
      if (found === null) return null;
      head = found.bytes;
      state = found.state;
      length++;
      read += String.fromCodePoint(found.code);
    }
    const excluded = watch?.excluded ?? [];
    const shortest = writeText(text, state, length);
    if (!excluded.includes(JSON.stringify(read + shortest))) return join(head, inner(shortest), '"');
    const pad = 'a'.repeat(Math.max(0, text.min - length));
    const tail = listTexts(text.dfa, excluded.length + 2, fuel, undefined, state).find((one) => {
      const fits = length + [...pad, ...one].length <= text.max;
      return fits && !excluded.includes(JSON.stringify(read + pad + one));
    });
    return tail === undefined ? null : join(head, inner(pad + tail), '"');
  };

  const value = (start: StartThread, maxBytes: number): string | null =>
    start.watch === null || start.watch.excluded.length === 0
      ? solver.witness(start.goal, maxBytes)
      : solver.unique.pick(start.goal, start.watch.excluded);

  /** Bytes of the value and of the rest of the object. */
  const afterKey = (start: StartThread): number =>
    solver.cost(start.goal) + (progress.planObject(start.up as ObjectThread)?.bytes ?? Infinity);

  const cheapestStart = (starts: readonly StartThread[]): StartThread | null => {
    let best: StartThread | null = null;
    for (const start of starts) if (best === null || afterKey(start) < afterKey(best)) best = start;
    return best;
  };

  const findKey = (thread: KeyThread) => {
    const { object, state, character, read } = thread;
    let best: { head: Uint8Array; name: string; start: StartThread } | null = null;
    let least = Infinity;
    for (const label of object.object.reachable[state]!) {
      fuel.burn(1, 'closing');
      const distance = distanceTo(object.object, label);
      let from = { bytes: new Uint8Array(0), state, code: -1 };
      if (character !== BETWEEN) {
        const found = finishBest(object.object.names, state, character, (q) => distance.bytes[q]!);
        if (found === null) continue;
        from = found as typeof from;
      }
      if (distance.bytes[from.state] === Infinity) continue;
      const start = read + (from.code < 0 ? '' : String.fromCodePoint(from.code));
      const names = listTexts(object.object.names, object.others.length + 1, fuel, (one) => one === label, from.state);
      const name = names.find((tail) => !object.others.some((other) => other.name === start + tail));
      if (name === undefined) continue;
      const next = cheapestStart(progress.valuesOfKey(object, label, start + name));
      if (next === null) continue;
      const bytes = from.bytes.length + jsonTextBytes(name) + afterKey(next);
      if (bytes >= least) continue;
      least = bytes;
      best = { head: from.bytes, name, start: next };
    }
    return { best: best as { head: Uint8Array; name: string; start: StartThread } | null, bytes: least + 2 };
  };
  const closeKey = (thread: KeyThread, maxBytes: number): Uint8Array | null => {
    const { best } = findKey(thread);
    const text = best === null ? null : value(best.start, maxBytes);
    return text === null ? null : join(best!.head, inner(best!.name), '":', text);
  };
  const keyAt = (object: ObjectThread): KeyThread => ({ kind: 'key', object, state: 0, character: BETWEEN, read: '' });

  const closeArray = (thread: ArrayThread, maxBytes: number): string | null => {
    if (thread.array.unique !== null) {
      const values = solver.unique.complete(thread);
      return values === null ? null : `${thread.numItems > 0 && values.length > 0 ? ',' : ''}${values.join()}]`;
    }
    const plan = progress.planArray(thread);
    return plan === null ? null : solver.writeArray(plan, thread.numItems === 0, maxBytes);
  };

  const close = (thread: Thread, maxBytes: number): Uint8Array | null => {
    switch (thread.kind) {
      case 'start': {
        const text = value(thread, maxBytes);
        return text === null ? null : encoder.encode(spaceBefore(thread) + text);
      }
      case 'text':
        return closeText(thread, maxBytes);
      case 'number': {
        const rest = completeNumber(thread.set, thread.written, fuel);
        return rest === null ? null : encoder.encode(rest);
      }
      case 'literal':
        return encoder.encode(thread.word.slice(thread.at));
      case 'object': {
        if (thread.phase === 'after-comma') {
          const rest = closeKey(keyAt(thread), maxBytes);
          return rest === null ? null : join(spaceBefore(thread), '"', rest);
        }
        const plan = progress.planObject(thread);
        const text = plan === null ? null : solver.writeObject(plan, thread.phase === 'opened', maxBytes);
        return text === null ? null : encoder.encode(spaceBefore(thread) + text);
      }
      case 'key':
        return closeKey(thread, maxBytes);
      case 'colon': {
        const next = cheapestStart(thread.next)!;
        const text = value(next, maxBytes);
        return text === null ? null : join(':', text);
      }
      case 'array': {
        if (thread.isClosing) return encoder.encode(`${spaceBefore(thread)}]`);
        const text = closeArray(thread, maxBytes);
        return text === null ? null : encoder.encode(text);
      }
      default:
        return new Uint8Array(0);
    }
  };

  return {
    close,
    grow(thread, maxBytes) {
      if (thread.kind === 'array') {
        const text = solver.witness(thread.array.rest, maxBytes);
        return text === null ? null : encoder.encode(`${thread.numItems > 0 ? ',' : ''}${text}`);
      }
      const open = thread.object.classes.find((one) => one.name === null && one.size === Infinity);
      if (open === undefined) return null;
      const present = new Set(thread.others.map((other) => other.name));
      const name = open.texts(present.size + 1).find((one) => !present.has(one))!;
      const text = solver.witness(open.goal, maxBytes);
      const comma = thread.phase === 'after-value' ? ',' : '';
      return text === null ? null : encoder.encode(`${comma}${JSON.stringify(name)}:${text}`);
    },
    measure(thread) {
      switch (thread.kind) {
        case 'start':
          return { bytes: spaceBefore(thread).length + solver.cost(thread.goal), around: thread.up };
        case 'text': {
          const missing = thread.text.min - thread.length;
          const bytes = missing > MAX_WRITTEN ? missing + 1 : (closeText(thread, Infinity)?.length ?? Infinity);
          return { bytes, around: thread.up };
        }
        case 'object': {
          const numSpaces = spaceBefore(thread).length;
          if (thread.phase === 'after-comma') {
            return { bytes: numSpaces + 1 + findKey(keyAt(thread)).bytes, around: thread.up };
          }
          return { bytes: numSpaces + (progress.planObject(thread)?.bytes ?? Infinity), around: thread.up };
        }
        case 'key':
          return { bytes: findKey(thread).bytes, around: thread.object.up };
        case 'colon': {
          const next = cheapestStart(thread.next)!;
          return { bytes: 1 + afterKey(next), around: (next.up as ObjectThread).up };
        }
        case 'array':
          if (thread.isClosing) return { bytes: spaceBefore(thread).length + 1, around: thread.up };
          return { bytes: progress.planArray(thread)?.bytes ?? Infinity, around: thread.up };
        case 'done':
          return { bytes: 0, around: null };
        default:
          return { bytes: close(thread, Infinity)?.length ?? Infinity, around: thread.up };
      }
    },
  };
}
