import { RuvLLMError } from '../core/errors.ts';

/** Breaks the spellings of control tokens in untrusted text. */
export interface ControlGuard {
  /** The inserted character; it occurs in none of the texts, the template or the spellings. */
  readonly guard: string;
  /**
   * `text` with the guard after the first character of every spelling, including overlapping ones; after that of a mark without a
   * token a space, which stays: the tokens of such a mark are those of its letters.
   */
  protect(text: string, isAnswer?: boolean): string;
}

/** Spellings that untrusted text must not have. */
export interface Spellings {
  readonly special: readonly string[];
  /** Special as well, but kept in answers of the assistant, where templates search for them. Default: none. */
  readonly ofAnswers?: readonly string[];
  /** Marks around turns that the vocabulary has no token for. Default: none. */
  readonly plain?: readonly string[];
}

/**
 * Ranges searched for a guard: first noncharacters, which well-formed text never contains, then the private use area.
 * All are one UTF-16 unit.
 */
const CANDIDATE_RANGES: readonly (readonly [number, number])[] = [
  [0xfdd0, 0xfdef],
  [0xe000, 0xf8ff],
];

interface TrieNode {
  readonly next: Map<number, TrieNode>;
  /** Of the spelling that ends here. */
  kind: keyof Spellings | null;
}

const createNode = (): TrieNode => ({ next: new Map(), kind: null });

/** A spelling of one letter is no control token and has no inside. */
const MIN_SPELLING_CHARS = 2;

function addSpellings(root: TrieNode, spellings: readonly string[], kind: keyof Spellings): void {
  for (const spelling of spellings) {
    if ([...spelling].length < MIN_SPELLING_CHARS) continue;
    let node = root;
    for (let i = 0; i < spelling.length; i++) {
      const unit = spelling.charCodeAt(i);
      let child = node.next.get(unit);
      if (child === undefined) node.next.set(unit, (child = createNode()));
      node = child;
    }
    node.kind ??= kind;
  }
}

/** The kind of the shortest spelling that starts here. */
function kindAt(root: TrieNode, text: string, start: number, isAnswer: boolean): keyof Spellings | null {
  let node: TrieNode | undefined = root;
  for (let i = start; i < text.length; i++) {
    node = node.next.get(text.charCodeAt(i));
    if (node === undefined) return null;
    if (node.kind !== null && !(isAnswer && node.kind === 'ofAnswers')) return node.kind;
  }
  return null;
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

/** Prepares the search once per vocabulary; the returned function creates a guard for one conversation. */
export function createControlGuards({
  special,
  ofAnswers = [],
  plain = [],
}: Spellings): (texts: Iterable<string>) => ControlGuard {
  const root = createNode();
  addSpellings(root, special, 'special');
  addSpellings(root, ofAnswers, 'ofAnswers');
  addSpellings(root, plain, 'plain');
  return (texts) => {
    const guard = chooseGuard([...texts, ...special, ...ofAnswers]);
    return {
      guard,
      protect(text, isAnswer = false) {
        let result = '';
        let copied = 0;
        for (let i = 0; i < text.length; i++) {
          const kind = kindAt(root, text, i, isAnswer);
          if (kind === null) continue;
          // Cut only between code points: half a surrogate pair would not survive UTF-8.
          const cut = i + ((text.codePointAt(i) as number) > 0xffff ? 2 : 1);
          result += text.slice(copied, cut) + (kind === 'plain' ? ' ' : guard);
          copied = cut;
        }
        return result + text.slice(copied);
      },
    };
  };
}

/** The text without guard characters, for display. */
export function stripGuard(text: string, guard: string): string {
  return guard === '' ? text : text.replaceAll(guard, '');
}

/** Every string inside `value`, keys included. */
export function* stringsOf(value: unknown, depth = 0): Generator<string> {
  if (typeof value === 'string') yield value;
  // The template's depth limit rejects deeper data later; this only avoids a stack overflow.
  if (typeof value !== 'object' || value === null || depth > 1_000) return;
  for (const [key, item] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* stringsOf(item, depth + 1);
  }
}
