import { classOfByte } from './byte-classes.ts';
import { BETWEEN, RESULT, nextState, readByte } from './json/string-lexer.ts';

/**
 * Token texts as a byte trie in flat arrays, nodes in depth-first order: node 0 is the root, a node's subtree ends at
 * `skip`. Tokens are sorted by text, so those below a node are one range.
 */
export interface TokenTrie {
  readonly numNodes: number;
  /** The byte, or mark, that leads to the node. */
  readonly bytes: Uint16Array;
  readonly depths: Uint16Array;
  readonly skip: Int32Array;
  /** Tokens at or below the node are sorted[first[node]] to sorted[first[skip[node]]]; those at it end at own[node]. */
  readonly first: Int32Array;
  readonly own: Int32Array;
  readonly sorted: Int32Array;
  /** Bit d: read from byte d on inside a JSON string, all tokens at or below the node stay inside it. */
  readonly contentBits: Uint32Array;
  /** Bytes of the longest token at or below the node, counted from the node. */
  readonly below: Uint16Array;
  /** Classes of the bytes from the node on, of all tokens at or below it. */
  readonly classesLow: Uint32Array;
  readonly classesHigh: Uint32Array;
}

export type Spelling = Uint8Array | Uint16Array;

const NUM_BITS = 32;

function compareBytes(a: Spelling, b: Spelling): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

function staysInString(bytes: Spelling, from: number): boolean {
  let state = BETWEEN;
  for (let i = from; i < bytes.length; i++) {
    const code = readByte(state, bytes[i]!);
    if (code === RESULT.quote || code === RESULT.invalid) return false;
    state = code === RESULT.partial ? nextState : BETWEEN;
  }
  return true;
}

/** Bit d: read from byte d on inside a JSON string, the text stays inside it. */
export function contentBitsOf(bytes: Spelling): number {
  let bits = 0;
  for (let d = 0; d <= Math.min(bytes.length, NUM_BITS - 1); d++) if (staysInString(bytes, d)) bits |= 1 << d;
  return bits >>> 0;
}

/** Builds the trie of the token texts; none is empty. */
export function createTokenTrie(texts: ReadonlyMap<number, Spelling>): TokenTrie {
  const sorted = Int32Array.from(texts.keys()).sort((a, b) => compareBytes(texts.get(a)!, texts.get(b)!) || a - b);

  const bytes: number[] = [0];
  const depths: number[] = [0];
  const first: number[] = [0];
  const own: number[] = [0];
  const skip: number[] = [0];
  const path: number[] = [0];
  let previous: Spelling = new Uint8Array(0);
  sorted.forEach((id, position) => {
    const text = texts.get(id)!;
    let shared = 0;
    while (shared < text.length && shared < previous.length && text[shared] === previous[shared]) shared++;
    for (let depth = path.length - 1; depth > shared; depth--) skip[path.pop()!] = bytes.length;
    for (let depth = shared; depth < text.length; depth++) {
      path.push(bytes.length);
      bytes.push(text[depth]!);
      depths.push(depth + 1);
      first.push(position);
      own.push(position);
      skip.push(0);
    }
    own[path.at(-1)!] = position + 1;
    previous = text;
  });
  while (path.length > 0) skip[path.pop()!] = bytes.length;
  first.push(sorted.length);

  const contentBits = new Uint32Array(bytes.length).fill(0xffffffff);
  // Children come after their parents: backwards, each node is complete before its parent reads it.
  const parents = new Int32Array(bytes.length);
  const open: number[] = [];
  for (let node = 0; node < bytes.length; node++) {
    open.length = depths[node]!;
    parents[node] = open.at(-1) ?? 0;
    open.push(node);
    // One result per spelling.
    if (own[node]! > first[node]!) contentBits[node] = contentBitsOf(texts.get(sorted[first[node]!]!)!);
  }
  const below = new Uint16Array(bytes.length);
  const classesLow = new Uint32Array(bytes.length);
  const classesHigh = new Uint32Array(bytes.length);
  for (let node = bytes.length - 1; node > 0; node--) {
    const parent = parents[node]!;
    contentBits[parent]! &= contentBits[node]!;
    below[parent] = Math.max(below[parent]!, below[node]! + 1);
    const number = classOfByte(bytes[node]!);
    if (number < 32) classesLow[node]! |= 1 << number;
    else classesHigh[node]! |= 1 << (number - 32);
    classesLow[parent]! |= classesLow[node]!;
    classesHigh[parent]! |= classesHigh[node]!;
  }
  return {
    numNodes: bytes.length,
    bytes: Uint16Array.from(bytes),
    depths: Uint16Array.from(depths),
    skip: Int32Array.from(skip),
    first: Int32Array.from(first),
    own: Int32Array.from(own),
    sorted,
    contentBits,
    below,
    classesLow,
    classesHigh,
  };
}
