import { createCountedPages } from './counted-pages.ts';
import { importBuilt } from './dist.ts';
import { median } from './report.ts';

const { createPrefixTree } =
  await importBuilt<typeof import('../../src/kv-cache/prefix-tree.ts')>('kv-cache/prefix-tree');
const { createRandom } = await importBuilt<typeof import('../../src/core/random.ts')>('core/random');

const PAGE_TOKENS = 16;
const NUM_PAGES = 100_000;
const PROMPT_TOKENS = 4096;
const NUM_LOOKUPS = 2000;
const VOCAB_SIZE = 128_256;

export interface PrefixLookup {
  readonly numPages: number;
  readonly numNodes: number;
  /** Median and 99th percentile over all lookups, in µs. */
  readonly medianUs: number;
  readonly p99Us: number;
  /** Medians by the relation of the prompt to the tree. */
  readonly byKind: Readonly<Record<string, number>>;
}

/**
 * Time of one lookup of 4,096 tokens in a tree of 100,000 pages: 40 shared prefixes of 10 to 100 pages, followed by
 * short questions, one long conversation in twenty, forks of those, and unrelated prompts. A lookup hits completely,
 * leaves inside a page at a random place, hits only the shared prefix, or misses.
 */
export function measurePrefixLookup(): PrefixLookup {
  const random = createRandom(11);
  const nat = (end: number): number => Math.floor(random.next() * end);
  const fresh = (count: number): number[] => Array.from({ length: count }, () => nat(VOCAB_SIZE));
  const pool = createCountedPages();
  const tree = createPrefixTree({ pageTokens: PAGE_TOKENS, retain: pool.retain, release: pool.release });
  const insert = (tokens: readonly number[]): void => {
    const pages = Array.from({ length: Math.ceil(tokens.length / PAGE_TOKENS) }, (_, index) =>
      pool.take({ tier: 'float', index, numRefs: 1 }),
    );
    tree.insert('', tokens, tokens.length, pages, 'ordinary');
    for (const page of pages) pool.release(page);
  };

  const beginnings = Array.from({ length: 40 }, () => fresh(PAGE_TOKENS * (10 + nat(90)) + nat(PAGE_TOKENS)));
  const conversations: number[][] = [];
  while (tree.numPages < NUM_PAGES) {
    const isFork = conversations.length > 0 && nat(4) === 0;
    const before = isFork ? conversations[nat(conversations.length)]! : beginnings[nat(beginnings.length)]!;
    const base = before.slice(0, isFork ? nat(before.length) : before.length);
    if (nat(20) > 0) {
      const isAlone = nat(3) === 0;
      insert([...(isAlone ? [] : base), ...fresh(20 + nat(300))]);
      continue;
    }
    while (base.length < PROMPT_TOKENS) {
      base.push(...fresh(100 + nat(500)));
      insert(base);
    }
    conversations.push(base.slice(0, PROMPT_TOKENS));
  }

  const kinds: Record<string, () => number[]> = {
    whole: () => [...conversations[nat(conversations.length)]!],
    left: () => {
      const prefix = conversations[nat(conversations.length)]!.slice(0, nat(PROMPT_TOKENS));
      return [...prefix, ...fresh(PROMPT_TOKENS - prefix.length)];
    },
    beginning: () => {
      const prefix = beginnings[nat(beginnings.length)]!;
      return [...prefix, ...fresh(PROMPT_TOKENS - prefix.length)];
    },
    unknown: () => fresh(PROMPT_TOKENS),
  };
  const names = Object.keys(kinds);
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]]));
  let numHits = 0;
  for (let i = 0; i < NUM_LOOKUPS; i++) {
    const name = names[i % names.length]!;
    // The engine has prompts in both forms; a search that suits only one would be slow with the other.
    const prompt = nat(2) === 0 ? Int32Array.from(kinds[name]!()) : kinds[name]!();
    const start = performance.now();
    numHits += tree.match('', prompt).pages.length;
    times[name]!.push((performance.now() - start) * 1000);
  }
  if (numHits === 0) throw new Error('no lookup had a hit');
  const all = Object.values(times).flat();
  return {
    numPages: tree.numPages,
    numNodes: tree.numNodes,
    medianUs: median(all),
    p99Us: all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)]!,
    byKind: Object.fromEntries(names.map((name) => [name, median(times[name]!)])),
  };
}
