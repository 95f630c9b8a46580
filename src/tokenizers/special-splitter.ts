import { SPECIAL, SILENT, TOKEN, type Vocabulary } from './vocabulary.ts';

/** Receives the pieces of a text split at special tokens, in order. */
export interface SplitSink {
  text(piece: string): void;
  token(id: number): void;
}

export interface SpecialSplitter {
  readonly spellings: readonly string[];
  split(text: string, sink: SplitSink): void;
}

interface TrieNode {
  readonly children: Map<number, TrieNode>;
  id: number;
}

const ASCII_SPACE = /[ \t\n\v\f\r]/;

function createTrie(ids: readonly number[], texts: readonly string[]): TrieNode {
  const root: TrieNode = { children: new Map(), id: -1 };
  for (const id of ids) {
    let node = root;
    const text = texts[id]!;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      let child = node.children.get(unit);
      if (child === undefined) node.children.set(unit, (child = { children: new Map(), id: -1 }));
      node = child;
    }
    node.id = id;
  }
  return root;
}

/** A character class of first characters: most text contains none of them, and a regular expression skips fast. */
function firstUnitPattern(root: TrieNode): RegExp {
  const units = [...root.children.keys()].map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`);
  return new RegExp(`[${units.join('')}]`, 'g');
}

/**
 * Splits text at the spellings of special tokens like llama.cpp: longer spellings (in UTF-8 bytes) are matched first
 * everywhere, so the longer of two overlapping ones wins even if it starts later. One pass finds the candidates; only
 * overlapping ones need sorting.
 */
export function createSpecialSplitter(vocabulary: Vocabulary, which: 'all' | 'user-defined'): SpecialSplitter {
  const { texts, attributes } = vocabulary;
  const excluded = which === 'all' ? 0 : SILENT;
  const ids: number[] = [];
  for (let id = 0; id < texts.length; id++) {
    const bits = attributes[id]!;
    if ((bits & SPECIAL) !== 0 && (bits & excluded) === 0 && texts[id] !== '') ids.push(id);
  }
  const spellings = ids.map((id) => texts[id]!);
  if (ids.length === 0) {
    return { spellings, split: (text, sink) => (text === '' ? undefined : sink.text(text)) };
  }

  const encoder = new TextEncoder();
  const order = new Map<number, number>();
  const byLength = ids.map((id) => ({ id, sizeBytes: encoder.encode(texts[id]!).length }));
  byLength.sort((a, b) => b.sizeBytes - a.sizeBytes || a.id - b.id);
  byLength.forEach(({ id }, index) => order.set(id, index));
  const root = createTrie(ids, texts);
  const candidates = firstUnitPattern(root);

  /** The longest spelling at `start`; adds every match to `matches`. */
  const matchAt = (text: string, start: number, matches: Set<number>): number => {
    let longest = -1;
    let node: TrieNode | undefined = root;
    for (let i = start; i < text.length; i++) {
      node = node.children.get(text.charCodeAt(i));
      if (node === undefined) break;
      if (node.id >= 0) matches.add((longest = node.id));
    }
    return longest;
  };

  /** Resolves overlaps in [start, end): tokens in order, each over the text left by the previous ones. */
  const resolve = (text: string, start: number, end: number, matches: Set<number>): [number, number][] => {
    const placed: [number, number][] = [];
    let free: [number, number][] = [[start, end]];
    for (const id of [...matches].sort((a, b) => order.get(a)! - order.get(b)!)) {
      const spelling = texts[id]!;
      const left: [number, number][] = [];
      for (const [from, to] of free) {
        // Slicing limits the search: indexOf would continue to the end of the text.
        const stretch = text.slice(from, to);
        let position = 0;
        for (;;) {
          const at = stretch.indexOf(spelling, position);
          if (at < 0) break;
          placed.push([from + at, id]);
          if (at > position) left.push([from + position, from + at]);
          position = at + spelling.length;
        }
        if (from + position < to) left.push([from + position, to]);
      }
      free = left;
    }
    return placed.sort((a, b) => a[0] - b[0]);
  };

  /** Start and id of every special token, in order. */
  const find = (text: string): [number, number][] => {
    const places: [number, number][] = [];
    candidates.lastIndex = 0;
    while (candidates.test(text)) {
      const start = candidates.lastIndex - 1;
      const matches = new Set<number>();
      const first = matchAt(text, start, matches);
      if (first < 0) continue;
      let end = start + texts[first]!.length;
      let isSimple = true;
      while (candidates.test(text) && candidates.lastIndex <= end) {
        const at = candidates.lastIndex - 1;
        const inner = matchAt(text, at, matches);
        if (inner >= 0 && at + texts[inner]!.length > end) {
          end = at + texts[inner]!.length;
          isSimple = false;
        }
      }
      if (isSimple) places.push([start, first]);
      else for (const place of resolve(text, start, end, matches)) places.push(place);
      candidates.lastIndex = end;
    }
    return places;
  };

  return {
    spellings,
    split(text, sink) {
      let position = 0;
      for (const [start, id] of find(text)) {
        let end = start;
        if ((attributes[id]! & TOKEN.stripLeft) !== 0) {
          while (end > position && ASCII_SPACE.test(text[end - 1]!)) end--;
        }
        if (end > position) sink.text(text.slice(position, end));
        sink.token(id);
        position = start + texts[id]!.length;
        if ((attributes[id]! & TOKEN.stripRight) !== 0) {
          while (position < text.length && ASCII_SPACE.test(text[position]!)) position++;
        }
      }
      if (position < text.length) sink.text(text.slice(position));
    },
  };
}
