// Hit rate of the prefix cache on a trace of block hashes, by number of pages: ours, plain LRU over the same tree, and
// an eviction that knows the future.
import { existsSync } from 'node:fs';
import type { PageValue } from '../src/kv-cache/leaf-order.ts';
import { readBlockTrace, type BlockTrace } from './support/block-trace.ts';
import { createCountedPages, type CountedPage } from './support/counted-pages.ts';
import { importBuilt } from './support/dist.ts';
import { printTable } from './support/report.ts';

const { createPrefixTree } = await importBuilt<typeof import('../src/kv-cache/prefix-tree.ts')>('kv-cache/prefix-tree');
const { valueOfPage } = await importBuilt<typeof import('../src/kv-cache/leaf-order.ts')>('kv-cache/leaf-order');

const PAGE_TOKENS = 16;
const SHARES = [10, 25, 50, 75];

interface TracePage extends CountedPage {
  nextUse: number;
}

/** A page is never used before its parent, so the page with the latest next use is always a leaf. */
const POLICIES: Record<string, PageValue> = {
  ours: valueOfPage,
  lru: ({ lastUse }) => lastUse,
  offline: ({ page }) => -(page as TracePage).nextUse,
};

/** Cached tokens when every prompt is looked up, computed and kept, with at most `numPages` pages. */
function replay({ requests }: BlockTrace, numPages: number, value: PageValue): number {
  const pool = createCountedPages<TracePage>();
  const tree = createPrefixTree({ pageTokens: PAGE_TOKENS, retain: pool.retain, release: pool.release, value });
  let totalCached = 0;
  for (const { tokens, blockIds, nextUses } of requests) {
    const { pages, partial } = tree.match('', tokens);
    const numCached = pages.length * PAGE_TOKENS + (partial?.numTokens ?? 0);
    totalCached += numCached;
    tree.touch('', tokens, numCached);
    for (const page of pages) pool.retain(page);
    const missing = blockIds.slice(pages.length);
    const hasRoom = (): boolean => pool.numUsed + missing.length <= numPages;
    if (!hasRoom()) tree.evict({ retention: 'session', isEnough: hasRoom });
    if (!hasRoom()) throw new Error(`a request of ${blockIds.length} pages does not fit into ${numPages}`);
    const fresh = missing.map((index) => pool.take({ tier: 'float', index, numRefs: 1, nextUse: 0 }));
    const mine = [...pages, ...fresh];
    const inserted = tree.insert('', tokens, tokens.length, mine, 'ordinary');
    inserted.forEach((page, i) => ((page as TracePage).nextUse = nextUses[i]!));
    for (const page of mine) pool.release(page);
  }
  tree.checkIntegrity();
  return totalCached;
}

const file = '../shared/suites/traces/mooncake-synthetic.jsonl';
if (!existsSync(file)) {
  console.log(`skipped: no trace at ${file}`);
  process.exit(0);
}
const trace = readBlockTrace(file, PAGE_TOKENS);
const rate = (numTokens: number): number => Number((numTokens / trace.numTokens).toFixed(4));
const percent = (value: number): string => (100 * value).toFixed(2);
const start = performance.now();
const ideal = rate(trace.numKnownTokens);
const unlimited = rate(replay(trace, Infinity, valueOfPage));
const result: Record<string, number> = { trace_hit_rate: unlimited, trace_ideal: ideal };
const rows = SHARES.map((share) => {
  const rates = Object.entries(POLICIES).map(([name, value]) => {
    const hitRate = rate(replay(trace, Math.floor((trace.numBlocks * share) / 100), value));
    result[`trace_${name === 'ours' ? 'hit' : name}_${share}`] = hitRate;
    return percent(hitRate);
  });
  return [`${share} %`, ...rates];
});
console.log(
  `${trace.requests.length} requests, ${trace.numTokens} tokens in blocks of ${PAGE_TOKENS}, ${trace.numBlocks} distinct blocks; ` +
    `${((performance.now() - start) / 1000).toFixed(1)} s\n` +
    `best possible hit rate (leading blocks of earlier requests): ${percent(ideal)} % of the tokens`,
);
printTable([['room', ...Object.keys(POLICIES)], ['no limit', percent(unlimited), '', ''], ...rows]);
console.log(JSON.stringify({ bench: 'prefix-trace', ...result }));
