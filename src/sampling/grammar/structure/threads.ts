import type { GrammarState } from '../types.ts';
import { countKey } from './raw-bounds.ts';
import type { FreePart, JsonPart, RawPart, RepeatPart, SequencePart, TextPart } from './parts.ts';

/** The continuation after the current part. Immutable. `least` is the bytes of its shortest completion. */
export type Frame = { readonly key: string; readonly least: number; readonly up: Frame | null } & (
  | { readonly kind: 'sequence'; readonly part: SequencePart; readonly next: number }
  /** Around item number `count`, counted as far as it matters. */
  | { readonly kind: 'repeat'; readonly part: RepeatPart; readonly count: number }
  /** Around the separator before it. */
  | { readonly kind: 'separator'; readonly part: RepeatPart; readonly count: number }
  | { readonly kind: 'branch'; readonly part: FreePart }
);

/** One reading of the text so far. Immutable. */
export type Thread = TextThread | JsonThread | RawThread | FreeThread | DoneThread;

export interface TextThread {
  readonly kind: 'text';
  readonly part: TextPart;
  readonly at: number;
  readonly up: Frame | null;
}

export interface JsonThread {
  readonly kind: 'json';
  readonly part: JsonPart;
  readonly state: GrammarState;
  /** How much of `without` the JSON so far ends with. */
  readonly without: number;
  readonly up: Frame | null;
}

export interface RawThread {
  readonly kind: 'raw';
  readonly place: RawPlace;
  readonly utf8: number;
  readonly until: number;
  readonly without: number;
  /** Characters so far; 0 where they are not counted. */
  readonly count: number;
}

export interface FreeThread {
  readonly kind: 'free';
  readonly place: FreePlace;
  /** Place of the trigger search. */
  readonly at: number;
}

export interface DoneThread {
  readonly kind: 'done';
}

export const DONE: DoneThread = { kind: 'done' };

/** A part with what follows it; caches the states of long texts, which recur. */
export interface RawPlace {
  readonly part: RawPart;
  readonly up: Frame | null;
  readonly states: Map<number, StructureState>;
}

export interface FreePlace {
  readonly part: FreePart;
  readonly up: Frame | null;
  /** By place of the search, twice: outside and inside a control token. */
  readonly states: (StructureState | undefined)[];
  /** The continuation if the free part ends here. */
  readonly after: readonly Thread[];
}

export interface StructureState extends GrammarState {
  readonly threads: readonly Thread[];
  /** Between the marks around a control token: only literals and free text continue. */
  readonly isControl: boolean;
}

const upKey = (up: Frame | null): string => up?.key ?? '';

type Keys = { [K in Thread['kind']]: (thread: Extract<Thread, { kind: K }>, maxBytes: number) => string };

const KEYS: Keys = {
  text: (t) => `T${t.part.id},${t.at}<${upKey(t.up)}`,
  json: (t) => `J${t.part.id},${t.without},${t.part.grammar.keyOf(t.state)}<${upKey(t.up)}`,
  raw({ place: { part, up }, utf8, until, without, count }, maxBytes) {
    const counted = part.bounds === null ? '' : `,${countKey(part.bounds, count, maxBytes)}`;
    return `R${part.id},${utf8},${until},${without}${counted}<${upKey(up)}`;
  },
  free: (t) => `F${t.place.part.id},${t.at}<${upKey(t.place.up)}`,
  done: () => 'D',
};

/** Equal for threads that accept the same continuations of at most `maxBytes`. */
export function keyOf(thread: Thread, maxBytes: number): string {
  return (KEYS[thread.kind] as (thread: Thread, maxBytes: number) => string)(thread, maxBytes);
}
