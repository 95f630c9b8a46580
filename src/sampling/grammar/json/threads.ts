import type { ArrayAlternative, ObjectAlternative, TextAlternative } from '../schema/alternatives.ts';
import type { Formula } from '../schema/formula-types.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import type { CharacterState } from './string-lexer.ts';

/**
 * A thread follows one choice of alternatives through the text: its obligations are fixed, so each nesting level can be completed
 * separately, and a thread is alive exactly if every level is. Threads are immutable; `up` is the enclosing level in the state it
 * will have when the inner value is complete.
 */
export type Thread =
  | StartThread
  | TextThread
  | NumberThread
  | LiteralThread
  | ObjectThread
  | KeyThread
  | ColonThread
  | ArrayThread
  | DoneThread;

/** A level around a value. */
export type Frame = ObjectThread | ArrayThread;

/** Set by an enclosing `uniqueItems`: it needs the value's canonical text, which must not be one of these. */
export interface Watch {
  readonly excluded: readonly string[];
}

/** Before a value. */
export interface StartThread {
  readonly kind: 'start';
  readonly goal: Formula;
  /** White space that may or must come. */
  readonly gap: number;
  readonly depth: number;
  readonly up: Frame | null;
  readonly watch: Watch | null;
}

/** Inside a string value. */
export interface TextThread {
  readonly kind: 'text';
  readonly text: TextAlternative;
  readonly state: number;
  readonly length: number;
  readonly character: CharacterState;
  readonly up: Frame | null;
  readonly watch: Watch | null;
  /** The text read, only under a watch. */
  readonly read: string;
}

export interface NumberThread {
  readonly kind: 'number';
  readonly set: NumberSet;
  readonly written: string;
  readonly up: Frame | null;
  readonly watch: Watch | null;
}

/** Inside null, true or false. */
export interface LiteralThread {
  readonly kind: 'literal';
  readonly word: string;
  readonly at: number;
  readonly up: Frame | null;
  readonly watch: Watch | null;
}

/** Inside an object, between names and values. */
export interface ObjectThread {
  readonly kind: 'object';
  readonly object: ObjectAlternative;
  readonly phase: 'opened' | 'after-value' | 'after-comma' | 'closing';
  readonly numKeys: number;
  readonly labels: readonly number[];
  readonly others: readonly { readonly label: number; readonly name: string }[];
  readonly someBits: number;
  readonly gap: number;
  /** Indent per level; see `layout.ts`. */
  readonly unit: number;
  readonly depth: number;
  readonly up: Frame | null;
  readonly watch: Watch | null;
  /** Name and canonical value of each property, only under a watch; the last lacks its value while it is read. */
  readonly read: readonly string[] | null;
}

/** Inside a property name. */
export interface KeyThread {
  readonly kind: 'key';
  readonly object: ObjectThread;
  readonly state: number;
  readonly character: CharacterState;
  readonly read: string;
}

/** After a name. */
export interface ColonThread {
  readonly kind: 'colon';
  readonly next: readonly StartThread[];
}

/** Inside an array, after its bracket or an item. */
export interface ArrayThread {
  readonly kind: 'array';
  readonly array: ArrayAlternative;
  readonly numItems: number;
  readonly counts: readonly number[];
  readonly gap: number;
  readonly unit: number;
  /** The line before the bracket has begun. */
  readonly isClosing: boolean;
  readonly depth: number;
  readonly up: Frame | null;
  readonly watch: Watch | null;
  /** Canonical items so far, only under a watch or `uniqueItems`. */
  readonly read: readonly string[] | null;
}

export interface DoneThread {
  readonly kind: 'done';
}

export const DONE: DoneThread = { kind: 'done' };

const frameKeys = new WeakMap<Frame, string>();

function frameKey(frame: Frame | null): string {
  if (frame === null) return '';
  let key = frameKeys.get(frame);
  if (key === undefined) frameKeys.set(frame, (key = keyOf(frame)));
  return key;
}

const watchKey = (watch: Watch | null): string => (watch === null ? '' : JSON.stringify(watch.excluded));
export const characterKey = ({ mode, missing, bits }: CharacterState): string =>
  mode === 0 ? '' : `${mode}.${missing}.${bits}`;

type Keys = { [K in Thread['kind']]: (thread: Extract<Thread, { kind: K }>) => string };

const KEYS: Keys = {
  start: (t) => `S${t.goal.id},${t.gap},${t.depth},${watchKey(t.watch)}<${frameKey(t.up)}`,
  text: (t) =>
    `T${t.text.dfa.id},${t.text.min},${t.text.max},${t.state},${t.text.min + finite(t.text.max) > 0 ? t.length : 0},${characterKey(t.character)},${watchKey(t.watch)},${JSON.stringify(t.read)}<${frameKey(t.up)}`,
  number: (t) => `N${idOf(t.set)},${t.written},${watchKey(t.watch)}<${frameKey(t.up)}`,
  literal: (t) => `L${t.word},${t.at},${watchKey(t.watch)}<${frameKey(t.up)}`,
  object: (t) =>
    `O${idOf(t.object)},${t.phase},${t.numKeys},${t.labels.join()},${t.others.length === 0 ? '' : JSON.stringify(t.others)},${t.someBits},${t.gap},${t.unit},${watchKey(t.watch)},${t.read === null ? '' : JSON.stringify(t.read)}<${frameKey(t.up)}`,
  key: (t) => `K${t.state},${characterKey(t.character)},${JSON.stringify(t.read)}<${frameKey(t.object)}`,
  colon: (t) => `C${t.next.map(keyOf).join('+')}`,
  array: (t) =>
    `A${idOf(t.array)},${t.numItems},${t.counts.join()},${t.gap},${t.unit},${t.isClosing ? ']' : ''},${watchKey(t.watch)},${t.read === null ? '' : JSON.stringify(t.read)}<${frameKey(t.up)}`,
  done: () => 'D',
};

const finite = (max: number): number => (max === Infinity ? 0 : 1);
const ids = new WeakMap<object, number>();
let lastId = 0;

export function idOf(object: object): number {
  let id = ids.get(object);
  if (id === undefined) ids.set(object, (id = ++lastId));
  return id;
}

/** Equal for threads that accept the same continuations. */
export function keyOf(thread: Thread): string {
  return (KEYS[thread.kind] as (thread: Thread) => string)(thread);
}
