import { RuvLLMError } from '../../core/errors.ts';
import { BETWEEN, RESULT, nextState, readByte } from './json/string-lexer.ts';
import type { TokenVocabulary } from './types.ts';
import { CONTROL_BEGIN, CONTROL_END } from './types.ts';

/**
 * A vocabulary as a byte trie in flat arrays, nodes in depth-first order: node 0 is the root, a node's subtree ends where
 * `skip` says. Tokens stand sorted by their bytes, so those below a node are one range. Control tokens are spelled between
 * marks, which sort behind all bytes.
 */
export interface TokenTable {
  readonly vocabulary: TokenVocabulary;
  readonly numWords: number;
  readonly numNodes: number;
  /** The node of the mark before control tokens; `numNodes` when there are none. */
  readonly controlNode: number;
  /** The byte, or mark, that leads to the node. */
  readonly bytes: Uint16Array;
  readonly depths: Uint16Array;
  readonly skip: Int32Array;
  /** Tokens at or below the node are sorted[first[node]] to sorted[first[skip[node]]]; at it, up to own[node]. */
  readonly first: Int32Array;
  readonly own: Int32Array;
  readonly sorted: Int32Array;
  /** Bit d: read from byte d on inside a JSON string, all tokens at or below the node stay inside it. */
  readonly contentBits: Uint32Array;
  /** Tokens whose bit 0 is set. */
  readonly contentMask: Uint32Array;
  /** Bytes of the longest token at or below the node, counted from the node. */
  readonly below: Uint16Array;
  /** The tokens of `contentMask` by their number of characters, the longest first, and those numbers. */
  readonly longest: Int32Array;
  readonly lengths: Int32Array;
}

// A longer token would overflow the depth; real ones have some hundred bytes at most.
const MAX_TOKEN_BYTES = 4_096;
const NUM_BITS = 32;

type Spelling = Uint8Array | Uint16Array;

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

/** Characters of a string's content; a broken one at the end counts, and an escape counts for no less than it is. */
function countStarts(bytes: Spelling): number {
  let count = 0;
  let state = BETWEEN;
  for (const byte of bytes) {
    if (state === BETWEEN) count++;
    state = readByte(state, byte) === RESULT.partial ? nextState : BETWEEN;
  }
  return count;
}

function contentBitsOf(bytes: Spelling): number {
  let bits = 0;
  for (let d = 0; d <= Math.min(bytes.length, NUM_BITS - 1); d++) if (staysInString(bytes, d)) bits |= 1 << d;
  return bits >>> 0;
}

/** What a control token is to a grammar that takes it. */
export function markControl(spelling: Uint8Array): Uint16Array {
  return Uint16Array.from([CONTROL_BEGIN, ...spelling, CONTROL_END]);
}

/** Prepares a vocabulary once, for all grammars. */
export function createTokenTable(vocabulary: TokenVocabulary): TokenTable {
  const { size } = vocabulary;
  const ends = new Set(vocabulary.endIds);
  const texts = new Map<number, Spelling>();
  for (let id = 0; id < size; id++) {
    if (ends.has(id)) continue;
    const bytes = vocabulary.bytes(id);
    if (bytes.length > MAX_TOKEN_BYTES) {
      throw new RuvLLMError('unsupported', `token ${id} has ${bytes.length} bytes, at most ${MAX_TOKEN_BYTES}`);
    }
    if (bytes.length > 0) texts.set(id, vocabulary.isControl(id) ? markControl(bytes) : bytes);
  }
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

  const numWords = (size + 31) >>> 5;
  const contentMask = new Uint32Array(numWords);
  const contentBits = new Uint32Array(bytes.length).fill(0xffffffff);
  // Children stand after their parents: from the back, each node is whole before its parent reads it.
  const parents = new Int32Array(bytes.length);
  const open: number[] = [];
  for (let node = 0; node < bytes.length; node++) {
    open.length = depths[node]!;
    parents[node] = open.at(-1) ?? 0;
    open.push(node);
    for (let i = first[node]!; i < own[node]!; i++) {
      const id = sorted[i]!;
      const bits = contentBitsOf(texts.get(id)!);
      contentBits[node]! &= bits;
      if ((bits & 1) === 1) contentMask[id >>> 5]! |= 1 << (id & 31);
    }
  }
  const below = new Uint16Array(bytes.length);
  for (let node = bytes.length - 1; node > 0; node--) {
    const parent = parents[node]!;
    contentBits[parent]! &= contentBits[node]!;
    below[parent] = Math.max(below[parent]!, below[node]! + 1);
  }
  const counts = new Map<number, number>();
  for (const [id, text] of texts)
    if (((contentMask[id >>> 5]! >>> (id & 31)) & 1) === 1) counts.set(id, countStarts(text));
  const longest = Int32Array.from(counts.keys()).sort((a, b) => counts.get(b)! - counts.get(a)!);
  const controlNode = bytes.indexOf(CONTROL_BEGIN);
  return {
    vocabulary,
    numWords,
    numNodes: bytes.length,
    controlNode: controlNode < 0 ? bytes.length : controlNode,
    bytes: Uint16Array.from(bytes),
    depths: Uint16Array.from(depths),
    skip: Int32Array.from(skip),
    first: Int32Array.from(first),
    own: Int32Array.from(own),
    sorted,
    contentBits,
    contentMask,
    below,
    longest,
    lengths: longest.map((id) => counts.get(id)!),
  };
}
