import { RuvLLMError } from '../core/errors.ts';

/** Breaks spellings of control tokens in text that is not the template's own. */
export interface ControlGuard {
  /** The character put inside; it occurs in none of the texts, the template or the spellings. */
  readonly guard: string;
  /** `text` with the guard after the first character of every spelling, overlapping ones included. */
  protect(text: string): string;
}

/**
 * Where a guard is looked for: noncharacters first, which no well-formed text contains, then the private use area.
 * All are one UTF-16 unit.
 */
const CANDIDATE_RANGES: readonly (readonly [number, number])[] = [
  [0xfdd0, 0xfdef],
  [0xe000, 0xf8ff],
];

interface TrieNode {
  readonly next: Map<number, TrieNode>;
  isEnd: boolean;
}

/** A prompt of one letter is no control token, and nothing can be put inside it. */
const MIN_SPELLING_CHARS = 2;

function buildTrie(spellings: readonly string[]): TrieNode {
  const root: TrieNode = { next: new Map(), isEnd: false };
  for (const spelling of spellings) {
    if ([...spelling].length < MIN_SPELLING_CHARS) continue;
    let node = root;
    for (let i = 0; i < spelling.length; i++) {
      const unit = spelling.charCodeAt(i);
      let child = node.next.get(unit);
      if (child === undefined) node.next.set(unit, (child = { next: new Map(), isEnd: false }));
      node = child;
    }
    node.isEnd = true;
  }
  return root;
}

function startsSpelling(root: TrieNode, text: string, start: number): boolean {
  let node: TrieNode | undefined = root;
  for (let i = start; i < text.length; i++) {
    node = node.next.get(text.charCodeAt(i));
    if (node === undefined) return false;
    if (node.isEnd) return true;
  }
  return false;
}

function chooseGuard(texts: Iterable<string>): string {
  const used = new Set<number>();
  for (const text of texts) {
    for (const { 0: char } of text.matchAll(/[\ue000-\uf8ff\ufdd0-\ufdef]/g)) used.add(char.charCodeAt(0));
  }
  for (const [first, last] of CANDIDATE_RANGES) {
    for (let unit = first; unit <= last; unit++) if (!used.has(unit)) return String.fromCharCode(unit);
  }
  throw new RuvLLMError('template_error', `no guard character is available: the text uses all ${used.size}`);
}

/** Prepares the search once per vocabulary; the returned function makes a guard for one conversation's texts. */
export function createControlGuards(spellings: readonly string[]): (texts: Iterable<string>) => ControlGuard {
  const trie = buildTrie(spellings);
  return (texts) => {
    const guard = chooseGuard([...texts, ...spellings]);
    return {
      guard,
      protect(text) {
        let result = '';
        let copied = 0;
        for (let i = 0; i < text.length; i++) {
          if (!startsSpelling(trie, text, i)) continue;
          // Whole code points only: half a surrogate pair would not survive UTF-8.
          const cut = i + ((text.codePointAt(i) as number) > 0xffff ? 2 : 1);
          result += text.slice(copied, cut) + guard;
          copied = cut;
        }
        return result + text.slice(copied);
      },
    };
  };
}

/** The text as people should see it: without the guard characters. */
export function stripGuard(text: string, guard: string): string {
  return guard === '' ? text : text.replaceAll(guard, '');
}

/** Every string inside `value`, keys included. */
export function* stringsOf(value: unknown, depth = 0): Generator<string> {
  if (typeof value === 'string') yield value;
  // Deeper data is refused by the template's own depth limit; here it must only not overflow the stack.
  if (typeof value !== 'object' || value === null || depth > 1_000) return;
  for (const [key, item] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* stringsOf(item, depth + 1);
  }
}
