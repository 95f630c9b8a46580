import type { Fuel } from '../limits.ts';
import type { FreePart, Part, RawPart, RepeatPart, SequencePart } from './parts.ts';
import type { Frame, FreePlace, RawPlace, Thread } from './threads.ts';
import { DONE } from './threads.ts';

/** Moves between parts, which take no bytes. */
export interface Moves {
  enter(part: Part, up: Frame | null, out: Thread[]): void;
  leave(up: Frame | null, out: Thread[]): void;
  branchFrame(place: FreePlace): Frame;
}

// Places are cached while few: each count of a bounded repetition creates new ones.
const MAX_PLACES = 1_000;

const leastOf = (up: Frame | null): number => up?.least ?? 0;
const keyUnder = (head: string, up: Frame | null): string => (up === null ? head : `${head}<${up.key}`);

function sequenceFrame(part: SequencePart, next: number, up: Frame | null): Frame {
  let least = leastOf(up);
  for (let i = next; i < part.items.length; i++) least += part.items[i]!.least;
  return { kind: 'sequence', key: keyUnder(`s${part.id},${next}`, up), least, part, next, up };
}

/** Without a maximum, counts beyond the minimum are equivalent. */
function countUpTo(part: RepeatPart, count: number): number {
  return part.max === Infinity ? Math.min(count, Math.max(part.min, 1)) : count;
}

function repeatFrame(part: RepeatPart, kind: 'repeat' | 'separator', given: number, up: Frame | null): Frame {
  const count = countUpTo(part, given);
  const missing = Math.max(0, part.min - count) * (part.item.least + part.separator.least);
  const least = missing + (kind === 'separator' ? part.item.least : 0) + leastOf(up);
  return { kind, key: keyUnder(`${kind[0] === 'r' ? 'r' : 'p'}${part.id},${count}`, up), least, part, count, up };
}

export function createMoves(fuel: Fuel): Moves {
  const rawPlaces = new Map<string, RawPlace>();
  const freePlaces = new Map<string, FreePlace>();

  function keep<T>(places: Map<string, T>, part: Part, up: Frame | null, create: () => T): T {
    const key = keyUnder(`${part.id}`, up);
    let place = places.get(key);
    if (place === undefined) {
      if (places.size >= MAX_PLACES) places.clear();
      places.set(key, (place = create()));
    }
    return place;
  }
  const rawPlace = (part: RawPart, up: Frame | null): RawPlace =>
    keep(rawPlaces, part, up, () => ({ part, up, states: new Map() }));
  const freePlace = (part: FreePart, up: Frame | null): FreePlace =>
    keep(freePlaces, part, up, () => {
      const after: Thread[] = [];
      leave(up, after);
      return { part, up, states: [], after };
    });

  type Enter = { [K in Part['kind']]: (part: Extract<Part, { kind: K }>, up: Frame | null, out: Thread[]) => void };
  const entries: Enter = {
    text(part, up, out) {
      if (part.bytes.length === 0) leave(up, out);
      else out.push({ kind: 'text', part, at: 0, up });
    },
    json: (part, up, out) => out.push({ kind: 'json', part, state: part.grammar.start, without: 0, up }),
    raw: (part, up, out) =>
      out.push({ kind: 'raw', place: rawPlace(part, up), utf8: 0, until: 0, without: 0, count: 0 }),
    sequence: (part, up, out) => enterItem(part, 0, up, out),
    choice(part, up, out) {
      for (const item of part.items) enter(item, up, out);
    },
    repeat(part, up, out) {
      if (part.min === 0) leave(up, out);
      if (part.max > 0) enter(part.item, repeatFrame(part, 'repeat', 1, up), out);
    },
    free: (part, up, out) => out.push({ kind: 'free', place: freePlace(part, up), at: 0 }),
  };
  function enterItem(part: SequencePart, index: number, up: Frame | null, out: Thread[]): void {
    const last = part.items.length - 1;
    if (index > last) leave(up, out);
    else enter(part.items[index]!, index === last ? up : sequenceFrame(part, index + 1, up), out);
  }
  function enter(part: Part, up: Frame | null, out: Thread[]): void {
    fuel.burn(1, 'a token');
    (entries[part.kind] as (part: Part, up: Frame | null, out: Thread[]) => void)(part, up, out);
  }

  type Leave = { [K in Frame['kind']]: (frame: Extract<Frame, { kind: K }>, out: Thread[]) => void };
  const exits: Leave = {
    sequence: ({ part, next, up }, out) => enterItem(part, next, up, out),
    repeat({ part, count, up }, out) {
      if (count >= part.min) leave(up, out);
      if (part.max === Infinity || count < part.max) {
        enter(part.separator, repeatFrame(part, 'separator', count + 1, up), out);
      }
    },
    separator: ({ part, count, up }, out) => enter(part.item, repeatFrame(part, 'repeat', count, up), out),
    branch({ part, up }, out) {
      if (part.endsAfterBranch) leave(up, out);
      else out.push({ kind: 'free', place: freePlace(part, up), at: 0 });
    },
  };
  function leave(up: Frame | null, out: Thread[]): void {
    fuel.burn(1, 'a token');
    if (up === null) out.push(DONE);
    else (exits[up.kind] as (frame: Frame, out: Thread[]) => void)(up, out);
  }

  return {
    enter,
    leave,
    branchFrame: ({ part, up }) => ({ kind: 'branch', key: keyUnder(`b${part.id}`, up), least: leastOf(up), part, up }),
  };
}
